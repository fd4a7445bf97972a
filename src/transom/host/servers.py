"""The servers of a host: connected, their tools on the surface, their tools called."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from transom.errors import (
    ConnectionClosed,
    NotConnected,
    ProtocolError,
    RequestTimeout,
    TransomError,
    UsageError,
)
from transom.host.audit import AuditLog
from transom.host.connection import Connection, Target
from transom.host.refresh import Relist
from transom.host.surface import Change, Surface
from transom.host.tasks import owned_task
from transom.host.tool_names import check_server_name
from transom.host.view_server import Relay, Upstream
from transom.protocol.messages import TaskRequest
from transom.protocol.methods import read_result
from transom.protocol.peer import Progress
from transom.session import OnProgress
from transom.types import Task, Tool, ToolResult

__all__ = ["Servers"]

_TOOLS_CHANGED = "notifications/tools/list_changed"
_CLOSED = "Connection closed"  # what the SDK says when it is


class _Server:
    def __init__(self, connection: Connection, relist: Relist) -> None:
        self.connection = connection
        self.relist = relist
        self.unsubscribe: Callable[[], None] | None = None
        self.added = False


class _MaybeTask(msgspec.Struct):
    task: Task | None = None


class Servers:
    """Connects servers and keeps their tools on the surface.

    Args:
        surface: where their tools stand.
        audit: told of each call.
        stale: everything that is not up to date.
        interval: the least number of seconds between two listings of one server.
        on_changed: told the server and what became of its tools.
        on_lost: told the server and the reason when it went by itself.
        on_problem: told what went wrong when a server could not be listed.
    """

    def __init__(
        self,
        surface: Surface,
        audit: AuditLog,
        stale: set[Relist],
        *,
        interval: float,
        on_changed: Callable[[str, Change], object],
        on_lost: Callable[[str, str], object],
        on_problem: Callable[[BaseException], object],
    ) -> None:
        self._surface = surface
        self._audit = audit
        self._stale = stale
        self._interval = interval
        self._on_changed = on_changed
        self._on_lost = on_lost
        self._on_problem = on_problem
        self._servers: dict[str, _Server] = {}
        self._gone: dict[str, str] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def names(self) -> list[str]:
        """The servers that are connected."""
        return [name for name, server in self._servers.items() if server.added]

    def __contains__(self, name: object) -> bool:
        return name in self._servers

    def why_gone(self, name: str) -> str | None:
        """Why a server that was here is not here any more."""
        return None if name in self._servers else self._gone.get(name)

    def upstream(self, name: str) -> Upstream:
        """A server, to be asked.

        Raises:
            ConnectionClosed: it is gone.
        """
        server = self._servers.get(name)
        if server is None:
            reason = self._gone.get(name, "there is none of that name")
            raise ConnectionClosed(f"Server {name} is gone: {reason}")
        return server.connection.upstream

    # --- coming and going --------------------------------------------------------------------

    async def add(self, name: str, target: Target, timeout: float) -> None:
        """Connect a server and list its tools.

        Raises:
            UsageError: the name cannot be used, or the target is no server.
            NotConnected: it cannot be reached.
        """
        check_server_name(name)
        if name in self._servers:
            raise UsageError(f"There is a server {name} already: remove it first, or choose a name")
        connection = Connection(name, target, on_lost=partial(self._lost, name), timeout=timeout)
        server = _Server(connection, Relist(partial(self._list, name), self._interval, self._stale))
        self._servers[name] = server
        began = time.perf_counter()
        try:
            await connection.start()
            server.unsubscribe = connection.upstream.subscribe(partial(self._told, server))
            tools = await self._first_listing(connection, timeout)
        except BaseException as error:
            if self._servers.get(name) is server:
                del self._servers[name]
            if server.unsubscribe is not None:
                server.unsubscribe()
            server.relist.stop()
            await connection.stop()
            self._audit.record("server", "failed", server=name, detail=str(error)[:500])
            raise
        server.added = True
        ms = round((time.perf_counter() - began) * 1000, 3)
        self._gone.pop(name, None)
        self._audit.record("server", "added", server=name, ms=ms)
        self._on_changed(name, self._surface.put_server(name, tools.values()))
        # A change between the listing and the moment from which we hear of changes.
        asyncio.get_running_loop().call_later(self._interval, self._freshen, server)

    @staticmethod
    async def _first_listing(connection: Connection, timeout: float) -> Mapping[str, Tool]:
        try:
            async with asyncio.timeout(timeout):
                return await connection.upstream.tools()
        except TimeoutError:
            text = f"Server {connection.name} did not list its tools within {timeout:g} s"
            raise NotConnected(text) from None
        except ProtocolError as error:
            text = f"Server {connection.name} could not list its tools: {error}"
            raise NotConnected(text) from None

    async def remove(self, name: str) -> None:
        """Disconnect a server; its tools go at once.

        Raises:
            UsageError: there is none of that name.
        """
        server = self._servers.get(name)
        if server is None or not server.added:
            raise UsageError(f"There is no server {name}; there are: {', '.join(self.names)}")
        self._audit.record("server", "removed", server=name)
        self._withdraw(name, "it was removed")
        await server.connection.stop()

    async def close(self) -> None:
        """Disconnect them all."""
        servers = list(self._servers.values())
        for server in servers:
            self._withdraw(server.connection.name, "the host was closed")
        if servers:
            await asyncio.gather(*(server.connection.stop() for server in servers))
        if self._closing:
            await asyncio.wait(self._closing)

    def _withdraw(self, name: str, reason: str) -> None:
        server = self._servers.pop(name)
        if server.unsubscribe is not None:
            server.unsubscribe()
        server.relist.stop()
        self._gone[name] = reason
        self._on_changed(name, self._surface.drop("server", name))

    def _lost(self, name: str, reason: str) -> None:
        server = self._servers.get(name)
        if server is None or not server.added:
            return  # whoever adds it is told
        self._audit.record("server", "lost", server=name, detail=reason)
        self._withdraw(name, reason)
        task = asyncio.ensure_future(server.connection.stop())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        self._on_lost(name, reason)

    # --- tools -------------------------------------------------------------------------------

    def _told(self, server: _Server, method: str) -> None:
        if method == _TOOLS_CHANGED and server.added:
            server.relist.changed()

    def freshen(self) -> None:
        """List again those servers whose tools may have changed without a word."""
        for server in list(self._servers.values()):
            self._freshen(server)

    def _freshen(self, server: _Server) -> None:
        if not server.added or server.connection.lost is not None:
            return
        if not server.connection.upstream.current:
            server.relist.changed()

    async def _list(self, name: str) -> None:
        try:
            tools = await self.upstream(name).tools()
        except TransomError as error:
            self._on_problem(error)
            return
        if name in self._servers:
            self._on_changed(name, self._surface.put_server(name, tools.values()))

    async def call(
        self,
        name: str,
        tool: str,
        arguments: Mapping[str, Any] | None,
        *,
        timeout: float | None,
        on_progress: OnProgress | None,
        task: TaskRequest | Mapping[str, Any] | None,
    ) -> ToolResult | Task:
        """Call a server's tool for the model.

        Raises:
            ProtocolError, InvalidResult: the server's answer.
            RequestTimeout: there was none in time, nor any progress.
            ConnectionClosed: the server is gone.
        """
        params: dict[str, Any] = {"name": tool, "arguments": dict(arguments or {})}
        if task is not None:
            params["task"] = msgspec.to_builtins(task)
        began, outcome, detail = time.perf_counter(), "cancelled", None
        try:
            raw = await self._ask(name, tool, params, timeout, on_progress)
            handle = None if task is None else _task_in(raw)
            if handle is not None:
                outcome = "task"
                return owned_task(name, handle)
            result: ToolResult = read_result("tools/call", ToolResult, raw)
            outcome = "error" if result.is_error else "ok"
            return result
        except TransomError as error:
            outcome = "timeout" if isinstance(error, RequestTimeout) else "failed"
            detail = str(error)[:500]
            raise
        finally:
            ms = round((time.perf_counter() - began) * 1000, 3)
            self._audit.record_call(outcome, name, None, tool, params["arguments"], ms, detail)

    async def _ask(
        self,
        name: str,
        tool: str,
        params: Mapping[str, Any],
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> bytes:
        upstream = self.upstream(name)
        try:
            async with asyncio.timeout(timeout) as limit:
                relay = None if on_progress is None else self._relay(on_progress, limit, timeout)
                return await upstream.request("tools/call", params, on_progress=relay)
        except TimeoutError:
            text = f"{tool}: server {name} did not answer within {timeout:g} s"
            raise RequestTimeout(text) from None
        except (ProtocolError, RuntimeError) as error:
            # The SDK says so as an error of the server's, or as one of ours before it has begun.
            if isinstance(error, ProtocolError) and error.message != _CLOSED:
                raise
            reason = self._gone.get(name) or "the connection closed"
            if server := self._servers.get(name):
                server.connection.fail(reason)
            raise ConnectionClosed(f"{tool}: server {name} is gone: {reason}") from None

    def _relay(
        self, on_progress: OnProgress, limit: asyncio.Timeout, timeout: float | None
    ) -> Relay:
        loop = asyncio.get_running_loop()

        async def relay(progress: float, total: float | None, message: str | None) -> None:
            if timeout is not None and not limit.expired():
                limit.reschedule(loop.time() + timeout)
            try:
                waiting = on_progress(Progress(0, progress, total, message))
                if inspect.isawaitable(waiting):
                    await waiting
            except Exception as error:  # noqa: BLE001 - a caller's handler must not break the call
                self._on_problem(error)

        return relay


def _task_in(raw: bytes) -> Task | None:
    try:
        return msgspec.json.decode(raw, type=_MaybeTask).task
    except msgspec.DecodeError:
        return None
