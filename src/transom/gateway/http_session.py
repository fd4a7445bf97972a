"""One client's HTTP session, as a Channel: which of its responses each message goes to.

1. An answer goes to the request that it answers: as JSON when nothing else was sent there before,
   else as the last event of its stream.
2. Progress goes to the request that asked for it, and nowhere once that is answered.
3. Everything else goes to the newest request that is being worked on; when there is none, to the
   stream that the client opened with GET; when there is none either, it waits for one of them.
4. A cancelled request is answered here, because before 2026-07-28 only an answer ends its stream.
5. A client that goes away has not cancelled anything: its call runs on, the answer is dropped.
6. A session ends when nothing of it has been open for a while.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Coroutine
from typing import Any, Final

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Send

from transom.errors import INVALID_REQUEST, SERVER_ERROR, ChannelClosed
from transom.json_values import member
from transom.protocol import wire

_log = logging.getLogger("transom.gateway")

SESSION_HEADER: Final = "mcp-session-id"
_PROGRESS: Final = "progressToken"
_HTTP: Final[dict[str, Any]] = {"type": "http"}
_CANCELLED: Final = -32800  # as the SDKs answer it

_MAX_UNSENT = 64  # messages that are kept before the sender has to wait, or the oldest goes
_MAX_UNSENT_BYTES = 1024 * 1024
_WATCH_AFTER = 0.25  # seconds until it is watched whether a client still waits for its answer
_KEEP_ALIVE = 15.0  # seconds after which a silent stream gets a comment, for the proxies between
_EVENTS = {"content-type": "text/event-stream", "cache-control": "no-cache, no-transform"}


class _Outgoing(msgspec.Struct):
    """As much of a message to the client as it takes to know where it goes."""

    id: wire.RequestId | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()


_read_outgoing = msgspec.json.Decoder(_Outgoing).decode


class _Messages:
    """Messages on their way: to the client in one HTTP response or the next, or from it."""

    def __init__(self, token: object = None) -> None:
        self.token = token
        """The progress token of the request that is answered here."""
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._complete = False
        self._changed = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether they are taken more slowly than they come."""
        crowded = len(self._messages) >= _MAX_UNSENT or self._bytes > _MAX_UNSENT_BYTES
        return crowded and not self._complete

    @property
    def empty(self) -> bool:
        """Whether there is no message."""
        return not self._messages

    @property
    def only_answer(self) -> bool:
        """Whether the next message is the last."""
        return self._complete and len(self._messages) == 1

    def put(self, data: bytes) -> None:
        """Add a message."""
        if not self._complete:
            self._messages.append(data)
            self._bytes += len(data)
            self._changed.set()

    def close(self) -> None:
        """Add no more to what there is."""
        self._complete = True
        self._changed.set()

    async def wait_room(self) -> None:
        """Wait until it is not full."""
        while self.full:
            self._changed.clear()
            await self._changed.wait()

    async def wait_ready(self) -> None:
        """Wait until there is a message, or will not be one."""
        while not self._messages and not self._complete:
            self._changed.clear()
            await self._changed.wait()

    def take(self) -> bytes | None:
        """The next message; None at the end. `wait_ready` comes before it."""
        if not self._messages:
            return None
        data = self._messages.popleft()
        self._bytes -= len(data)
        self._changed.set()
        return data


