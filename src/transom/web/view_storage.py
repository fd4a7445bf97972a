"""What is stored for a user's Views between runs: their origins, and records to reopen them.

1. A View's origin is derived from its user, its server and its resource, with a secret of this
   user. It is the same in every run, unique, and cannot be guessed.
2. A port is part of an origin. Each program has two of its own, so that programs that run at the
   same time do not take each other's. A program whose ports are taken stores nothing, and says so.
3. Clearing changes the origins: what was stored under the old ones cannot be reached any more. The
   browser is told to delete it when it next shows Views of that program.
4. Views are shown even if the files cannot be used. A state file that cannot be read is left as it
   is, because without its secret everything that Views stored would be lost; until it can be read,
   nothing is stored.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from transom.errors import TransomError
from transom.json_values import clean
from transom.state_files import open_lock, state_folder, try_lock, write_private

if TYPE_CHECKING:  # only for types, and slow to load
    from transom.host.views.ui_resource import UIResource

T = TypeVar("T")

_FIRST_PORT, _LAST_PORT = 20_000, 32_000  # below the ports of outgoing connections
_DRAWN = 16  # of which two that nothing uses are taken
_MAX_PROGRAMS = 200
_MAX_ORIGINS = 1000
_MAX_CLEARED = 200
_MAX_SHOWN = 200
_LOCKED_WITHIN = 2.0
_MAX_STATE = 4 * 1024 * 1024
MAX_RECENT = 20  # Views of one program that can be reopened in its next run
_MAX_RECENT_BYTES = 1024 * 1024  # of one View's input and result
_RECENT_FOR = 30 * 86_400.0  # seconds


def origin_label(
    secret: bytes, *, user: str, server: str, identity: str, uri: str, turn: int = 0
) -> str:
    """The first part of the host name of a View's origin; the rest is where Views are served.

    Args:
        secret: known only to the host; another secret makes other labels.
        user: the owner of the storage.
        server: the name of the View's server.
        identity: distinguishes that server from others of the same name.
        uri: the View's resource.
        turn: how often the storage was cleared.
    """
    given = msgspec.json.encode([user, server, identity, uri, turn])
    digest = base64.b32encode(hmac.digest(secret, given, "sha256")[:20]).decode().lower()
    return f"{readable_label(server)[:24]}-{digest}"


def readable_label(name: str) -> str:
    """A name in a form that is valid in a host name."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:32].strip("-") or "view"


class StoredOrigin(msgspec.Struct):
    """An origin that Views have had, as it is stored."""

    server: str
    uri: str
    port: int
    used: float
    """When a View last had it."""
    turn: int = 0
    label: str = ""

    @property
    def origin(self) -> str:
        """What the browser calls it."""
        return f"http://{self.label}.localhost:{self.port}"


class RecentView(msgspec.Struct, kw_only=True):
    """What is needed to reopen a View in the next run: the call that opened it, and its result."""

    id: str
    server: str
    identity: str
    """A digest of the server's identity."""
    tool: str
    arguments: dict[str, Any]
    result: msgspec.Raw
    when: float


class _State(msgspec.Struct):
    secret: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    ports: dict[str, tuple[int, int]] = {}
    origins: dict[str, StoredOrigin] = {}
    """By their first label and port."""
    cleared: list[str] = []
    """Origins whose storage the browser still has."""
    turn: int = 0
    """The first `turn` of unknown origins, so that a cleared origin is never used again."""


