"""Serving the Stage on this machine: two ports on the loopback addresses, and nothing else.

The Stage is at `http://127.0.0.1:PORT`, its Views at `http://NAME.localhost:PORT2`. Browsers
resolve names below `localhost` to `::1` too, so it listens there as well, if the machine has that
address: no other program on this machine can answer for a View.

All Stages of a user can share one page: a process can use the page of another one.

1. A Stage that shares listens on a socket in a folder that only the user can access: no web page
   and no other user can reach it. A socket that a dead process left is removed.
2. A process that needs a page asks the others, the oldest first, for the origin of their page. It
   invites that page, and only that one, through the process that has it.
3. If anything goes wrong, nothing is shared, and a page is opened as usual.

The two processes exchange lines of JSON: `{"version"}`, `{"page"}`, `{"origin", "token"}`, `{}`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Literal, Self, TypeVar

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from transom.background import Background, ignore
from transom.errors import PeerError, TransomError
from transom.serving import listen, serve
from transom.version import __version__
from transom.web.asgi import sandbox_app, stage_app
from transom.web.stage import Stage
from transom.web.view_storage import ViewStorage

T = TypeVar("T")

_MAX_FRAME = 20 * 1024 * 1024  # more than a page sends: see MAX_MESSAGE in view.ts
_TRIES = 20
_TOLD_WITHIN = 1.0  # seconds in which a page that is told the end closes its socket
_FREE_WITHIN = 1.0  # seconds in which a program that is ending releases its ports
_ORIGIN = re.compile(r"http://127\.0\.0\.1:[0-9]{1,5}")
_MAX_LINE = 4096
_MAX_PATH = 100  # the longest path of a socket, on all systems
_MAX_STAGES = 20
_ANSWER_WITHIN = 2.0
_SHOWN_WITHIN = 4.0
_SETTLED_AFTER = 5.0


class StageServer:
    """Serves a Stage while its block runs.

    Args:
        stage: gets the origins at which it is served.
        ports: those of the page and of the sandboxes; 0: the stored port, or any free one.
        storage: has the ports of earlier runs.
        shared: whether the page may show the Views of other Stages on this machine as well.
        clears: says whether the browser should delete its storage for the origin with a `Host`.
        page: which page it is: see `stage_app`.
    """

    def __init__(
        self,
        stage: Stage,
        *,
        ports: tuple[int, int] = (0, 0),
        storage: ViewStorage | None = None,
        shared: bool = False,
        clears: Callable[[str], bool] = lambda _: False,
        page: Literal["stage", "dev"] = "stage",
    ) -> None:
        self.stage = stage
        self._ports = ports
        self._storage = storage
        self._shared = shared
        self._clears = clears
        self._page: Literal["stage", "dev"] = page
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
                    page_port: stage_app(self.stage, shared=self._shared, page=self._page),
                    sandbox_port: sandbox_app(self.stage.sandboxes, self._clears),
                }
            ),
            [page, *sandbox],
            ws="websockets-sansio",
            ws_max_size=_MAX_FRAME,
            ws_ping_interval=20.0,
            ws_ping_timeout=20.0,
            ws_per_message_deflate=False,  # on one machine, compression costs more than it saves
        )
        await self._resources.enter_async_context(serving)
        return self

    async def __aexit__(self, *_: object) -> None:
        closing = self.stage.close()
        if closing is not None:
            with suppress(TimeoutError):  # the web server would end the socket without a reason
                async with asyncio.timeout(_TOLD_WITHIN):
                    await closing
        await self._resources.aclose()

    async def _listen(self) -> tuple[socket.socket, list[socket.socket]]:
        """Listen for the page and for Views, at the stored ports if they are free."""
        port, sandbox_port = self._ports
        kept = 0, 0
        if self._storage is not None:
            try:
                kept = await asyncio.to_thread(self._storage.ports)
            except TransomError as error:
                self._storage.failure = str(error)
        page = _listen("127.0.0.1", port) if port else _listen_if_free(kept[0])
        try:
            if sandbox_port or not kept[1]:
                return page, _listen_on_both(sandbox_port)
            try:
                return page, await self._listen_soon(kept[1])
            except TransomError:
                if self._storage is not None:
                    self._storage.failure = (
                        f"port {kept[1]}, where they had their storage, is used by another "
                        "program, or by this one running twice"
                    )
                return page, _listen_on_both(0)
        except BaseException:
            page.close()
            raise

    async def _listen_soon(self, port: int) -> list[socket.socket]:
        """Listen there, waiting briefly for an earlier run of the program to release the port."""
        loop = asyncio.get_running_loop()
        alone = self._storage is not None and self._storage.program
        until = loop.time() + (_FREE_WITHIN if alone else 0)
        while True:
            try:
                return _listen_on_both(port)
            except TransomError:
                if loop.time() >= until:
                    raise
            await asyncio.sleep(0.05)  # nobody says when a port is free


def _by_port(apps: dict[int, ASGIApp]) -> ASGIApp:
    """Pass each connection to the app of its port."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await apps[scope["server"][1]](scope, receive, send)

    return app


def _listen_if_free(port: int) -> socket.socket:
    """Listen for the page at this port, or at any other: it is not part of a View's origin."""
    try:
        return _listen("127.0.0.1", port)
    except TransomError:
        return _listen("127.0.0.1", 0)


