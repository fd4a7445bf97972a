"""Connections to MCP servers: by command, by URL, in memory, or through a client that is there.

1. Each connection is entered and left in a task of its own, as the SDK's cancel scopes want it.
2. A server that cannot be reached is an error that says why; everything else goes on.
3. A connection that ends by itself is told to `on_lost`, once.
4. The connections made here say that Views can be shown (`io.modelcontextprotocol/ui`). One that
   was made elsewhere says what its owner made it say.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeGuard, cast

from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server as LowLevelServer
from mcp.server.mcpserver import MCPServer

from transom.errors import NotConnected, TransomError, UsageError
from transom.host.stderr import Stderr
from transom.host.streams import watched
from transom.host.upstream import ClientUpstream
from transom.host.view_server import WatchedUpstream
from transom.mcptypes import ui_extension

__all__ = ["Connection", "Target"]

Target = Any
"""What a server can be given as; see `Connection`."""

_GRACE = 10.0  # seconds a connection has to end: the SDK gives a process a few of them


class Connection:
    """One server.

    Args:
        name: what the host calls it.
        target: a command as a list of words, the URL of a streamable HTTP server, an `MCPServer`
            or `FastMCP` object, a connected client, or an `Upstream`.
        on_lost: told the reason when the connection ends by itself.
        timeout: seconds the server has to start and introduce itself.

    Raises:
        UsageError: `target` is none of these.
    """

    def __init__(
        self,
        name: str,
        target: Target,
        *,
        on_lost: Callable[[str], object],
        timeout: float = 30.0,
    ) -> None:
        self.name = name
        self._kind, self._open = _opener(target)
        self._on_lost = on_lost
        self._timeout = timeout
        self._upstream: WatchedUpstream | None = None
        self._started: asyncio.Future[None] | None = None
        self._stop = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self.lost: str | None = None
        """Why the connection ended, if it did."""

    @property
    def upstream(self) -> WatchedUpstream:
        """The server, to be asked.

        Raises:
            NotConnected: there is no connection, or no more.
        """
        if self._upstream is None or self.lost is not None:
            raise NotConnected(f"Server {self.name} is gone: {self.lost or 'never connected'}")
        return self._upstream

    async def start(self) -> None:
        """Connect.

        Raises:
            NotConnected: the server cannot be reached; the text says why.
        """
        self._started = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"transom-server-{self.name}")
        try:
            async with asyncio.timeout(self._timeout):
                await asyncio.shield(self._started)
        except TimeoutError:
            await self.stop()
            self._started.cancel()
            text = f"Server {self.name} ({self._kind}) did not answer within {self._timeout:g} s"
            raise NotConnected(text) from None
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Disconnect. Safe to repeat, and when it never started."""
        self._stopping = True
        self._stop.set()
        task = self._task
        if task is None or task is asyncio.current_task():
            return
        if self._upstream is None:
            task.cancel()  # it is still connecting
        done, _ = await asyncio.wait([task], timeout=_GRACE)
        if not done:
            task.cancel()
            await asyncio.wait([task], timeout=_GRACE)

    async def _run(self) -> None:
        reason = "the connection ended"
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._open(self._hung_up))
                self._upstream = _as_upstream(client)
                assert self._started is not None  # noqa: S101 - for the type checker
                if not self._started.done():
                    self._started.set_result(None)
                await self._stop.wait()
        except asyncio.CancelledError:
            reason = "cancelled"
        except Exception as error:  # noqa: BLE001 - a server's failure is told, never raised here
            reason = _reason(error)
        self._lose(reason)

    def _hung_up(self) -> None:
        if self._upstream is not None:  # else connecting fails, and tells why
            self.fail("the server closed the connection")

    def fail(self, reason: str) -> None:
        """Note that the server is gone. Whoever finds out first says so."""
        if not self._stopping:
            self._lose(reason)
        self._stop.set()

    def _lose(self, reason: str) -> None:
        if self._started is not None and not self._started.done():
            if not self._started.cancelled():
                text = f"Server {self.name} ({self._kind}) could not be connected: {reason}"
                self._started.set_exception(NotConnected(text))
            return
        if self.lost is None:
            self.lost = "it was removed" if self._stopping else reason
            if not self._stopping:
                self._on_lost(reason)


def _reason(error: BaseException) -> str:
    """What went wrong first, out of the groups the SDK wraps it in."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    text = " ".join(str(error).split())[:500]
    if isinstance(error, TransomError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# --- the ways to connect ---------------------------------------------------------------------

Open = Callable[[Callable[[], None]], Any]
"""Makes an async context manager of a connected client; takes what to call when it ends."""


def _opener(target: Target) -> tuple[str, Open]:
    if isinstance(target, str):
        if not target.startswith(("http://", "https://")):
            raise UsageError(
                f"{target!r} is no http or https URL; a command is a list, as in "
                f"{shlex.split(target) or ['python', 'server.py']}"
            )
        return target, lambda ended: _over_http(target, ended)
    if _is_command(target):
        command = [os.fspath(word) for word in target]
        return shlex.join(command), lambda ended: _by_command(command, ended)
    if isinstance(target, MCPServer | LowLevelServer):
        server = cast("MCPServer[Any]", target)
        return "in memory", lambda _: Client(server, extensions=[ui_extension()])
    if isinstance(target, Client | ClientSession):
        return "a client", lambda _: _as_it_is(target)
    if isinstance(target, WatchedUpstream):
        return "an upstream", lambda _: _as_it_is(target)
    return _fastmcp_opener(target)


def _as_upstream(connected: Any) -> WatchedUpstream:
    if isinstance(connected, WatchedUpstream):
        return connected
    return ClientUpstream.of(connected)


def _is_command(target: Target) -> TypeGuard[Sequence[str | Path]]:
    if not isinstance(target, list | tuple) or not target:
        return False
    return all(isinstance(word, str | Path) for word in cast("Sequence[object]", target))


def _fastmcp_opener(target: Target) -> tuple[str, Open]:
    # Whoever gives us one of its objects has loaded it; nobody else has to have it.
    if "fastmcp" in sys.modules:
        import fastmcp  # noqa: PLC0415

        if isinstance(target, fastmcp.FastMCP):
            server: Any = cast("Any", target)
            return "in memory", lambda _: fastmcp.Client(server, extensions=[ui_extension()])
        if isinstance(target, fastmcp.Client):
            client: Any = cast("Any", target)
            return "a client", lambda _: _as_it_is(client)
    raise UsageError(
        f"{type(target).__name__} is no server: give a command as a list, a URL, an MCPServer or "
        "FastMCP object, a connected client or an Upstream"
    )


@asynccontextmanager
async def _as_it_is(client: Any) -> AsyncGenerator[Any]:
    yield client


@asynccontextmanager
async def _over_http(url: str, ended: Callable[[], None]) -> AsyncGenerator[Client]:
    transport = watched(streamable_http_client(url), ended)
    async with Client(transport, extensions=[ui_extension()]) as client:
        yield client


@asynccontextmanager
async def _by_command(command: list[str], ended: Callable[[], None]) -> AsyncGenerator[Client]:
    parameters = StdioServerParameters(command=command[0], args=command[1:])
    async with Stderr() as stderr:
        transport = watched(stdio_client(parameters, stderr.file), ended)
        try:
            async with Client(transport, extensions=[ui_extension()]) as client:
                yield client
        except Exception as error:
            last = await stderr.last_words()
            if not last:
                raise
            raise NotConnected(f"{_reason(error)}; its last words: {last}") from error
