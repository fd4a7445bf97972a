"""The queues of a session: what goes out, who may ask, and what is handled in turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from transom.channel import Channel
from transom.errors import PeerError
from transom.events import abandon, is_awaitable
from transom.protocol.peer import Peer

__all__ = ["InTurn", "Outbox", "Places", "wake_one"]

Notice = Callable[[], object] | Awaitable[object]
"""Something to call, whose result may have to be awaited; or something to await."""


def wake_one(waiters: deque[asyncio.Future[None]]) -> bool:
    """Let the first one who still waits go on; whether there was one."""
    while waiters:
        waiter = waiters.popleft()
        if not waiter.done():
            waiter.set_result(None)
            return True
    return False


class Outbox:
    """Everything a session sends, in order.

    `post` never waits. Whoever may wait does so in `room` before they post, first come, first
    served, while more than `high_water` messages or `high_bytes` bytes are queued. It is
    `overfull` when even those who may not wait have filled it.
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
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._room: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self.writer: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether those who can wait should."""
        return (
            len(self._waiting) > self._high_water
            or self._bytes > self._high_bytes
            or len(self._room) > 0
        )

    @property
    def overfull(self) -> bool:
        """Whether the other side has stopped reading."""
        return len(self._waiting) >= self._cut_off

    def post(self, data: bytes) -> None:
        """Send, or queue behind what waits already."""
        if self._closed:
            return
        if self.writer is None and self._send_nowait is not None:
            try:
                if self._send_nowait(data):
                    return
            except Exception as error:  # noqa: BLE001 - whatever it is, the channel is lost
                self._on_lost(error)
                return
        self._waiting.append(data)
        self._bytes += len(data)
        if self.writer is None:
            self.writer = asyncio.get_running_loop().create_task(self._write())

    async def room(self) -> None:
        """Wait while it is full, unless it is closed."""
        if not self.full or self._closed:
            return
        place = asyncio.get_running_loop().create_future()
        self._room.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place in self._room:
                self._room.remove(place)
            elif not place.cancelled():
                self._let_in()  # the room was made for us; pass it on
            raise

    def _let_in(self) -> None:
        if len(self._waiting) <= self._high_water and self._bytes <= self._high_bytes:
            wake_one(self._room)

    def close(self) -> None:
        """Send nothing more. Whoever waits for room goes on."""
        self._closed = True
        self._waiting.clear()
        while self._room:
            wake_one(self._room)

    async def _write(self) -> None:
        try:
            while self._waiting:
                data = self._waiting.popleft()
                self._bytes -= len(data)
                await self._channel.send(data)
                if self._room:
                    self._let_in()
        except Exception as error:  # noqa: BLE001 - whatever it is, the channel is lost
            self._on_lost(error)
        finally:
            self.writer = None
            while self._room:
                wake_one(self._room)


class Places:
    """The places a peer has for requests in flight: first come, first served.

    Whoever has waited takes the place in the same step, by asking the peer. Whoever is done with
    a place, or does not take it after all, passes it on.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._given = 0  # to requests that have not noticed yet
        self.waiting: deque[asyncio.Future[None]] = deque()

    @property
    def scarce(self) -> bool:
        """Whether one more has to wait."""
        peer = self._peer
        return len(self.waiting) > 0 or peer.outgoing + self._given >= peer.max_outgoing

    async def wait(self) -> None:
        """Wait for a place, or for the end of the conversation."""
        place = asyncio.get_running_loop().create_future()
        self.waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place in self.waiting:
                self.waiting.remove(place)
            elif not place.cancelled():
                self._given -= 1
                self.pass_on()
            raise
        self._given -= 1

    def pass_on(self) -> None:
        """Let the next one have a place, if there is one."""
        if self._peer.outgoing + self._given < self._peer.max_outgoing:
            self._give()

    def close(self) -> None:
        """Let everyone go on."""
        while self.waiting:
            self._give()

    def _give(self) -> None:
        if wake_one(self.waiting):
            self._given += 1


class InTurn:
    """Runs notices one after the other. Those that need no waiting run at once, without a task."""

    def __init__(self, on_problem: Callable[[BaseException], object], *, limit: int) -> None:
        self._on_problem = on_problem
        self._limit = limit
        self._notices: deque[Notice] = deque()
        self._closed = False
        self.task: asyncio.Task[None] | None = None

    def run(self, notice: Notice) -> None:
        """Run it, after those that came before."""
        if self.task is None:
            waiting = self.guard(notice) if callable(notice) else notice
            if is_awaitable(waiting):
                self._notices.append(waiting)
                self.task = asyncio.get_running_loop().create_task(self._run_all())
        elif len(self._notices) < self._limit:
            self._notices.append(notice)
        else:
            abandon(notice)
            self._on_problem(PeerError(f"{self._limit} notices wait already; one was dropped"))

    def guard(self, call: Callable[[], object]) -> object:
        """Call, and report what it raises in place of raising it."""
        try:
            return call()
        except BaseException as error:  # noqa: BLE001 - one handler must not stop the others
            self._on_problem(error)
            return None

    def close(self) -> None:
        """Drop what waits."""
        self._closed = True
        for notice in self._notices:
            abandon(notice)
        self._notices.clear()

    async def _run_all(self) -> None:
        try:
            while self._notices:
                notice = self._notices.popleft()
                waiting = self.guard(notice) if callable(notice) else notice
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
