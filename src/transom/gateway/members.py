"""The servers behind a proxy: started, introduced to the client, and asked.

1. A server can be used once it has answered the client's introduction. A server that does not
   support that of the client's version gets the other one, and requests are translated from then on
   (`Translator`). One that cannot be started, or does not answer, is left out with a warning and
   retried.
2. A proxy with one server does not wait for that, unless it has to know the server's version: the
   client's first message goes straight to it.
3. With several servers, the client's introduction waits for all of them, but only briefly. A server
   that is late is added later, and the client is notified of the changed lists. A request for a
   name that no other server has waits for it.
4. A server that was restarted is introduced again, and gets the client's subscriptions and log
   level.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Raw

from transom.background import Background, logs_errors
from transom.channel import Channel
from transom.connections.connection import Connect, ServerConnection, ServerListener
from transom.connections.handshake import (
    IntroductionRefused,
    check_answer,
    introduce,
    is_unsupported_version,
    may_speak_other,
)
from transom.connections.process import ServerProcess
from transom.connections.targets import RemoteServer, reach_remote
from transom.connections.versions import has_tasks
from transom.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    InvalidResult,
    NotConnected,
    ProtocolError,
    TransomError,
    UsageError,
)
from transom.gateway.client import Client
from transom.gateway.configuration.config import ServerConfig
from transom.gateway.eras import INTRODUCTIONS, ClientRequest, Translator
from transom.gateway.inputs import Inputs
from transom.gateway.merge import fits_template
from transom.json_values import Json, as_object
from transom.json_values import member as member_of
from transom.protocol import wire
from transom.traffic import TrafficListener

_log = logging.getLogger("transom.gateway")
_report = logs_errors(_log)

LISTS: Final = ("tools", "resources", "prompts")
_ASSUMED: Final[dict[str, Json]] = {
    name: {} for name in LISTS
}  # assumed capabilities of a server that was never asked
_PATIENCE = 15.0  # seconds a request waits for a server that is restarting
_STARTED_WITHIN = 30.0  # seconds a request for an unknown name waits for servers that are starting
_TRIES = 3  # to start a server that never came up, until requests do not wait for it
_ALL_WITHIN = 8.0  # seconds `initialize` waits for the last server: some clients give up at 10
_ONE_WITHIN = 50.0  # seconds after that it waits for the first one
_DISCOVERED_WITHIN = 5.0  # seconds for all: some servers do not answer unknown methods
_INTRODUCED_WITHIN = 60.0
_LISTED_WITHIN = 30.0


def connect_to(server: ServerConfig) -> Connect:
    """A function that starts or reaches a configured server."""

    async def connect() -> Channel:
        if server.url is not None:
            return await reach_remote(
                RemoteServer(
                    server.url,
                    server.headers,
                    server.ask,
                    client=server.client,
                    scope=server.scope,
                )
            )
        if server.command is None:
            raise UsageError(f"Server {server.name} has neither a command nor a URL")
        return await ServerProcess.start(server.command, env=server.env, cwd=server.cwd)

    return connect


class MembersListener(Protocol):
    """What the servers of a proxy ask of it, and notify it of."""

    def on_server_request(
        self, member: Member, request: wire.Request
    ) -> bytes | Awaitable[bytes | Raw]:
        """Answer a request of a server."""
        ...

    def on_server_notification(self, member: Member, notification: wire.Notification) -> None:
        """A server sent a notification."""
        ...

    def on_server_lists_changed(self, member: Member, method: str) -> None:
        """A server announced that a list changed, with a notification or on a stream."""
        ...

    def on_server_lost(self, member: Member, reason: str) -> None:
        """A server that could be used has gone away."""
        ...

    def on_server_came(self, member: Member) -> None:
        """A server can be used, for the first time or again."""
        ...


class Member(ServerListener):
    """One server of a proxy."""

    def __init__(
        self,
        name: str,
        connect: Connect,
        members: Members,
        *,
        hung_after: float,
        traffic: TrafficListener | None,
        identity: str,
    ) -> None:
        self.name = name
        self.connection = ServerConnection(
            name,
            connect,
            self,
            reconnect=True,
            hung_after=hung_after,
            traffic=traffic,
            identity=identity,
        )
        client = members.client
        self.translator = Translator(self.connection, self.can, client.identity, client.notify)
        self._members = members
        self.introduction: bytes | None = None
        """Its answer to the client's introduction; None while it cannot be used."""
        self.failure: str | None = None
        """Why it cannot be used, if known."""
        self.capabilities: dict[str, Json] | None = None
        """The capabilities that it last declared; None if it was never asked."""
        self.asking = 0
        """How many of its requests the client has not answered."""
        self.subscriptions: dict[str, bytes] = {}
        """By resource: the params that the client subscribed with."""
        self.streams: Counter[str] = Counter()
        """By resource: how many streams of the client need its subscription."""
        self.uris: frozenset[str] = frozenset()
        """The resources that it listed."""
        self.templates: tuple[str, ...] = ()
        self.connection.subscribe(partial(members.listener.on_server_lists_changed, self))

    # --- as the listener of its connection ---------------------------------------------------

    def on_request(self, request: wire.Request) -> bytes | Awaitable[bytes | Raw]:
        """See `ServerListener`."""
        return self._members.listener.on_server_request(self, request)

    def on_notification(self, notification: wire.Notification) -> None:
        """See `ServerListener`."""
        self._members.listener.on_server_notification(self, notification)

    def on_lost(self, reason: str) -> None:
        """See `ServerListener`."""
        self._members.lost(self, reason)

    def on_restored(self) -> None:
        """See `ServerListener`."""
        self._members.restored(self)

    async def resume(self, connection: ServerConnection) -> None:
        """See `ServerListener`."""
        try:
            async with asyncio.timeout(_INTRODUCED_WITHIN):
                await self._members.resume(self)
        except TimeoutError:
            text = f"{connection.name} did not answer within {_INTRODUCED_WITHIN:g} s"
            raise NotConnected(text) from None

    async def answer_input(self, result: bytes) -> dict[str, Any]:
        """See `ServerListener`."""
        return await self._members.inputs.answer(result, self.name)

    def wait_writable(self) -> Awaitable[None] | None:
        """See `ServerListener`."""
        return self._members.client.wait_writable()

    # --- its state ---------------------------------------------------------------------------

    @property
    def present(self) -> bool:
        """Whether it can be used."""
        return self.introduction is not None and self.connection.up

    def can(self, capability: str) -> bool:
        """Whether it declared a capability; assumed if it was never asked."""
        return self.capabilities is None or self.capabilities.get(capability) is not None

    @property
    def has_tasks(self) -> bool:
        """Whether it declared tasks; assumed if it was never asked."""
        return self.capabilities is None or has_tasks(self.capabilities)

    async def ready(self) -> None:
        """Wait for it while it is being restarted."""
        connection = self.connection
        if not connection.up and not await connection.wait_up(_PATIENCE, tries=_TRIES):
            text = f"Server {self.name} is not running: {connection.reason}"
            raise ProtocolError(SERVER_ERROR, text)
        if not connection.writable:
            await connection.wait_writable()

    async def forward(self, request: ClientRequest) -> bytes:
        """Forward a request of the client's, and what the server sends of progress back.

        It is sent without waiting if the server is running, and has read earlier messages.
        """
        request.servers.add(self.name)
        await self.ready()
        relay = self._members.client.progress_relay(request)
        return await self.translator.forward(request, relay)


