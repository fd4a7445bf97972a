"""The queues of a session: messages to send, requests of both sides, notifications to handle."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec import Raw, Struct

from transom.background import Background, ignore
from transom.channel import Channel, Receiver, Waiters
from transom.errors import INTERNAL_ERROR, SERVER_ERROR, PeerError, ProtocolError, TransomError
from transom.events import abandon, is_awaitable
from transom.protocol import wire
from transom.protocol.peer import Peer, Progress
from transom.protocol.wire import RequestId

_BURST = 64  # messages handled before other tasks get a turn

OnProgress = Callable[[Progress], object]
"""Called with each progress notification of a request; may be async."""

Work = Callable[[], object] | Awaitable[object]
"""Something to call, whose result may have to be awaited; or something to await."""


class Inbox:
    """Reads a channel, and only while there is room for its messages."""

    def __init__(
        self, channel: Channel, wait_for_room: Callable[[], Awaitable[object] | None] | None
    ) -> None:
        self._channel = channel
        self._wait_for_room = wait_for_room
        self.reader: asyncio.Task[None] | None = None
        self.waiting = False
        """Whether reading has stopped because there is no room."""

    def start(self, receiver: Receiver, on_lost: Callable[[Exception], object]) -> None:
        """Hand over each message that arrives."""
        attach: Callable[[Receiver], None] | None = getattr(self._channel, "attach", None)
        if attach is not None and self._wait_for_room is None:
            attach(receiver)
        else:
            reading = self._read(receiver, on_lost)
            self.reader = asyncio.get_running_loop().create_task(reading, name="transom-read")

    async def _read(self, receiver: Receiver, on_lost: Callable[[Exception], object]) -> None:
        receive = getattr(self._channel, "receive_many", self._receive_one)
        wait = self._wait_for_room or ignore
        left = _BURST
        try:
            while True:
                if (room := wait()) is not None:
                    self.waiting = True
                    await room
                    self.waiting = False
                for data in await receive():
                    receiver(data)
                    left -= 1
                if left <= 0:
                    left = _BURST
                    await asyncio.sleep(0)  # a flood must not starve other tasks
        except Exception as error:  # noqa: BLE001 - a broken channel must not leave anyone waiting
            on_lost(error)

    async def _receive_one(self) -> list[bytes]:
        return [await self._channel.receive()]


class Outbox:
    """Everything a session sends, in order.

    `post` never waits. Callers that can wait do so in `room` before they post, first come, first
    served, while more than `high_water` messages or `high_bytes` bytes are queued. It is `overfull`
    when callers that cannot wait have filled it beyond that.
    """

    def __init__(
        self,
        channel: Channel,
        on_lost: Callable[[Exception], object],
        *,
        high_water: int = 256,
        high_bytes: int = 4 * 1024 * 1024,
        cut_off: int = 4096,
    ) -> None:
        self._channel = channel
        self._send_nowait: Callable[[bytes], bool] | None = getattr(channel, "send_nowait", None)
        self._on_lost = on_lost
        self._high_water = high_water
        self._high_bytes = high_bytes
        self._cut_off = cut_off
        self._queued: deque[bytes] = deque()
        self._bytes = 0
        self._waiters = Waiters()
        self._closed = False
        self.writer: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether callers that can wait should."""
        return not self._has_room() or len(self._waiters.queue) > 0

    @property
    def overfull(self) -> bool:
        """Whether the other side has stopped reading."""
        return len(self._queued) >= self._cut_off

    def _has_room(self) -> bool:
        return len(self._queued) <= self._high_water and self._bytes <= self._high_bytes

    def post(self, data: bytes) -> None:
        """Send the message, or queue it behind others."""
        if self._closed:
            return
        send = self._send_nowait
        if self.writer is None and send is not None:
            try:
                if send(data):
                    return
            except Exception as error:  # noqa: BLE001 - whatever it is, the channel is lost
                self._on_lost(error)
                return
        self._queued.append(data)
        self._bytes += len(data)
        if self.writer is None:
            self.writer = asyncio.get_running_loop().create_task(self._write())

    async def room(self) -> None:
        """Wait while it is full, unless it is closed."""
        if self.full and not self._closed:
            await self._waiters.wait(self._wake_next)

    def _wake_next(self) -> None:
        if self._has_room():
            self._waiters.wake_one()

    def close(self) -> None:
        """Send nothing more, and wake everyone who waits for room."""
        self._closed = True
        self._queued.clear()
        self._waiters.wake_all()

    async def _write(self) -> None:
        try:
            while self._queued:
                data = self._queued.popleft()
                self._bytes -= len(data)
                await self._channel.send(data)
                if self._waiters.queue:
                    self._wake_next()
        except Exception as error:  # noqa: BLE001 - whatever it is, the channel is lost
            self._on_lost(error)
        finally:
            self.writer = None
            self._waiters.wake_all()


