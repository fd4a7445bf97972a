"""Serving the Stage on this machine: two ports on the loopback addresses, and nothing else.

The Stage is at `http://127.0.0.1:PORT`, its Views at `http://NAME.localhost:PORT2`. Browsers look
for names below `localhost` at `::1` too, so that address is taken as well wherever there is one:
nobody else on this machine can answer for a View.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from types import TracebackType
from typing import Self

import uvicorn

from transom.errors import TransomError
from transom.web.asgi import sandbox_app, stage_app
from transom.web.stage import Stage

__all__ = ["StageServer"]

_MAX_FRAME = 20 * 1024 * 1024  # more than a page sends: see MAX_MESSAGE in views.js
_TRIES = 20


class _Quiet(uvicorn.Server):
    """Uvicorn without its signal handlers: whoever runs the Stage says when it ends."""

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
        return contextlib.nullcontext()


class StageServer:
    """Serves a Stage while its block runs.

    Args:
        stage: what to serve.
        port: the port of the page; 0: any that is free. The sandbox gets another, free one.
        sandbox_port: the port of the sandbox; 0: any that is free.
    """

    def __init__(self, stage: Stage, *, port: int = 0, sandbox_port: int = 0) -> None:
        self.stage = stage
        self._ports = port, sandbox_port
        self._servers: list[_Quiet] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        """Where the page is. The token after the `#` never leaves the browser."""
        return f"{self.stage.origin}/#token={self.stage.token}"

    async def __aenter__(self) -> Self:
        """Begin to serve.

        Raises:
            TransomError: a port cannot be used.
        """
        port, sandbox_port = self._ports
        page = [_listen("127.0.0.1", port)]
        try:
            sandbox = _listen_twice(sandbox_port)
        except BaseException:
            page[0].close()
            raise
        self.stage.origin = f"http://127.0.0.1:{page[0].getsockname()[1]}"
        self.stage.sandbox = f"http://*.localhost:{sandbox[0].getsockname()[1]}"
        for app, sockets in ((stage_app(self.stage), page), (sandbox_app(self.stage), sandbox)):
            config = uvicorn.Config(
                app,
                log_level="error",
                access_log=False,
                lifespan="off",
                server_header=False,
                ws="websockets-sansio",
                ws_max_size=_MAX_FRAME,
                ws_ping_interval=20.0,
                ws_ping_timeout=20.0,
                ws_per_message_deflate=False,  # it is this machine: bytes are cheaper than time
                timeout_graceful_shutdown=1,
            )
            server = _Quiet(config)
            self._servers.append(server)
            self._tasks.append(asyncio.create_task(server.serve(sockets=sockets)))
        try:
            await self._started()
        except BaseException:
            await self._stop()
            raise
        return self

    async def _started(self) -> None:
        for server, task in zip(self._servers, self._tasks, strict=True):
            while not server.started:
                if task.done():
                    raise TransomError("The Stage could not be served") from task.exception()
                await asyncio.sleep(0.005)  # uvicorn has no event for this

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stage.close()
        await self._stop()

    async def _stop(self) -> None:
        for server in self._servers:
            server.should_exit = True
        _, late = await asyncio.wait(self._tasks, timeout=5)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=5)


def _listen_twice(port: int) -> list[socket.socket]:
    """Listen on both loopback addresses, on one port; on one address if there is no other."""
    for _ in range(_TRIES):
        first = _listen("127.0.0.1", port)
        try:
            return [first, _listen("::1", first.getsockname()[1])]
        except _NoSuchAddress:
            return [first]
        except TransomError:
            first.close()
            if port:
                raise
    raise TransomError("No port is free on both 127.0.0.1 and ::1")


class _NoSuchAddress(TransomError):
    """The machine does not have that address."""


def _listen(address: str, port: int) -> socket.socket:
    try:
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    except OSError as error:
        raise _NoSuchAddress(f"{address} is not to be had: {error.strerror}") from error
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
    except OSError as error:
        sock.close()
        text = f"Port {port} of {address} cannot be used: {error.strerror}"
        absent = error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
        raise (_NoSuchAddress if absent else TransomError)(text) from error
    return sock
