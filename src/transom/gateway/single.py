"""One server behind the gateway: it and the client hear each other as if nobody stood between.

1. What the gateway has no part in passes as it came, byte for byte and in order.
2. What it has a part in: `initialize` and `server/discover` (Views can be shown, lists change), the
   lists of tools and resources, calls of tools that open a View or belong to one, resources that
   tell what Views told, and subscriptions to those.
3. Nothing is sent to a client that has not been asked for or announced in its protocol version.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from inspect import isawaitable
from typing import Any

import msgspec
from msgspec import Raw

from transom.errors import METHOD_NOT_FOUND, SERVER_ERROR, ProtocolError, TransomError
from transom.gateway import listening
from transom.gateway.adding import (
    PROTOCOL_KEY,
    entries_of,
    envelope_of,
    member,
    members,
    with_capabilities,
    with_entries,
    with_envelope,
    without_hidden,
)
from transom.gateway.behind import Behind
from transom.gateway.front import PASSED, Front
from transom.gateway.leg import Connect, Leg
from transom.gateway.told import Told
from transom.gateway.views import ClientViews
from transom.protocol import wire

__all__ = ["Single"]

_log = logging.getLogger("transom.gateway")

_PATIENCE = 15.0  # seconds a request waits for a server that is being started again
_MAX_CANCELLED = 1000
_MAX_ASKING = 10_000
_ENVELOPE_MARK = PROTOCOL_KEY.encode()

Answer = bytes | Awaitable[bytes]


class _Forwarded:
    """A request of the client's that its server works on."""

    __slots__ = ("amend", "cancelled", "instead", "leg")

    def __init__(
        self,
        leg: Leg,
        amend: Callable[[Raw], Answer] | None,
        instead: Callable[[wire.WireError], Answer | None] | None,
    ) -> None:
        self.leg = leg
        self.amend = amend
        self.instead = instead
        self.cancelled = False