class HttpSession:
    """A session of a client that calls itself `label`, from its `initialize` to its end."""

    def __init__(self, label: str, idle: float) -> None:
        self.id = secrets.token_hex(16)
        self.label = label
        self.introduced = False
        """Whether its `initialize` was answered with a result."""
        self.ending = False
        self.task: asyncio.Task[None]
        self._idle = idle
        self._idle_timer: asyncio.TimerHandle | None = None
        self._open = 0
        self._initialize: wire.RequestId | None = None
        self._incoming = _Messages()
        self._in_flight: dict[wire.RequestId, _Messages] = {}
        self._listening: _Messages | None = None
        self._waiting = _Messages()

    # --- its life ----------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the session."""
        self.task = asyncio.create_task(work, name=f"transom-client-{self.id[:8]}")

    def end(self) -> None:
        """End the session, unless it is ending already."""
        if not self.ending:
            self.ending = True
            self.task.cancel()

    def ended(self) -> None:
        """The session is over: end what is open."""
        self.ending = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        streams = [*self._in_flight.values(), *([self._listening] if self._listening else [])]
        for stream in [self._incoming, *streams]:
            stream.close()

    async def serve(self, work: Awaitable[None]) -> None:
        """Answer one HTTP request of the session."""
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

    async def post(self, message: wire.Message, body: bytes, receive: Receive, send: Send) -> None:
        """Answer a POST with one message of the client's."""
        if isinstance(message, wire.Request):
            await self._answer(message, body, receive, send)
            return
        if isinstance(message, wire.Notification) and message.method == "notifications/cancelled":
            self._cancel(member(message.params, "requestId"))
        await self._pass_on(body)
        await Response(None, 202, self._headers())(_HTTP, receive, send)

    async def _answer(
        self, request: wire.Request, body: bytes, receive: Receive, send: Send
    ) -> None:
        if request.id in self._in_flight:
            text = "A request with this id is being worked on"
            await problem(400, INVALID_REQUEST, text, request.id)(_HTTP, receive, send)
            return
        stream = self._in_flight[request.id] = _Messages(member(request.params, "_meta", _PROGRESS))
        if request.method == "initialize":
            self._initialize = request.id
        self._flush_to(stream)
        loop = asyncio.get_running_loop()
        watching: list[asyncio.Task[None]] = []
        watch = loop.call_later(
            _WATCH_AFTER,
            lambda: watching.append(asyncio.create_task(self._watch(stream, receive))),
        )
        try:
            await self._pass_on(body)
            await stream.wait_ready()
            if stream.only_answer:
                headers = self._headers({"content-type": "application/json"})
                await Response(stream.take(), 200, headers)(_HTTP, receive, send)
            elif stream.empty:
                gone = problem(503, SERVER_ERROR, "The session is over", request.id)
                await gone(_HTTP, receive, send)
            else:
                await self._send_events(stream, send)
        finally:
            watch.cancel()
            for task in watching:
                task.cancel()
            self._in_flight.pop(request.id, None)
            if not self.introduced:
                self.end()

    async def _pass_on(self, body: bytes) -> None:
        await self._incoming.wait_room()
        self._incoming.put(body)

    async def listen(self, receive: Receive, send: Send) -> None:
        """Answer a GET: the stream for what belongs to no request."""
        if self._listening is not None:
            text = "The session has such a stream already"
            await problem(409, INVALID_REQUEST, text)(_HTTP, receive, send)
            return
        stream = self._listening = _Messages()
        self._flush_to(stream)
        watching = asyncio.create_task(self._watch(stream, receive))
        try:
            await self._send_events(stream, send)
        finally:
            watching.cancel()
            self._listening = None

    def _headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        return {SESSION_HEADER: self.id, **(more or {})}

    async def _watch(self, stream: _Messages, receive: Receive) -> None:
        """Close a stream whose client has gone away."""
        while (await receive())["type"] != "http.disconnect":
            pass
        stream.close()

    async def _send_events(self, stream: _Messages, send: Send) -> None:
        events = [(key.encode(), value.encode()) for key, value in self._headers(_EVENTS).items()]
        await send({"type": "http.response.start", "status": 200, "headers": events})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        while True:
            try:
                async with asyncio.timeout(_KEEP_ALIVE):
                    await stream.wait_ready()
            except TimeoutError:
                body = b": still here\n\n"
            else:
                data = stream.take()
                if data is None:
                    break
                # A line break can only stand between the tokens of JSON.
                data = data.replace(b"\r", b" ").replace(b"\n", b" ")
                body = b"event: message\ndata: " + data + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    # --- the Channel -------------------------------------------------------------------------

    async def receive(self) -> bytes:
        """The next message of the client's."""
        await self._incoming.wait_ready()
        data = self._incoming.take()
        if data is None:
            raise ChannelClosed("The session is over")
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

    def _stream_for(self, message: _Outgoing) -> _Messages | None:
        if message.method is None:
            return None if message.id is None else self._in_flight.get(message.id)
        if message.method == "notifications/progress":
            token = member(message.params, _PROGRESS)
            found = (each for each in self._in_flight.values() if each.token == token)
            return None if token is None else next(found, None)
        return next(reversed(self._in_flight.values()), self._listening)

    def _deliver(self, message: _Outgoing, data: bytes, stream: _Messages | None) -> None:
        if message.method is None:
            self._finish(message.id, data, result=bool(message.result))
        elif stream is not None:
            stream.put(data)
        elif message.method != "notifications/progress":
            self._wait(data)

    def _finish(self, id: wire.RequestId | None, data: bytes, *, result: bool = False) -> None:
        stream = None if id is None else self._in_flight.pop(id, None)
        if stream is not None:
            if id == self._initialize:
                self.introduced = result
            stream.put(data)
            stream.close()

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

    def refuse(self, reason: str) -> None:
        """Answer everything with an error, when there is no server to answer it."""
        for id in list(self._in_flight):
            self._finish(id, wire.encode_error(id, SERVER_ERROR, reason))


def problem(status: int, code: int, text: str, id: wire.RequestId | None = None) -> Response:
    """An HTTP answer with a JSON-RPC error."""
    error = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}
    return Response(wire.encode(error), status, media_type="application/json")
