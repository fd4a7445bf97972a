"""The client of a gateway: its capabilities, its streams, and the order of its messages.

1. The client's messages are handled in order. Most requests run as tasks, which begin in the next
   turn of the event loop; messages that come in the same turn wait behind them.
2. A request that is only forwarded to a server is sent at once, without a task (`pass_on`).
3. Every request is answered once, whatever happens to the servers: with a result, or with an error.
   One that the client cancels is not answered.
4. The client is read only while it and the servers read what they are sent (back-pressure).
5. Before 2026-07-28 a client introduces itself once, with `initialize`. It is notified of every
   `list_changed`, and of each resource that it subscribed to. From then on each of its requests
   carries an envelope that says who it is, and it opens streams (`subscriptions/listen`).
6. Notifications of servers pass through. The state here is for notifications that the gateway sends
   itself, and for servers that are restarted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Raw

from transom.channel import Channel, Throttled
from transom.connections.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVERY_VERSION,
    HANDSHAKE_VERSIONS,
    LOG_LEVEL_KEY,
    PROTOCOL_KEY,
    SUBSCRIPTION_KEY,
    envelope_of,
    is_modern,
    with_envelope,
    with_ui,
)
from transom.errors import (
    SERVER_ERROR,
    NotConnected,
    PeerError,
    ProtocolError,
    TransomError,
)
from transom.json_values import member, members
from transom.protocol import wire
from transom.protocol.peer import Peer, Progress
from transom.session import OnProgress, SentRequest, Session

_log = logging.getLogger("transom.gateway")

Notify = Callable[[str, bytes | None], object]
"""Sends a notification: method, params."""

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 200
_MAX_INCOMING = 10_000  # requests of the client that are worked on at the same time
_MAX_OUTGOING = 100_000  # requests to the client; each server has a limit of its own


class Client:
    """One client."""

    def __init__(
        self,
        channel: Channel,
        *,
        pass_on: Callable[[wire.Request], SentRequest | None],
        on_request: Callable[[wire.Request], Awaitable[bytes]],
        on_notification: Callable[[wire.Notification], None],
        wait_for_servers: Callable[[], Awaitable[None] | None],
    ) -> None:
        self._pass_on = pass_on
        self._on_request = on_request
        self._on_notification = on_notification
        self._wait_for_servers = wait_for_servers
        self._queued = False
        self._session = Session(
            Throttled(channel, self._wait_for_room),
            on_request=self._handle_request,
            on_notification=self._handle_notification,
            on_problem=_report,
            to_error=_as_error,
            timeout=None,
            peer=Peer(
                max_bytes=MAX_BYTES,
                max_depth=MAX_DEPTH,
                max_incoming=_MAX_INCOMING,
                max_outgoing=_MAX_OUTGOING,
            ),
        )

    async def serve(self) -> None:
        """Read and answer until the client is gone."""
        self._session.start()
        await self._session.wait_closed()

    async def aclose(self) -> None:
        """Stop all work for the client, and close the channel."""
        await self._session.aclose("the gateway ended")

    def wait_writable(self) -> Awaitable[None] | None:
        """An awaitable while the client is slow to read, else None."""
        return None if self._session.writable else self._session.wait_writable()

    def _wait_for_room(self) -> Awaitable[None] | None:
        return self._wait_for_servers() or self.wait_writable()

    # --- from the client ---------------------------------------------------------------------

    def _handle_request(self, request: wire.Request) -> Awaitable[bytes | Raw]:
        passed = None if self._queued else self._pass_on(request)
        if passed is not None:
            return passed
        self._queue()
        return self._on_request(request)

    def _handle_notification(self, notification: wire.Notification) -> None:
        if self._queued:
            loop = asyncio.get_running_loop()
            loop.call_soon(_guarded, self._on_notification, notification)
        else:
            _guarded(self._on_notification, notification)

    def _queue(self) -> None:
        """Make later messages wait behind a task that is about to begin."""
        if not self._queued:
            self._queued = True
            # Runs right before the task begins, and nothing is read in between.
            asyncio.get_running_loop().call_soon(self._unqueue)

    def _unqueue(self) -> None:
        self._queued = False

    # --- to the client -----------------------------------------------------------------------

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification, unless the client is gone."""
        with suppress(NotConnected):
            self._session.notify_soon(method, params)

    def send_request(
        self, method: str, params: bytes | None, *, on_progress: OnProgress | None = None
    ) -> SentRequest:
        """Send a request at once. The result fails with the client's error."""
        return self._session.send(method, params, on_progress=on_progress)

    def progress_relay(self, params: Raw | None) -> OnProgress | None:
        """A handler that sends progress to the client; None if its request wants none."""
        return progress_relay(params, self.notify)


