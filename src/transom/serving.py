"""HTTP on this machine: listening sockets, and uvicorn that serves an ASGI app on them.

1. The caller decides when serving ends: uvicorn's signal handlers and its log are turned off.
2. A connection without a request, or with only part of its headers, is closed after a while, or at
   once when there are too many connections. The app, which checks tokens, has not seen these yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from transom.errors import TransomError

_ENDS_WITHIN = 5.0
_BACKLOG = 512
_HEADERS_WITHIN = 10.0  # seconds for the headers of a request; up to twice that, as it is checked
_MAX_CONNECTIONS = 1000  # to one server
_MAX_SHARE = 0.5  # share of the files that this process may open


def listen(host: str, port: int) -> socket.socket:
    """Listen at an address of this machine.

    The protocol of the socket is given, not left at 0: connections inherit it, and asyncio sets
    `TCP_NODELAY` only on those that say they are TCP. Without it, a small answer that follows
    another waits for the client's delayed acknowledgement, 40 ms and more.
    """
    [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
    )
    sock = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would let another program take the port over
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def _max_connections() -> int:
    """How many connections a server accepts without running out of file descriptors."""
    try:
        import resource  # noqa: PLC0415 - not everywhere
    except ImportError:
        return _MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return min(_MAX_CONNECTIONS, int(files * _MAX_SHARE))


_Http: Any = AutoHTTPProtocol  # which one it is depends on what is installed


class _GuardedHttp(_Http):
    """A connection that is closed if it is half-open for too long, or there are too many."""

    _seen: object = None  # the request at the time of the last check
    _timer: asyncio.TimerHandle | None = None

    @property
    def half_open(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)  # pyright: ignore[reportUnknownMemberType]
        self._timer = self.loop.call_later(_HEADERS_WITHIN, self._check)
        if len(self.connections) > _max_connections():
            others = (each for each in self.connections if each is not self)
            idle = (each for each in others if isinstance(each, _GuardedHttp) and each.half_open)
            next(idle, self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)  # pyright: ignore[reportUnknownMemberType]
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return  # closed, or a WebSocket by now
        if self.half_open and self._seen is self.cycle:
            self.transport.abort()
        else:
            self._seen = self.cycle
            self._timer = self.loop.call_later(_HEADERS_WITHIN, self._check)


class _Server(uvicorn.Server):
    """Uvicorn that leaves signals alone, and has an event for when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = asyncio.Event()

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()


@contextlib.asynccontextmanager
async def serve(
    app: Any, sockets: Sequence[socket.socket], **settings: Any
) -> AsyncGenerator[None]:
    """Serve an ASGI app on these sockets while the block runs; they are closed afterwards."""
    settings.setdefault("http", _GuardedHttp)
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
        **settings,
    )
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=list(sockets)))
    started = asyncio.create_task(server.serving.wait())
    try:
        await asyncio.wait([running, started], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            raise TransomError("The web server could not be started") from running.exception()
        yield
    finally:
        started.cancel()
        server.should_exit = True
        _, late = await asyncio.wait([running], timeout=_ENDS_WITHIN)
        if late:
            running.cancel()
            await asyncio.wait([running], timeout=_ENDS_WITHIN)
        for sock in sockets:
            sock.close()
