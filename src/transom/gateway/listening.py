"""What the client wants to hear of by itself: changed lists and updated resources.

Before 2026-07-28 a client hears of every `list_changed`, and of each resource it subscribed to.
From then on it opens streams (`subscriptions/listen`) and hears on each of what it asked for there.
The server's own news pass through; here is what the gateway adds to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from transom.gateway.adding import SUBSCRIPTION_KEY, member, members
from transom.gateway.told import Told
from transom.protocol import wire

__all__ = ["ACKNOWLEDGED", "OWN", "Listening"]

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
OWN: Final = "transom://"
"""How the gateway's own resources begin."""

_OURS = ("toolsListChanged", "resourcesListChanged")


class _Wanted(msgspec.Struct, rename="camel"):
    tools_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] = []

    def asks(self, kind: str) -> bool:
        """Whether it asks for this kind of news, by the member that does."""
        if kind == "toolsListChanged":
            return self.tools_list_changed is True
        return kind == "resourcesListChanged" and self.resources_list_changed is True


class Listening:
    """One client's subscriptions to what the gateway has.

    Args:
        told: where the client's streams are remembered.
        post: sends to the client.
    """

    def __init__(self, told: Told, post: Callable[[bytes], object]) -> None:
        self._told = told
        self._post = post
        self._streams: dict[wire.RequestId, _Wanted] = {}
        self._subscribed: set[str] = set()

    # --- before 2026-07-28 -------------------------------------------------------------------

    def subscribe(self, uri: str) -> None:
        """The client wants to hear of a resource of ours."""
        self._subscribed.add(uri)

    def unsubscribe(self, uri: str) -> bool:
        """It does not any more; whether it did."""
        known = uri in self._subscribed
        self._subscribed.discard(uri)
        return known

    # --- streams -----------------------------------------------------------------------------

    def begin(self, request: wire.Request, data: bytes) -> bytes:
        """The client opens a stream; the message for the server."""
        try:
            wanted = msgspec.json.decode(
                members(request.params).get("notifications", b"{}"), type=_Wanted
            )
        except msgspec.DecodeError:
            return data  # the server's to refuse
        self._streams[request.id] = wanted
        if any(uri.startswith(OWN) for uri in wanted.resource_subscriptions):
            data = _without_ours(request, wanted)
        self._told.listening[request.id] = data
        return data

    def ended(self, id: wire.RequestId) -> None:
        """A stream is over, if `id` was one."""
        self._streams.pop(id, None)
        self._told.listening.pop(id, None)

    def acknowledged(self, notification: wire.Notification) -> bytes | None:
        """The server's word on a stream, with what the gateway will tell on it."""
        id: object = member(notification.params, "_meta", SUBSCRIPTION_KEY)
        wanted = self._streams.get(id) if isinstance(id, str | int) else None
        if wanted is None:
            return None
        params = members(notification.params)
        honoured = members(params.get("notifications")) | self._ours(wanted)
        own = [uri for uri in wanted.resource_subscriptions if uri.startswith(OWN)]
        if own:
            theirs: list[str] = member(notification.params, "notifications", _URIS) or []
            honoured[_URIS] = Raw(wire.encode([*theirs, *own]))
        params["notifications"] = Raw(wire.encode(honoured))
        return wire.encode_notification(ACKNOWLEDGED, wire.encode(params))

    def alone(self, request: wire.Request) -> None:
        """The server knows no streams: this one is the gateway's alone."""
        wanted = self._streams.get(request.id)
        if wanted is None:
            wanted = self._streams[request.id] = _Wanted()
        self._told.listening.pop(request.id, None)
        own = [uri for uri in wanted.resource_subscriptions if uri.startswith(OWN)]
        params = {
            "notifications": {**self._ours(wanted), **({_URIS: own} if own else {})},
            "_meta": {SUBSCRIPTION_KEY: request.id},
        }
        self._post(wire.encode_notification(ACKNOWLEDGED, wire.encode(params)))

    @staticmethod
    def _ours(wanted: _Wanted) -> dict[str, Raw]:
        return {key: Raw(b"true") for key in _OURS if wanted.asks(key)}

    # --- telling -----------------------------------------------------------------------------

    def changed(self, kind: str, method: str) -> None:
        """A list changed: tell the streams that asked for it, by the member that asks."""
        for id, wanted in self._streams.items():
            if wanted.asks(kind):
                params = wire.encode({"_meta": {SUBSCRIPTION_KEY: id}})
                self._post(wire.encode_notification(method, params))

    def updated(self, uri: str) -> None:
        """A resource of ours changed."""
        method = "notifications/resources/updated"
        if uri in self._subscribed:
            self._post(wire.encode_notification(method, wire.encode({"uri": uri})))
        for id, wanted in self._streams.items():
            if uri in wanted.resource_subscriptions:
                params = wire.encode({"uri": uri, "_meta": {SUBSCRIPTION_KEY: id}})
                self._post(wire.encode_notification(method, params))


_URIS = "resourceSubscriptions"


def _without_ours(request: wire.Request, wanted: _Wanted) -> bytes:
    theirs = [uri for uri in wanted.resource_subscriptions if not uri.startswith(OWN)]
    params = members(request.params)
    notifications = members(params.get("notifications"))
    notifications[_URIS] = Raw(wire.encode(theirs))
    params["notifications"] = Raw(wire.encode(notifications))
    return wire.encode_request(request.id, request.method, wire.encode(params))
