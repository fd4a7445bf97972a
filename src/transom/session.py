"""The asyncio driver of a `Peer`: tasks and timeouts live here.

1. Each message is dispatched as it arrives, in order, without waiting for any handler.
2. A request handler returns its result at once or an awaitable of it; only the awaitable costs a
   task. How many run is capped by the peer.
3. Notification handlers run one after the other, in the order of arrival.
4. Everything sent goes through one queue, in order. Senders wait while it is long, except the
   reader. A peer that keeps sending requests and never reads is cut off.
5. A request of ours ends exactly once: answer, error, timeout, cancellation, or close.
6. A peer that restarts, such as a reloaded page, has lost its requests and ours: `reset` ends ours,
   cancels the handlers of its own, and answers none of them.
7. Closing cancels the handlers that run, answers them while the channel still works, and ends
   every request of ours that waits.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from typing import Any, Self

from msgspec import UNSET, Raw

from transom.background import Background, ignore
from transom.channel import Channel
from transom.errors import (
    ChannelClosed,
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    PeerError,
    ProtocolError,
    RequestCancelled,
    RequestTimeout,
)
from transom.events import is_awaitable
from transom.protocol import wire
from transom.protocol.peer import Cancelled, Event, Peer, Progress, ProtocolViolation, Unreadable
from transom.protocol.wire import RequestId
from transom.queues import (
    Inbox,
    IncomingRequests,
    NotificationQueue,
    OnProgress,
    Outbox,
    PendingRequest,
    PendingRequests,
    RequestSlots,
    SentRequest,
)

_BURST = 64  # requests answered at once before other tasks get a turn
_GRACE = 1.0  # seconds that closing waits for cancelled handlers
_NEVER_CANCELLED = ("initialize", "server/discover")
_NEXT_TO_NOTHING = 1e-6  # of progress
_DEFAULT = -1.0  # stands for the session's own timeout


class SessionState(Enum):
    """How far a session has come."""

    NEW = auto()
    """It was not started."""
    OPEN = auto()
    CLOSING = auto()
    """It answers the requests that it has, and sends none."""
    CLOSED = auto()


_OPEN = SessionState.OPEN  # a constant: it is compared in every request


class Session:
    """Drives one conversation over one channel. Use it as `async with Session(...)`.

    Args:
        channel: the pipe to the other side; closed with the session.
        on_request: takes a request, returns the result as JSON, or an awaitable of it, which may
            be what another session's `send` returned. A `ProtocolError` is answered as it is.
        on_notification: takes a notification; may be async.
        on_error: called with everything that went wrong on either side: a `PeerError` for what
            the other side did, the exception itself for what a handler raised. Must not raise.
        on_closed: called once, with the reason, when the connection has closed.
        on_given_up: called with the id of each request of ours that timed out or was cancelled.
        wait_for_room: called before the channel is read: an awaitable while what arrives could not
            be handled. The channel is then read only when there is room.
        to_error: turns another exception into the error to answer with; None: "Internal error".
        timeout: seconds a request of ours may take, unless it has its own. None: no limit.
        peer_name: what the other side is called in errors.
        max_queued: how many notifications may wait to be handled; more are dropped and reported.
        peer: the protocol core, with its limits.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        on_request: Callable[[wire.Request], bytes | Awaitable[bytes | Raw]],
        on_notification: Callable[[wire.Notification], object],
        on_error: Callable[[BaseException], object] = ignore,
        on_closed: Callable[[str], object] = ignore,
        on_given_up: Callable[[RequestId], object] = ignore,
        wait_for_room: Callable[[], Awaitable[object] | None] | None = None,
        to_error: Callable[[BaseException], ProtocolError | None] = ignore,
        timeout: float | None = 60.0,
        peer_name: str | None = None,
        max_queued: int = 1024,
        peer: Peer | None = None,
    ) -> None:
        self.peer = peer if peer is not None else Peer()
        self.timeout = timeout
        self.background = Background(on_error)
        """Background tasks, cancelled when the session closes."""
        self.last_message_at = 0.0
        """When the other side's last message arrived, by `time.monotonic`."""
        self._channel = channel
        self._on_notification = on_notification
        self._on_error = on_error
        self._on_closed = on_closed
        self._on_given_up = on_given_up
        self._peer_name = peer_name
        self.inbox = Inbox(channel, wait_for_room)
        self._outbox = Outbox(channel, self._lost)
        self._notifications = NotificationQueue(on_error, limit=max_queued)
        self._pending = PendingRequests(self._timed_out)
        self._slots = RequestSlots(self.peer)
        self._incoming = IncomingRequests(
            self.peer, self._outbox, self.background, on_request, to_error, on_error
        )
        self._channel_closing: asyncio.Task[None] | None = None
        self._left = _BURST
        self._state = SessionState.NEW
        self._done: asyncio.Future[str] | None = None

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to read. `async with` does this."""
        loop = asyncio.get_running_loop()
        self._done = loop.create_future()
        self._state = SessionState.OPEN
        self.inbox.start(self._arrived, self._lost)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    @property
    def closed(self) -> bool:
        """Whether the connection has closed."""
        return self.peer.closed or self._state in (SessionState.CLOSING, SessionState.CLOSED)

    async def wait_closed(self) -> str:
        """Wait until the connection has closed; returns the reason."""
        if self._done is None:
            raise NotConnected("The session was never started")
        return await asyncio.shield(self._done)

    async def aclose(self, reason: str = "closed by this side") -> None:
        """Close the connection. Safe to call twice, and from inside a handler."""
        if self._done is not None and not self._done.done():
            if self._state is SessionState.OPEN:
                await self._wind_up(reason)
            elif self._is_ours(asyncio.current_task()):
                return  # the task that closes waits for this one
            else:
                await asyncio.shield(self._done)
        self._state = SessionState.CLOSED
        await self._channel.aclose()
        rest = [self._notifications.task, self._outbox.writer, self._channel_closing]
        tasks = [self.inbox.reader, *rest, *self._incoming.handlers.values()]
        await self._wait_for(tasks, cancel=True)
        await self.background.aclose(grace=_GRACE)

    async def _wind_up(self, reason: str) -> None:
        """Cancel the handlers, send their answers, then end everything."""
        self._state = SessionState.CLOSING
        try:
            await self._wait_for(list(self._incoming.handlers.values()), cancel=True)
            await self._wait_for([self._outbox.writer], cancel=False)
        except asyncio.CancelledError:
            self._close_channel()
            raise
        finally:
            self._finish(reason)

    def _is_ours(self, task: asyncio.Task[Any] | None) -> bool:
        return task is self._notifications.task or task in self._incoming.handlers.values()

    @staticmethod
    async def _wait_for(tasks: Sequence[asyncio.Future[Any] | None], *, cancel: bool) -> None:
        """Wait for tasks to end, for a limited time, and not for the current task."""
        current = asyncio.current_task()
        others = [task for task in tasks if task is not None and task is not current]
        if cancel:
            for task in others:
                task.cancel()
        if others:
            await asyncio.wait(others, timeout=_GRACE)

    def _finish(self, reason: str) -> None:
        """End everything, once. Nothing is sent or received after this."""
        if self._done is None or self._done.done():
            return
        self._state = SessionState.CLOSED
        self.peer.close()
        self._outbox.close()
        self._notifications.close()
        for entry in self._pending.take_all():
            text = f"{entry.method}: connection closed: {reason}"
            if self._peer_name is not None:
                text = f"{self._peer_name} is gone: {reason}"
            entry.end(ConnectionClosed(text))
        self._slots.close()
        current = asyncio.current_task()
        for task in list(self._incoming.handlers.values()):  # some are removed when cancelled
            if task is not current:
                task.cancel()
        self.background.cancel()
        self._done.set_result(reason)
        self._notifications.guard(lambda: self._on_closed(reason))

    def _lost(self, error: Exception) -> None:
        """The channel was closed, or failed."""
        if isinstance(error, ChannelClosed):
            self._finish(str(error))
        elif self._done is not None and not self._done.done():
            self._on_error(error)
            self._finish("the channel failed")
            self._close_channel()

    def _close_channel(self) -> None:
        if self._channel_closing is None:
            self._channel_closing = asyncio.get_running_loop().create_task(self._channel.aclose())
            self._channel_closing.add_done_callback(self._channel_closed)

    def _channel_closed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)

    # --- in ----------------------------------------------------------------------------------

    def _arrived(self, data: bytes | None) -> None:
        if data is None:
            reason: str | None = getattr(self._channel, "reason", None)
            self._finish(reason or "the other side closed the channel")
            return
        self.last_message_at = time.monotonic()
        try:
            event = self.peer.feed(data)
            if type(event) is wire.Response:  # quicker than `isinstance` for classes of msgspec's
                entry = self._pending.entries.pop(event.id, None)
                if entry is not None:
                    entry.end(event.result)
                    if self._slots.waiters.queue and isinstance(entry.future, SentRequest):
                        self._slots.wake_next()  # `request` does so itself
            elif type(event) is wire.Request:
                self._incoming.serve(event)
            else:
                self._dispatch(event)
        except Exception as error:  # noqa: BLE001 - one message must not end the conversation
            self._on_error(error)

    def _dispatch(self, event: Event) -> None:
        if isinstance(event, wire.Notification):
            self._notifications.run(partial(self._on_notification, event))
        elif isinstance(event, wire.ErrorResponse):
            entry = self._pending.entries.pop(event.id, None) if event.id is not None else None
            if entry is not None:
                error = event.error
                data = None if error.data is UNSET else error.data
                entry.end(ProtocolError(error.code, error.message, data))
        elif isinstance(event, Progress):
            self._progressed(event)
        elif isinstance(event, Cancelled):
            self._incoming.cancel(event.id, event.reason)
        elif isinstance(event, Unreadable):
            self._on_error(PeerError(event.message))
            entry = self._pending.entries.pop(event.id, None)
            if entry is not None:
                entry.end(InvalidResult(f"{self._peer_name or entry.method}: {event.message}"))
        elif isinstance(event, ProtocolViolation):
            self._violated(event)

    def _violated(self, event: ProtocolViolation) -> None:
        self._on_error(PeerError(event.message))
        if event.reply is None:
            return
        if self._outbox.overfull:
            self._finish("the other side sends requests but does not read")
            self._close_channel()
        else:
            self._outbox.post(event.reply)

    def _progressed(self, event: Progress) -> None:
        entry = self._pending.entries.get(event.id)
        if entry is None:
            return
        if entry.timeout is not None:
            entry.deadline = asyncio.get_running_loop().time() + entry.timeout
        self._report_progress(entry, event)

    def notify_callers(self, message: str) -> None:
        """Give the callers that wait and want progress a message of ours; timeouts stay.

        Progress must grow with each notification: it grows by next to nothing.
        """
        for id, entry in list(self._pending.entries.items()):
            if entry.on_progress is not None:
                last = entry.progress or Progress(id, 0.0, None, None)
                grown = last.progress + _NEXT_TO_NOTHING
                progress = max(grown, math.nextafter(last.progress, math.inf))
                self._report_progress(entry, Progress(id, progress, last.total, message))

    def _report_progress(self, entry: PendingRequest, event: Progress) -> None:
        entry.progress, on_progress = event, entry.on_progress
        if on_progress is not None:
            waiting = self._notifications.guard(lambda: on_progress(event))
            if is_awaitable(waiting):
                self._notifications.run(waiting)

    def reset(self, id: RequestId | None, reason: str) -> None:
        """Drop every request but `id`: the other side has restarted, and that is its first one."""
        self.peer.reset(id)
        self._incoming.reset(reason)
        for entry in self._pending.take_all():
            entry.end(RequestCancelled(f"{entry.method}: {reason}"))

    # --- out ---------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: bytes | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = _DEFAULT,
        on_progress: OnProgress | None = None,
    ) -> Raw:
        """Send a request, and wait for the result.

        Args:
            method: the method.
            params: a JSON object.
            meta: added to the `_meta` of the params.
            timeout: seconds without an answer or a progress notification; None: no limit; the
                session's own unless given.
            on_progress: called with each progress notification.

        Raises:
            ProtocolError: the other side answered with an error.
            RequestTimeout: it did not answer in time; a cancellation was sent.
            ConnectionClosed: the connection closed first.
            NotConnected: it was closed before.
        """
        done = self._done
        if self._state is not _OPEN or done is None:
            raise NotConnected("Not connected")
        if timeout is not None and timeout < 0.0:
            timeout = self.timeout
        deadline = None
        if self._slots.full() or (self._outbox.writer is not None and self._outbox.full):
            deadline = None if timeout is None else done.get_loop().time() + timeout
            await self._wait_for_slot(method, timeout, deadline)
        wants_progress = on_progress is not None
        try:
            id, data = self.peer.request(method, params, meta=meta, progress=wants_progress)
        except BaseException:
            self._slots.wake_next()
            raise
        entry = self._pending.entries[id] = PendingRequest(method, timeout, on_progress)
        try:
            self._outbox.post(data)
            outcome = entry.outcome
            if outcome is None:
                loop = done.get_loop()
                if timeout is not None:
                    entry.deadline = due = deadline or loop.time() + timeout
                    if due < self._pending.due:
                        self._pending.expire_at(due)
                entry.future = loop.create_future()
                return await entry.future
            self._left -= 1
            if not self._left:  # answered while it was sent: let other tasks run now and then
                self._left = _BURST
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._give_up(id, "The caller cancelled the request")
            raise
        finally:
            if self._slots.waiters.queue:
                self._slots.wake_next()
        if isinstance(outcome, Raw):
            return outcome
        raise outcome

    def send(
        self,
        method: str,
        params: bytes | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> SentRequest:
        """Send a request without waiting: what is sent after this goes out after it.

        There is no timeout. Cancelling the future sends a cancellation, unless the
        request is one that MCP does not allow to cancel.

        Returns:
            The future of its result, which fails as `request` does.

        Raises:
            NotConnected: the connection is closed.
            TooManyRequests: too many requests wait for an answer.
        """
        if self._state is not _OPEN or self._done is None:
            raise NotConnected("Not connected")
        wants_progress = on_progress is not None
        id, data = self.peer.request(method, params, progress=wants_progress)
        sent = SentRequest(id, method, self._sent_cancelled, self._done.get_loop())
        self._pending.entries[id] = PendingRequest(method, None, on_progress, sent)
        self._outbox.post(data)
        return sent

    def _sent_cancelled(self, sent: SentRequest, reason: str) -> None:
        if not sent.get_loop().is_running():
            return  # it is being closed, which cancels all requests
        if sent.method in _NEVER_CANCELLED:
            self._pending.entries.pop(sent.id, None)
            self.peer.cancel(sent.id)
        else:
            self._give_up(sent.id, reason)
        if self._slots.waiters.queue:
            self._slots.wake_next()

    async def _wait_for_slot(
        self, method: str, timeout: float | None, deadline: float | None
    ) -> None:
        """Wait for room in the outbox and a free slot, first come, first served."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._outbox.room()
                if self._slots.full():
                    await self._slots.wait()
        except TimeoutError:
            raise RequestTimeout(f"{method}: not sent within {timeout:g} s") from None
        if self.peer.closed:
            raise ConnectionClosed(f"{method}: connection closed before it was sent")

    def _give_up(self, id: RequestId, reason: str) -> None:
        self._pending.entries.pop(id, None)
        notice = self.peer.cancel(id, reason)
        if notice is not None:
            self._outbox.post(notice)
            self._on_given_up(id)

    def _timed_out(self, id: RequestId, entry: PendingRequest) -> None:
        self._give_up(id, "Request timed out")
        entry.end(RequestTimeout(f"{entry.method}: no answer within {entry.timeout:g} s"))

    @property
    def writable(self) -> bool:
        """Whether the other side reads what it is sent."""
        return self._outbox.writer is None or not self._outbox.full

    async def wait_writable(self) -> None:
        """Wait while the other side is slow to read."""
        await self._outbox.room()

    async def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification; waits while the other side is slow to read.

        Raises:
            NotConnected: the connection is closed.
        """
        if self._outbox.writer is not None:
            await self._outbox.room()
        self.notify_soon(method, params)

    def notify_soon(self, method: str, params: bytes | None = None) -> None:
        """Send a notification without waiting."""
        if self._done is None or self._done.done():
            raise NotConnected("Not connected")
        self._outbox.post(self.peer.notify(method, params))