class ViewStorage:
    """Stores the origins and records of one program's Views. All methods read and write files.

    Args:
        program: identifies this program among others of the user that show Views at the same time.
            It may contain secrets.
        folder: where everything is stored; by default in the user's state folder.
    """

    def __init__(self, program: str = "", *, folder: Path | None = None) -> None:
        self.program = program
        self._folder = folder
        self.failure = ""
        """Why nothing is stored, if that is so."""

    # --- ports and origins -------------------------------------------------------------------

    def ports(self) -> tuple[int, int]:
        """The ports of the page and of the Views; a TransomError says why there are none."""

        def choose(state: _State) -> tuple[int, int]:
            key = _digest(state, self.program)
            kept = state.ports.pop(key, None)
            taken = {port for pair in state.ports.values() for port in pair}
            state.ports[key] = kept or _new_ports(taken)  # in order of use
            while len(state.ports) > _MAX_PROGRAMS:
                del state.ports[next(iter(state.ports))]
            return state.ports[key]

        return self._update(choose)

    def origin(self, resource: UIResource, port: int) -> str | None:
        """The label of a View's persistent origin at the program's port; None if it has none."""
        if self.failure or not resource.identity:
            return None

        def use(state: _State) -> str:
            origins, uri = state.origins, clean(resource.uri, _MAX_SHOWN)
            label_of = partial(
                origin_label,
                bytes.fromhex(state.secret),
                user="",
                server=resource.server,
                identity=resource.identity,
                uri=resource.uri,
            )
            first = f"{label_of()}:{port}"
            turn = origins[first].turn if first in origins else state.turn
            label = label_of(turn=turn)
            origins[first] = StoredOrigin(resource.server, uri, port, time.time(), turn, label)
            if len(origins) > _MAX_ORIGINS:
                oldest = min(origins, key=lambda key: _past(origins[key].used))
                state.turn = max(state.turn, origins.pop(oldest).turn)
            return label

        try:
            return self._update(use)
        except TransomError as error:
            self.failure = str(error)
            return None

    def origins(self) -> list[StoredOrigin]:
        """The origins that Views have had, the last used first."""
        found = [each for each in self._read().origins.values() if each.used]
        return sorted(found, key=lambda each: -_past(each.used))

    def clear(self, which: Callable[[StoredOrigin], bool] | None = None) -> list[StoredOrigin]:
        """Give Views new origins, and delete the records of Views that used the old ones.

        Args:
            which: selects the origins; by default all, including those in a file that cannot be
                read.

        Returns:
            The origins that are not used any more.
        """

        def change(state: _State) -> list[StoredOrigin]:
            used = [each for each in state.origins.values() if each.used]
            gone = [each for each in used if which is None or which(each)]
            state.cleared = [*state.cleared, *(each.origin for each in gone)][-_MAX_CLEARED:]
            for first, each in state.origins.items():
                if each in gone:
                    state.origins[first] = msgspec.structs.replace(
                        each, used=0.0, turn=each.turn + 1, label=""
                    )
            return gone

        gone = self._update(change, start_over=which is None)
        servers = {each.server for each in gone}
        for file in self._base().glob("recent/*/*.json"):
            view = _read_recent(file)
            if view is None or view.server in servers:
                file.unlink(missing_ok=True)
        return gone

    def cleared(self, port: int) -> list[str]:
        """Origins at this port whose storage the browser should delete."""
        with suppress(TransomError):
            return [each for each in self._read().cleared if each.endswith(f":{port}")]
        return []

    def confirm_cleared(self, origin: str) -> None:
        """The browser has been told to delete it."""

        def change(state: _State) -> None:
            state.cleared = [each for each in state.cleared if each != origin]

        with suppress(TransomError):
            self._update(change)

    # --- Views of the last run ---------------------------------------------------------------

    def remember(
        self,
        recent_id: str,
        resource: UIResource,
        tool: str,
        arguments: dict[str, Any],
        result: bytes,
    ) -> None:
        """Store a View to reopen, replacing an earlier one of that id."""
        if self.failure or not resource.identity:
            return
        with suppress(TransomError, OSError, msgspec.MsgspecError):
            state = self._update(lambda state: state)
            view = RecentView(
                id=recent_id,
                server=resource.server,
                identity=_digest(state, resource.identity),
                tool=tool,
                arguments=arguments,
                result=msgspec.Raw(result),
                when=time.time(),
            )
            data = msgspec.json.encode(view)
            if len(data) <= _MAX_RECENT_BYTES:
                write_private(self._recent(state) / f"{recent_id}.json", data)

    def recent(self, resource: UIResource) -> list[RecentView]:
        """The Views of a page's server that were open in an earlier run, the latest first.

        Those that are too many or too old are deleted.
        """
        if self.failure or not resource.identity:
            return []
        try:
            state = self._read()
            files = list(self._recent(state).glob("*.json"))
        except (TransomError, OSError):
            return []
        views = ((file.stem, _read_recent(file)) for file in files)
        found = [view for name, view in views if view is not None and view.id == name]
        found.sort(key=lambda each: -_past(each.when))
        since = time.time() - _RECENT_FOR
        kept = [each for each in found[:MAX_RECENT] if each.when > since]
        for each in found:
            if each not in kept:
                self.forget(each.id)
        mine = resource.server, _digest(state, resource.identity)
        return [each for each in kept if (each.server, each.identity) == mine]

    def forget(self, recent_id: str) -> None:
        """Delete the record of a View."""
        with suppress(TransomError, OSError):
            (self._recent(self._read()) / f"{recent_id}.json").unlink(missing_ok=True)

    def _recent(self, state: _State) -> Path:
        return self._base() / "recent" / _digest(state, self.program)

    # --- the file ----------------------------------------------------------------------------

    def _base(self) -> Path:
        try:
            return self._folder or state_folder("views")
        except RuntimeError:
            raise TransomError("this user has no home folder") from None

    def _read(self, *, start_over: bool = False) -> _State:
        """The stored state; TransomError if it cannot be read, unless it is to be replaced."""
        path = self._base() / "state.json"
        try:
            with path.open("rb") as file:
                return msgspec.json.decode(file.read(_MAX_STATE), type=_State)
        except (OSError, ValueError) as error:
            if start_over or isinstance(error, FileNotFoundError):
                return _State(secrets.token_hex(32))
            why = error.strerror if isinstance(error, OSError) else f"it is damaged ({error})"
            hint = "`transom storage clear --all` starts over without what Views have stored"
            raise TransomError(f"{path} cannot be read: {why}; {hint}") from None

    def _update(self, change: Callable[[_State], T], *, start_over: bool = False) -> T:
        """Change the stored state under a lock; a TransomError says why that failed."""
        folder = self._base()
        try:
            lock = open_lock(folder / "state.lock")
            try:
                until = time.monotonic() + _LOCKED_WITHIN
                while not try_lock(lock):
                    if time.monotonic() > until:
                        raise TransomError(f"another program holds {folder / 'state.lock'}")
                    time.sleep(0.01)  # not in the event loop: this runs in a thread or a command
                state = self._read(start_over=start_over)
                result = change(state)
                write_private(folder / "state.json", msgspec.json.encode(state))
                return result
            finally:
                os.close(lock)
        except OSError as error:
            raise TransomError(f"{folder} cannot be used: {error.strerror}") from error


def _past(when: float) -> float:
    """A time, to find the latest: one that has not come is of a clock that was wrong."""
    return when if when <= time.time() else 0.0


def _digest(state: _State, text: str) -> str:
    """A digest of a text that may contain secrets."""
    return hmac.digest(bytes.fromhex(state.secret), text.encode(), "sha256").hex()[:32]


def _new_ports(taken: set[int]) -> tuple[int, int]:
    """Two ports of no other program of Transom; ones that nothing uses now, if there are any."""
    free = [port for port in range(_FIRST_PORT, _LAST_PORT) if port not in taken]
    drawn = secrets.SystemRandom().sample(free, _DRAWN)
    first, second = sorted(drawn, key=_is_used)[:2]
    return first, second


def _is_used(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return True
    return False


def _read_recent(file: Path) -> RecentView | None:
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(2 * _MAX_RECENT_BYTES), type=RecentView)
    except (OSError, msgspec.MsgspecError):
        return None
