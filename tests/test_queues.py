import asyncio

import pytest

from tests.joined import turns
from transom.channel import Waiters, memory_pair
from transom.errors import ChannelClosed, PeerError
from transom.queues import NotificationQueue, Outbox

# --- waiters ---------------------------------------------------------------------------------


async def test_the_first_one_who_still_waits_is_woken():
    loop = asyncio.get_running_loop()
    gone, first, second = (loop.create_future() for _ in range(3))
    gone.cancel()
    waiters = Waiters()
    waiters.queue.extend((gone, first, second))
    assert waiters.wake_one()
    assert first.done()
    assert not second.done()
    assert waiters.wake_one()
    assert second.done()
    assert not waiters.wake_one()


# --- the outbox ------------------------------------------------------------------------------


class SlowChannel:
    """Sends one message each time it is told to, and has no shortcuts."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.allowed = asyncio.Semaphore(0)
        self.error: Exception | None = None

    async def send(self, data: bytes) -> None:
        await self.allowed.acquire()
        if self.error is not None:
            raise self.error
        self.sent.append(data)

    async def receive(self) -> bytes:
        raise ChannelClosed("")

    async def aclose(self) -> None: ...

    async def let_out(self, count: int) -> None:
        for _ in range(count):
            self.allowed.release()
        await turns(2 * count + 3)


def outbox(channel: object, **limits: int) -> tuple[Outbox, list[Exception]]:
    lost: list[Exception] = []
    return Outbox(channel, lost.append, **limits), lost  # type: ignore[arg-type]


async def test_what_the_channel_takes_at_once_needs_no_task():
    near, far = memory_pair(capacity=2)
    box, _ = outbox(near)
    box.post(b"1")
    box.post(b"2")
    assert box.writer is None
    box.post(b"3")
    assert box.writer is not None
    box.post(b"4")
    assert [await far.receive() for _ in range(4)] == [b"1", b"2", b"3", b"4"]
    await turns()
    assert box.writer is None
    box.post(b"5")
    assert box.writer is None
    assert await far.receive() == b"5"


async def test_it_is_full_above_the_high_water_mark_and_overfull_at_the_cut_off():
    channel = SlowChannel()
    box, _ = outbox(channel, high_water=2, cut_off=4)
    for expected in [(False, False), (False, False), (True, False), (True, True)]:
        box.post(b"x")
        assert (box.full, box.overfull) == expected
    await channel.let_out(2)
    assert (box.full, box.overfull) == (False, False)
    await channel.let_out(2)


async def test_it_is_full_when_it_holds_too_many_bytes():
    channel = SlowChannel()
    box, _ = outbox(channel, high_bytes=100)
    box.post(b"x" * 100)
    assert not box.full
    box.post(b"x")
    assert box.full
    await channel.let_out(1)
    assert not box.full
    await channel.let_out(1)
    box.post(b"x" * 100)
    assert not box.full, "what has left is not counted any more"
    await channel.let_out(1)


async def test_room_is_given_first_come_first_served_one_for_each_that_leaves():
    channel = SlowChannel()
    box, _ = outbox(channel, high_water=2)
    for _ in range(4):  # one of them is on its way at once
        box.post(b"before")
    order: list[int] = []

    async def sender(number: int) -> None:
        await box.room()
        order.append(number)
        box.post(b"%d" % number)

    tasks = [asyncio.create_task(sender(number)) for number in range(5)]
    await turns()
    assert order == []
    tasks[1].cancel()
    for _ in range(8):
        await channel.let_out(1)
    await asyncio.wait(tasks)
    assert order == [0, 2, 3, 4]
    await channel.let_out(5)
    assert channel.sent == [b"before"] * 4 + [b"0", b"2", b"3", b"4"]


async def test_one_who_comes_later_does_not_pass_those_who_wait():
    channel = SlowChannel()
    box, _ = outbox(channel, high_water=0)
    box.post(b"before")
    first = asyncio.create_task(box.room())
    second = asyncio.create_task(box.room())
    await turns()
    await channel.let_out(1)
    assert first.done()
    await turns()
    assert second.done(), "nothing is left to wait for"


async def test_room_made_for_one_who_gives_up_is_passed_on():
    channel = SlowChannel()
    box, _ = outbox(channel, high_water=1)
    for _ in range(4):
        box.post(b"x")
    first = asyncio.create_task(box.room())
    second = asyncio.create_task(box.room())
    await turns()
    channel.allowed.release()
    channel.allowed.release()
    channel.allowed.release()
    while len(box._waiters.queue) == 2:  # noqa: ASYNC110 - the moment is what is tested
        await asyncio.sleep(0)
    first.cancel()
    await turns()
    assert second.done()
    box.close()
    await asyncio.wait({first, second})
    await channel.let_out(1)


async def test_those_who_give_up_leave_nothing_behind():
    channel = SlowChannel()
    box, _ = outbox(channel, high_water=0)
    box.post(b"x")
    for _ in range(50):
        task = asyncio.create_task(box.room())
        await turns(2)
        task.cancel()
        await asyncio.wait({task})
    assert len(box._waiters.queue) == 0
    await channel.let_out(1)


async def test_a_closed_outbox_sends_nothing_and_lets_everyone_go_on():
    channel = SlowChannel()
    box, _ = outbox(channel, high_water=1)
    for _ in range(5):
        box.post(b"x")
    waiting = [asyncio.create_task(box.room()) for _ in range(3)]
    await turns()
    box.close()
    await asyncio.gather(*waiting)
    await box.room()
    box.post(b"late")
    await channel.let_out(5)
    assert channel.sent == [b"x"], "only what was being sent already"
    assert box.writer is None


@pytest.mark.parametrize("error", [ChannelClosed("gone"), OSError("broken"), KeyError("odd")])
async def test_a_channel_that_is_lost_is_reported_and_nobody_waits_for_ever(error: Exception):
    channel = SlowChannel()
    channel.error = error
    box, lost = outbox(channel, high_water=0)
    box.post(b"x")
    box.post(b"y")
    waiting = asyncio.create_task(box.room())
    await turns()
    await channel.let_out(1)
    assert lost == [error]
    await waiting


async def test_a_channel_that_is_lost_at_once_is_reported_to_nobody_else():
    near, far = memory_pair()
    box, lost = outbox(near)
    await far.aclose()
    box.post(b"x")
    assert [type(error) for error in lost] == [ChannelClosed]


# --- notifications ---------------------------------------------------------------------------


async def test_what_needs_no_waiting_runs_at_once_without_a_task():
    problems: list[BaseException] = []
    queue = NotificationQueue(problems.append, limit=1)
    ran: list[int] = []
    for number in range(5):
        queue.run(lambda number=number: ran.append(number))
    assert ran == [0, 1, 2, 3, 4]
    assert queue.task is None
    assert problems == []


async def test_what_waits_holds_up_what_comes_after():
    queue = NotificationQueue(lambda problem: None, limit=10)
    ran: list[str] = []
    gate = asyncio.Event()

    async def wait(name: str) -> None:
        await gate.wait()
        ran.append(name)

    queue.run(lambda: wait("first"))
    queue.run(lambda: ran.append("second"))
    queue.run(wait("third"))
    queue.run(lambda: wait("fourth"))
    await turns()
    assert ran == []
    gate.set()
    await turns()
    assert ran == ["first", "second", "third", "fourth"]
    assert queue.task is None


async def test_one_too_many_is_dropped_closed_and_reported():
    problems: list[BaseException] = []
    queue = NotificationQueue(problems.append, limit=1)
    ran: list[str] = []

    async def note(name: str) -> None:
        ran.append(name)

    queue.run(note("runs"))
    queue.run(note("dropped"))
    queue.run(lambda: note("dropped too"))
    await turns()
    assert len(ran) + len(problems) == 3
    assert all(isinstance(problem, PeerError) for problem in problems)
    queue.run(note("runs again"))
    await turns()
    assert ran[-1] == "runs again"


async def test_closing_drops_what_waits_and_lets_the_current_one_be_cancelled():
    problems: list[BaseException] = []
    queue = NotificationQueue(problems.append, limit=10)
    stopped = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def never() -> None:
        raise AssertionError("dropped")

    queue.run(wait())
    queue.run(never())
    queue.run(lambda: never())
    await turns()
    queue.close()
    assert queue.task is not None
    queue.task.cancel()
    await stopped.wait()
    await turns()
    assert queue.task is None
    assert problems == []
