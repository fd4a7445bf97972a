"""The queues of a session: messages to send, requests in flight, notifications to handle."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from transom.channel import Channel, Waiters
from transom.errors import PeerError
from transom.events import abandon, is_awaitable
from transom.protocol.peer import Peer

Work = Callable[[], object] | Awaitable[object]
"""Something to call, whose result may have to be awaited; or something to await."""


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


class NotificationQueue:
    """Handles notifications one after the other; without a task where nothing has to be awaited."""

    def __init__(self, on_problem: Callable[[BaseException], object], *, limit: int) -> None:
        self._on_problem = on_problem
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
            self._on_problem(PeerError(text))

    def guard(self, call: Callable[[], object]) -> object:
        """Call it, and report what it raises instead of raising it."""
        try:
            return call()
        except BaseException as error:  # noqa: BLE001 - one handler must not stop the others
            self._on_problem(error)
            return None

    def close(self) -> None:
        """Drop the queued ones."""
        self._closed = True
        for work in self._queued:
            abandon(work)
        self._queued.clear()

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
            self._on_problem(error)
