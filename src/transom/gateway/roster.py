"""The servers behind a gateway that has several: started, introduced to the client, and listed.

1. A server counts from when it has answered `initialize`. One that cannot be started, or does not
   answer, is left out with a warning and tried again; it is there from when it comes.
2. The client's `initialize` waits for all of them, but not for long: who is late comes late.
3. A server that comes back is told again what the client asked for to last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import msgspec
from msgspec import Raw

from transom.errors import (
    INVALID_PARAMS,
    SERVER_ERROR,
    InvalidResult,
    NotConnected,
    ProtocolError,
    TransomError,
)
from transom.gateway.behind import Behind
from transom.gateway.leg import Connect, Leg, LegEvents
from transom.gateway.merging import Introduction, pages_of, together
from transom.gateway.told import Told
from transom.protocol import wire

__all__ = ["Member", "Roster"]

_log = logging.getLogger("transom.gateway")

_PATIENCE = 15.0  # seconds a request waits for a server that is being started again
_ALL_WITHIN = 8.0  # seconds `initialize` waits for the last of them: some clients give up at 10
_ONE_WITHIN = 50.0  # more seconds it waits for the first
_INTRODUCED_WITHIN = 60.0
_LISTED_WITHIN = 30.0


class Member:
    """One server."""

    def __init__(self, leg: Leg) -> None:
        self.leg = leg
        self.name = leg.name
        self.behind: Behind | None = None
        """How Views reach it; None while it is not there."""
        self.introduction: Introduction | None = None
        """What it last said of itself."""
        self.subscriptions: dict[str, bytes] = {}
        """By resource: the params that the client subscribed with."""
        self.uris: frozenset[str] = frozenset()
        """The resources that it listed."""
        self.templates: tuple[str, ...] = ()
        self.settled = False
        """Whether it is known how its first start went."""
        self.failure: str | None = None
        """Why it is not there, as far as that was told to the user."""

    def can(self, capability: str) -> bool:
        """Whether it said so."""
        known = self.introduction
        return known is not None and known.capabilities.get(capability) is not None

    async def ready(self) -> Behind:
        """Wait for it while it is being started again.

        Raises:
            ProtocolError: it does not come.
        """
        if not self.leg.up:
            await self.leg.ready(_PATIENCE)
        if self.behind is None or not self.leg.up:
            text = f"Server {self.name} is not running: {self.leg.reason}"
            raise ProtocolError(SERVER_ERROR, text)
        return self.behind

    async def ask(self, method: str, params: Raw | bytes | None) -> bytes:
        """Ask it, once it is there and has read what was sent before; the result as JSON.

        Raises:
            ProtocolError: its error, or it does not come.
            ConnectionClosed: it went meanwhile.
        """
        await self.ready()
        await self.leg.room()
        return await self.leg.ask(method, params)


class Roster:
    """All of them, in the order of the configuration.

    Args:
        servers: a name, and what starts each of them.
        events: told of what they say, and of their comings and goings.
        told: what the client says to all of them.
    """

    def __init__(
        self, servers: Sequence[tuple[str, Connect]], events: LegEvents, told: Told
    ) -> None:
        self._told = told
        self._greeted = asyncio.Event()
        self._turn = asyncio.Event()
        legs = [
            Leg(name, connect, events, self._introduce, resume_within=None)
            for name, connect in servers
        ]
        self.members = [Member(leg) for leg in legs]
        self._by_name = {member.name: member for member in self.members}
        self._starting: set[asyncio.Task[bool]] = set()

    def __getitem__(self, name: str) -> Member:
        return self._by_name[name]

    @property
    def present(self) -> list[Member]:
        """Those that are there."""
        return [member for member in self.members if member.behind is not None]

    # --- life --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start them all; returns when the first is started.

        Raises:
            NotConnected: none of them can be started.
        """
        self._starting = {asyncio.ensure_future(self._start(each)) for each in self.members}
        for started in asyncio.as_completed(self._starting):
            if await started:
                return
        raise NotConnected(f"No server can be started: {self._reasons()}")

    async def _start(self, member: Member) -> bool:
        try:
            await member.leg.start(resume=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others can do without it
            reason = str(error) or type(error).__name__
            member.leg.start_later(reason)
            self.lost(member, reason)
            return False
        return True

    async def aclose(self) -> None:
        """Stop them all."""
        for task in self._starting:
            task.cancel()
        if self._starting:
            await asyncio.wait(self._starting)
        await asyncio.gather(*(member.leg.aclose() for member in self.members))

    def back(self, member: Member) -> None:
        """It is there."""
        if member.failure is not None:
            _log.warning("Server %s is there", member.name)
        member.failure = None
        self._settle(member)

    def lost(self, member: Member, reason: str) -> None:
        """It is gone, or did not come."""
        if member.failure != reason:
            _log.warning("Server %s is left out for now: %s", member.name, reason)
        member.failure = reason
        member.behind = None
        self._settle(member)

    def _settle(self, member: Member) -> None:
        member.settled = True
        self._turn.set()

    def _reasons(self) -> str:
        return "; ".join(f"{each.name}: {each.failure or each.leg.reason}" for each in self.members)

    # --- the beginning -----------------------------------------------------------------------

    async def greet(self, params: Raw | None) -> bytes:
        """The client's `initialize`: all of them get it; the result for the client.

        Raises:
            ProtocolError: none of them is there.
        """
        if self._told.initialize is None:
            self._told.greet(params)
            self._greeted.set()
        await self._until(self._all_settled, _ALL_WITHIN)
        await self._until(lambda: self.present or self._all_settled(), _ONE_WITHIN)
        known = {each.name: each.introduction for each in self.present if each.introduction}
        if not known:
            raise ProtocolError(SERVER_ERROR, f"No server can be used: {self._reasons()}")
        return together(known, missing=len(known) < len(self.members))

    def _all_settled(self) -> bool:
        return all(member.settled for member in self.members)

    async def _until(self, condition: Callable[[], object], timeout: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not condition():
                    self._turn.clear()
                    await self._turn.wait()

    async def _introduce(self, leg: Leg) -> None:
        await self._greeted.wait()
        try:
            async with asyncio.timeout(_INTRODUCED_WITHIN):
                raw = await leg.ask("initialize", self._told.initialize)
                self._introduced(self[leg.name], raw)
                await self._remind(self[leg.name])
        except TimeoutError:
            text = f"it did not answer within {_INTRODUCED_WITHIN:g} s"
            raise NotConnected(text) from None

    def _introduced(self, member: Member, raw: bytes) -> None:
        try:
            said = msgspec.json.decode(raw, type=Introduction)
        except msgspec.DecodeError as error:
            raise InvalidResult("what it answers to initialize cannot be read") from error
        member.introduction = said
        member.behind = Behind(member.leg, said.capabilities, lambda: None)
        if self._told.initialized:
            member.leg.post(wire.encode_notification("notifications/initialized", None))

    async def _remind(self, member: Member) -> None:
        # What it does not want any more is no reason to do without it.
        if self._told.log_level is not None and member.can("logging"):
            with suppress(ProtocolError):
                await member.leg.ask("logging/setLevel", self._told.log_level)
        for params in list(member.subscriptions.values()):
            with suppress(ProtocolError):
                await member.leg.ask("resources/subscribe", params)

    # --- asking ------------------------------------------------------------------------------

    def unknown(self, kind: str, name: str) -> ProtocolError:
        """What to raise for a name that none of those has that are there."""
        text = f"Unknown {kind}: {name[:1000]}"
        absent = [member.name for member in self.members if member.behind is None]
        if absent:
            text += f" (not running right now: {', '.join(absent)})"
        return ProtocolError(INVALID_PARAMS, text)

    async def listing(
        self, method: str, key: str, capability: str
    ) -> list[tuple[Member, list[Raw]]]:
        """All pages of a list, of each that is there and has it. Who fails is left out.

        Raises:
            TransomError: all of them failed; what the first one said.
        """
        asked = [each for each in self.members if each.leg.up and each.can(capability)]
        found = await asyncio.gather(*(self._entries(each, method, key) for each in asked))
        failed = [each for each in found if isinstance(each, TransomError)]
        if failed and len(failed) == len(asked):
            raise failed[0]
        return [
            (member, entries)
            for member, entries in zip(asked, found, strict=True)
            if not isinstance(entries, TransomError)
        ]

    @staticmethod
    async def _entries(member: Member, method: str, key: str) -> list[Raw] | TransomError:
        try:
            async with asyncio.timeout(_LISTED_WITHIN):
                return await pages_of(member.leg, method, key)
        except TimeoutError:
            error = NotConnected(f"Server {member.name} did not answer in {_LISTED_WITHIN:g} s")
        except TransomError as raised:
            error = raised
        _log.warning("Server %s is left out of %s: %s", member.name, method, error)
        return error

    @staticmethod
    async def first(
        members: Iterable[Member],
        method: str,
        params: Raw | bytes | None,
        otherwise: ProtocolError,
        *,
        only: int | None = None,
    ) -> tuple[Member, bytes]:
        """Ask one after the other, until one has an answer.

        Args:
            members: whom to ask.
            method: what to ask.
            params: as they are on the wire.
            otherwise: what is raised when there is nobody to ask.
            only: the code of the one error after which to go on. None: any.

        Raises:
            ProtocolError: none had an answer; the error of the first.
        """
        refusal: ProtocolError | None = None
        for member in members:
            try:
                return member, await member.ask(method, params)
            except ProtocolError as error:
                if only is not None and error.code != only:
                    raise
                refusal = refusal or error
        raise refusal or otherwise