class Members:
    """All servers of a proxy, in the order of the configuration."""

    def __init__(
        self,
        servers: Iterable[tuple[str, Connect]],
        client: Client,
        inputs: Inputs,
        listener: MembersListener,
        *,
        hung_after: float,
        identities: Mapping[str, str],
        traffic: TrafficListener | None = None,
    ) -> None:
        self.client = client
        self.inputs = inputs
        self.listener = listener
        self._background = Background(_report)
        self._changed = asyncio.Event()
        self._introducing = False  # whether the client waits for the answer to its introduction
        self._starting: list[asyncio.Task[bool]] = []
        self._all = [
            Member(
                name,
                connect,
                self,
                hung_after=hung_after,
                traffic=traffic,
                identity=identities.get(name, ""),
            )
            for name, connect in servers
        ]
        self._by_name = {each.name: each for each in self._all}
        self.only = self._all[0] if len(self._all) == 1 else None
        """The only server, if there is just one: everything passes through to it."""
        if self.only is not None:
            self.only.connection.introduced(_ASSUMED, lambda: client.identity.envelope)

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
        """The servers with a capability; a single server always, because its own error is best."""
        if self.only is not None:
            return [self.only]
        return [each for each in self.present if capability is None or each.can(capability)]

    def wait_writable(self) -> Awaitable[None] | None:
        """An awaitable while the only server is slow to read. Several do not delay each other."""
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
        if self.client.identity.known:
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

    def lost(self, member: Member, reason: str) -> None:
        """The connection to a server was lost."""
        was_used = member.introduction is not None or member is self.only
        self._failed(member, reason)
        if was_used:
            self.listener.on_server_lost(member, reason)

    def restored(self, member: Member) -> None:
        """The connection to a server is up again."""
        is_only = member is self.only and self.client.identity.known
        if member.introduction is None and not is_only:
            return  # there is no client yet, or the server does not speak its version
        _log.warning("Server %s is there", member.name)
        member.failure = None
        self._changed.set()
        self.listener.on_server_came(member)

    def _failures(self) -> str:
        return "; ".join(
            f"{each.name}: {each.failure or each.connection.reason}" for each in self._all
        )

    # --- introducing -------------------------------------------------------------------------

    async def introduce_all(self, params: bytes | None = None) -> None:
        """Introduce the client to all servers, to an only one with these params."""
        if self.only is not None:
            await self.only.ready()
            await self._introduce(self.only, params)
            return
        self._introducing = True
        for each in self._all:
            each.introduction = None
            if each.connection.up:
                each.failure = None
                self._background.start(self._introduce_running(each))
        await self._until(self._all_settled, _ALL_WITHIN)
        await self._until(lambda: self.present or self._all_settled(), _ONE_WITHIN)
        self._introducing = False
        if not self.present:
            raise ProtocolError(SERVER_ERROR, f"No server can be used: {self._failures()}")

    async def wait_started(self) -> bool:
        """Wait until no server is starting any more, by success or failure; whether one was."""
        if self.only is not None or self._all_settled():
            return False
        await self._until(self._all_settled, _STARTED_WITHIN)
        return True

    def _all_settled(self) -> bool:
        return all((each.introduction or each.failure) is not None for each in self._all)

    async def _until(self, condition: Callable[[], object], timeout: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()

    async def _introduce_running(self, member: Member) -> None:
        """Introduce the client to a running server. One that refuses is restarted."""
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
            self.listener.on_server_came(member)

    async def _introduce(self, member: Member, params: bytes | None = None) -> None:
        """Introduce the client to a server: in the client's version, or else in the server's.

        Raises:
            ProtocolError, InvalidResult, NotConnected: what the server answered to the first.
        """
        identity = self.client.identity
        introductions = identity.introductions
        if not introductions:
            return
        first = introductions[0][0]
        if params is not None:
            introductions[0] = (first, params)

        def check(method: str, answer: bytes) -> None:
            # With a single server, its answer goes to the client unchecked.
            if member is not self.only or identity.introductions[0][0] != method:
                check_answer(method, answer)

        def try_next(method: str, error: TransomError) -> bool:
            falls_back = INTRODUCTIONS[first].introduces_once and identity.sent_envelope
            if member is self.only and falls_back and is_unsupported_version(error):
                return False  # it was slow to start: its client falls back by itself
            return may_speak_other(method, error)

        try:
            method, answer = await introduce(
                member.connection.forward,
                introductions,
                discover_within=_DISCOVERED_WITHIN,
                check=check,
                try_next=try_next,
            )
        except IntroductionRefused as refused:
            raise refused.refusals[0] from None
        if identity.introductions[0][0] == first:  # else the client has reconnected
            self._take_answer(member, method, answer)

    @staticmethod
    def _take_answer(member: Member, introduction: str, answer: bytes) -> None:
        """A server has answered the client's introduction, or the other one."""
        member.introduction = answer
        member.failure = None
        member.capabilities = as_object(member_of(answer, "capabilities"))
        member.translator.introduced(introduction, member.capabilities)

    async def resume(self, member: Member) -> None:
        """Bring a restarted server up to date."""
        identity = self.client.identity
        if self.only is None or member.translator.introduces_again:
            await self._introduce(member)
        # If it refuses some of it now, it can still be used.
        if identity.log_level is not None and (member is self.only or member.can("logging")):
            with suppress(ProtocolError):
                await member.translator.restore_level(identity.log_level)
        for uri, params in list(member.subscriptions.items()):
            with suppress(ProtocolError):
                await member.translator.resubscribe(uri, params)

    # --- asking several ----------------------------------------------------------------------

    async def list_all(self, method: str, key: str) -> list[tuple[Member, list[Raw]]]:
        """All pages of a list, of each server that has it. Those that fail are left out."""
        able = self.able(method.partition("/")[0])
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

    async def first(
        self,
        candidates: Iterable[Member],
        request: ClientRequest,
        otherwise: ProtocolError,
        *,
        only: int | None = None,
    ) -> tuple[Member, bytes]:
        """Forward a request to one after the other, until one answers with a result.

        If `only` is given, an error with another code ends this. If all failed, the first error is
        raised; if there is no server, `otherwise`.
        """
        refusal: ProtocolError | None = None
        for each in candidates:
            try:
                return each, await each.forward(request)
            except ProtocolError as error:
                if only is not None and error.code != only:
                    raise
                refusal = refusal or error
        raise refusal or otherwise

    async def forward_any(
        self,
        request: ClientRequest,
        candidates: Iterable[Member] | None = None,
        only: int | None = METHOD_NOT_FOUND,
    ) -> bytes:
        """Forward a request to the first server that supports its method."""
        unknown = ProtocolError(METHOD_NOT_FOUND, f"Method not found: {request.method[:200]}")
        servers = self.able() if candidates is None else candidates
        return (await self.first(servers, request, unknown, only=only))[1]

    def unknown(self, kind: str, name: str) -> ProtocolError:
        """The error for a name that no server has."""
        text = f"Unknown {kind}: {name[:1000]}"
        absent = [each.name for each in self._all if not each.present]
        if absent:
            text += f" (not running right now: {', '.join(absent)})"
        return ProtocolError(INVALID_PARAMS, text)

    # --- resources ---------------------------------------------------------------------------

    def owner(self, uri: str) -> Member | None:
        """The server that listed a resource, or a template with that text."""
        for each in self._all:
            if each is self.only or uri in each.uris or uri in each.templates:
                return each
        return None

    def candidates(self, uri: str) -> Iterator[Member]:
        """The servers that may have a resource, the likeliest first.

        That is only the owner, if known; else those with a matching template, then the others.
        """
        owner = self.owner(uri)
        if owner is not None:
            yield owner
            return
        able = self.able("resources")
        likely = [each for each in able if any(fits_template(uri, t) for t in each.templates)]
        yield from likely
        yield from (each for each in able if each not in likely)
