"""Closing: handlers are stopped and answered, requests are settled, nothing is left behind."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest
from msgspec import Raw

from tests.joined import Bare, Clock, bare, joined, logged_session, turns
from transom import session as session_module
from transom.channel import memory_pair
from transom.errors import (
    SERVER_ERROR,
    ChannelClosed,
    ConnectionClosed,
    NotConnected,
    ProtocolError,
    RequestTimeout,
)
from transom.protocol import wire
from transom.session import Session


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    await turns(3)
    assert asyncio.all_tasks() - before - {asyncio.current_task()} == set()


async def until_cancelled(request: wire.Request) -> bytes:
    await asyncio.Event().wait()
    return b"{}"


# --- from outside ----------------------------------------------------------------------------


async def test_closing_cancels_the_handlers_and_answers_them():
    async with bare(until_cancelled) as b:
        for id in range(3):
            await b.wire.say(id=id, method="m")
        await turns()
        await b.session.aclose()
        answers = b.wire.said()
        assert {answer["id"] for answer in answers} == {0, 1, 2}
        assert {answer["error"]["code"] for answer in answers} == {SERVER_ERROR}
        with pytest.raises(ChannelClosed):
            await b.wire.hear()


async def test_closing_answers_even_the_handlers_that_have_not_begun():
    async with bare(until_cancelled) as b:
        await b.wire.say(id=1, method="m")
        await b.session.aclose()
        assert [answer["id"] for answer in b.wire.said()] == [1]


async def test_a_handler_may_finish_its_answer_while_it_is_being_closed():
    async def serve(request: wire.Request) -> bytes:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return b'{"saved":true}'

    async with bare(serve) as b:
        await b.wire.say(id=1, method="m")
        await turns()
        await b.session.aclose()
        assert [answer["result"] for answer in b.wire.said()] == [{"saved": True}]


async def test_a_handler_that_swallows_cancellation_does_not_hold_up_the_close(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(session_module, "_GRACE", 0.01)
    release = asyncio.Event()
    ended = asyncio.Event()

    async def stubborn(request: wire.Request) -> bytes:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        return b'{"late":true}'

    async with bare(stubborn) as b:
        await b.wire.say(id=1, method="m")
        await turns()
        await b.session.aclose()
        assert b.session.closed
        assert not ended.is_set()
        release.set()
        await ended.wait()
        await turns()
        assert b.wire.said() == []


async def test_a_notification_handler_that_swallows_cancellation_does_not_either(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(session_module, "_GRACE", 0.01)
    release = asyncio.Event()
    handled: list[str] = []

    async def stubborn(notice: wire.Notification) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        handled.append(notice.method)

    async with bare(on_notification=stubborn) as b:
        await b.wire.say(method="first")
        await b.wire.say(method="second")
        await turns()
        await b.session.aclose()
        release.set()
        await turns()
        assert handled == ["first"], "what waited its turn is dropped"


async def test_closing_twice_or_at_once_is_one_close():
    async with bare(until_cancelled) as b:
        await b.wire.say(id=1, method="m")
        await turns()
        await asyncio.gather(b.session.aclose("first"), b.session.aclose("second"))
        await b.session.aclose("third")
        assert b.log.closed == ["first"]
        assert [answer["id"] for answer in b.wire.said()] == [1], "the second did not cut it short"
        assert await b.session.wait_closed() == "first"


async def test_a_close_that_is_cancelled_is_a_close_all_the_same():
    release = asyncio.Event()

    async def slow_to_stop(request: wire.Request) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
        return b"{}"

    async with bare(slow_to_stop) as b:
        await b.wire.say(id=1, method="m")
        request = asyncio.create_task(b.session.request("m"))
        await turns()
        closing = asyncio.create_task(b.session.aclose("hurry"))
        await turns()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(ConnectionClosed, match="hurry"):
            await request
        assert b.log.closed == ["hurry"]
        assert (await b.wire.hear())["method"] == "m"
        with pytest.raises(ChannelClosed):
            await b.wire.hear()
        release.set()
        await b.session.aclose()


async def test_a_handler_may_close_in_a_task_that_ends_with_it():
    sessions: list[Session] = []

    async def serve(request: wire.Request) -> bytes:
        async with asyncio.TaskGroup() as group:
            group.create_task(sessions[0].aclose("asked to"))
        return b"{}"

    async with bare(serve) as b:
        sessions.append(b.session)
        await b.wire.say(id=1, method="m")
        assert await b.session.wait_closed() == "asked to"
        with pytest.raises(ChannelClosed):
            await b.wire.hear()


async def test_those_who_wait_for_the_close_are_told_why():
    async with bare() as b:
        waiting = [asyncio.create_task(b.session.wait_closed()) for _ in range(2)]
        await turns()
        waiting[0].cancel()
        await turns()
        await b.session.aclose("enough")
        assert await waiting[1] == "enough"
        assert waiting[0].cancelled()


async def test_leaving_the_block_by_an_exception_closes_too():
    near, _ = memory_pair()
    session, log = logged_session(near, until_cancelled)
    with pytest.raises(ValueError, match="out"):
        async with session:
            raise ValueError("out")
    assert log.closed == ["closed by this side"]


async def test_a_session_that_never_started_can_be_closed():
    near, far = memory_pair()
    session, log = logged_session(near, until_cancelled)
    await session.aclose()
    assert session.closed
    assert log.closed == []
    with pytest.raises(ChannelClosed):
        await far.receive()


async def test_nothing_is_sent_after_the_close():
    sent_after: list[bytes] = []
    near, far = memory_pair()
    session, _ = logged_session(near, until_cancelled)
    async with session:
        for id in range(5):
            await far.send(wire.encode_request(id, "m", None))
        asking = [asyncio.create_task(session.request("m")) for _ in range(5)]
        await turns()
        await session.aclose()
        near.send_nowait = sent_after.append  # type: ignore[attr-defined]
        near.send = sent_after.append  # type: ignore[method-assign]
        for task in asking:
            with pytest.raises(ConnectionClosed):
                await task
        with pytest.raises(NotConnected):
            session.notify_soon("m")
        with pytest.raises(NotConnected):
            await session.notify("m")
        await turns()
    assert sent_after == []


async def test_no_timer_is_left_after_the_close():
    async with bare(timeout=30) as b:
        clock = Clock()
        task = asyncio.create_task(b.session.request("m"))
        await turns()
        await b.session.aclose()
        with pytest.raises(ConnectionClosed):
            await task
        assert b.session._pending._timer is None
        await clock.advance(60)


async def test_what_was_told_just_before_the_close_still_arrives():
    near, far = memory_pair(capacity=2)
    session, _ = logged_session(near, until_cancelled)
    received: list[bytes] = []

    async def read() -> None:
        try:
            while True:
                received.append(await far.receive())
        except ChannelClosed:
            pass

    async with session:
        reading = asyncio.create_task(read())
        for number in range(20):
            session.notify_soon(str(number))
    await reading
    assert len(received) == 20


# --- from inside -----------------------------------------------------------------------------


async def test_a_request_handler_may_close_the_session():
    sessions: list[Session] = []
    closed = asyncio.Event()

    async def serve(request: wire.Request) -> bytes:
        if request.method == "other":
            return await until_cancelled(request)
        await sessions[0].aclose("asked to")
        closed.set()
        return b"{}"

    async with bare(serve) as b:
        sessions.append(b.session)
        await b.wire.say(id=1, method="other")
        await b.wire.say(id=2, method="close")
        await closed.wait()
        assert b.log.closed == ["asked to"]
        assert [answer["id"] for answer in b.wire.said()] == [1]


async def test_a_notification_handler_may_close_the_session():
    sessions: list[Session] = []
    handled: list[str] = []

    async def on_notification(notice: wire.Notification) -> None:
        await sessions[0].aclose("told to")
        handled.append(notice.method)

    async with bare(until_cancelled, on_notification=on_notification) as b:
        sessions.append(b.session)
        await b.wire.say(id=1, method="m")
        await b.wire.say(method="bye")
        await b.wire.say(method="never handled")
        assert await b.session.wait_closed() == "told to"
        await turns()
        assert handled == ["bye"]
        assert [answer["id"] for answer in b.wire.said()] == [1]


async def test_a_progress_handler_may_close_the_session():
    async with bare() as b:

        async def on_progress(_: object) -> None:
            await b.session.aclose("far enough")

        task = asyncio.create_task(b.session.request("m", on_progress=on_progress))
        token = (await b.wire.hear())["id"]
        params = {"progressToken": token, "progress": 1}
        await b.wire.say(method="notifications/progress", params=params)
        with pytest.raises(ConnectionClosed, match="far enough"):
            await task


async def test_a_handler_that_closes_while_it_is_being_closed_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(session_module, "_GRACE", 30)
    sessions: list[Session] = []

    async def serve(request: wire.Request) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            await sessions[0].aclose("from inside")
        return b"{}"

    async with bare(serve) as b:
        sessions.append(b.session)
        await b.wire.say(id=1, method="m")
        await turns()
        async with asyncio.timeout(10):
            await b.session.aclose("from outside")
        assert b.log.closed == ["from outside"]


async def test_closing_in_the_callback_for_the_close_is_fine():
    near, far = memory_pair()
    closing: list[asyncio.Task[None]] = []
    session = Session(
        near,
        on_request=until_cancelled,
        on_notification=lambda notice: None,
        on_closed=lambda reason: closing.append(asyncio.ensure_future(session.aclose())),
    )
    async with session:
        await far.aclose()
        await closing[0]
    assert len(closing) == 1


async def test_a_callback_for_the_close_that_raises_is_reported():
    near, _ = memory_pair()
    problems: list[BaseException] = []

    def on_closed(reason: str) -> None:
        raise ValueError(reason)

    async with Session(
        near,
        on_request=until_cancelled,
        on_notification=lambda notice: None,
        on_error=problems.append,
        on_closed=on_closed,
    ):
        pass
    assert [str(problem) for problem in problems] == ["closed by this side"]


# --- by the other side -----------------------------------------------------------------------


async def test_when_the_other_side_closes_handlers_stop_and_requests_end():
    stopped = asyncio.Event()

    async def serve(request: wire.Request) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return b"{}"

    async with bare(serve) as b:
        await b.wire.say(id=1, method="m")
        request = asyncio.create_task(b.session.request("m"))
        await turns()
        await b.wire.channel.aclose()
        with pytest.raises(ConnectionClosed, match="the other side closed the channel"):
            await request
        await stopped.wait()
        assert b.session.closed
        assert b.log.closed == ["the other side closed the channel"]
        with pytest.raises(NotConnected):
            await b.session.request("m")


async def test_two_sessions_close_together_whoever_begins():
    for first, second in ((0, 1), (1, 0)):
        async with joined(until_cancelled) as sessions:
            request = asyncio.create_task(sessions[0].request("m"))
            await turns()
            closing = asyncio.create_task(sessions[first].aclose("over"))
            await sessions[second].wait_closed()
            await closing
            outcome = (await asyncio.gather(request, return_exceptions=True))[0]
            assert isinstance(outcome, Exception)


# --- channels that fail in other ways --------------------------------------------------------


class FailingChannel:
    """Fails with an error that is not ChannelClosed, at the place it is told."""

    def __init__(self, fails: str) -> None:
        self.fails = fails
        self.closed = asyncio.Event()

    async def send(self, data: bytes) -> None:
        if self.fails == "send":
            raise OSError("the disk is full")

    async def receive(self) -> bytes:
        if self.fails == "receive":
            raise RuntimeError("out of cheese")
        await self.closed.wait()
        raise ChannelClosed("closed")

    async def aclose(self) -> None:
        self.closed.set()
        if self.fails == "aclose":
            raise RuntimeError("will not close")


class FailingAtOnceChannel(FailingChannel):
    def send_nowait(self, data: bytes) -> bool:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: FailingChannel("send"), OSError),
        (lambda: FailingChannel("receive"), RuntimeError),
        (lambda: FailingAtOnceChannel(""), ZeroDivisionError),
    ],
    ids=["send", "receive", "send_nowait"],
)
async def test_a_channel_that_fails_ends_the_conversation_and_is_closed(
    make: Callable[[], FailingChannel], problem: type[Exception]
):
    channel = make()
    session, log = logged_session(channel, until_cancelled)
    async with session:
        with pytest.raises(ConnectionClosed, match="the channel failed"):
            await session.request("m")
        await channel.closed.wait()
        assert [type(problem) for problem in log.problems] == [problem]
        assert log.closed == ["the channel failed"]


async def test_a_channel_that_cannot_be_closed_says_so_to_whoever_closes():
    session, log = logged_session(FailingChannel("aclose"), until_cancelled)
    session.start()
    with pytest.raises(RuntimeError, match="will not close"):
        await session.aclose()
    assert log.closed == ["closed by this side"]
    await turns()


# --- every way a request may end, at once ----------------------------------------------------


async def answered(b: Bare, id: int, task: asyncio.Task[object]) -> None:
    await b.wire.say(id=id, result={})


async def refused(b: Bare, id: int, task: asyncio.Task[object]) -> None:
    await b.wire.say(id=id, error={"code": 1, "message": "no"})


async def cancelled(b: Bare, id: int, task: asyncio.Task[object]) -> None:
    task.cancel()


async def timed_out(b: Bare, id: int, task: asyncio.Task[object]) -> None:
    b.session._pending.entries[id].deadline = 0
    b.session._pending._expire()


async def cut(b: Bare, id: int, task: asyncio.Task[object]) -> None:
    await b.wire.channel.aclose()


async def closed(b: Bare, id: int, task: asyncio.Task[object]) -> None:
    b.session._finish("over")


Way = Callable[[Bare, int, asyncio.Task[object]], Awaitable[None]]
WAYS: list[Way] = [answered, refused, cancelled, timed_out, cut, closed]


@pytest.mark.parametrize("second", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("first", WAYS, ids=lambda way: way.__name__)
async def test_of_two_ends_that_come_at_once_one_counts(first: Way, second: Way):
    async with bare() as b:
        told: list[object] = []
        task = asyncio.create_task(b.session.request("m", on_progress=told.append))
        id = (await b.wire.hear())["id"]
        await first(b, id, task)
        with suppress(ChannelClosed, KeyError):  # the first may leave nothing for the second to end
            await second(b, id, task)
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(outcome, Exception | asyncio.CancelledError) or bytes(outcome) == b"{}"
        assert b.session.peer.outgoing == 0
        assert b.session._pending.entries == {}
        assert isinstance(outcome, expected_outcome(first, second))


def expected_outcome(first: Way, second: Way) -> type | tuple[type, ...]:
    outcomes: dict[Way, type] = {
        answered: Raw,
        refused: ProtocolError,
        cancelled: asyncio.CancelledError,
        timed_out: RequestTimeout,
        cut: ConnectionClosed,
        closed: ConnectionClosed,
    }
    # A caller that is cancelled before it has taken the outcome is cancelled: that is asyncio.
    return outcomes[cancelled] if second is cancelled else outcomes[first]
