"""A client that uses the gateway over HTTP, as a Channel: which response each message goes to.

1. An answer goes to the request that it answers: as JSON if nothing else was sent there before,
   else as the last event of its stream. A request that takes long also gets a stream.
2. Progress goes to the request that asked for it, and nowhere once that is answered.
3. In a session (before 2026-07-28) every other message goes to the newest running request; if there
   is none, to the stream that the client opened with GET; if there is none either, it is queued. A
   cancelled request is answered here, because only an answer ends its stream. A client that
   disconnects has not cancelled anything: its call continues. Each event of a stream has an id, by
   which the client can go on where its connection broke off (`Last-Event-ID`): the last events of a
   session are kept, and what comes for a stream that nobody reads waits for its reader.
4. A principal (2026-07-28) may be several clients with any number of connections. Their ids,
   progress tokens and subscription ids are replaced by unique ones, and translated back for each
   client. A client that disconnects has cancelled its request. Messages that belong to no request
   are dropped.
5. Both end when they have had no open request or stream for a while.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import cached_property
from itertools import count
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Send

from transom.connections.versions import LOG_LEVEL_KEY, MISSING_CAPABILITY, SUBSCRIPTION_KEY
from transom.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SERVER_ERROR,
    ChannelClosed,
    ProtocolError,
    TransomError,
)
from transom.gateway.eras import ClientRequest
from transom.json_values import member, members, with_member
from transom.protocol import wire
from transom.types import Tool

_log = logging.getLogger("transom.gateway")

SESSION_HEADER: Final = "mcp-session-id"
_PROGRESS: Final = "progressToken"
_HTTP: Final[dict[str, Any]] = {"type": "http"}
_CANCELLED: Final = -32800  # the code that the SDKs use

_MAX_UNSENT = 64  # messages queued before the sender has to wait, or the oldest is dropped
_MAX_UNSENT_BYTES = 1024 * 1024
_WATCH_AFTER = 0.25  # seconds until we watch whether the client is still connected
_KEEP_ALIVE = 15.0  # seconds after which a silent stream gets a comment, for the proxies between
_EVENTS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
_PRIMED_SINCE: Final = "2025-11-25"  # versions in which a stream begins with an event without data
_RETRY_MS: Final = 1000  # after which a client whose stream broke off comes back
_MAX_SENT: Final = 256  # events of a session that are kept
_MAX_KEPT: Final = 8  # streams of a session that nobody reads
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
_STATUS: Final = {
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS), 400),
    **dict.fromkeys((HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION), 400),
    METHOD_NOT_FOUND: 404,
}


def status_of(code: object) -> int:
    """The HTTP status of a 2026-07-28 answer with this error."""
    return _STATUS.get(code, 200) if isinstance(code, int) else 200


class _Outgoing(msgspec.Struct):
    """The parts of a message to the client that decide where it goes."""

    id: wire.RequestId | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_read_outgoing = msgspec.json.Decoder(_Outgoing).decode


class _Messages:
    """Messages on their way: to the client in one HTTP response or the next, or from it."""

    def __init__(
        self,
        request: wire.Request | ClientRequest | None = None,
        headers: Headers | None = None,
    ) -> None:
        self.request = request
        """The request that is answered here, with its client's id."""
        self.headers = headers
        """The headers of that request."""
        self.status = 200
        """The HTTP status of a response with only the answer."""
        self.events = 0
        """How many of its messages were sent as events."""
        self.number = 0
        """Its number among those of a session that can be resumed; 0: it cannot."""
        self.replay_from = 0
        """The last of them that its client is known to have."""
        self._messages: deque[bytes] = deque()
        self.closed = False
        """Whether it gets no more messages."""
        self.abandoned = False
        """Whether its client has disconnected, and may come back."""
        self._bytes = 0
        self._begun = False
        self._reader: object = None
        self._changed = asyncio.Event()

    @cached_property
    def token(self) -> Any:
        """The progress token of the request."""
        return self.meta(_PROGRESS)

    def meta(self, key: str) -> Any:
        """A value in the `_meta` of the request."""
        request = self.request
        if isinstance(request, ClientRequest):
            return member(request.meta.get(key))
        return None if request is None else member(request.params, "_meta", key)

    @property
    def full(self) -> bool:
        """Whether too many messages wait."""
        return self._crowded and not self.closed and not self.abandoned

    @property
    def _crowded(self) -> bool:
        return len(self._messages) >= _MAX_UNSENT or self._bytes > _MAX_UNSENT_BYTES

    @property
    def ended(self) -> bool:
        """Whether it has no message left, and gets no more."""
        return self.closed and not self._messages

    @property
    def only_answer(self) -> bool:
        """Whether the next message is the last."""
        return self.closed and len(self._messages) == 1

    def put(self, data: bytes) -> None:
        """Add a message."""
        if not self.closed:
            while self.abandoned and self._messages and self._crowded:
                self.take()
            self._messages.append(data)
            self._bytes += len(data)
            self._changed.set()

    def read_by(self, reader: object) -> None:
        """Send the messages to this reader, and to no other."""
        self._reader, self.abandoned = reader, False
        self._changed.set()

    def abandon(self, reader: object) -> None:
        """The reader is gone: messages wait for another one, and senders do not."""
        if self._reader is reader and not self.closed:
            self._reader, self.abandoned = None, True
            self._changed.set()

    def begin(self) -> None:
        """Start the response without waiting for the first message."""
        self._begun = True
        self._changed.set()

    def close(self) -> None:
        """Accept no more messages."""
        self.closed = True
        self._changed.set()

    async def wait_room(self) -> None:
        """Wait until it is not full."""
        while self.full:
            self._changed.clear()
            await self._changed.wait()

    async def wait_ready(self, reader: object = None) -> bool:
        """Wait for a message, or for the end; whether they are still for this reader."""
        while not self._messages and not self.closed and self._reader is reader:
            self._changed.clear()
            await self._changed.wait()
        return self._reader is reader

    async def wait_begun(self) -> None:
        """The same, unless it takes too long."""
        while not self._messages and not self.closed and not self._begun:
            self._changed.clear()
            await self._changed.wait()

    def take(self) -> bytes | None:
        """The next message; None at the end. Call `wait_ready` first."""
        if not self._messages:
            return None
        data = self._messages.popleft()
        self._bytes -= len(data)
        self._changed.set()
        return data


