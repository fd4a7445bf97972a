"""The servers behind a proxy: started, introduced to the client, and asked.

1. A server can be used from when it has answered the client's introduction: `initialize`, or
   `server/discover` for a 2026-07-28 client. One that cannot be started, or does not answer, is
   left out with a warning and tried again.
2. A proxy with one server does not wait for that: whatever the client sends first reaches it.
3. The client's introduction waits for all of several servers, but not for long: who is late comes
   late, and the client is notified of the changed lists.
4. A server that was started again is introduced again, and told what the client asked for to last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Raw

from transom.background import Background
from transom.channel import Channel
from transom.errors import (
    INVALID_PARAMS,
    SERVER_ERROR,
    InvalidResult,
    NotConnected,
    ProtocolError,
    TransomError,
    UsageError,
)
from transom.gateway.client import ClientState
from transom.gateway.config import ServerConfig
from transom.gateway.merge import fits_template
from transom.json_values import Json, as_object
from transom.json_values import member as member_of
from transom.servers.connection import Connect, ServerConnection
from transom.servers.process import ServerProcess
from transom.servers.targets import RemoteServer, reach_remote
from transom.servers.tasks import has_tasks
from transom.session import OnProgress

_log = logging.getLogger("transom.gateway")

LISTS: Final = ("tools", "resources", "prompts")
_ASSUMED: Final[dict[str, Json]] = {
    name: {} for name in LISTS
}  # what a server can do that was never asked
_PATIENCE = 15.0  # seconds a request waits for a server that is being started again
_ALL_WITHIN = 8.0  # seconds `initialize` waits for the last server: some clients give up at 10
_ONE_WITHIN = 50.0  # seconds after that it waits for the first one
_DISCOVERED_WITHIN = 5.0  # seconds for all: some servers do not answer what they do not know
_INTRODUCED_WITHIN = 60.0
_LISTED_WITHIN = 30.0


def connect_to(server: ServerConfig) -> Connect:
    """What starts or reaches a configured server."""

    async def connect() -> Channel:
        if server.url is not None:
            return await reach_remote(RemoteServer(server.url, server.headers, server.ask))
        if server.command is None:
            raise UsageError(f"Server {server.name} has neither a command nor a URL")
        return await ServerProcess.start(server.command, env=server.env, cwd=server.cwd)

    return connect


class Member:
    """One server of a proxy."""

    def __init__(self, connection: ServerConnection) -> None:
        self.name = connection.name
        self.connection = connection
        self.introduction: bytes | None = None
        """Its answer to the client's introduction; None while it cannot be used."""
        self.failure: str | None = None
        """Why it cannot be used, as far as that is known."""
        self.capabilities: dict[str, Json] | None = None
        """What it last said that it can do; None: it was never asked."""
        self.asking = 0
        """How many of its requests the client has not answered."""
        self.subscriptions: dict[str, bytes] = {}
        """By resource: the params that the client subscribed with."""
        self.uris: frozenset[str] = frozenset()
        """The resources that it listed."""
        self.templates: tuple[str, ...] = ()

    @property
    def present(self) -> bool:
        """Whether it can be used."""
        return self.introduction is not None and self.connection.up

    @property
    def settled(self) -> bool:
        """Whether its introduction has ended, one way or the other."""
        return self.introduction is not None or self.failure is not None

    def can(self, capability: str) -> bool:
        """Whether it said so; of one that was never asked everything is assumed."""
        return self.capabilities is None or self.capabilities.get(capability) is not None

    @property
    def has_tasks(self) -> bool:
        """Whether it said that it has tasks; of one that was never asked it is assumed."""
        return self.capabilities is None or has_tasks(self.capabilities)

    async def ready(self) -> None:
        """Wait for it while it is being started again."""
        connection = self.connection
        if not connection.up and not await connection.wait_up(_PATIENCE):
            text = f"Server {self.name} is not running: {connection.reason}"
            raise ProtocolError(SERVER_ERROR, text)
        if not connection.writable:
            await connection.wait_writable()

    async def forward(
        self,
        method: str,
        params: Raw | bytes | None,
        *,
        on_progress: OnProgress | None = None,
    ) -> bytes:
        """Send a request on, once the server is there and has read what was sent before.

        It is sent without waiting when there is nothing to wait for.
        """
        await self.ready()
        return await self.connection.forward(method, params, on_progress=on_progress)


