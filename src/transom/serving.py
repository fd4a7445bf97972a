"""HTTP on this machine: listening sockets, and uvicorn that serves an ASGI app on them.

Whoever serves says when it ends: uvicorn's own signal handlers stay out of it, and so does its log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import uvicorn

from transom.errors import TransomError

_ENDS_WITHIN = 5.0
_BACKLOG = 512


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