class PendingRequest(Struct):
    """A request of ours that waits for its answer."""

    method: str
    timeout: float | None
    on_progress: OnProgress | None
    # Set when the caller has to wait: many a request is answered while it is sent.
    future: asyncio.Future[Raw] | None = None
    deadline: float | None = None
    outcome: Raw | TransomError | None = None
    progress: Progress | None = None  # the last one

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

    A proxy answers one session's request with another session's result. It does so with
    `when_done`, whose function is called at once, not in the next turn of the event loop: messages
    keep their order, and the turn is saved.
    """

    def __init__(
        self,
        id: int | str,
        method: str,
        on_cancel: Callable[[SentRequest, str], object],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(loop=loop)
        self.id = id
        self.method = method
        self._on_cancel = on_cancel
        self._call_done: Callable[[asyncio.Future[Raw]], object] | None = None

    def when_done(self, call: Callable[[asyncio.Future[Raw]], object]) -> None:
        """Have this one function called with the future at its end, or now if it has ended."""
        self._call_done = call
        if self.done():
            call(self)

    def set_result(self, result: Raw, /) -> None:
        """As any future does it; then it is done."""
        super().set_result(result)
        if self._call_done is not None:
            self._call_done(self)

    def set_exception(self, exception: type[BaseException] | BaseException, /) -> None:
        """As any future does it; then it is done."""
        super().set_exception(exception)
        if self._call_done is not None:
            self._call_done(self)

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the request; the other side gets the reason."""
        cancelled = super().cancel(msg)
        if cancelled:
            self._on_cancel(self, str(msg) if msg else "The caller cancelled the request")
            if self._call_done is not None:
                self._call_done(self)
        return cancelled


class PendingRequests:
    """Our requests that wait for their answers. One timer serves the deadlines of all."""

    def __init__(self, on_expired: Callable[[RequestId, PendingRequest], object]) -> None:
        self.entries: dict[RequestId, PendingRequest] = {}
        self._on_expired = on_expired
        self._timer: asyncio.TimerHandle | None = None
        self.due = math.inf  # handles of the browser's event loop do not have it
        """When the timer fires; whoever adds an earlier deadline calls `expire_at`."""

    def expire_at(self, deadline: float) -> None:
        """End the requests that are overdue at this time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(deadline, self._expire)
        self.due = deadline

    def _expire(self) -> None:
        self._timer, self.due = None, math.inf
        now = asyncio.get_running_loop().time()
        for id, entry in list(self.entries.items()):
            if entry.deadline is not None and entry.deadline <= now:
                self._on_expired(id, entry)
        left = [each.deadline for each in self.entries.values() if each.deadline is not None]
        if left and min(left) < self.due:  # an expired one's caller may have sent another
            self.expire_at(min(left))

    def take_all(self) -> list[PendingRequest]:
        """Remove and return all of them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self.due = None, math.inf
        entries, self.entries = self.entries, {}
        return list(entries.values())


