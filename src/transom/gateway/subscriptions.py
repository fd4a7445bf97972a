"""What a client gets notifications of: the resources it subscribed to, and its streams.

1. Notifications of servers pass through. What is here is for notifications that the gateway sends
   itself, and for streams (`subscriptions/listen`), which have several servers behind them.
2. A stream is fed by every server that has streams. For a server without, the gateway subscribes to
   the stream's resources, and its notifications are passed to the streams (`Proxy`).
3. A stream lasts while the client wants it, even if its servers are restarted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Raw

from transom.background import retrieve
from transom.connections.versions import SUBSCRIPTION_KEY
from transom.errors import METHOD_NOT_FOUND, ConnectionClosed, ProtocolError, TransomError
from transom.gateway.client import Client, Notify
from transom.gateway.eras import ClientRequest
from transom.gateway.members import Member, Members
from transom.json_values import as_list, as_object, member, members
from transom.protocol import wire

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_ACKNOWLEDGED_WITHIN = 10.0  # seconds that a stream waits for the last of several servers
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
        return getattr(self, f"{name}_list_changed", None) is True

    @property
    def own_uris(self) -> list[str]:
        """The resources of the gateway that it asks for."""
        return [uri for uri in self.resource_subscriptions if uri.startswith(OWN_RESOURCES)]


class Stream:
    """A `subscriptions/listen` of the client's: one stream to it, fed by several servers.

    Its acknowledgement is sent when every server has acknowledged or refused it. Until then
    notifications are queued, because the acknowledgement must be the first message of a stream.
    """

    def __init__(self, request: ClientRequest, notify: Notify, servers: Iterable[str]) -> None:
        wanted = request.members.get("notifications", b"{}")
        self._filter = msgspec.json.decode(wanted, type=_Filter)
        self._id = request.id
        self._params = request.members
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
        self._acknowledgement = {**members(params), **self._acknowledgement}
        honoured = members(members(params).get("notifications"))
        uris = [*_uris(self._honoured), *_uris(honoured)]
        self._honoured = {**honoured, **self._honoured}
        if _URIS in self._honoured:
            self._honoured[_URIS] = Raw(wire.encode(list(dict.fromkeys(uris))))
        self.settle(server)

    def acknowledge_for(self, server: str, uris: list[str], *, prompts: bool) -> None:
        """The same for a server without streams that sends notifications."""
        honoured: dict[str, object] = {}
        if prompts and self._filter.has_list("prompts"):
            honoured["promptsListChanged"] = True
        if self._filter.resource_subscriptions:
            honoured[_URIS] = uris
        self.acknowledge(server, wire.raw({"notifications": honoured}))

    def settle(self, server: str, *, refused: bool = False) -> None:
        """Do not wait for a server, which has answered or is not running; or has no streams.

        The gateway serves the stream unless all of them have refused it.
        """
        self._wanted = self._wanted or not refused
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
        self.notify(_ACKNOWLEDGED, {**self._acknowledgement, "notifications": wire.raw(honoured)})
        for method, params in early:
            self._notify(method, params)

    def settle_all(self) -> None:
        """Acknowledge it without the servers that have not answered."""
        for server in list(self._waiting):
            self.settle(server)

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


class Subscriptions:
    """The subscriptions and streams of one client."""

    def __init__(self, client: Client, members: Members) -> None:
        self._client = client
        self._members = members
        self._subscribed: set[str] = set()
        self._streams: dict[wire.RequestId, Stream] = {}

    # --- the gateway's own notifications -----------------------------------------------------

    def subscribe(self, uri: str) -> None:
        """Notify the client when this resource of the gateway changes."""
        self._subscribed.add(uri)

    def unsubscribe(self, uri: str) -> bool:
        """End a subscription; returns whether there was one."""
        known = uri in self._subscribed
        self._subscribed.discard(uri)
        return known

    def notify_list_changed(self, name: str, *, client: bool = True, streams: bool = True) -> None:
        """Notify the client that "tools", "resources" or "prompts" changed: itself, its streams."""
        if client and self._client.identity.initialized:
            self._client.notify(f"notifications/{name}/list_changed")
        for stream in list(self._streams.values()) if streams else ():
            stream.notify_list_changed(name)

    def notify_resource_updated(self, uri: str) -> None:
        """Notify the client that a resource of the gateway changed."""
        if uri in self._subscribed:
            self._client.notify("notifications/resources/updated", wire.encode({"uri": uri}))
        for stream in list(self._streams.values()):
            stream.notify_resource_updated(uri)

    # --- streams -----------------------------------------------------------------------------

    async def listen(self, request: ClientRequest) -> bytes:
        """Serve a stream to the client until it ends.

        Raises:
            msgspec.DecodeError: what it asks for cannot be read; a server will refuse it.
        """
        servers = list(self._members)
        stream = Stream(request, self._client.notify, [each.name for each in servers])
        self._streams[request.id] = stream
        listening = [asyncio.ensure_future(self._listen_to(each, stream)) for each in servers]
        try:
            if self._members.only is None:
                await asyncio.wait(listening, timeout=_ACKNOWLEDGED_WITHIN)
                stream.settle_all()
            await asyncio.wait(listening)
            ends = [each.result() for each in listening]
            if None in ends:  # a server has no streams, but the gateway serves this one
                await asyncio.Event().wait()
            for end in ends:
                if isinstance(end, bytes):
                    return stream.ended(end)
            raise next(end for end in ends if isinstance(end, ProtocolError))
        finally:
            self._streams.pop(request.id, None)
            for each in listening:
                each.cancel()

    async def _listen_to(self, server: Member, stream: Stream) -> bytes | ProtocolError | None:
        """Feed a stream from one server, also after it was restarted.

        Returns:
            The result or error with which the server ended it; None if it has no streams.
        """

        def handle(notification: wire.Notification) -> None:
            if notification.method == _ACKNOWLEDGED:
                stream.acknowledge(server.name, notification.params)
            else:
                stream.notify(notification.method, members(notification.params))

        while True:
            connection = server.connection
            if not connection.up:
                stream.settle(server.name)
                await connection.wait_up(None)
            if server.translator.has_streams is False:
                await self._subscribe_for(server, stream)
            try:
                return bytes(await connection.listen(stream.server_params, handle))
            except ConnectionClosed:
                stream.settle(server.name)
                await asyncio.sleep(0)
            except ProtocolError as error:
                if error.code == METHOD_NOT_FOUND:
                    stream.settle(server.name)
                    return None
                stream.settle(server.name, refused=True)
                return error

    async def _subscribe_for(self, server: Member, stream: Stream) -> None:
        """Subscribe at a server without streams to the resources of one, until cancelled."""
        honoured: list[str] = []
        can = as_object((server.capabilities or {}).get("resources")).get("subscribe") is True
        try:
            for uri in stream.server_uris if can else ():
                if self._members.owner(uri) not in (None, server):
                    continue
                server.streams[uri] += 1
                honoured.append(uri)
                if uri not in server.subscriptions:
                    params = server.subscriptions[uri] = wire.encode({"uri": uri})
                    with suppress(TransomError):
                        await server.connection.forward("resources/subscribe", params)
            stream.acknowledge_for(server.name, honoured, prompts=server.can("prompts"))
            await asyncio.Event().wait()
        finally:
            for uri in honoured:
                server.streams[uri] -= 1
                if not server.streams[uri]:
                    del server.streams[uri], server.subscriptions[uri]
                    if server.connection.up:
                        server.connection.send_request(
                            "resources/unsubscribe", wire.encode({"uri": uri})
                        ).add_done_callback(retrieve)


def _uris(notifications: Mapping[str, Raw]) -> list[str]:
    found = as_list(member(notifications.get(_URIS)))
    return [uri for uri in found if isinstance(uri, str)]
