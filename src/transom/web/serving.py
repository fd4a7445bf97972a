"""Serving the Stage on this machine: two ports on the loopback address, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from types import TracebackType
from typing import Self

import uvicorn

from transom.errors import TransomError
from transom.web.asgi import sandbox_app, stage_app
from transom.web.stage import Stage

__all__ = ["StageServer"]

_MAX_FRAME = 32 * 1024 * 1024


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
        page, sandbox = (_listen(port) for port in self._ports)
        self.stage.origin = f"http://127.0.0.1:{page.getsockname()[1]}"
        self.stage.sandbox_port = sandbox.getsockname()[1]
        for app, sock in ((stage_app(self.stage), page), (sandbox_app(self.stage), sandbox)):
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
                timeout_graceful_shutdown=1,
            )
            server = _Quiet(config)
            self._servers.append(server)
            self._tasks.append(asyncio.create_task(server.serve(sockets=[sock])))
        for server, task in zip(self._servers, self._tasks, strict=True):
            while not server.started:
                if task.done():
                    await task
                    raise TransomError("The Stage could not be served")
                await asyncio.sleep(0.005)  # uvicorn has no event for this
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stage.close()
        for server in self._servers:
            server.should_exit = True
        await asyncio.wait(self._tasks, timeout=5)
        for task in self._tasks:
            task.cancel()


def _listen(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
    except OSError as error:
        sock.close()
        raise TransomError(f"Port {port} cannot be used: {error.strerror}") from error
    return sock