class RequestSlots:
    """Limits how many of our requests are in flight: first come, first served.

    A caller that was woken takes its slot by making the peer's request, without awaiting anything
    in between. When a request ends, or is not made after all, call `wake_next`.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._promised = 0  # slots of callers that were woken and have not run yet
        self.waiters = Waiters()

    def full(self) -> bool:
        """Whether one more request has to wait."""
        return len(self.waiters.queue) > 0 or self._peer.room() <= self._promised

    async def wait(self) -> None:
        """Wait for a slot, or until the connection closes."""
        await self.waiters.wait(self._unused)
        self._promised -= 1

    def _unused(self) -> None:
        self._promised -= 1
        self.wake_next()

    def wake_next(self) -> None:
        """Give a free slot to the next that waits."""
        if self._peer.room() > self._promised:
            self._promise()

    def close(self) -> None:
        """Wake everyone."""
        while self.waiters.queue:
            self._promise()

    def _promise(self) -> None:
        if self.waiters.wake_one():
            self._promised += 1


class IncomingRequests:
    """The other side's requests: each is handled, and answered once."""

    def __init__(
        self,
        peer: Peer,
        outbox: Outbox,
        background: Background,
        on_request: Callable[[wire.Request], bytes | Awaitable[bytes | Raw]],
        to_error: Callable[[BaseException], ProtocolError | None],
        on_error: Callable[[BaseException], object],
    ) -> None:
        self.handlers: dict[RequestId, asyncio.Future[Any]] = {}
        """What runs for each of them."""
        self._peer = peer
        self._outbox = outbox
        self._background = background
        self._on_request = on_request
        self._to_error = to_error
        self._on_error = on_error
        self._generation = 0  # how often the other side has restarted

    def cancel(self, id: RequestId, reason: str | None) -> None:
        """The other side does not want an answer any more."""
        task = self.handlers.get(id)
        if task is not None:
            task.cancel(reason)

    def reset(self, reason: str) -> None:
        """The other side has restarted: cancel everything, and answer none of it."""
        self._generation += 1
        handlers, self.handlers = self.handlers, {}
        for task in handlers.values():
            task.cancel(reason)
            self._background.start(task)  # closing waits for it

    def serve(self, request: wire.Request) -> None:
        """Have a request handled, and answer it."""
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
            self.handlers[request.id] = answer
            answer.when_done(partial(self._answered, request.id, generation))
            return
        task = asyncio.get_running_loop().create_task(self._run(request.id, answer, generation))
        self.handlers[request.id] = task
        task.add_done_callback(partial(self._ended, request.id, answer, generation))

    def _answered(self, id: RequestId, generation: int, answer: asyncio.Future[Raw]) -> None:
        """The session that the request was passed on to has an answer."""
        if self.handlers.get(id) is answer:  # the other side may have used the id again by now
            del self.handlers[id]
        if generation != self._generation:
            return
        if answer.cancelled():
            outcome: bytes | ProtocolError = _was_cancelled()
        elif (error := answer.exception()) is not None:
            outcome = self._failure(error)
        else:
            outcome = bytes(answer.result())
        self._answer(id, outcome)

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
        if self.handlers.get(id) is task:  # the other side may have used the id again by now
            del self.handlers[id]
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
        self._on_error(error)
        return ProtocolError(INTERNAL_ERROR, "Internal error")

    def _answer(self, id: RequestId, outcome: bytes | ProtocolError) -> None:
        if self._outbox.full:
            # The request stays in flight, and so counts, until there is room for its answer.
            self._background.start(self._answer_later(id, outcome, self._generation))
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
            data = self._peer.respond(id, outcome)
        else:
            try:
                data = self._peer.fail(id, outcome.code, outcome.message, outcome.data)
            except Exception as error:  # noqa: BLE001 - what a handler put in may not be JSON
                failure = self._failure(error)
                data = self._peer.fail(id, failure.code, failure.message)
        if data is not None:
            self._outbox.post(data)


def _was_cancelled() -> ProtocolError:
    return ProtocolError(SERVER_ERROR, "The call was cancelled")


class NotificationQueue:
    """Handles notifications one after the other; without a task where nothing has to be awaited."""

    def __init__(self, on_error: Callable[[BaseException], object], *, limit: int) -> None:
        self._on_error = on_error
        self._limit = limit
        self._queued: deque[Work] = deque()
        self._closed = False
        self.task: asyncio.Task[None] | None = None

    def run(self, work: Work) -> None:
        """Run it after all earlier ones."""
        if self.task is None:
            waiting = self.guard(work) if callable(work) else work
            if is_awaitable(waiting):
                self._queued.append(waiting)
                self.task = asyncio.get_running_loop().create_task(self._run_all())
        elif len(self._queued) < self._limit:
            self._queued.append(work)
        else:
            abandon(work)
            text = f"{self._limit} notifications wait already; one was dropped"
            self._on_error(PeerError(text))

    def guard(self, call: Callable[[], object]) -> object:
        """Call it, and report what it raises instead of raising it."""
        try:
            return call()
        except BaseException as error:  # noqa: BLE001 - one handler must not stop the others
            self._on_error(error)
            return None

    def close(self) -> None:
        """Drop the queued ones, and cancel the running one unless it is what closes this."""
        self._closed = True
        for work in self._queued:
            abandon(work)
        self._queued.clear()
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()

    async def _run_all(self) -> None:
        try:
            while self._queued:
                work = self._queued.popleft()
                waiting = self.guard(work) if callable(work) else work
                if is_awaitable(waiting):
                    await self._finish(waiting)
        finally:
            self.task = None

    async def _finish(self, waiting: Awaitable[object]) -> None:
        try:
            await waiting
        except asyncio.CancelledError:
            if self._closed:
                raise
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - one handler must not stop the others
            self._on_error(error)