class Members:
    """All servers of a proxy, in the order of the configuration."""

    def __init__(
        self,
        connections: Sequence[ServerConnection],
        state: ClientState,
        *,
        on_lost: Callable[[Member, str], None],
        on_came: Callable[[Member], None],
    ) -> None:
        self._state = state
        self._on_lost = on_lost
        self._on_came = on_came
        self._background = Background(_report)
        self._changed = asyncio.Event()
        self._introducing = False  # the client waits for the answer to its introduction
        self._starting: list[asyncio.Task[bool]] = []
        self._all = [Member(each) for each in connections]
        self._by_name = {each.name: each for each in self._all}
        self.only = self._all[0] if len(self._all) == 1 else None
        """The only one, if there is one only: everything passes through to it."""
        for each in connections:
            each.on_lost, each.on_restored = self._lost, self._restored
            each.resume, each.resume_timeout = self._resume, _INTRODUCED_WITHIN
        if self.only is not None:
            self.only.connection.introduced(_ASSUMED, lambda: state.envelope)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._all)

    def __getitem__(self, name: str) -> Member:
        return self._by_name[name]

    @property
    def present(self) -> list[Member]:
        """Those that can be used."""
        if self.only is not None:
            return [self.only] if self.only.connection.up else []
        return [each for each in self._all if each.present]

    def able(self, capability: str | None = None) -> list[Member]:
        """Those to ask for something; the only one in any case, for its own error is the best."""
        if self.only is not None:
            return [self.only]
        return [each for each in self.present if capability is None or each.can(capability)]

    def wait_writable(self) -> Awaitable[None] | None:
        """What to await while the only server is slow to read. Several do not delay each other."""
        if self.only is None or self.only.connection.writable:
            return None
        return self.only.connection.wait_writable()

    # --- life --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start them all; returns when the first is started."""
        if self.only is not None:
            await self.only.connection.start()
            return
        self._starting = [asyncio.ensure_future(self._start(each)) for each in self._all]
        for started in asyncio.as_completed(self._starting):
            if await started:
                return
        raise NotConnected(f"No server can be started: {self._failures()}")

    async def _start(self, member: Member) -> bool:
        try:
            await member.connection.start()
        except Exception as error:  # noqa: BLE001 - whatever it is, the others can do without it
            reason = str(error) or type(error).__name__
            member.connection.start_later(reason)
            self._failed(member, reason)
            return False
        if self._state.introduction is not None:
            self._background.start(self._introduce_running(member))
        return True

    async def aclose(self) -> None:
        """Stop them all."""
        for task in self._starting:
            task.cancel()
        if self._starting:
            await asyncio.wait(self._starting)
        await self._background.aclose(grace=0)
        await asyncio.gather(*(each.connection.aclose() for each in self._all))

    def _failed(self, member: Member, reason: str) -> None:
        if member.failure != reason:
            _log.warning("Server %s is left out for now: %s", member.name, reason)
        member.failure = reason
        member.introduction = None
        self._changed.set()

    def _lost(self, connection: ServerConnection, reason: str) -> None:
        member = self[connection.name]
        was_used = member.introduction is not None or member is self.only
        self._failed(member, reason)
        if was_used:
            self._on_lost(member, reason)

    def _restored(self, connection: ServerConnection) -> None:
        member = self[connection.name]
        if member.introduction is None and member is not self.only:
            return  # there is no client yet, or it does not speak the client's version
        _log.warning("Server %s is there", member.name)
        member.failure = None
        self._changed.set()
        self._on_came(member)

    def _failures(self) -> str:
        return "; ".join(
            f"{each.name}: {each.failure or each.connection.reason}" for each in self._all
        )

    # --- introducing -------------------------------------------------------------------------

    async def initialize(self) -> list[Member]:
        """Introduce the client to all of several servers; those that can be used then."""
        self._begin_introducing()
        await self._until(self._all_settled, _ALL_WITHIN)
        await self._until(lambda: self.present or self._all_settled(), _ONE_WITHIN)
        self._introducing = False
        if not self.present:
            raise ProtocolError(SERVER_ERROR, f"No server can be used: {self._failures()}")
        return self.present

    async def discover(self) -> list[Member] | None:
        """Introduce a 2026-07-28 client to all of several servers; None: not all speak that."""
        self._begin_introducing()
        await self._until(
            lambda: self._all_settled() or any(each.failure for each in self._all),
            _DISCOVERED_WITHIN,
        )
        self._introducing = False
        return self.present if len(self.present) == len(self._all) else None

    def _begin_introducing(self) -> None:
        self._introducing = True
        for each in self._all:
            each.introduction = None
            if each.connection.up:
                each.failure = None
                self._background.start(self._introduce_running(each))

    def _all_settled(self) -> bool:
        return all(each.settled for each in self._all)

    async def _until(self, condition: Callable[[], object], timeout: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()

    async def _introduce_running(self, member: Member) -> None:
        """Introduce the client to a server that runs already. One that refuses is restarted."""
        try:
            async with asyncio.timeout(_INTRODUCED_WITHIN):
                await self._introduce(member)
        except (ProtocolError, InvalidResult, TimeoutError) as error:
            reason = str(error) or f"it did not answer within {_INTRODUCED_WITHIN:g} s"
            self._failed(member, reason)
            await member.connection.drop(reason)
        except TransomError:
            return  # it is gone, and is introduced again when it is back
        self._changed.set()
        if member.present and not self._introducing:
            self._on_came(member)

    async def _introduce(self, member: Member) -> None:
        """Send a server the client's introduction."""
        introduction = self._state.introduction
        if introduction is None:
            return
        method, params = introduction
        try:
            answer = await member.connection.forward(method, params)
            if not self._introduces_by(method):
                return  # the client has introduced itself in another way since
            version = "protocolVersion" if method == "initialize" else "supportedVersions"
            readable = isinstance(member_of(answer, version), str | list)
            if not readable and member is not self.only:  # the only one's is the client's to judge
                raise InvalidResult(f"its answer to {method} cannot be read")
        except (ProtocolError, InvalidResult):
            if method == "initialize":
                raise
            if self._introduces_by(method):
                self._failed(member, "it does not speak 2026-07-28")
            return
        self.take_answer(member, answer)
        if method == "initialize" and self._state.initialized:
            member.connection.notify("notifications/initialized")

    def _introduces_by(self, method: str) -> bool:
        introduction = self._state.introduction
        return introduction is not None and introduction[0] == method

    def take_answer(self, member: Member, answer: bytes) -> None:
        """A server has answered the client's introduction."""
        member.introduction = answer
        member.failure = None
        member.capabilities = as_object(member_of(answer, "capabilities"))
        member.connection.introduced(member.capabilities, lambda: self._state.envelope)

    async def _resume(self, connection: ServerConnection) -> None:
        """Bring a server that was started again up to date."""
        member = self[connection.name]
        if self.only is None or self._state.initialize is not None:
            await self._introduce(member)
        # What it does not want any more is no reason to do without it.
        logs = member is self.only or member.can("logging")
        if self._state.log_level is not None and logs:
            with suppress(ProtocolError):
                await member.connection.forward("logging/setLevel", self._state.log_level)
        for params in list(member.subscriptions.values()):
            with suppress(ProtocolError):
                await member.connection.forward("resources/subscribe", params)

    # --- asking several ----------------------------------------------------------------------

    async def list_all(
        self, method: str, key: str, capability: str
    ) -> list[tuple[Member, list[Raw]]]:
        """All pages of a list, of each server that has it. Those that fail are left out."""
        able = self.able(capability)
        found = await asyncio.gather(*(self._list(each, method, key) for each in able))
        failed = [each for each in found if isinstance(each, TransomError)]
        if failed and len(failed) == len(able):
            raise failed[0]
        return [
            (server, entries)
            for server, entries in zip(able, found, strict=True)
            if not isinstance(entries, TransomError)
        ]

    @staticmethod
    async def _list(member: Member, method: str, key: str) -> list[Raw] | TransomError:
        try:
            async with asyncio.timeout(_LISTED_WITHIN):
                return await member.connection.list_all(method, key)
        except TimeoutError:
            error = NotConnected(f"Server {member.name} did not answer in {_LISTED_WITHIN:g} s")
        except TransomError as raised:
            error = raised
        _log.warning("Server %s is left out of %s: %s", member.name, method, error)
        return error

    @staticmethod
    async def first(
        candidates: Iterable[Member],
        method: str,
        params: Raw | bytes | None,
        otherwise: ProtocolError,
        *,
        only: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> tuple[Member, bytes]:
        """Send a request to one after the other, until one answers with a result.

        After an error with another code than `only`, if that is given, nobody else is asked. When
        all failed, the error of the first is raised; when there is nobody to ask, `otherwise`.
        """
        refusal: ProtocolError | None = None
        for each in candidates:
            try:
                return each, await each.forward(method, params, on_progress=on_progress)
            except ProtocolError as error:
                if only is not None and error.code != only:
                    raise
                refusal = refusal or error
        raise refusal or otherwise

    def unknown(self, kind: str, name: str) -> ProtocolError:
        """The error for a name that no server has."""
        text = f"Unknown {kind}: {name[:1000]}"
        absent = [each.name for each in self._all if not each.present]
        if absent:
            text += f" (not running right now: {', '.join(absent)})"
        return ProtocolError(INVALID_PARAMS, text)

    # --- resources ---------------------------------------------------------------------------

    def owner(self, uri: str) -> Member | None:
        """The server that listed a resource, or a template of that very text."""
        for each in self._all:
            if each is self.only or uri in each.uris or uri in each.templates:
                return each
        return None

    def candidates(self, uri: str) -> Iterator[Member]:
        """The servers that may have a resource, the likeliest first.

        That is the owner alone; else those with a template that fits, then the others.
        """
        owner = self.owner(uri)
        if owner is not None:
            yield owner
            return
        able = self.able("resources")
        likely = [each for each in able if any(fits_template(uri, t) for t in each.templates)]
        yield from likely
        yield from (each for each in able if each not in likely)


def _report(error: BaseException) -> None:
    _log.error("a server could not be introduced", exc_info=error)
