"""One client of the gateway, and the server behind it: every message goes through here.

1. What the gateway has no part in passes as it came, byte for byte and in order.
2. What it has a part in: `initialize` and `server/discover` (Views can be shown, lists change), the
   lists of tools and resources, calls of tools that open a View or belong to one, resources that
   tell what Views told, and subscriptions to those.
3. Every request of the client is answered once, whatever becomes of the server.
4. Nothing is sent to a client that has not been asked for or announced in its protocol version.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from inspect import isawaitable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from transom.channel import Channel
from transom.errors import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    ChannelClosed,
    ConnectionClosed,
    MessageRefused,
    ProtocolError,
    TransomError,
)
from transom.gateway import listening
from transom.gateway.adding import (
    PROTOCOL_KEY,
    envelope_of,
    member,
    members,
    with_blocks,
    with_capabilities,
    with_entries,
    with_envelope,
    without_hidden,
)
from transom.gateway.behind import Behind
from transom.gateway.leg import Leg
from transom.gateway.told import Told
from transom.gateway.views import Call, ClientViews
from transom.protocol import wire
from transom.queues import Outbox

__all__ = ["Connect", "Session"]

_log = logging.getLogger("transom.gateway")

Connect = Callable[[], Awaitable[Channel]]
"""Starts a server and returns the pipe to it."""

_PATIENCE = 15.0  # seconds a request waits for a server that is being started again
_MAX_BYTES = 32 * 1024 * 1024
_MAX_DEPTH = 200
_MAX_CANCELLED = 1000
_TOOLS_CHANGED = "notifications/tools/list_changed"
_ENVELOPE_MARK = PROTOCOL_KEY.encode()

_PASSED: bytes = b""  # in place of a result: somebody else answers

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


class Session:
    """Serves one client. `run` returns when the client is gone.

    Args:
        channel: the client.
        servers: the servers behind the gateway: a name, and what starts each of them.
        views: shows Views, and has their tools.
    """

    def __init__(
        self, channel: Channel, servers: Sequence[tuple[str, Connect]], views: ClientViews
    ) -> None:
        self._channel = channel
        self._views = views
        self._told = Told()
        self._legs = [Leg(name, connect, self, self._told.again) for name, connect in servers]
        self._leg = self._legs[0]
        self._behind: dict[str, Behind] = {}
        self._out = Outbox(channel, lambda _: None)  # its end is seen where it is read
        self._forwarded: dict[wire.RequestId, _Forwarded] = {}
        self._working: dict[wire.RequestId, asyncio.Task[None]] = {}
        self._aside: set[asyncio.Task[Any]] = set()
        self._asked: dict[wire.RequestId, asyncio.Future[bytes]] = {}
        self._numbers = itertools.count(1)
        self._prefix = f"transom-{secrets.token_hex(4)}-"
        self._listening = listening.Listening(self._told, self._out.post)
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
            ask_client=self.ask_client,
            client_can=lambda name: name in self._told.capabilities,
            modern=lambda: self._told.envelope is not None,
            tools_changed=lambda: self._tell_changed("tools"),
            resources_changed=lambda: self._tell_changed("resources"),
            resource_updated=self._listening.updated,
        )

    # --- life --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start the servers and serve the client until it is gone.

        Raises:
            NotConnected: a server cannot be started.
        """
        try:
            await asyncio.gather(*(leg.start() for leg in self._legs))
            while True:
                try:
                    data = await self._channel.receive()
                except ChannelClosed:
                    return
                self._client_said(data)
                await self._leg.room()
                await self._out.room()
        finally:
            await self._close()

    async def _close(self) -> None:
        tasks = [*self._working.values(), *self._aside]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        for asked in self._asked.values():
            asked.cancel()
        await self._views.aclose()
        await asyncio.gather(*(leg.aclose() for leg in self._legs))
        await self._channel.aclose()

    def _begin_aside(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self._aside.add(task)
        task.add_done_callback(self._done_aside)

    def _done_aside(self, task: asyncio.Task[Any]) -> None:
        self._aside.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("%s", error)

    # --- from the client ---------------------------------------------------------------------

    def _client_said(self, data: bytes) -> None:
        try:
            message = wire.decode(data, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
        except MessageRefused as refusal:
            id = wire.refused_id(data, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
            if id is not None:
                self._out.post(wire.encode_error(id, refusal.code, str(refusal)))
            return
        match message:
            case wire.Request():
                if _ENVELOPE_MARK in data:
                    message, data = self._stamped(message, data)
                self._handlers.get(message.method, self._pass_on)(message, data)
            case wire.Notification():
                self._client_noted(message, data)
            case _:
                self._client_answered(message, data)

    def _stamped(self, request: wire.Request, data: bytes) -> tuple[wire.Request, bytes]:
        envelope = envelope_of(request.params)
        if envelope is None:
            return request, data
        self._told.envelope = envelope
        params = with_envelope(request.params, envelope)
        again = wire.Request(request.id, request.method, None if params is None else Raw(params))
        return again, wire.encode_request(request.id, request.method, params)

    def _client_noted(self, notification: wire.Notification, data: bytes) -> None:
        match notification.method:
            case "notifications/cancelled":
                self._cancel(member(notification.params, "requestId"), data)
                return
            case "notifications/initialized":
                self._told.initialized = True
            case _:
                pass
        self._leg.post(data)

    def _cancel(self, id: object, data: bytes) -> None:
        if not isinstance(id, str | int):
            return
        self._listening.ended(id)
        if (task := self._working.get(id)) is not None:
            task.cancel()
        elif (forwarded := self._forwarded.get(id)) is not None:
            forwarded.cancelled = True
            forwarded.leg.post(data)
            self._forget_cancelled()

    def _forget_cancelled(self) -> None:
        """A server need not answer what was cancelled."""
        if len(self._forwarded) > _MAX_CANCELLED:
            for id in [id for id, each in self._forwarded.items() if each.cancelled]:
                del self._forwarded[id]

    def _client_answered(
        self, message: wire.Response | wire.ErrorResponse | wire.Message, data: bytes
    ) -> None:
        if not isinstance(message, wire.Response | wire.ErrorResponse) or message.id is None:
            return
        asked = self._asked.pop(message.id, None)
        if asked is None:
            self._leg.post(data)
        elif not asked.done():
            if isinstance(message, wire.Response):
                asked.set_result(bytes(message.result))
            else:
                asked.set_exception(_protocol_error(message.error))

    # --- to the client -----------------------------------------------------------------------

    async def ask_client(self, method: str, params: object) -> bytes:
        """Ask the client; the result as JSON.

        Raises:
            ProtocolError: the client's error.
        """
        id = f"{self._prefix}{next(self._numbers)}"
        asked = self._asked[id] = asyncio.get_running_loop().create_future()
        self._out.post(wire.encode_request(id, method, wire.encode(params)))
        try:
            return await asked
        except asyncio.CancelledError:
            if self._asked.pop(id, None) is not None:
                cancel = wire.encode({"requestId": id, "reason": "It is not needed any more"})
                self._out.post(wire.encode_notification("notifications/cancelled", cancel))
            raise

    def _tell_changed(self, what: str) -> None:
        method = f"notifications/{what}/list_changed"
        if self._told.envelope is not None:
            self._listening.changed(f"{what}ListChanged", method)
        elif self._told.initialized:
            self._out.post(wire.encode_notification(method, None))

    # --- passing on --------------------------------------------------------------------------

    def _pass_on(self, request: wire.Request, data: bytes) -> None:
        self._forward(request, data)

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
            self._work(request.id, self._forward_late(request, data, amend, instead))

    async def _forward_late(
        self,
        request: wire.Request,
        data: bytes,
        amend: Callable[[Raw], Answer] | None,
        instead: Callable[[wire.WireError], Answer | None] | None,
    ) -> bytes:
        leg = self._leg
        if not await leg.ready(_PATIENCE):
            raise ProtocolError(SERVER_ERROR, f"Server {leg.name} is not running: {leg.reason}")
        self._forward(request, data, amend, instead)
        return _PASSED

    def _work(self, id: wire.RequestId, work: Awaitable[bytes]) -> None:
        """Answer a request with what comes of `work`."""
        task = asyncio.ensure_future(self._answer(id, work))
        self._working[id] = task
        task.add_done_callback(lambda done: self._worked(id, done))

    def _worked(self, id: wire.RequestId, task: asyncio.Task[None]) -> None:
        if self._working.get(id) is task:
            del self._working[id]

    async def _answer(self, id: wire.RequestId, work: Awaitable[bytes]) -> None:
        try:
            result = await work
        except ProtocolError as error:
            data = UNSET if error.data is None else error.data
            self._out.post(wire.encode_error(id, error.code, error.message, data))
        except TransomError as error:
            self._out.post(wire.encode_error(id, SERVER_ERROR, str(error)))
        except Exception:  # noqa: BLE001 - one request must not end the others
            _log.exception("the gateway failed to answer")
            self._out.post(wire.encode_error(id, INTERNAL_ERROR, "The gateway failed"))
        else:
            if result is not _PASSED:
                self._out.post(wire.encode_response(id, result))

    # --- from the server ---------------------------------------------------------------------

    def server_said(self, leg: Leg, message: wire.Message, data: bytes) -> None:
        """A message for the client."""
        match message:
            case wire.Response() | wire.ErrorResponse():
                self._server_answered(message, data)
            case wire.Notification():
                self._server_noted(leg, message, data)
            case wire.Request():
                self._out.post(data)

    def _server_noted(self, leg: Leg, notification: wire.Notification, data: bytes) -> None:
        if notification.method.endswith("/list_changed") and leg.name in self._behind:
            self._behind[leg.name].heard(notification.method)
        if notification.method == listening.ACKNOWLEDGED:
            data = self._listening.acknowledged(notification) or data
        self._out.post(data)

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
            self._out.post(data)
        elif isawaitable(answer):
            self._work(message.id, answer)
        elif answer is not _PASSED:
            self._out.post(wire.encode_response(message.id, answer))

    def server_lost(self, leg: Leg, reason: str) -> None:
        """The server went: whoever waits for it is told."""
        _log.warning("Server %s is gone: %s", leg.name, reason)
        for id in [id for id, each in self._forwarded.items() if each.leg is leg]:
            forwarded = self._forwarded.pop(id)
            if not forwarded.cancelled and id not in self._told.listening:
                text = f"Server {leg.name} went away: {reason}. It is being started again"
                self._out.post(wire.encode_error(id, SERVER_ERROR, text))
        self._behind.pop(leg.name, None)
        self._begin_aside(self._views.server_lost(leg.name, reason))
        self._tell_changed("tools")

    def server_back(self, leg: Leg) -> None:
        """The server is there again."""
        _log.warning("Server %s is back", leg.name)
        for what in ("tools", "resources", "prompts"):
            self._tell_changed(what)

    def behind(self, leg: Leg) -> Behind:
        """The server, as Views reach it."""
        found = self._behind.get(leg.name)
        if found is None:
            assumed: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
            found = self._behind[leg.name] = Behind(leg, assumed, lambda: self._told.envelope)
        return found

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
        self._behind[self._leg.name] = Behind(self._leg, capabilities, lambda: self._told.envelope)
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
            return _PASSED

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
            self.behind(self._leg).learned(members_list(given.get("tools")))
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
            self._work(request.id, self._ended(self._views.call(self._call(request, name))))
            return
        behind = self.behind(self._leg)
        if not isinstance(name, str) or not self._leg.up:
            self._forward(request, data, self._called)
        elif behind.current:
            self._call_known(request, data, name)
        else:
            self._work(request.id, self._call_unknown(request, data, name))

    async def _call_unknown(self, request: wire.Request, data: bytes, name: str) -> bytes:
        with suppress(ProtocolError, ConnectionClosed):
            await self.behind(self._leg).tools()
        self._call_known(request, data, name)
        return _PASSED

    def _call_known(self, request: wire.Request, data: bytes, name: str) -> None:
        behind = self.behind(self._leg)
        if self._views.opens(behind, name):
            self._work(request.id, self._views.open(behind, self._call(request, name)))
        else:
            self._forward(request, data, self._called)

    async def _ended(self, calling: Awaitable[bytes]) -> bytes:
        """A result of ours, as the client's version of the protocol has it."""
        result = await calling
        if self._told.envelope is None or "resultType" in members(result):
            return result
        return wire.encode({**members(result), "resultType": "complete"})

    def _called(self, result: Raw) -> bytes:
        news = self._views.news()
        return with_blocks(result, news) if news else bytes(result)

    def _call(self, request: wire.Request, name: str) -> Call:
        token: object = member(request.params, "_meta", "progressToken")

        def progress(progress: float, total: float | None, message: str | None) -> None:
            told: dict[str, object] = {"progressToken": token, "progress": progress}
            if total is not None:
                told["total"] = total
            if message is not None:
                told["message"] = message
            params = wire.encode(told)
            self._out.post(wire.encode_notification("notifications/progress", params))

        return Call(name, request.params, None if token is None else progress)

    # --- resources ---------------------------------------------------------------------------

    def _list_resources(self, request: wire.Request, data: bytes) -> None:
        def listed(result: Raw) -> Answer:
            if member(result, "nextCursor") is not None or not self._views.resources():
                return bytes(result)
            entries = members_list(members(result).get("resources"))
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
            self._out.post(wire.encode_response(request.id, answer))

    def _subscribe(self, request: wire.Request, data: bytes) -> None:
        uri: object = member(request.params, "uri")
        if not isinstance(uri, str) or request.params is None:
            self._forward(request, data)
        elif self._views.read(uri) is not None:
            self._listening.subscribe(uri)
            self._out.post(wire.encode_response(request.id, b"{}"))
        else:
            self._told.subscriptions[uri] = bytes(request.params)
            self._forward(request, data)

    def _unsubscribe(self, request: wire.Request, data: bytes) -> None:
        uri: object = member(request.params, "uri")
        if isinstance(uri, str) and self._listening.unsubscribe(uri):
            self._out.post(wire.encode_response(request.id, b"{}"))
            return
        if isinstance(uri, str):
            self._told.subscriptions.pop(uri, None)
        self._forward(request, data)


def members_list(value: Raw | None) -> list[Raw]:
    """The entries of an array, each left as it came; none of what is no array."""
    try:
        return msgspec.json.decode(value or b"[]", type=list[Raw])
    except msgspec.DecodeError:
        return []


def _complete(result: bytes) -> bytes:
    """A listing or a resource as a 2026-07-28 client wants it."""
    given = members(result)
    given["resultType"] = Raw(b'"complete"')
    given["ttlMs"] = Raw(b"0")
    given["cacheScope"] = Raw(b'"private"')
    return wire.encode(given)


def _protocol_error(error: wire.WireError) -> ProtocolError:
    data = None if error.data is UNSET else error.data
    return ProtocolError(error.code, error.message, data)
