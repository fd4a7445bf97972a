"""One end of a JSON-RPC conversation: no I/O, no tasks, no clock.

`feed` takes the bytes that arrived and returns an event; `request`, `notify`, `respond`, `fail` and
`cancel` return the bytes to send.

1. `feed` takes any bytes and never raises. It returns one event for each message.
2. A request of ours ends exactly once: the first answer is an event, every later one a
   `ProtocolViolation`. So is an answer to a request that was never sent, or was cancelled. An
   answer that has to be refused, for its size or its depth, ends its request with an error.
3. A request of theirs is answered at most once. `respond` and `fail` return None when there is
   nothing to answer: it was cancelled or answered before, or the connection is closed.
4. An id of theirs that is still in use cannot be used again. Such a request is not answered,
   because its answer would be taken for that of the first.
5. At most `max_incoming` of their requests are in flight at a time, with a limit on their total
   size; more are refused. A cancelled one counts until its handler has ended, so cancelling makes
   no room for more.
6. At most `max_outgoing` requests of ours are in flight at a time. With `may_cancel_ours` the other
   side may end one by cancelling it, as MCP 2026-07-28 servers end subscriptions.
7. After `close` nothing is sent and nothing is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from transom.errors import (
    SERVER_ERROR,
    MessageRefused,
    NotConnected,
    ProtocolError,
    TooManyRequests,
)
from transom.protocol import wire
from transom.protocol.wire import RequestId

_LONGEST = 4  # requests of `max_bytes` that may be alive


class Cancelled(msgspec.Struct, frozen=True):
    """The other side no longer wants an answer to its request `id`."""

    id: RequestId
    reason: str | None


class Progress(msgspec.Struct, frozen=True):
    """Progress of our request `id`. `params` are those of the notification."""

    id: int | str
    progress: float
    total: float | None
    message: str | None
    params: Raw | None = None

    def relayed(self, token: object) -> bytes:
        """The params that pass it on under another token."""
        params: dict[str, object] = {"progressToken": token, "progress": self.progress}
        more = {"total": self.total, "message": self.message}
        params |= {key: value for key, value in more.items() if value is not None}
        return wire.encode(params)


class Unreadable(msgspec.Struct, frozen=True):
    """Our request `id` got an answer that cannot be accepted."""

    id: RequestId
    message: str


class ProtocolViolation(msgspec.Struct, frozen=True):
    """The other side broke a rule. If there is a `reply`, send it."""

    message: str
    reply: bytes | None = None


Event = (
    wire.Request
    | wire.Notification
    | wire.Response
    | wire.ErrorResponse
    | Cancelled
    | Progress
    | Unreadable
    | ProtocolViolation
)


class _CancelledParams(msgspec.Struct, rename="camel"):
    request_id: RequestId
    reason: str | None = None


class _ProgressParams(msgspec.Struct, rename="camel"):
    progress_token: RequestId
    progress: float
    total: float | None = None
    message: str | None = None


class Peer:
    """One end of a conversation. The rules are at the top of this module."""

    def __init__(
        self,
        *,
        max_bytes: int = wire.MAX_BYTES,
        max_depth: int = wire.MAX_DEPTH,
        max_containers: int = wire.MAX_BYTES,
        max_incoming: int = 1024,
        max_outgoing: int = 512,
        first_id: int = 0,
        may_cancel_ours: bool = False,
    ) -> None:
        self._sizes = wire.SizeLimits(
            max_bytes=max_bytes, max_depth=max_depth, max_containers=max_containers
        )
        self.max_incoming = max_incoming
        self.max_outgoing = max_outgoing
        self.may_cancel_ours = may_cancel_ours
        self.closed = False
        self.next_id = first_id
        self._outgoing: dict[RequestId, bool] = {}  # id -> wants progress
        self._incoming: dict[RequestId, int] = {}  # id -> bytes; below 0: wants no answer any more
        self._incoming_bytes = 0
        self._max_incoming_bytes = _LONGEST * max_bytes

    @property
    def outgoing(self) -> int:
        """How many of our requests wait for an answer."""
        return len(self._outgoing)

    def room(self) -> int:
        """How many more requests may be made now."""
        return self.max_outgoing - len(self._outgoing)

    @property
    def incoming(self) -> int:
        """How many of their requests are in flight."""
        return len(self._incoming)

    # --- in ----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> Event:
        """Take one message. Never raises."""
        if self.closed:
            return ProtocolViolation("A message arrived after the conversation was closed")
        try:
            message = wire.decode(data, self._sizes, answers=self._outgoing)
        except MessageRefused as refusal:
            return self._refuse(data, refusal)
        if type(message) is wire.Response:  # quicker than `isinstance` for classes of msgspec's
            if self._outgoing.pop(message.id, None) is None:
                return ProtocolViolation(
                    f"Received a response for an unknown request: {message.id!r}"
                )
            return message
        if type(message) is wire.Request:
            id, size = message.id, len(data)
            if id in self._incoming:
                return ProtocolViolation(f"Request id {id!r} is in use")
            if len(self._incoming) >= self.max_incoming:
                return _too_many(id, f"{self.max_incoming}")
            if self._incoming_bytes + size > self._max_incoming_bytes:
                return _too_many(id, f"{self._max_incoming_bytes} bytes")
            self._incoming[id] = size
            self._incoming_bytes += size
            return message
        if isinstance(message, wire.Notification):
            if message.method == "notifications/cancelled":
                return self._cancel_arrived(message.params)
            if message.method == "notifications/progress":
                return self._progress_arrived(message.params)
            return message
        if message.id is None or self._outgoing.pop(message.id, None) is None:
            return ProtocolViolation(f"Received an error for an unknown request: {message.id!r}")
        return message

    def _refuse(self, data: bytes, refusal: MessageRefused) -> Event:
        answered = wire.refused_answer(data, self._sizes)
        if answered is not None and self._outgoing.pop(answered, None) is not None:
            return Unreadable(answered, f"The answer was refused: {refusal.message}")
        id = wire.refused_id(data, self._sizes)
        if id is None or id in self._incoming:
            return ProtocolViolation(refusal.message)
        return ProtocolViolation(
            refusal.message, wire.encode_error(id, refusal.code, refusal.message)
        )

    def count(self, id: RequestId, size: int) -> None:
        """Count a request of theirs that just came with so many bytes, if its message had fewer.

        Raises:
            ProtocolError: the requests in flight are too large; it has to be refused with this.
        """
        more = size - self._incoming.get(id, size)
        if more <= 0:
            return
        if self._incoming_bytes + more > self._max_incoming_bytes:
            refused = _too_many(id, f"{self._max_incoming_bytes} bytes")
            raise ProtocolError(SERVER_ERROR, refused.message)
        self._incoming[id] += more
        self._incoming_bytes += more

    def _ended(self, id: RequestId) -> bool:
        """Their request has ended; whether it still wants an answer."""
        size = self._incoming.pop(id, 0)
        self._incoming_bytes -= abs(size)
        return size > 0 and not self.closed

    def _cancel_arrived(self, params: Raw | None) -> Event:
        try:
            cancelled = msgspec.json.decode(params or b"{}", type=_CancelledParams)
        except (msgspec.DecodeError, RecursionError, ValueError):
            return ProtocolViolation("notifications/cancelled does not say which request")
        id = cancelled.request_id
        if self._incoming.get(id, 0) <= 0:
            if self.may_cancel_ours and self._outgoing.pop(id, None) is not None:
                text = f"The other side cancelled it: {cancelled.reason or 'no reason given'}"
                return wire.ErrorResponse(id, wire.WireError(SERVER_ERROR, text))
            # It crossed our answer, or there was no such request: there is nothing to cancel.
            return ProtocolViolation("notifications/cancelled for a request that is not running")
        self._incoming[id] *= -1
        return Cancelled(id, cancelled.reason)

    def _progress_arrived(self, params: Raw | None) -> Event:
        try:
            notice = msgspec.json.decode(params or b"{}", type=_ProgressParams)
        except (msgspec.DecodeError, RecursionError, ValueError):
            return ProtocolViolation("notifications/progress with unusable params")
        if not self._outgoing.get(notice.progress_token):
            return ProtocolViolation("notifications/progress for a request that did not ask for it")
        return Progress(
            notice.progress_token, notice.progress, notice.total, notice.message, params
        )

    # --- out ---------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        params: bytes | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
    ) -> tuple[RequestId, bytes]:
        """Make a request. `params` is a JSON object; `meta` is added to its `_meta`."""
        if self.closed:
            raise NotConnected("Not connected")
        if len(self._outgoing) >= self.max_outgoing:
            text = f"{self.max_outgoing} requests are already waiting for an answer"
            raise TooManyRequests(text)
        id = self.next_id
        self.next_id += 1
        if progress:
            meta = {**(meta or {}), "progressToken": id}
        if meta is not None:
            params = _with_meta(params, meta)
        data = wire.encode_request(id, method, params)
        self._outgoing[id] = progress
        return id, data

    def notify(self, method: str, params: bytes | None = None) -> bytes:
        """Make a notification."""
        if self.closed:
            raise NotConnected("Not connected")
        return wire.encode_notification(method, params)

    def respond(self, id: RequestId, result: bytes) -> bytes | None:
        """Answer their request `id`; None if it needs no answer any more."""
        return wire.encode_response(id, result) if self._ended(id) else None

    def fail(self, id: RequestId, code: int, message: str, data: object = None) -> bytes | None:
        """Answer their request `id` with an error; None if it needs no answer any more."""
        reply = None
        if self._incoming.get(id, 0) > 0:  # written first: `data` may not be JSON
            reply = wire.encode_error(id, code, message, UNSET if data is None else data)
        self._ended(id)
        return reply

    def cancel(self, id: RequestId, reason: str | None = None) -> bytes | None:
        """Cancel our request `id`; None if it has ended already."""
        if self._outgoing.pop(id, None) is None or self.closed:
            return None
        params: dict[str, object] = {"requestId": id}
        if reason is not None:
            params["reason"] = reason
        return wire.encode_notification("notifications/cancelled", wire.encode(params))

    def reset(self, id: RequestId | None) -> None:
        """Forget every request but their request `id`, if any: the other side has restarted.

        No other request, of either side, will be answered.
        """
        self._outgoing.clear()
        self._incoming = {} if id is None else {id: abs(self._incoming.get(id, 1))}
        self._incoming_bytes = sum(self._incoming.values())

    def close(self) -> None:
        """Close this end. Every request of ours has ended now."""
        self.closed = True
        self._outgoing.clear()
        self._incoming.clear()


def _too_many(id: RequestId, limit: str) -> ProtocolViolation:
    text = f"Too many requests in flight (limit {limit})"
    return ProtocolViolation(text, wire.encode_error(id, SERVER_ERROR, text))


def _with_meta(params: bytes | None, meta: Mapping[str, Any]) -> bytes:
    if params is not None and b'"_meta"' in params:  # it may have one of its own
        given = msgspec.json.decode(params, type=dict[str, Raw])
        try:
            own = msgspec.json.decode(given.get("_meta", b"{}"), type=dict[str, Raw])
        except msgspec.DecodeError:
            own = {}  # not an object: it has nothing to keep
        return wire.encode({**given, "_meta": {**own, **meta}})
    rest = b"}" if params is None else params.lstrip()[1:].lstrip()
    comma = b"" if rest.startswith(b"}") else b","
    return b'{"_meta":%b%b%b' % (wire.encode(meta), comma, rest)
