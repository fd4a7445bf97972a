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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

from msgspec import UNSET, Raw, Struct

from transom.background import Background, ignore
from transom.channel import Channel, Receiver
from transom.errors import (
    INTERNAL_ERROR,
    SERVER_ERROR,
    ChannelClosed,
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    PeerError,
    ProtocolError,
    RequestCancelled,
    RequestTimeout,
    TransomError,
)
from transom.events import abandon, is_awaitable
from transom.protocol import wire
from transom.protocol.peer import Cancelled, Event, Peer, Progress, ProtocolViolation, Unreadable
from transom.protocol.wire import RequestId
from transom.queues import NotificationQueue, Outbox, RequestSlots

OnProgress = Callable[[Progress], object]
"""Called with each progress notification of a request; may be async."""

_BURST = 64  # messages handled, or requests answered at once, before other tasks get a turn
_GRACE = 1.0  # seconds that closing waits for cancelled handlers
_NEVER_CANCELLED = ("initialize", "server/discover")
_DEFAULT = -1.0  # stands for the session's own timeout


class _Pending(Struct):
    """A request of ours that waits for its answer."""

    method: str
    timeout: float | None
    on_progress: OnProgress | None
    # Set when the caller has to wait: many a request is answered while it is sent.
    future: asyncio.Future[Raw] | None = None
    deadline: float | None = None
    outcome: Raw | TransomError | None = None

    def end(self, outcome: Raw | TransomError) -> None:
        """Give the caller the answer or the error, unless it has one already."""
        future = self.future
        if future is None:
            self.outcome = outcome
        elif not future.done():
            if isinstance(outcome, Raw):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)
                future.exception()  # nobody may be awaiting it; asyncio would warn


