"""One client's HTTP session as a Channel: which of its streams each message goes to.

1. An answer goes to the request that it answers.
2. Progress goes to the request that asked for it, and nowhere once that is answered.
3. Everything else goes to the newest request that is being worked on; when there is none, to the
   stream that the client opened with GET; when there is none either, it waits for one of them.
4. A cancelled request is answered here, because before 2026-07-28 only an answer ends its stream.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, cast

import anyio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from transom.errors import INTERNAL_ERROR, SERVER_ERROR, ChannelClosed, MessageRefused
from transom.protocol import wire

_log = logging.getLogger("transom.gateway")

_MAX_WAITING = 256
_GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)
_POST = "transom.post"  # in a request's scope: the id of its message
_ENDED = "transom.ended"  # in a request's scope: its stream is closed


class _InFlight:
    """A request of the client's that is being worked on."""

    __slots__ = ("metadata", "token")

    def __init__(self, metadata: ServerMessageMetadata | None, token: str | int | None) -> None:
        self.metadata = metadata
        self.token = token


class HttpClientChannel:
    """A client.

    Args:
        read: its messages.
        write: takes messages for it.
    """

    def __init__(self, read: Any, write: Any) -> None:
        self.introduced = False
        """Whether its `initialize` was answered with a result."""
        self._read = read
        self._write = write
        self._initialize: RequestId | None = None
        self._in_flight: dict[RequestId, _InFlight] = {}
        self._tokens: dict[str | int, RequestId] = {}
        self._stream_open = False
        self._waiting: deque[JSONRPCMessage] = deque()
        self._sending = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None
        self._closed = False

    # --- from the client ---------------------------------------------------------------------

    async def receive(self) -> bytes:
        """The next message.

        Raises:
            ChannelClosed: the session is over.
        """
        while not self._closed:
            try:
                item = await self._read.receive()
            except _GONE:
                break
            if isinstance(item, SessionMessage):
                await self._note_request(item)
                return item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        raise ChannelClosed("The session is over")

    async def _note_request(self, item: SessionMessage) -> None:
        message, metadata = item.message, item.metadata
        if isinstance(message, JSONRPCRequest):
            known = metadata if isinstance(metadata, ServerMessageMetadata) else None
            scope: dict[str, Any] = {}
            if known is not None and known.request_context is not None:
                scope = known.request_context.scope
            if _ENDED in scope:
                return
            scope[_POST] = message.id
            token = _token((message.params or {}).get("_meta"))
            self._in_flight[message.id] = _InFlight(known, token)
            if token is not None:
                self._tokens[token] = message.id
            if message.method == "initialize":
                self._initialize = message.id
            self._flush_soon()
        elif (
            isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled"
        ):
            await self._cancelled((message.params or {}).get("requestId"))

    async def _cancelled(self, id: object) -> None:
        request = self._remove(id) if isinstance(id, str | int) else None
        if request is None or request.metadata is None:
            return
        answer = request.metadata.on_request_unanswered
        if answer is not None:
            try:
                await answer()
            except _GONE:
                raise ChannelClosed("The session is over") from None

    # --- its streams -------------------------------------------------------------------------

    def stream_opened(self) -> None:
        """The client opened a stream with GET."""
        self._stream_open = True
        self._flush_soon()

    def stream_closed(self) -> None:
        """The client closed it."""
        self._stream_open = False

    def request_ended(self, scope: Any) -> None:
        """The stream of a request is closed, answered or not."""
        scope[_ENDED] = True
        id = scope.pop(_POST, None)
        if id is not None:
            self._remove(id)

    def _remove(self, id: RequestId) -> _InFlight | None:
        request = self._in_flight.pop(id, None)
        asked = None if request is None else request.token
        if asked is not None and self._tokens.get(asked) == id:
            del self._tokens[asked]
        return request

    # --- to the client -----------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        """Send one message.

        Raises:
            ChannelClosed: the session is over.
        """
        try:
            message = jsonrpc_message_adapter.validate_json(data, by_name=False)
        except ValidationError:
            message = _unreadable(data)
        if message is not None:
            async with self._sending:
                await self._route(message)

    async def _route(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            if message.id is None:
                return
            if message.id == self._initialize:
                self.introduced = isinstance(message, JSONRPCResponse)
            if self._remove(message.id) is not None:
                await self._put(SessionMessage(message))
        elif message.method == "notifications/progress":
            token: object = (message.params or {}).get("progressToken")
            related = self._tokens.get(token) if isinstance(token, str | int) else None
            if related is not None:
                await self._put_to(message, related)
        elif self._in_flight or self._stream_open:
            await self._deliver(message)
        else:
            self._wait(message)

    def _wait(self, message: JSONRPCMessage) -> None:
        if len(self._waiting) >= _MAX_WAITING:
            self._waiting.popleft()
            _log.info("a client has no stream open: its oldest message was dropped")
        self._waiting.append(message)

    async def _deliver(self, message: JSONRPCMessage) -> None:
        related = next(reversed(self._in_flight), None)
        await self._put_to(message, related)

    async def _put_to(self, message: JSONRPCMessage, related: RequestId | None) -> None:
        await self._put(SessionMessage(message, ServerMessageMetadata(related_request_id=related)))

    async def _put(self, message: SessionMessage) -> None:
        try:
            await self._write.send(message)
        except _GONE:
            raise ChannelClosed("The session is over") from None

    def _flush_soon(self) -> None:
        if self._waiting and self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
            self._flushing.add_done_callback(self._flushed)

    def _flushed(self, task: asyncio.Task[None]) -> None:
        self._flushing = None
        if not task.cancelled():
            task.exception()  # the reader notices too when the session is over

    async def _flush(self) -> None:
        async with self._sending:
            while self._waiting and (self._in_flight or self._stream_open):
                await self._deliver(self._waiting.popleft())

    # --- the end -----------------------------------------------------------------------------

    async def refuse(self, reason: str) -> None:
        """Answer the first request with an error, when there is no server to answer it."""
        item = await self._read.receive()
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
            data = wire.encode_error(item.message.id, SERVER_ERROR, reason)
            error: Any = jsonrpc_message_adapter.validate_json(data, by_name=False)
            await self._put(SessionMessage(error))

    async def aclose(self) -> None:
        """Take no more messages. The transport ends with its session."""
        self._closed = True
        if self._flushing is not None:
            self._flushing.cancel()


def _token(meta: object) -> str | int | None:
    token: object = (
        cast("dict[str, object]", meta).get("progressToken") if isinstance(meta, dict) else None
    )
    return token if isinstance(token, str | int) else None


def _unreadable(data: bytes) -> JSONRPCMessage | None:
    """What to send in place of a message that the SDK's transport cannot send."""
    try:
        message = wire.decode(data, max_bytes=len(data))
    except MessageRefused:
        return None
    if not isinstance(message, wire.Response | wire.ErrorResponse) or message.id is None:
        return None
    error = wire.encode_error(message.id, INTERNAL_ERROR, "The server's answer cannot be read")
    return jsonrpc_message_adapter.validate_json(error, by_name=False)