def progress_relay(params: Raw | None, notify: Notify) -> OnProgress | None:
    """A handler that sends progress under the token in a request's params; None without one."""
    if params is None or b'"progressToken"' not in bytes(params):
        return None
    token = members(members(params).get("_meta")).get("progressToken")
    if token is None:
        return None

    def relay(progress: Progress) -> None:
        if progress.params is None:
            relayed = progress.relayed(token)
        else:
            relayed = wire.encode({**members(progress.params), "progressToken": token})
        notify("notifications/progress", relayed)

    return relay


def _guarded(call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except Exception:  # noqa: BLE001 - one message must not cut off those after it
        _log.exception("a message could not be handled")


def _as_error(error: BaseException) -> ProtocolError | None:
    if isinstance(error, TransomError):
        return ProtocolError(SERVER_ERROR, str(error))
    return None


def _report(error: BaseException) -> None:
    if isinstance(error, PeerError):
        _log.info("the client broke a rule: %s", error)
    else:
        _log.error("a message of the client's could not be handled", exc_info=error)


ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
OWN_RESOURCES: Final = "transom://"
"""The beginning of the URIs of the gateway's own resources."""

_MAX_EARLY = 1000  # notifications queued for a stream that is not acknowledged yet
_URIS: Final = "resourceSubscriptions"


class _Filter(msgspec.Struct, rename="camel"):
    """The part of a stream's filter that the gateway itself serves."""

    tools_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resource_subscriptions: list[str] = []

    def has_list(self, name: str) -> bool:
        """Whether it asks for changes of the list "tools", "resources" or "prompts"."""
        return getattr(self, f"{name}_list_changed") is True

    @property
    def own_uris(self) -> list[str]:
        """The resources of the gateway that it asks for."""
        return [uri for uri in self.resource_subscriptions if uri.startswith(OWN_RESOURCES)]


class Stream:
    """A `subscriptions/listen` of the client's: one stream to it, fed by several servers.

    Its acknowledgement is sent when every server has acknowledged or refused it. Until then
    notifications are queued, because the acknowledgement must be the first message of a stream.
    """

    def __init__(self, request: wire.Request, notify: Notify, servers: Iterable[str]) -> None:
        params = members(request.params)
        self._filter = msgspec.json.decode(params.get("notifications", b"{}"), type=_Filter)
        self._id = request.id
        self._params = params
        self._notify = notify
        self._waiting = set(servers)
        self._wanted = False
        self._acknowledgement: dict[str, Raw] = {}
        self._honoured: dict[str, Raw] = {}
        self._early: list[tuple[str, bytes]] | None = []

    @property
    def server_params(self) -> bytes:
        """The params for a server, which does not know the gateway's resources."""
        if not self._filter.own_uris:
            return wire.encode(self._params)
        notifications = {**members(self._params.get("notifications")), _URIS: self.server_uris}
        return wire.encode({**self._params, "notifications": notifications})

    @property
    def server_uris(self) -> list[str]:
        """The resources of servers that it asks for."""
        wanted = dict.fromkeys(self._filter.resource_subscriptions)
        return [uri for uri in wanted if not uri.startswith(OWN_RESOURCES)]

    # --- acknowledging -----------------------------------------------------------------------

    def acknowledge(self, server: str, params: Raw | None) -> None:
        """A server has acknowledged it, and said what it will notify of."""
        if self._early is None:
            return  # the server was restarted; the client already has its acknowledgement
        self._wanted = True
        self._acknowledgement = {**members(params), **self._acknowledgement}
        honoured = members(members(params).get("notifications"))
        uris = [*_uris(self._honoured), *_uris(honoured)]
        self._honoured = {**honoured, **self._honoured}
        if _URIS in self._honoured:
            self._honoured[_URIS] = Raw(wire.encode(list(dict.fromkeys(uris))))
        self._no_longer_wait_for(server)

    def acknowledge_for(self, server: str, uris: list[str], *, prompts: bool) -> None:
        """The same for a server without streams that sends notifications."""
        honoured: dict[str, object] = {}
        if prompts and self._filter.has_list("prompts"):
            honoured["promptsListChanged"] = True
        if self._filter.resource_subscriptions:
            honoured[_URIS] = uris
        self.acknowledge(server, wire.raw({"notifications": honoured}))

    def skip(self, server: str) -> None:
        """A server has no streams, or is not running: the gateway still serves the stream."""
        self._wanted = True
        self._no_longer_wait_for(server)

    def refuse(self, server: str) -> None:
        """A server has refused it."""
        self._no_longer_wait_for(server)

    def stop_waiting(self) -> None:
        """Acknowledge it without the servers that have not answered, if at least one has."""
        self._wanted = self._wanted or bool(self._waiting)
        self._waiting.clear()
        self._no_longer_wait_for("")

    def _no_longer_wait_for(self, server: str) -> None:
        self._waiting.discard(server)
        if self._waiting or not self._wanted or self._early is None:
            return
        honoured = dict(self._honoured)
        for name in ("tools", "resources"):
            if self._filter.has_list(name):
                honoured[f"{name}ListChanged"] = Raw(b"true")
        if self._filter.own_uris:
            uris = [*_uris(honoured), *self._filter.own_uris]
            honoured[_URIS] = wire.raw(uris)
        early, self._early = self._early, None
        self.notify(ACKNOWLEDGED, {**self._acknowledgement, "notifications": wire.raw(honoured)})
        for method, params in early:
            self._notify(method, params)

    # --- notifying ---------------------------------------------------------------------------

    def notify(self, method: str, params: Mapping[str, Raw]) -> None:
        """Send a notification on this stream."""
        meta = {**members(params.get("_meta")), SUBSCRIPTION_KEY: self._id}
        message = wire.encode({**params, "_meta": meta})
        if self._early is None:
            self._notify(method, message)
        elif len(self._early) < _MAX_EARLY:
            self._early.append((method, message))

    def notify_list_changed(self, name: str) -> None:
        """Send that a list changed, if the stream subscribed to that."""
        if self._filter.has_list(name):
            self.notify(f"notifications/{name}/list_changed", {})

    def notify_resource_updated(self, uri: str) -> None:
        """Send that a resource of the gateway changed, if the stream subscribed to that."""
        if uri in self._filter.resource_subscriptions:
            self.notify("notifications/resources/updated", {"uri": wire.raw(uri)})

    def ended(self, result: Raw | bytes) -> bytes:
        """The result that ends it, made from a server's."""
        given = members(result)
        meta = {**members(given.get("_meta")), SUBSCRIPTION_KEY: self._id}
        return wire.encode({**given, "_meta": meta})


_NOBODY: Final = Raw(b'{"name":"unknown","version":"0"}')


class ClientState:
    """A client's capabilities, and its lasting requests: subscriptions, streams, log level."""

    def __init__(self, notify: Notify) -> None:
        self.initialize: bytes | None = None
        """The params of its `initialize`, as servers get them."""
        self.initialized = False
        self.envelope: Mapping[str, Raw] | None = None
        """The envelope that a 2026-07-28 client sends with each request."""
        self.tried_modern = False
        """Whether there ever was such a request."""
        self.log_level: bytes | None = None
        """The params of its last `logging/setLevel`."""
        self._notify = notify
        self._streams: dict[wire.RequestId, Stream] = {}
        self._subscribed: set[str] = set()

    @property
    def introductions(self) -> list[tuple[str, bytes]]:
        """The requests by which servers learn of the client: method, params.

        The first is that of its own version, the other is for servers that do not support it.
        """
        modern = self.own_envelope
        if modern is None:
            return []
        handshake = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": with_ui(modern.get(CAPABILITIES_KEY)),
            "clientInfo": modern.get(CLIENT_KEY, _NOBODY),
        }
        both = [
            ("server/discover", with_envelope(None, modern) or b"{}"),
            ("initialize", self.initialize or wire.encode(handshake)),
        ]
        return both if self.envelope is not None else both[::-1]

    @property
    def own_envelope(self) -> Mapping[str, Raw] | None:
        """The envelope for 2026-07-28 servers, whatever the client's version."""
        if self.envelope is not None or self.initialize is None:
            return self.envelope
        given = members(self.initialize)
        level = members(self.log_level).get("level")
        return {
            PROTOCOL_KEY: wire.raw(DISCOVERY_VERSION),
            CLIENT_KEY: given.get("clientInfo", _NOBODY),
            CAPABILITIES_KEY: given["capabilities"],
            **({} if level is None else {LOG_LEVEL_KEY: level}),
        }

    def supports(self, capability: str) -> bool:
        """Whether the client declared a capability."""
        return capability in members((self.own_envelope or {}).get(CAPABILITIES_KEY))

    def take_initialize(self, params: Raw | None) -> None:
        """The client sent `initialize`, possibly after it tried 2026-07-28 first."""
        given = members(params)
        given["capabilities"] = with_ui(given.get("capabilities"))
        self.initialize = wire.encode(given)
        self.envelope = None

    def take_request(self, request: wire.Request) -> wire.Request:
        """A request as servers get it: with the Views capability in its envelope, if it has one."""
        envelope = envelope_of(request.params) if is_modern(request.params) else None
        if envelope is None:
            return request
        self.envelope = envelope
        self.tried_modern = True
        params = with_envelope(request.params, envelope)
        return msgspec.structs.replace(request, params=None if params is None else Raw(params))

    # --- the gateway's own notifications -----------------------------------------------------

    def subscribe(self, uri: str) -> None:
        """Notify the client when this resource of the gateway changes."""
        self._subscribed.add(uri)

    def unsubscribe(self, uri: str) -> bool:
        """End a subscription; returns whether there was one."""
        known = uri in self._subscribed
        self._subscribed.discard(uri)
        return known

    def add_stream(self, id: wire.RequestId, stream: Stream) -> None:
        """The client opened a stream."""
        self._streams[id] = stream

    def remove_stream(self, id: wire.RequestId) -> None:
        """A stream has ended."""
        self._streams.pop(id, None)

    def notify_list_changed(
        self, name: str, *, handshake: bool = True, modern: bool = True
    ) -> None:
        """Notify the client that the list "tools", "resources" or "prompts" changed.

        Args:
            name: the list.
            handshake: whether it changed for clients that began with `initialize`.
            modern: whether it changed for requests of 2026-07-28.
        """
        for stream in list(self._streams.values()) if modern else ():
            stream.notify_list_changed(name)
        if handshake and self.initialized:
            self._notify(f"notifications/{name}/list_changed", None)

    def notify_resource_updated(self, uri: str) -> None:
        """Notify the client that a resource of the gateway changed."""
        if uri in self._subscribed:
            self._notify("notifications/resources/updated", wire.encode({"uri": uri}))
        for stream in list(self._streams.values()):
            stream.notify_resource_updated(uri)


def _uris(notifications: Mapping[str, Raw]) -> list[str]:
    found: object = member(wire.encode(notifications), _URIS)
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]