Serve = Callable[["HttpClient"], Coroutine[Any, Any, None]]
"""Serves a client until it ends."""


class HttpClient:
    """One client of the gateway, from its first request to its end; the user sees its `name`."""

    def __init__(
        self, name: str, idle: float, serve: Serve, headers: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.ending = False
        self._idle = idle
        self._idle_timer: asyncio.TimerHandle | None = None
        self._open = 0
        self._headers = headers or {}  # of every response
        self._incoming = _Messages()
        self._queued: dict[wire.RequestId, ClientRequest] = {}  # of those in it, what is read
        self._in_flight: dict[wire.RequestId, _Messages] = {}
        # Last: where tasks are eager (`asyncio.eager_task_factory`), it is served from here on.
        self.task = asyncio.create_task(serve(self), name=f"transom-client-{name}")

    # --- its life ----------------------------------------------------------------------------

    def end(self) -> None:
        """End it, unless it is ending already."""
        if not self.ending:
            self.ending = True
            self.task.cancel()

    def ended(self) -> None:
        """It has ended: end its open responses."""
        self.ending = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for stream in [self._incoming, *self._in_flight.values()]:
            stream.close()

    async def serve(self, work: Awaitable[None]) -> None:
        """Answer one HTTP request."""
        self._open += 1
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        try:
            await work
        finally:
            self._open -= 1
            if not self._open and not self.ending:
                loop = asyncio.get_running_loop()
                self._idle_timer = loop.call_later(self._idle, self.end)

    # --- HTTP --------------------------------------------------------------------------------

    async def _respond(
        self,
        id: wire.RequestId,
        stream: _Messages,
        body: bytes,
        receive: Receive,
        send: Send,
        *,
        read: ClientRequest | None = None,
    ) -> None:
        """Pass a request on, and send its messages as the response."""
        loop = asyncio.get_running_loop()
        self._in_flight[id] = stream
        reader = object()
        stream.read_by(reader)
        watching: list[asyncio.Task[None]] = []
        timers: list[asyncio.TimerHandle] = []

        def watch() -> None:
            watching.append(asyncio.create_task(self._watch(stream, reader, receive)))
            timers.append(loop.call_later(_KEEP_ALIVE, stream.begin))

        timers.append(loop.call_later(_WATCH_AFTER, watch))
        try:
            await self._pass_on(body, read)
            await stream.wait_begun()
            if stream.only_answer:
                headers = {**self._headers, "content-type": "application/json"}
                await Response(stream.take(), stream.status, headers)(_HTTP, receive, send)
            elif stream.ended:
                raise HttpRefusal(503, SERVER_ERROR, "The gateway has ended it")
            else:
                await self._send_events(stream, reader, send)
        finally:
            for each in (*timers, *watching):
                each.cancel()
            self._disconnected(stream, reader)
            self._answered(id)

    @abstractmethod
    def _answered(self, id: wire.RequestId) -> None:
        """The response to a request has ended."""

    async def _pass_on(self, body: bytes, read: ClientRequest | None = None) -> None:
        await self._incoming.wait_room()
        if read is not None:
            self._queued[read.id] = read
        self._incoming.put(body)

    async def _watch(self, stream: _Messages, reader: object, receive: Receive) -> None:
        """Notice that the client of a stream has gone away."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._disconnected(stream, reader)

    def _disconnected(self, stream: _Messages, reader: object) -> None:  # noqa: ARG002
        """The client does not read a stream any more."""
        stream.close()

    def _first_events(self, stream: _Messages) -> bytes:  # noqa: ARG002
        """What a stream begins with."""
        return b""

    def _event_id(self, stream: _Messages, data: bytes) -> bytes:  # noqa: ARG002
        """The line with the id of a stream's next event, if it has one."""
        return b""

    async def _send_events(self, stream: _Messages, reader: object, send: Send) -> None:
        headers = {**self._headers, **_EVENTS}
        events = [(key.encode(), value.encode()) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": events})
        first = self._first_events(stream)
        await send({"type": "http.response.body", "body": first, "more_body": True})
        while True:
            try:
                async with asyncio.timeout(_KEEP_ALIVE):
                    mine = await stream.wait_ready(reader)
            except TimeoutError:
                body = b": still here\n\n"
            else:
                data = stream.take() if mine else None
                if data is None:
                    break
                # In JSON, raw line breaks only occur between tokens.
                data = data.replace(b"\r", b" ").replace(b"\n", b" ")
                id = self._event_id(stream, data)
                body = b"event: message\n" + id + b"data: " + data + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    # --- the Channel -------------------------------------------------------------------------

    async def receive(self) -> bytes:
        """The next message of the client's."""
        await self._incoming.wait_ready()
        data = self._incoming.take()
        if data is None:
            raise ChannelClosed("The client is gone")
        return data

    async def send(self, data: bytes) -> None:
        """Send one message; waits while the client is slow to read."""
        message = _read_outgoing(data)
        stream = self._stream_for(message)
        if stream is not None:
            await stream.wait_room()
        self._deliver(message, data, self._stream_for(message))

    def send_nowait(self, data: bytes) -> bool:
        """Send one message, unless the client is slow to read."""
        message = _read_outgoing(data)
        stream = self._stream_for(message)
        if stream is not None and stream.full:
            return False
        self._deliver(message, data, stream)
        return True

    async def aclose(self) -> None:
        """Take no more messages."""
        self._incoming.close()

    @abstractmethod
    def _stream_for(self, message: _Outgoing) -> _Messages | None:
        """The response that a message belongs to."""

    @abstractmethod
    def _deliver(self, message: _Outgoing, data: bytes, stream: _Messages | None) -> None:
        """Queue a message for its response."""

    def _finish(self, id: wire.RequestId | None, data: bytes) -> None:
        stream = None if id is None else self._in_flight.pop(id, None)
        if stream is not None:
            stream.put(data)
            stream.close()

    def refuse(self, reason: str) -> None:
        """Answer everything with an error, when there is no server to answer it."""
        for id, stream in list(self._in_flight.items()):
            if stream.request is not None:
                self._finish(id, wire.encode_error(stream.request.id, SERVER_ERROR, reason))


class _SentEvents:
    """The streams of a session that have event ids, and the last events that were sent on them.

    An id is the number of a stream and that of the event on it. Each session numbers its streams
    from another start, so that the id of another session names none of them.
    """

    def __init__(self) -> None:
        self._numbers = count(secrets.randbits(48))
        self._streams: dict[int, _Messages] = {}
        self._sent: deque[tuple[_Messages, int, bytes]] = deque()
        self._bytes = 0

    def add(self, stream: _Messages) -> list[_Messages]:
        """Give a stream a number; returns the oldest that nobody reads, which are forgotten."""
        stream.number = next(self._numbers)
        self._streams[stream.number] = stream
        unread = [n for n, each in self._streams.items() if each.ended or each.abandoned]
        return [self._streams.pop(number) for number in unread[:-_MAX_KEPT]]

    def record(self, stream: _Messages, data: bytes) -> bytes:
        """Keep an event that is sent; the line with its id."""
        stream.events += 1
        self._sent.append((stream, stream.events, data))
        self._bytes += len(data)
        while len(self._sent) > _MAX_SENT or (self._bytes > _MAX_UNSENT_BYTES and self._sent):
            self._bytes -= len(self._sent.popleft()[2])
        return self._id(stream, stream.events)

    @staticmethod
    def _id(stream: _Messages, event: int) -> bytes:
        return b"id: %d.%d\n" % (stream.number, event)

    def find(self, id: str) -> _Messages | None:
        """The stream of an event id, which then continues after that event."""
        number, _, event = id.partition(".")
        if not (number.isdecimal() and event.isdecimal() and len(id) < 40):
            return None
        stream = self._streams.get(int(number))
        if stream is not None:
            stream.replay_from = int(event)
        return stream

    def after(self, stream: _Messages, event: int) -> bytes:
        """The events of a stream that were sent after this one."""
        return b"".join(
            b"event: message\n" + self._id(each, number) + b"data: " + data + b"\n\n"
            for each, number, data in self._sent
            if each is stream and number > event
        )


class HttpSession(HttpClient):
    """A session of a client before 2026-07-28, from its `initialize` to its end."""

    def __init__(self, name: str, idle: float, serve: Serve, id: str) -> None:
        self.id = id
        self.introduced = False
        """Whether its `initialize` was answered with a result."""
        self._initialize: wire.RequestId | None = None
        self._primes = False  # whether its version has events without data
        self._listening: _Messages | None = None
        self._waiting = _Messages()
        self._events = _SentEvents()
        super().__init__(name, idle, serve, {SESSION_HEADER: id})

    def ended(self) -> None:
        """See `HttpClient`."""
        super().ended()
        if self._listening is not None:
            self._listening.close()

    async def post(self, message: wire.Message, body: bytes, receive: Receive, send: Send) -> None:
        """Answer a POST with one message of the client's."""
        if isinstance(message, wire.Request):
            await self._answer(message, body, receive, send)
            return
        if isinstance(message, wire.Notification) and message.method == "notifications/cancelled":
            self._cancel(member(message.params, "requestId"))
        await self._pass_on(body)
        await Response(None, 202, self._headers)(_HTTP, receive, send)

    async def _answer(
        self, request: wire.Request, body: bytes, receive: Receive, send: Send
    ) -> None:
        if request.id in self._in_flight:
            raise HttpRefusal(400, INVALID_REQUEST, "A request with this id is being worked on")
        stream = _Messages(request)
        if request.method == "initialize":
            self._initialize = request.id
        self._flush_to(stream)
        await self._respond(request.id, stream, body, receive, send)

    def _answered(self, id: wire.RequestId) -> None:
        stream = self._in_flight.get(id)
        if stream is not None and stream.closed:
            del self._in_flight[id]
        if not self.introduced:
            self.end()

    # --- streams that break off --------------------------------------------------------------

    def _disconnected(self, stream: _Messages, reader: object) -> None:
        if stream.number:
            stream.abandon(reader)
        else:
            stream.close()  # the client has no id to come back with

    def _first_events(self, stream: _Messages) -> bytes:
        if stream.number:
            return self._events.after(stream, stream.replay_from)
        for forgotten in self._events.add(stream):
            forgotten.close()
            if forgotten.request is not None:
                self._in_flight.pop(forgotten.request.id, None)
        first = b"id: %d.0\nretry: %d\ndata:\n\n" % (stream.number, _RETRY_MS)
        return first if self._primes else b""

    def _event_id(self, stream: _Messages, data: bytes) -> bytes:
        return self._events.record(stream, data)

    async def listen(self, last_event: str | None, receive: Receive, send: Send) -> None:
        """Answer a GET: the stream for what belongs to no request, or the rest of another one.

        That is the stream of `last_event`, the id of the last event that the client got.
        """
        stream = _Messages() if last_event is None else self._events.find(last_event)
        if stream is None:
            raise HttpRefusal(400, INVALID_REQUEST, "There is no stream with that event any more")
        if stream.request is None:
            if self._listening not in (None, stream):
                raise HttpRefusal(409, INVALID_REQUEST, "The session already has such a stream")
            self._listening = stream
            self._flush_to(stream)
        reader = object()
        stream.read_by(reader)
        watching = asyncio.create_task(self._watch(stream, reader, receive))
        try:
            await self._send_events(stream, reader, send)
        finally:
            watching.cancel()
            self._disconnected(stream, reader)
            if self._listening is stream and stream.abandoned:
                self._listening = None

    def _stream_for(self, message: _Outgoing) -> _Messages | None:
        if message.method is None:
            return None if message.id is None else self._in_flight.get(message.id)
        if message.method == "notifications/progress":
            token = member(message.params, _PROGRESS)
            found = (each for each in self._in_flight.values() if each.token == token)
            return None if token is None else next(found, None)
        read = (each for each in reversed(self._in_flight.values()) if not each.abandoned)
        return next(read, self._listening)

    def _deliver(self, message: _Outgoing, data: bytes, stream: _Messages | None) -> None:
        if message.method is None:
            if message.id == self._initialize and message.id in self._in_flight:
                self.introduced = bool(message.result)
                version: object = member(message.result, "protocolVersion")
                self._primes = isinstance(version, str) and version >= _PRIMED_SINCE
            unread = stream is not None and stream.abandoned
            if unread and message.id is not None and len(data) > _MAX_UNSENT_BYTES:
                text = "The answer was too large to be kept while nobody read it"
                data = wire.encode_error(message.id, SERVER_ERROR, text)
            self._finish(message.id, data)
        elif stream is not None:
            stream.put(data)
        elif message.method != "notifications/progress":
            self._wait(data)

    def _cancel(self, id: object) -> None:
        if isinstance(id, str | int) and id != self._initialize:
            self._finish(id, wire.encode_error(id, _CANCELLED, "Request cancelled"))

    def _wait(self, data: bytes) -> None:
        while self._waiting.full:
            self._waiting.take()
            _log.info("a client has no stream open: its oldest message was dropped")
        self._waiting.put(data)

    def _flush_to(self, stream: _Messages) -> None:
        while (data := self._waiting.take()) is not None:
            stream.put(data)


class Principal(HttpClient):
    """All 2026-07-28 clients with the same token, or all on this machine without one."""

    def __init__(self, name: str, idle: float, serve: Serve) -> None:
        self._ids = count(1)
        super().__init__(name, idle, serve)

    async def post(
        self, request: ClientRequest, headers: Headers, receive: Receive, send: Send
    ) -> None:
        """Answer a request."""
        id = next(self._ids)
        # Its params are not written and read again: see `read`.
        body = wire.encode_request(id, request.method, None)
        stream, read = _Messages(request, headers), request.renumbered(id)
        await self._respond(id, stream, body, receive, send, read=read)

    def read(self, given: wire.Request) -> ClientRequest:
        """A request that was received, as it was read when it came in."""
        return self._queued.pop(given.id)

    def check_call(self, request: ClientRequest, tool: Tool) -> None:
        """Refuse a call whose `Mcp-Param-*` headers are not what its arguments are."""
        # The SDK takes a while to load, and few tools need this.
        from mcp.shared.inbound import validate_mcp_param_headers  # noqa: PLC0415

        stream = self._in_flight.get(request.id)
        if stream is not None and stream.headers is not None:
            wrong = validate_mcp_param_headers(tool.input_schema, request.arguments, stream.headers)
            if wrong is not None:
                raise ProtocolError(HEADER_MISMATCH, wrong.message)

    async def notify(self, notification: wire.Notification, body: bytes) -> None:
        """Pass a notification on, except cancellations: their ids are the client's, not ours."""
        if notification.method != "notifications/cancelled":
            await self._pass_on(body)

    def _answered(self, id: wire.RequestId) -> None:
        if self._in_flight.pop(id, None) is not None and not self.ending:
            gone = {"requestId": id, "reason": "The client went away"}
            self._incoming.put(
                wire.encode_notification("notifications/cancelled", wire.encode(gone))
            )

    def _stream_for(self, message: _Outgoing) -> _Messages | None:
        if message.method is None:
            id: object = message.id
        elif message.method == "notifications/progress":
            id = member(message.params, _PROGRESS)
        elif message.method == "notifications/message":
            logs = (each for each in reversed(self._in_flight.values()) if each.meta(LOG_LEVEL_KEY))
            return next(logs, None)
        else:
            id = member(message.params, "_meta", SUBSCRIPTION_KEY)
        return self._in_flight.get(id) if isinstance(id, int) else None

    def _deliver(self, message: _Outgoing, data: bytes, stream: _Messages | None) -> None:
        request = None if stream is None else stream.request
        if message.method is None:
            if message.id is not None:
                self._queued.pop(message.id, None)  # it was refused before its turn
            if stream is None or request is None:
                return
            if message.error:
                stream.status = status_of(member(message.error, "code"))
                answer = b'{"jsonrpc":"2.0","id":%b,"error":%b}'
                data = answer % (wire.encode(request.id), bytes(message.error))
            else:
                result = message.result
                if request.method == "subscriptions/listen":
                    result = _with_meta(result, SUBSCRIPTION_KEY, request.id)
                data = wire.encode_response(request.id, bytes(result))
            self._finish(message.id, data)
        elif stream is not None and request is not None:
            params: msgspec.Raw | bytes = message.params
            if message.method == "notifications/progress":
                params = with_member(params, _PROGRESS, stream.token)
            elif message.method != "notifications/message":
                params = _with_meta(params, SUBSCRIPTION_KEY, request.id)
            stream.put(wire.encode_notification(message.method, bytes(params)))


def _with_meta(params: msgspec.Raw | bytes, key: str, value: object) -> bytes:
    """Params or a result with another value in `_meta`."""
    return with_member(params, "_meta", {**members(members(params).get("_meta")), key: value})


class HttpRefusal(TransomError):
    """A request is answered with an HTTP status and a JSON-RPC error."""

    def __init__(
        self, status: int, code: int, text: str, data: object = msgspec.UNSET, **headers: str
    ) -> None:
        super().__init__(text)
        self.status = status
        self.error = wire.WireError(code, text, data)
        self.headers = headers

    def response(self, id: wire.RequestId | None) -> Response:
        """The answer to the request with this id."""
        body = wire.encode(wire.ErrorResponse(id, self.error))
        return Response(body, self.status, self.headers, media_type="application/json")