class Single:
    """The way between a client and its one server.

    Args:
        front: the client.
        server: the server's name, and what starts it.
        views: shows Views, and has their tools.
    """

    def __init__(self, front: Front, server: tuple[str, Connect], views: ClientViews) -> None:
        self._front = front
        self._views = views
        self._told = Told()
        name, connect = server
        self._leg = Leg(name, connect, self, self._told.again)
        self._behind: Behind | None = None
        self._can: Mapping[str, Any] | None = None  # what the server said, if it was asked
        self._forwarded: dict[wire.RequestId, _Forwarded] = {}
        self._asking: dict[wire.RequestId, None] = {}  # what the server asked the client
        self._stale: set[wire.RequestId] = set()  # what one that is gone asked
        self._listening = listening.Listening(self._told, front.post)
        self._handlers: dict[str, Callable[[wire.Request, bytes], None]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "subscriptions/listen": self._listen,
            "logging/setLevel": self._set_level,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }
        views.attach(
            ask_client=front.ask,
            client_can=lambda name: name in self._told.capabilities,
            modern=lambda: self._told.envelope is not None,
            tools_changed=lambda: self._tell_changed("tools"),
            resources_changed=lambda: self._tell_changed("resources"),
            resource_updated=self._listening.updated,
        )

    # --- life --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the server.

        Raises:
            NotConnected: it cannot be started.
        """
        await self._leg.start()

    async def room(self) -> None:
        """Wait while the server is slow to read."""
        await self._leg.room()

    async def aclose(self) -> None:
        """Stop the server."""
        await self._leg.aclose()

    # --- from the client ---------------------------------------------------------------------

    def asked(self, request: wire.Request, data: bytes) -> None:
        """The client asks."""
        if _ENVELOPE_MARK in data:
            request, data = self._stamped(request, data)
        self._handlers.get(request.method, self._forward)(request, data)

    def _stamped(self, request: wire.Request, data: bytes) -> tuple[wire.Request, bytes]:
        envelope = envelope_of(request.params)
        if envelope is None:
            return request, data
        self._told.envelope = envelope
        params = with_envelope(request.params, envelope)
        again = wire.Request(request.id, request.method, None if params is None else Raw(params))
        return again, wire.encode_request(request.id, request.method, params)

    def noted(self, notification: wire.Notification, data: bytes) -> None:
        """The client says something that wants no answer."""
        match notification.method:
            case "notifications/cancelled":
                self._cancel(member(notification.params, "requestId"), data)
                return
            case "notifications/initialized":
                self._told.initialized = True
            case _:
                pass
        self._leg.post(data)

    def answered(self, message: wire.Response | wire.ErrorResponse, data: bytes) -> None:
        """The client answers what the server asked; one that has gone since gets no answer."""
        if message.id is None or message.id in self._stale:
            return
        self._asking.pop(message.id, None)
        self._leg.post(data)

    def _cancel(self, id: object, data: bytes) -> None:
        if not isinstance(id, str | int):
            return
        self._listening.ended(id)
        if self._front.cancel(id):
            return
        if (forwarded := self._forwarded.get(id)) is not None:
            forwarded.cancelled = True
            forwarded.leg.post(data)
            self._forget_cancelled()

    def _forget_cancelled(self) -> None:
        """A server need not answer what was cancelled."""
        if len(self._forwarded) > _MAX_CANCELLED:
            for id in [id for id, each in self._forwarded.items() if each.cancelled]:
                del self._forwarded[id]

    # --- to the client -----------------------------------------------------------------------

    def _tell_changed(self, what: str) -> None:
        method = f"notifications/{what}/list_changed"
        if self._told.envelope is not None:
            self._listening.changed(f"{what}ListChanged", method)
        elif self._told.initialized:
            self._front.post(wire.encode_notification(method, None))

    # --- passing on --------------------------------------------------------------------------

    def _forward(
        self,
        request: wire.Request,
        data: bytes,
        amend: Callable[[Raw], Answer] | None = None,
        instead: Callable[[wire.WireError], Answer | None] | None = None,
    ) -> None:
        """Have the server answer.

        Args:
            request: what the client asked.
            data: the same, as the server is to get it.
            amend: makes the client's result of the server's.
            instead: makes a result of the server's error, or returns None to pass that on.
        """
        leg = self._leg
        if leg.up:
            self._forwarded[request.id] = _Forwarded(leg, amend, instead)
            leg.post(data)
        else:
            self._front.work(request.id, self._forward_late(request, data, amend, instead))

    async def _forward_late(
        self,
        request: wire.Request,
        data: bytes,
        amend: Callable[[Raw], Answer] | None,
        instead: Callable[[wire.WireError], Answer | None] | None,
    ) -> bytes:
        await self._until_up()
        self._forward(request, data, amend, instead)
        return PASSED

    async def _until_up(self) -> None:
        """Wait for a server that is being started again.

        Raises:
            ProtocolError: it takes too long.
        """
        leg = self._leg
        if not leg.up and not await leg.ready(_PATIENCE):
            raise ProtocolError(SERVER_ERROR, f"Server {leg.name} is not running: {leg.reason}")

    # --- from the server ---------------------------------------------------------------------

    def server_said(self, leg: Leg, message: wire.Message, data: bytes) -> None:
        """A message for the client."""
        del leg
        match message:
            case wire.Response() | wire.ErrorResponse():
                self._server_answered(message, data)
            case wire.Notification():
                self._server_noted(message, data)
            case wire.Request():
                self._stale.discard(message.id)
                self._asking[message.id] = None
                if len(self._asking) > _MAX_ASKING:
                    del self._asking[next(iter(self._asking))]
                self._front.post(data)

    async def room_for(self, leg: Leg) -> None:
        """Wait while the client is slow to read."""
        del leg
        await self._front.room()

    def _server_noted(self, notification: wire.Notification, data: bytes) -> None:
        if notification.method.endswith("/list_changed") and self._behind is not None:
            self._behind.heard(notification.method)
        if notification.method == "notifications/cancelled":
            id: object = member(notification.params, "requestId")
            if isinstance(id, str | int):
                self._asking.pop(id, None)
        if notification.method == listening.ACKNOWLEDGED:
            data = self._listening.acknowledged(notification) or data
        self._front.post(data)

    def _server_answered(self, message: wire.Response | wire.ErrorResponse, data: bytes) -> None:
        if message.id is None:
            return
        forwarded = self._forwarded.pop(message.id, None)
        if forwarded is None:
            return
        if isinstance(message, wire.ErrorResponse):
            answer = None if forwarded.instead is None else forwarded.instead(message.error)
        else:
            answer = None if forwarded.amend is None else forwarded.amend(message.result)
        if answer is None:
            self._listening.ended(message.id)
            self._front.post(data)
        elif isawaitable(answer):
            self._front.work(message.id, answer)
        elif answer is not PASSED:
            self._front.post(wire.encode_response(message.id, answer))

    def server_lost(self, leg: Leg, reason: str) -> None:
        """The server went: whoever waits for it is told."""
        _log.warning("Server %s is gone: %s", leg.name, reason)
        for id in [id for id, each in self._forwarded.items() if each.leg is leg]:
            forwarded = self._forwarded.pop(id)
            if not forwarded.cancelled and id not in self._told.listening:
                text = f"Server {leg.name} went away: {reason}. It is being started again"
                self._front.post(wire.encode_error(id, SERVER_ERROR, text))
        for id in self._asking:
            cancel = wire.encode({"requestId": id, "reason": "The server that asked is gone"})
            self._front.post(wire.encode_notification("notifications/cancelled", cancel))
        self._stale = set(self._asking)
        self._asking.clear()
        self._behind = None
        self._front.aside(self._views.server_lost(leg.name, reason))
        if self._has("tools"):
            self._tell_changed("tools")

    def server_back(self, leg: Leg) -> None:
        """The server is there again."""
        _log.warning("Server %s is back", leg.name)
        self._tell_changed("resources")  # of which the gateway has some itself
        for what in ("tools", "prompts"):
            if self._has(what):
                self._tell_changed(what)

    def _has(self, what: str) -> bool:
        return self._can is None or what in self._can

    def _reach(self) -> Behind:
        """The server, as Views reach it."""
        if self._behind is None:
            assumed: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
            self._behind = Behind(self._leg, assumed, lambda: self._told.envelope)
        return self._behind

    # --- the beginning -----------------------------------------------------------------------

    def _initialize(self, request: wire.Request, data: bytes) -> None:
        del data
        params = self._told.greet(request.params)
        message = wire.encode_request(request.id, request.method, params)
        self._forward(request, message, self._introduced)

    def _discover(self, request: wire.Request, data: bytes) -> None:
        self._forward(request, data, self._introduced)

    def _introduced(self, result: Raw) -> bytes:
        amended, capabilities = with_capabilities(result)
        self._can = capabilities
        self._behind = Behind(self._leg, capabilities, lambda: self._told.envelope)
        return amended

    def _set_level(self, request: wire.Request, data: bytes) -> None:
        if request.params is not None:
            self._told.log_level = bytes(request.params)
        self._forward(request, data)

    def _listen(self, request: wire.Request, data: bytes) -> None:
        message = self._listening.begin(request, data)

        def alone(error: wire.WireError) -> Answer | None:
            if error.code != METHOD_NOT_FOUND:
                return None
            self._listening.alone(request)
            return PASSED

        self._forward(request, message, None, alone)

    # --- tools -------------------------------------------------------------------------------

    def _list_tools(self, request: wire.Request, data: bytes) -> None:
        first = member(request.params, "cursor") is None
        self._forward(request, data, lambda result: self._tools_listed(result, whole=first))

    def _tools_listed(self, result: Raw, *, whole: bool) -> Answer:
        given = members(result)
        more = member(result, "nextCursor") is not None
        try:
            kept, heads = without_hidden(given.get("tools"))
        except msgspec.DecodeError:
            return bytes(result)  # no listing: the client's to complain about
        if whole and not more:
            self._reach().learned(entries_of(given.get("tools")))
        self._views.listed(heads)
        if more:
            return with_entries(result, "tools", kept)
        return self._with_view_tools(result, kept)

    def _with_view_tools(self, result: Raw, kept: Sequence[Raw]) -> Answer:
        tools = self._views.tools()
        if isinstance(tools, list):
            return with_entries(result, "tools", [*kept, *tools])

        async def later() -> bytes:
            return with_entries(result, "tools", [*kept, *(await tools)])

        return later()

    def _call_tool(self, request: wire.Request, data: bytes) -> None:
        name: object = member(request.params, "name")
        if isinstance(name, str) and self._views.owns(name):
            self._front.work(
                request.id,
                self._ended(self._views.call(self._front.call(request, name, request.params))),
            )
            return
        if not isinstance(name, str):
            self._forward(request, data, self._views.with_news)
        elif self._leg.up and self._reach().current:
            self._call_known(request, data, name)
        else:
            self._front.work(request.id, self._call_unknown(request, data, name))

    async def _call_unknown(self, request: wire.Request, data: bytes, name: str) -> bytes:
        await self._until_up()
        with suppress(TransomError):
            await self._reach().tools()
        self._call_known(request, data, name)
        return PASSED

    def _call_known(self, request: wire.Request, data: bytes, name: str) -> None:
        behind = self._reach()
        if self._views.opens(behind, name):
            self._front.work(
                request.id,
                self._views.open(behind, self._front.call(request, name, request.params)),
            )
        else:
            self._forward(request, data, self._views.with_news)

    async def _ended(self, calling: Awaitable[bytes]) -> bytes:
        """A result of ours, as the client's version of the protocol has it."""
        result = await calling
        if self._told.envelope is None or "resultType" in members(result):
            return result
        return wire.encode({**members(result), "resultType": "complete"})

    # --- resources ---------------------------------------------------------------------------

    def _list_resources(self, request: wire.Request, data: bytes) -> None:
        def listed(result: Raw) -> Answer:
            if member(result, "nextCursor") is not None or not self._views.resources():
                return bytes(result)
            entries = entries_of(members(result).get("resources"))
            return with_entries(result, "resources", [*entries, *self._views.resources()])

        def alone(error: wire.WireError) -> Answer | None:
            if error.code != METHOD_NOT_FOUND:
                return None
            own = with_entries(b"{}", "resources", self._views.resources())
            return own if self._told.envelope is None else _complete(own)

        self._forward(request, data, listed, alone)

    def _read_resource(self, request: wire.Request, data: bytes) -> None:
        uri: object = member(request.params, "uri")
        own = self._views.read(uri) if isinstance(uri, str) else None
        if own is None:
            self._forward(request, data)
        else:
            answer = own if self._told.envelope is None else _complete(own)
            self._front.post(wire.encode_response(request.id, answer))

    def _subscribe(self, request: wire.Request, data: bytes) -> None:
        uri: object = member(request.params, "uri")
        if not isinstance(uri, str) or request.params is None:
            self._forward(request, data)
        elif self._views.read(uri) is not None:
            self._listening.subscribe(uri)
            self._front.post(wire.encode_response(request.id, b"{}"))
        else:
            self._told.subscriptions[uri] = bytes(request.params)
            self._forward(request, data)

    def _unsubscribe(self, request: wire.Request, data: bytes) -> None:
        uri: object = member(request.params, "uri")
        if isinstance(uri, str) and self._listening.unsubscribe(uri):
            self._front.post(wire.encode_response(request.id, b"{}"))
            return
        if isinstance(uri, str):
            self._told.subscriptions.pop(uri, None)
        self._forward(request, data)


def _complete(result: bytes) -> bytes:
    """A listing or a resource as a 2026-07-28 client wants it."""
    given = members(result)
    given["resultType"] = Raw(b'"complete"')
    given["ttlMs"] = Raw(b"0")
    given["cacheScope"] = Raw(b'"private"')
    return wire.encode(given)
