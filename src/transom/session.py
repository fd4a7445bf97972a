"""The asyncio driver of a `Peer`: the only home of tasks and timeouts.

1. One task reads the channel and hands each message on, in order, without waiting for anyone.
2. A request handler returns its result at once or an awaitable of it; only the awaitable costs a
   task. How many run is capped by the peer.
3. Notification handlers run one after the other, in the order of arrival.
4. Everything sent goes through one queue, in order. Whoever sends waits while it is long, except
   the reader. A peer that keeps asking and never reads is cut off.
5. A request of ours ends exactly once: answer, error, timeout, cancellation, or close.
6. Closing cancels the handlers that run, answers them while the channel still lives, and settles
   every request of ours that waits.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self, cast

from msgspec import Raw

from transom.channel import Channel
from transom.errors import (
    INTERNAL_ERROR,
    SERVER_ERROR,
    ChannelClosed,
    ConnectionClosed,
    NotConnected,
    PeerError,
    ProtocolError,
    RequestTimeout,
)
from transom.protocol import wire
from transom.protocol.peer import Cancelled, Event, Peer, Progress, Violation
from transom.protocol.wire import RequestId

__all__ = ["OnProgress", "Session"]

OnProgress = Callable[[Progress], object]
"""Called with each progress notice of a request; may be async."""

_HIGH_WATER = 256  # messages in the outbox above which senders wait
_CUT_OFF = 4096  # messages in the outbox at which a peer that does not read is cut off
_BURST = 64  # messages handled before other tasks get a turn
_GRACE = 1.0  # seconds a cancelled handler has to end before close goes on without it


class _Pending:
    """A request of ours that waits for its answer."""

    __slots__ = ("deadline", "future", "method", "on_progress", "timeout")

    def __init__(
        self,
        method: str,
        future: asyncio.Future[Raw],
        timeout: float | None,
        deadline: float | None,
        on_progress: OnProgress | None,
    ) -> None:
        self.method = method
        self.future = future
        self.timeout = timeout
        self.deadline = deadline
        self.on_progress = on_progress


class Session:
    """Drives one conversation over one channel. Use it as `async with Session(...)`.

    Args:
        channel: the pipe to the other side; closed with the session.
        on_request: takes a request, returns the result as JSON bytes, or an awaitable of them.
            A `ProtocolError` is answered as it is, anything else as "Internal error".
        on_notification: takes a notification; may be async.
        on_problem: told of everything that went wrong on either side: a `PeerError` for what the
            other side did, the exception itself for what a handler raised.
        on_closed: told once, with the reason, when the conversation is over.
        timeout: seconds a request of ours may take, unless it says otherwise. None: for ever.
        peer: the protocol core, with its limits.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        on_request: Callable[[wire.Request], bytes | Awaitable[bytes]],
        on_notification: Callable[[wire.Notification], object],
        on_problem: Callable[[BaseException], object] = lambda problem: None,
        on_closed: Callable[[str], object] = lambda reason: None,
        timeout: float | None = 60.0,
        max_queued: int = 1024,
        peer: Peer | None = None,
    ) -> None:
        self.peer = peer if peer is not None else Peer()
        self.timeout = timeout
        self._channel = channel
        self._send_nowait = cast(
            "Callable[[bytes], bool] | None", getattr(channel, "send_nowait", None)
        )
        self._on_request = on_request
        self._on_notification = on_notification
        self._on_problem = on_problem
        self._on_closed = on_closed
        self._max_queued = max_queued
        self._pending: dict[RequestId, _Pending] = {}
        self._slots: deque[asyncio.Future[None]] = deque()
        self._handlers: dict[RequestId, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._notices: deque[Callable[[], object] | Awaitable[object]] = deque()
        self._notifier: asyncio.Task[None] | None = None
        self._outbox: deque[bytes] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._room: deque[asyncio.Future[None]] = deque()
        self._reader: asyncio.Task[None] | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._closing = False
        self._done: asyncio.Future[str] | None = None

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read. `async with` does this."""
        loop = asyncio.get_running_loop()
        self._done = loop.create_future()
        self._reader = loop.create_task(self._read(), name="transom-read")

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    @property
    def closed(self) -> bool:
        """Whether the conversation is over."""
        return self.peer.closed or self._closing

    async def wait_closed(self) -> str:
        """Wait until the conversation is over; the reason it ended."""
        if self._done is None:
            raise NotConnected("The session was never started")
        return await asyncio.shield(self._done)

    async def aclose(self, reason: str = "closed by this side") -> None:
        """End the conversation. Safe to call twice, and from inside a handler."""
        if self._done is None or self._done.done() or self._closing:
            self._closing = True
            await self._channel.aclose()
            return
        self._closing = True
        current = asyncio.current_task()
        running = [task for task in self._handlers.values() if task is not current]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_GRACE)
        if self._writer is not None and self._writer is not current:
            await asyncio.wait([self._writer], timeout=_GRACE)
        self._finish(f"Connection closed: {reason}")
        await self._channel.aclose()
        others = [t for t in (self._reader, self._notifier, self._writer, *self._tasks) if t]
        for task in others:
            if task is not current:
                task.cancel()
        others = [task for task in others if task is not current]
        if others:
            await asyncio.wait(others, timeout=_GRACE)

    def _finish(self, reason: str) -> None:
        """Settle everything, once. Nothing is sent or heard after this."""
        if self._done is None or self._done.done():
            return
        self._closing = True
        self.peer.close()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        pending, self._pending = self._pending, {}
        for entry in pending.values():
            if not entry.future.done():
                entry.future.set_exception(ConnectionClosed(f"{entry.method}: {reason}"))
        for waiter in (*self._slots, *self._room):
            if not waiter.done():
                waiter.set_result(None)
        for task in self._handlers.values():
            task.cancel()
        for notice in self._notices:
            if inspect.iscoroutine(notice):
                notice.close()
        self._notices.clear()
        self._outbox.clear()
        self._done.set_result(reason)
        self._guard(lambda: self._on_closed(reason))

    # --- in ----------------------------------------------------------------------------------

    async def _read(self) -> None:
        receive, feed, dispatch = self._channel.receive, self.peer.feed, self._dispatch
        left = _BURST
        try:
            while True:
                dispatch(feed(await receive()))
                left -= 1
                if not left:
                    left = _BURST
                    await asyncio.sleep(0)  # a flood must not starve everyone else
        except ChannelClosed as error:
            self._finish(f"Connection closed: {error}")
        except Exception as error:  # a broken channel must not leave requests waiting
            self._on_problem(error)
            self._finish("Connection closed: the channel failed")
            await self._channel.aclose()

    def _dispatch(self, event: Event) -> None:
        if isinstance(event, wire.Response):
            entry = self._pending.pop(event.id, None)
            if entry is not None and not entry.future.done():
                entry.future.set_result(event.result)
        elif isinstance(event, wire.Request):
            self._serve(event)
        elif isinstance(event, wire.Notification):
            self._in_turn(lambda: self._on_notification(event))
        elif isinstance(event, wire.ErrorResponse):
            entry = self._pending.pop(event.id, None) if event.id is not None else None
            if entry is not None and not entry.future.done():
                error = event.error
                entry.future.set_exception(ProtocolError(error.code, error.message, error.data))
        elif isinstance(event, Progress):
            self._progressed(event)
        elif isinstance(event, Cancelled):
            task = self._handlers.get(event.id)
            if task is not None:
                task.cancel(event.reason)
        else:
            self._violated(event)

    def _violated(self, event: Violation) -> None:
        if event.reply is not None:
            if len(self._outbox) >= _CUT_OFF:
                self._finish("Connection closed: the other side asks but does not read")
                self._spawn(self._channel.aclose())
                return
            self._post(event.reply)
        self._on_problem(PeerError(event.message))

    def _serve(self, request: wire.Request) -> None:
        try:
            answer = self._on_request(request)
        except BaseException as error:
            self._answer(request.id, self._failure(request.id, error))
            return
        if isinstance(answer, bytes):
            self._answer(request.id, answer)
            return
        task = asyncio.get_running_loop().create_task(self._run(request.id, answer))
        self._handlers[request.id] = task
        task.add_done_callback(lambda _: self._handlers.pop(request.id, None))

    async def _run(self, id: RequestId, answer: Awaitable[bytes]) -> None:
        try:
            outcome: bytes | ProtocolError = await answer
        except asyncio.CancelledError:
            text = "The connection is closing" if self._closing else "The call was cancelled"
            outcome = ProtocolError(SERVER_ERROR, text)
        except GeneratorExit:
            raise
        except BaseException as error:
            outcome = self._failure(id, error)
        self._post_answer(id, outcome)
        if len(self._outbox) > _HIGH_WATER:
            await self._wait_room()

    def _failure(self, id: RequestId, error: BaseException) -> ProtocolError:
        if isinstance(error, ProtocolError):
            return error
        self._on_problem(error)
        return ProtocolError(INTERNAL_ERROR, "Internal error")

    def _answer(self, id: RequestId, outcome: bytes | ProtocolError) -> None:
        if len(self._outbox) <= _HIGH_WATER:
            self._post_answer(id, outcome)
        else:  # the request stays alive, and so counts, until there is room for its answer
            self._spawn(self._answer_later(id, outcome))

    async def _answer_later(self, id: RequestId, outcome: bytes | ProtocolError) -> None:
        await self._wait_room()
        self._post_answer(id, outcome)

    def _post_answer(self, id: RequestId, outcome: bytes | ProtocolError) -> None:
        if isinstance(outcome, bytes):
            data = self.peer.respond(id, outcome)
        else:
            data = self.peer.fail(id, outcome.code, outcome.message, outcome.data)
        if data is not None:
            self._post(data)

    # --- notifications, in turn --------------------------------------------------------------

    def _in_turn(self, notice: Callable[[], object] | Awaitable[object]) -> None:
        if self._notifier is not None:
            if len(self._notices) >= self._max_queued:
                text = f"{self._max_queued} notifications wait already; one was dropped"
                self._on_problem(PeerError(text))
            else:
                self._notices.append(notice)
            return
        waiting = self._guard(notice) if callable(notice) else notice
        if inspect.isawaitable(waiting):
            self._notices.append(waiting)
            self._notifier = asyncio.get_running_loop().create_task(self._notify_in_turn())

    async def _notify_in_turn(self) -> None:
        try:
            while self._notices:
                notice = self._notices.popleft()
                waiting = self._guard(notice) if callable(notice) else notice
                if inspect.isawaitable(waiting):
                    try:
                        await waiting
                    except (asyncio.CancelledError, GeneratorExit):
                        if self._closing:
                            raise
                    except BaseException as error:
                        self._on_problem(error)
        finally:
            self._notifier = None

    def _progressed(self, event: Progress) -> None:
        entry = self._pending.get(event.id)
        if entry is None:
            return
        if entry.timeout is not None:
            entry.deadline = asyncio.get_running_loop().time() + entry.timeout
        on_progress = entry.on_progress
        if on_progress is not None:
            waiting = self._guard(lambda: on_progress(event))
            if inspect.isawaitable(waiting):
                self._in_turn(waiting)

    def _guard(self, call: Callable[[], object]) -> object:
        try:
            return call()
        except BaseException as error:
            self._on_problem(error)
            return None

    # --- out ---------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: bytes | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = -1,
        on_progress: OnProgress | None = None,
    ) -> Raw:
        """Ask, and wait for the result.

        Args:
            method: what to ask.
            params: a JSON object without `_meta`.
            meta: the `_meta` of the params.
            timeout: seconds without an answer or a progress notice; None: no limit; the session's
                own unless given.
            on_progress: called with each progress notice.

        Raises:
            ProtocolError: the other side answered with an error.
            RequestTimeout: it did not answer in time; it has been told to stop.
            ConnectionClosed: the connection closed first.
            NotConnected: it was closed before.
        """
        if self.closed or self._done is None:
            raise NotConnected("Not connected")
        loop = asyncio.get_running_loop()
        if timeout is not None and timeout < 0:
            timeout = self.timeout
        deadline = None if timeout is None else loop.time() + timeout
        if self._slots or self.peer.outgoing >= self.peer.max_outgoing:
            await self._wait_slot(method, timeout, deadline)
        wants_progress = on_progress is not None
        id, data = self.peer.request(method, params, meta=meta, progress=wants_progress)
        future: asyncio.Future[Raw] = loop.create_future()
        self._pending[id] = _Pending(method, future, timeout, deadline, on_progress)
        if deadline is not None and (self._sweep is None or self._sweep.when() > deadline):
            self._sweep_at(deadline)
        try:
            self._post(data)
            if len(self._outbox) > _HIGH_WATER:
                await self._wait_room()
            return await future
        except asyncio.CancelledError:
            self._give_up(id, "The caller cancelled the request")
            raise
        finally:
            if self._slots:
                self._wake(self._slots)

    async def _wait_slot(self, method: str, timeout: float | None, deadline: float | None) -> None:
        """Wait for a place among the requests in flight, first come, first served."""
        place = asyncio.get_running_loop().create_future()
        self._slots.append(place)
        try:
            async with asyncio.timeout_at(deadline):
                await place
        except TimeoutError:
            self._pass_on(place)
            raise RequestTimeout(f"{method}: not sent within {timeout:g} s") from None
        except asyncio.CancelledError:
            self._pass_on(place)
            raise
        if self.peer.closed:
            raise ConnectionClosed(f"{method}: Connection closed before it was sent")

    def _pass_on(self, place: asyncio.Future[None]) -> None:
        if place in self._slots:
            self._slots.remove(place)
        elif place.done() and not place.cancelled():
            self._wake(self._slots)

    @staticmethod
    def _wake(waiters: deque[asyncio.Future[None]]) -> None:
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _give_up(self, id: RequestId, reason: str) -> None:
        self._pending.pop(id, None)
        notice = self.peer.cancel(id, reason)
        if notice is not None:
            self._post(notice)

    def _sweep_at(self, deadline: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep = asyncio.get_running_loop().call_at(deadline, self._expire)

    def _expire(self) -> None:
        """End the requests whose time is up. One timer serves them all."""
        self._sweep = None
        now = asyncio.get_running_loop().time()
        soonest: float | None = None
        for id, entry in list(self._pending.items()):
            if entry.deadline is None:
                continue
            if entry.deadline <= now:
                self._give_up(id, "Request timed out")
                if not entry.future.done():
                    text = f"{entry.method}: no answer within {entry.timeout:g} s"
                    entry.future.set_exception(RequestTimeout(text))
            elif soonest is None or entry.deadline < soonest:
                soonest = entry.deadline
        if soonest is not None:
            self._sweep_at(soonest)

    async def notify(self, method: str, params: bytes | None = None) -> None:
        """Tell; waits while the other side is slow.

        Raises:
            NotConnected: the connection is closed.
        """
        self.notify_soon(method, params)
        if len(self._outbox) > _HIGH_WATER:
            await self._wait_room()

    def notify_soon(self, method: str, params: bytes | None = None) -> None:
        """Tell, without waiting.

        Raises:
            NotConnected: the connection is closed.
        """
        if self._done is None or self._done.done():
            raise NotConnected("Not connected")
        self._post(self.peer.notify(method, params))

    def _post(self, data: bytes) -> None:
        """Send, or queue behind what waits already."""
        if self._writer is None and self._send_nowait is not None:
            try:
                if self._send_nowait(data):
                    return
            except ChannelClosed as error:
                self._finish(f"Connection closed: {error}")
                return
        self._outbox.append(data)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._outbox:
                await self._channel.send(self._outbox.popleft())
                if self._room and len(self._outbox) <= _HIGH_WATER:
                    self._wake(self._room)
        except ChannelClosed as error:
            self._finish(f"Connection closed: {error}")
        finally:
            self._writer = None
            while self._room:
                self._wake(self._room)

    async def _wait_room(self) -> None:
        while len(self._outbox) > _HIGH_WATER and not self.peer.closed:
            room = asyncio.get_running_loop().create_future()
            self._room.append(room)
            await room

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