class SentRequest(asyncio.Future[Raw]):
    """The future of a request that `Session.send` sent; cancelling it cancels the request.

    A proxy answers one session's request with another session's result. It does so through
    `on_done`, which is called at once, not in the next turn of the event loop: messages keep their
    order, and the turn is saved.
    """

    on_cancel: Callable[[SentRequest, str], object] | None = None
    on_done: Callable[[asyncio.Future[Raw]], object] | None = None
    id: RequestId = ""
    method: str = ""

    def set_result(self, result: Raw, /) -> None:
        """As any future does it, and `on_done` is called."""
        super().set_result(result)
        if self.on_done is not None:
            self.on_done(self)

    def set_exception(self, exception: type[BaseException] | BaseException, /) -> None:
        """As any future does it, and `on_done` is called."""
        super().set_exception(exception)
        if self.on_done is not None:
            self.on_done(self)

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the request; the other side gets the reason."""
        cancelled = super().cancel(msg)
        if cancelled:
            if self.on_cancel is not None:
                self.on_cancel(self, str(msg) if msg else "The caller cancelled the request")
            if self.on_done is not None:
                self.on_done(self)
        return cancelled


class Session:
    """Drives one conversation over one channel. Use it as `async with Session(...)`.

    Args:
        channel: the pipe to the other side; closed with the session.
        on_request: takes a request, returns the result as JSON, or an awaitable of it, which may
            be what another session's `send` returned. A `ProtocolError` is answered as it is.
        on_notification: takes a notification; may be async.
        on_problem: called with everything that went wrong on either side: a `PeerError` for what
            the other side did, the exception itself for what a handler raised. Must not raise.
        on_closed: called once, with the reason, when the connection has closed.
        on_given_up: called with the id of each request of ours that timed out or was cancelled.
        to_error: turns another exception into the error to answer with; None: "Internal error".
        timeout: seconds a request of ours may take, unless it has its own. None: no limit.
        label: what the other side is called in errors.
        max_queued: how many notifications may wait to be handled; more are dropped and reported.
        peer: the protocol core, with its limits.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        on_request: Callable[[wire.Request], bytes | Awaitable[bytes | Raw]],
        on_notification: Callable[[wire.Notification], object],
        on_problem: Callable[[BaseException], object] = ignore,
        on_closed: Callable[[str], object] = ignore,
        on_given_up: Callable[[RequestId], object] = ignore,
        to_error: Callable[[BaseException], ProtocolError | None] = ignore,
        timeout: float | None = 60.0,
        label: str | None = None,
        max_queued: int = 1024,
        peer: Peer | None = None,
    ) -> None:
        self.peer = peer if peer is not None else Peer()
        self.timeout = timeout
        self.background = Background(on_problem)
        """Background tasks, cancelled when the session closes."""
        self._channel = channel
        self._attach: Callable[[Receiver], None] | None = getattr(channel, "attach", None)
        self._on_request = on_request
        self._on_notification = on_notification
        self._on_problem = on_problem
        self._on_closed = on_closed
        self._on_given_up = on_given_up
        self._to_error = to_error
        self._label = label
        self._outbox = Outbox(channel, self._lost)
        self._notifications = NotificationQueue(on_problem, limit=max_queued)
        self._pending: dict[RequestId, _Pending] = {}
        self._slots = RequestSlots(self.peer)
        self._handlers: dict[RequestId, asyncio.Future[Any]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._channel_closing: asyncio.Task[None] | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_due = 0.0  # handles of the browser's event loop do not have it
        self._left = _BURST
        self._generation = 0  # how often the other side has restarted
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done: asyncio.Future[str] | None = None

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to read. `async with` does this."""
        self._loop = loop = asyncio.get_running_loop()
        self._done = loop.create_future()
        if self._attach is not None:
            self._attach(self._arrived)
        else:
            self._reader = loop.create_task(self._read(), name="transom-read")

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    @property
    def closed(self) -> bool:
        """Whether the connection has closed."""
        return self.peer.closed or self._closing

    async def wait_closed(self) -> str:
        """Wait until the connection has closed; returns the reason."""
        if self._done is None:
            raise NotConnected("The session was never started")
        return await asyncio.shield(self._done)

    async def aclose(self, reason: str = "closed by this side") -> None:
        """Close the connection. Safe to call twice, and from inside a handler."""
        if self._done is not None and not self._done.done():
            if not self._closing:
                await self._wind_up(reason)
            elif self._is_ours(asyncio.current_task()):
                return  # the task that closes waits for this one
            else:
                await asyncio.shield(self._done)
        self._closing = True
        await self._channel.aclose()
        rest = [self._reader, self._notifications.task, self._outbox.writer, self._channel_closing]
        await self._wait_for([*rest, *self._handlers.values()], cancel=True)
        await self.background.aclose(grace=_GRACE)

    async def _wind_up(self, reason: str) -> None:
        """Cancel the handlers, send their answers, then end everything."""
        self._closing = True
        try:
            await self._wait_for(list(self._handlers.values()), cancel=True)
            await self._wait_for([self._outbox.writer], cancel=False)
        except asyncio.CancelledError:
            self._finish(reason)
            self._close_channel()
            raise
        finally:
            self._finish(reason)

    def _is_ours(self, task: asyncio.Task[Any] | None) -> bool:
        return task is self._notifications.task or task in self._handlers.values()

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
        self._closing = True
        self.peer.close()
        self._outbox.close()
        self._notifications.close()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        pending, self._pending = self._pending, {}
        for entry in pending.values():
            text = f"{entry.method}: connection closed: {reason}"
            if self._label is not None:
                text = f"{self._label} is gone: {reason}"
            entry.end(ConnectionClosed(text))
        self._slots.close()
        current = asyncio.current_task()
        for task in (*self._handlers.values(), self._notifications.task):
            if task is not None and task is not current:
                task.cancel()
        self.background.cancel()
        self._done.set_result(reason)
        self._notifications.guard(lambda: self._on_closed(reason))

    def _lost(self, error: Exception) -> None:
        """The channel was closed, or failed."""
        if isinstance(error, ChannelClosed):
            self._finish(str(error))
        elif self._done is not None and not self._done.done():
            self._on_problem(error)
            self._finish("the channel failed")
            self._close_channel()

    def _close_channel(self) -> None:
        if self._channel_closing is None:
            self._channel_closing = asyncio.get_running_loop().create_task(self._channel.aclose())
            self._channel_closing.add_done_callback(self._channel_closed)

    def _channel_closed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_problem(error)

    # --- in ----------------------------------------------------------------------------------

    async def _read(self) -> None:
        receive = getattr(self._channel, "receive_many", self._receive_one)
        left = _BURST
        try:
            while True:
                for data in await receive():
                    self._arrived(data)
                    left -= 1
                if left <= 0:
                    left = _BURST
                    await asyncio.sleep(0)  # a flood must not starve other tasks
        except Exception as error:  # noqa: BLE001 - a broken channel must not leave anyone waiting
            self._lost(error)

    async def _receive_one(self) -> list[bytes]:
        return [await self._channel.receive()]

    def _arrived(self, data: bytes | None) -> None:
        if data is None:
            reason: str | None = getattr(self._channel, "reason", None)
            self._finish(reason or "the other side closed the channel")
            return
        try:
            event = self.peer.feed(data)
            if type(event) is wire.Response:  # quicker than `isinstance` for classes of msgspec's
                entry = self._pending.pop(event.id, None)
                if entry is not None:
                    entry.end(event.result)
                    if self._slots.waiters.queue and isinstance(entry.future, SentRequest):
                        self._slots.wake_next()  # `request` does so itself
            elif type(event) is wire.Request:
                self._serve(event)
            else:
                self._dispatch(event)
        except Exception as error:  # noqa: BLE001 - one message must not end the conversation
            self._on_problem(error)

    def _dispatch(self, event: Event) -> None:
        if isinstance(event, wire.Notification):
            self._notifications.run(partial(self._on_notification, event))
        elif isinstance(event, wire.ErrorResponse):
            entry = self._pending.pop(event.id, None) if event.id is not None else None
            if entry is not None:
                error = event.error
                data = None if error.data is UNSET else error.data
                entry.end(ProtocolError(error.code, error.message, data))
        elif isinstance(event, Progress):
            self._progressed(event)
        elif isinstance(event, Cancelled):
            task = self._handlers.get(event.id)
            if task is not None:
                task.cancel(event.reason)
        elif isinstance(event, Unreadable):
            self._on_problem(PeerError(event.message))
            entry = self._pending.pop(event.id, None)
            if entry is not None:
                entry.end(InvalidResult(f"{self._label or entry.method}: {event.message}"))
        elif isinstance(event, ProtocolViolation):
            self._violated(event)

    def _violated(self, event: ProtocolViolation) -> None:
        self._on_problem(PeerError(event.message))
        if event.reply is None:
            return
        if self._outbox.overfull:
            self._finish("the other side sends requests but does not read")
            self._close_channel()
        else:
            self._outbox.post(event.reply)

    def _progressed(self, event: Progress) -> None:
        entry = self._pending.get(event.id)
        if entry is None:
            return
        if entry.timeout is not None:
            entry.deadline = asyncio.get_running_loop().time() + entry.timeout
        on_progress = entry.on_progress
        if on_progress is not None:
            waiting = self._notifications.guard(lambda: on_progress(event))
            if is_awaitable(waiting):
                self._notifications.run(waiting)

    def _serve(self, request: wire.Request) -> None:
        handle = self._on_request
        try:
            answer = handle(request)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is answered
            self._answer(request.id, self._failure(error))
            return
        if isinstance(answer, bytes):
            if self._outbox.writer is None:  # nothing waits to be sent: the usual case
                self._post_answer(request.id, answer)
            else:
                self._answer(request.id, answer)
            return
        generation = self._generation
        if isinstance(answer, SentRequest):
            self._handlers[request.id] = answer
            answer.on_done = partial(self._answered, request.id, generation)
            if answer.done():
                self._answered(request.id, generation, answer)
            return
        task = asyncio.get_running_loop().create_task(self._run(request.id, answer, generation))
        self._handlers[request.id] = task
        task.add_done_callback(partial(self._ended, request.id, answer, generation))

    def _answered(self, id: RequestId, generation: int, answer: asyncio.Future[Raw]) -> None:
        """The session that the request was passed on to has an answer."""
        if self._handlers.get(id) is answer:  # the other side may have used the id again by now
            del self._handlers[id]
        if generation != self._generation:
            return
        if answer.cancelled():
            outcome: bytes | ProtocolError = _was_cancelled()
        elif (error := answer.exception()) is not None:
            outcome = self._failure(error)
        else:
            outcome = bytes(answer.result())
        try:
            self._answer(id, outcome)
        except Exception as error:  # noqa: BLE001 - it would end the other session
            self._on_problem(error)

    async def _run(self, id: RequestId, answer: Awaitable[object], generation: int) -> None:
        try:
            outcome = await answer
            if not isinstance(outcome, bytes):
                kind = type(outcome).__name__
                outcome = self._failure(TypeError(f"A handler must answer bytes, not {kind}"))
        except asyncio.CancelledError:
            outcome = _was_cancelled()
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is answered
            outcome = self._failure(error)
        if self._outbox.full:
            await self._outbox.room()
        self._post_late_answer(id, outcome, generation)

    def _ended(
        self, id: RequestId, answer: object, generation: int, task: asyncio.Task[None]
    ) -> None:
        if self._handlers.get(id) is task:  # the other side may have used the id again by now
            del self._handlers[id]
        if task.cancelled():  # before it began, or before there was room for its answer
            if asyncio.isfuture(answer):
                answer.cancel()
            else:
                abandon(answer)
            self._post_late_answer(id, _was_cancelled(), generation)

    def _failure(self, error: BaseException) -> ProtocolError:
        if isinstance(error, ProtocolError):
            return error
        known = self._to_error(error)
        if known is not None:
            return known
        self._on_problem(error)
        return ProtocolError(INTERNAL_ERROR, "Internal error")

    def _answer(self, id: RequestId, outcome: bytes | ProtocolError) -> None:
        if self._outbox.full:
            # The request stays in flight, and so counts, until there is room for its answer.
            self.background.start(self._answer_later(id, outcome, self._generation))
        else:
            self._post_answer(id, outcome)

    async def _answer_later(
        self, id: RequestId, outcome: bytes | ProtocolError, generation: int
    ) -> None:
        await self._outbox.room()
        self._post_late_answer(id, outcome, generation)

    def _post_late_answer(
        self, id: RequestId, outcome: bytes | ProtocolError, generation: int
    ) -> None:
        # If the peer has restarted since, it may have used the id for another request.
        if generation == self._generation:
            self._post_answer(id, outcome)

    def _post_answer(self, id: RequestId, outcome: bytes | ProtocolError) -> None:
        if isinstance(outcome, bytes):
            data = self.peer.respond(id, outcome)
        else:
            try:
                data = self.peer.fail(id, outcome.code, outcome.message, outcome.data)
            except Exception as error:  # noqa: BLE001 - what a handler put in may not be JSON
                failure = self._failure(error)
                data = self.peer.fail(id, failure.code, failure.message)
        if data is not None:
            self._outbox.post(data)

    def reset(self, id: RequestId | None, reason: str) -> None:
        """Drop every request but `id`: the other side has restarted, and that is its first one."""
        self._generation += 1
        self.peer.reset(id)
        handlers, self._handlers = self._handlers, {}
        for task in handlers.values():
            task.cancel(reason)
            self.background.start(task)  # closing waits for it
        pending, self._pending = self._pending, {}
        for entry in pending.values():
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
        loop = self._loop
        if self._closing or loop is None:
            raise NotConnected("Not connected")
        if timeout is not None and timeout < 0.0:
            timeout = self.timeout
        deadline = None
        if self._slots.full() or (self._outbox.writer is not None and self._outbox.full):
            deadline = None if timeout is None else loop.time() + timeout
            await self._wait_for_slot(method, timeout, deadline)
        wants_progress = on_progress is not None
        try:
            id, data = self.peer.request(method, params, meta=meta, progress=wants_progress)
        except BaseException:
            self._slots.wake_next()
            raise
        entry = self._pending[id] = _Pending(method, timeout, on_progress)
        try:
            self._outbox.post(data)
            outcome = entry.outcome
            if outcome is None:
                if timeout is not None:
                    entry.deadline = deadline or loop.time() + timeout
                    if self._sweep is None or self._sweep_due > entry.deadline:
                        self._sweep_at(entry.deadline)
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
        if self._closing or self._loop is None:
            raise NotConnected("Not connected")
        wants_progress = on_progress is not None
        id, data = self.peer.request(method, params, progress=wants_progress)
        sent = SentRequest(loop=self._loop)
        sent.on_cancel, sent.id, sent.method = self._sent_cancelled, id, method
        self._pending[id] = _Pending(method, None, on_progress, sent)
        self._outbox.post(data)
        return sent

    def _sent_cancelled(self, sent: SentRequest, reason: str) -> None:
        if not sent.get_loop().is_running():
            return  # it is being closed, which cancels all requests
        if sent.method in _NEVER_CANCELLED:
            self._pending.pop(sent.id, None)
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
        self._pending.pop(id, None)
        notice = self.peer.cancel(id, reason)
        if notice is not None:
            self._outbox.post(notice)
            self._on_given_up(id)

    def _sweep_at(self, deadline: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep = asyncio.get_running_loop().call_at(deadline, self._expire)
        self._sweep_due = deadline

    def _expire(self) -> None:
        """End the requests that timed out. One timer serves them all."""
        self._sweep = None
        now = asyncio.get_running_loop().time()
        soonest: float | None = None
        for id, entry in list(self._pending.items()):
            if entry.deadline is None:
                continue
            if entry.deadline <= now:
                self._give_up(id, "Request timed out")
                text = f"{entry.method}: no answer within {entry.timeout:g} s"
                entry.end(RequestTimeout(text))
            elif soonest is None or entry.deadline < soonest:
                soonest = entry.deadline
        if soonest is not None:
            self._sweep_at(soonest)

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


def _was_cancelled() -> ProtocolError:
    return ProtocolError(SERVER_ERROR, "The call was cancelled")
