"""One page for all Stages of a user: a process that needs a page finds one that another has.

1. A Stage with sharing on listens at a socket in a folder that is the user's alone: who can reach
   it is the user. No web page and no other user can. Whether anybody still listens there tells a
   running process from one that is gone; what is left of those is removed.
2. Whoever needs a page asks the others, the oldest first: which origin is your page of? It invites
   that page, and only that one, and has the other pass on the invitation.
3. Whatever goes wrong, nothing is shared, and a page is opened as if nobody else were there.

Both sides say one line of JSON at a time: `{"version"}`, `{"page"}`, `{"origin", "token"}`, `{}`.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from transom.errors import PeerError, TransomError
from transom.version import __version__
from transom.web.stage import Stage

__all__ = ["RunningStages", "private_folder"]

T = TypeVar("T")

_ORIGIN = re.compile(r"http://127\.0\.0\.1:[0-9]{1,5}")
_MAX_LINE = 4096
_MAX_PATH = 100  # what the address of such a socket has room for, on all systems
_MAX_ASKED = 20
_ANSWER_WITHIN = 2.0
_SHOWN_WITHIN = 4.0
_SETTLED_AFTER = 5.0


class _Asking(msgspec.Struct):
    version: str


class _Having(msgspec.Struct):
    page: str | None


class _Invited(msgspec.Struct):
    origin: str
    token: str


def private_folder() -> Path:
    """Where the Stages of this user are found: `$XDG_RUNTIME_DIR/transom`, or in `~/.cache`.

    Raises:
        TransomError: there is no such place that is this user's alone.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) if Path(runtime).is_absolute() else Path.home() / ".cache"
    return folder / "transom"


class RunningStages:
    """The Stages of this user on this machine, ours among them while the block runs.

    Args:
        stage: ours. It must be `shared`.
        folder: where they are found; `private_folder()` unless given.
    """

    def __init__(self, stage: Stage, folder: Path | None = None) -> None:
        self._stage = stage
        self._folder = folder
        self._path: Path | None = None
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Let other processes ask for our page.

        Raises:
            TransomError: they cannot, on this system or in that folder.
        """
        if not hasattr(asyncio, "start_unix_server") or not hasattr(os, "getuid"):
            raise TransomError("Pages are not shared on this system")
        folder = self._folder = _secured(self._folder or private_folder())
        path = folder / f"{os.getpid()}-{secrets.token_hex(3)}.sock"
        if len(os.fsencode(path)) > _MAX_PATH:
            raise TransomError(f"Pages are not shared: {folder} has too long a name")
        try:
            self._server = await asyncio.start_unix_server(self._asked, path, limit=_MAX_LINE)
            path.chmod(0o600)
        except OSError as error:
            raise TransomError(f"Pages are not shared: {path}: {error.strerror}") from error
        self._path = path
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is None or self._path is None:
            return
        self._server.close()
        self._path.unlink(missing_ok=True)
        answering = list(self._answering)
        for task in answering:
            task.cancel()
        if answering:
            await asyncio.wait(answering)

    # --- asking ------------------------------------------------------------------------------

    async def join(self) -> bool:
        """Have a page that is open already show our Views; False: there is none that does."""
        for path in self._others():
            with suppress(TransomError):
                await self._join(path)
                return True
        return False

    def _others(self) -> list[Path]:
        """The sockets of other Stages, the oldest first."""
        found: list[tuple[float, Path]] = []
        if self._folder is not None and self._path is not None:
            for path in self._folder.glob("*.sock"):
                with suppress(OSError):
                    status = path.lstat()
                    if path != self._path and stat.S_ISSOCK(status.st_mode):
                        found.append((status.st_mtime, path))
        return [path for _, path in sorted(found)[:_MAX_ASKED]]

    async def _join(self, path: Path) -> None:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                reader, writer = await asyncio.open_unix_connection(path, limit=_MAX_LINE)
        except (ConnectionRefusedError, FileNotFoundError) as error:
            _tidy(path)
            raise TransomError("Nobody listens there") from error
        except OSError as error:  # a TimeoutError is one
            raise TransomError("It cannot be reached") from error
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                await _say(writer, _Asking(__version__))
                page = (await _heard(reader, _Having)).page
                if page is None or not _ORIGIN.fullmatch(page):
                    raise TransomError("It has no page")
                token = self._stage.invite(page)
                await _say(writer, _Invited(self._stage.origin, token))
                await _heard(reader, dict[str, object])
            async with asyncio.timeout(_SHOWN_WITHIN):
                await self._stage.page_there()
        except OSError as error:
            raise TransomError("It does not answer, or its page does not") from error
        finally:
            writer.close()

    # --- answering ---------------------------------------------------------------------------

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        try:
            # It asks, waits for our answer, and has all it needs to say: no reason to take long.
            with suppress(TransomError, OSError):
                async with asyncio.timeout(2 * _ANSWER_WITHIN):
                    await self._answer(reader, writer)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asking = await _heard(reader, _Asking)
        # The page runs our scripts: they have to understand what the other process says.
        page = self._stage.page_origin if asking.version == __version__ else None
        if not self._stage.has_page or not _ORIGIN.fullmatch(page or ""):
            page = None
        await _say(writer, _Having(page))
        if page is not None:
            invited = await _heard(reader, _Invited)
            if _ORIGIN.fullmatch(invited.origin) and len(invited.token) <= 200:
                self._stage.join(invited.origin, invited.token)
                await _say(writer, {})


def _secured(folder: Path) -> Path:
    """Make the folder if it is not there, and see that it is this user's alone."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise TransomError(f"Pages are not shared: {folder}: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise TransomError(f"Pages are not shared: {folder} is not this user's alone (mode 700)")
    return folder


def _tidy(path: Path) -> None:
    """Nobody listens: remove what a process has left, but not what one is about to use."""
    with suppress(OSError):
        if time.time() - path.lstat().st_mtime > _SETTLED_AFTER:
            path.unlink()


async def _say(writer: asyncio.StreamWriter, message: object) -> None:
    writer.write(msgspec.json.encode(message) + b"\n")
    await writer.drain()


async def _heard(reader: asyncio.StreamReader, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await reader.readuntil(b"\n"), type=kind)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, msgspec.DecodeError) as error:
        raise PeerError("That is not what a Stage says") from error
