"""Serving the Stage on this machine: two ports on the loopback addresses, and nothing else.

The Stage is at `http://127.0.0.1:PORT`, its Views at `http://NAME.localhost:PORT2`. Browsers look
for names below `localhost` at `::1` too, so that address is taken as well wherever there is one:
no other program on this machine can answer for a View.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import AsyncExitStack
from typing import Self

from starlette.types import ASGIApp, Receive, Scope, Send

from transom.errors import TransomError
from transom.serving import listen, serve
from transom.web.asgi import sandbox_app, stage_app
from transom.web.stage import Stage
from transom.web.view_storage import ViewStorage

_MAX_FRAME = 20 * 1024 * 1024  # more than a page sends: see MAX_MESSAGE in views.js
_TRIES = 20
_FREE_WITHIN = 1.0  # seconds in which a program that is ending lets go of its ports


class StageServer:
    """Serves a Stage while its block runs. Port 0 is any that is free, or the one that is kept."""

    def __init__(
        self,
        stage: Stage,
        *,
        port: int = 0,
        sandbox_port: int = 0,
        storage: ViewStorage | None = None,
    ) -> None:
        self.stage = stage
        self._ports = port, sandbox_port
        self._storage = storage
        self._resources = AsyncExitStack()

    @property
    def url(self) -> str:
        """Where the page is. The token after the `#` never leaves the browser."""
        return f"{self.stage.origin}/#token={self.stage.token}"

    async def __aenter__(self) -> Self:
        """Begin to serve; a TransomError says that a port cannot be used."""
        page, sandbox = await self._listen()
        page_port, sandbox_port = page.getsockname()[1], sandbox[0].getsockname()[1]
        self.stage.origin = f"http://127.0.0.1:{page_port}"
        self.stage.sandbox = f"http://*.localhost:{sandbox_port}"
        serving = serve(
            _by_port(
                {
                    page_port: stage_app(self.stage),
                    sandbox_port: sandbox_app(self.stage, self.stage.take_cleared),
                }
            ),
            [page, *sandbox],
            ws="websockets-sansio",
            ws_max_size=_MAX_FRAME,
            ws_ping_interval=20.0,
            ws_ping_timeout=20.0,
            ws_per_message_deflate=False,  # on one machine, bytes are cheaper than time
        )
        await self._resources.enter_async_context(serving)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stage.close()
        await self._resources.aclose()

    async def _listen(self) -> tuple[socket.socket, list[socket.socket]]:
        """Listen for the page and for Views, at the ports of before where they are free."""
        port, sandbox_port = self._ports
        kept = 0, 0
        if self._storage is not None:
            try:
                kept = await asyncio.to_thread(self._storage.ports)
            except TransomError as error:
                self._storage.problem = str(error)
        page = _listen("127.0.0.1", port) if port else _listen_if_free(kept[0])
        try:
            if sandbox_port or not kept[1]:
                return page, _listen_on_both(sandbox_port)
            try:
                return page, await self._listen_soon(kept[1])
            except TransomError:
                if self._storage is not None:
                    self._storage.problem = (
                        f"port {kept[1]}, where they had their storage, is used by another "
                        "program, or by this one running twice"
                    )
                return page, _listen_on_both(0)
        except BaseException:
            page.close()
            raise

    async def _listen_soon(self, port: int) -> list[socket.socket]:
        """Listen there, once a run of the same program that is about to end lets go of it."""
        loop = asyncio.get_running_loop()
        alone = self._storage is not None and self._storage.program
        until = loop.time() + (_FREE_WITHIN if alone else 0)
        while True:
            try:
                return _listen_on_both(port)
            except TransomError:
                if loop.time() >= until:
                    raise
            await asyncio.sleep(0.05)


def _by_port(apps: dict[int, ASGIApp]) -> ASGIApp:
    """Hand each connection to the app of the port that it came in on."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await apps[scope["server"][1]](scope, receive, send)

    return app


def _listen_if_free(port: int) -> socket.socket:
    """Listen for the page there or, as its port matters little, elsewhere."""
    try:
        return _listen("127.0.0.1", port)
    except TransomError:
        return _listen("127.0.0.1", 0)


def _listen_on_both(port: int) -> list[socket.socket]:
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
        return listen(address, port)
    except OSError as error:
        text = f"Port {port} of {address} cannot be used: {error.strerror}; choose another"
        absent = isinstance(error, socket.gaierror) or error.errno in (
            errno.EADDRNOTAVAIL,
            errno.EAFNOSUPPORT,
        )
        raise (_NoSuchAddress if absent else TransomError)(text) from error