def _listen_on_both(port: int) -> list[socket.socket]:
    """Listen on one port of both loopback addresses, or of the only one there is."""
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


# --- sharing a page --------------------------------------------------------------------------


class _PageQuery(msgspec.Struct):
    version: str


class _PageOffer(msgspec.Struct):
    page: str | None


class _PageInvitation(msgspec.Struct):
    origin: str
    token: str


def private_folder() -> Path:
    """The folder of the sockets: `$XDG_RUNTIME_DIR/transom`, or in `~/.cache`."""
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    try:
        return (runtime if runtime.is_absolute() else Path.home() / ".cache") / "transom"
    except RuntimeError as error:
        raise TransomError("Pages are not shared: this user has no home folder") from error


class RunningStages:
    """The Stages of this user on this machine, including ours while the block runs."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._path: Path | None = None
        self._server: asyncio.Server | None = None
        self._background = Background(ignore)

    async def __aenter__(self) -> Self:
        """Let other processes ask for our page; a TransomError says why they cannot."""
        if not hasattr(asyncio, "start_unix_server") or not hasattr(os, "getuid"):
            raise TransomError("Pages are not shared on this system")
        folder = _secured(private_folder())
        path = folder / f"{os.getpid()}-{secrets.token_hex(3)}.sock"
        if len(os.fsencode(path)) > _MAX_PATH:
            raise TransomError(f"Pages are not shared: {folder} has too long a name")
        self._background = Background(ignore)
        try:
            self._server = await asyncio.start_unix_server(self._accept, path, limit=_MAX_LINE)
            path.chmod(0o600)
        except OSError as error:
            raise TransomError(f"Pages are not shared: {path}: {error.strerror}") from error
        self._path = path
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None and self._path is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)
            self._background.cancel()

    # --- asking ------------------------------------------------------------------------------

    async def join(self) -> bool:
        """Make an open page of another process show our Views; False if there is none."""
        for path in self._others():
            with suppress(TransomError):
                await self._join(path)
                return True
        return False

    def _others(self) -> list[Path]:
        """The sockets of other Stages, the oldest first."""
        found: list[tuple[float, Path]] = []
        if self._path is not None:
            for path in self._path.parent.glob("*.sock"):
                with suppress(OSError):
                    status = path.lstat()
                    if path != self._path and stat.S_ISSOCK(status.st_mode):
                        found.append((status.st_mtime, path))
        return [path for _, path in sorted(found)[:_MAX_STAGES]]

    async def _join(self, path: Path) -> None:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                reader, writer = await asyncio.open_unix_connection(path, limit=_MAX_LINE)
        except (ConnectionRefusedError, FileNotFoundError) as error:
            _tidy(path)
            raise TransomError("Nothing listens there") from error
        except OSError as error:  # a TimeoutError is one
            raise TransomError("It cannot be reached") from error
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                await _send(writer, _PageQuery(__version__))
                page = (await _receive(reader, _PageOffer)).page
                if page is None or not _ORIGIN.fullmatch(page):
                    raise TransomError("It has no page")
                token = self._stage.access.invite(page)
                await _send(writer, _PageInvitation(self._stage.origin, token))
                await _receive(reader, dict[str, object])
            async with asyncio.timeout(_SHOWN_WITHIN):
                await self._stage.wait_for_page()
        except OSError as error:
            raise TransomError("It does not answer, or its page does not") from error
        finally:
            writer.close()

    # --- answering ---------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._background.start(self._serve(reader, writer)):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # The other process needs nothing else to answer, so it should be quick.
            with suppress(TransomError, OSError):
                async with asyncio.timeout(2 * _ANSWER_WITHIN):
                    await self._answer(reader, writer)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        query = await _receive(reader, _PageQuery)
        # The page runs our scripts, which must understand the other process's messages.
        page = self._stage.page_origin if query.version == __version__ else None
        if not self._stage.has_page or not _ORIGIN.fullmatch(page or ""):
            page = None
        await _send(writer, _PageOffer(page))
        if page is not None:
            invitation = await _receive(reader, _PageInvitation)
            if _ORIGIN.fullmatch(invitation.origin) and len(invitation.token) <= 200:
                self._stage.join(invitation.origin, invitation.token)
                await _send(writer, {})


def _secured(folder: Path) -> Path:
    """Create the folder if needed, and check that only this user can access it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise TransomError(f"Pages are not shared: {folder}: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise TransomError(f"Pages are not shared: {folder} is not this user's alone (mode 700)")
    return folder


def _tidy(path: Path) -> None:
    """Remove a socket on which nobody listens, but not one that a process is about to use."""
    with suppress(OSError):
        if time.time() - path.lstat().st_mtime > _SETTLED_AFTER:
            path.unlink()


async def _send(writer: asyncio.StreamWriter, message: object) -> None:
    writer.write(msgspec.json.encode(message) + b"\n")
    await writer.drain()


async def _receive(reader: asyncio.StreamReader, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await reader.readuntil(b"\n"), type=kind)
    except (EOFError, asyncio.LimitOverrunError, ValueError, RecursionError) as error:
        raise PeerError("That is not what a Stage sends") from error
