"""A request of ours ends exactly once: answer, error, timeout, cancellation, or close."""

import asyncio
import json
from collections.abc import Awaitable

import pytest

from tests.joined import Clock, bare, joined, logged_session, turns
from transom.channel import memory_pair
from transom.errors import (
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    ProtocolError,
    RequestTimeout,
)
from transom.protocol import wire
from transom.protocol.peer import Peer, Progress
from transom.session import Session


async def ended(task: asyncio.Task[object]) -> BaseException:
    """How the task failed."""
    await asyncio.wait({task})
    error = task.exception()
    assert error is not None
    return error


# --- answers ---------------------------------------------------------------------------------


async def test_the_answer_is_the_result_as_it_came():
    async with joined(lambda request: b'{"a": [1]}') as (asking, _):
        assert bytes(await asking.request("m")) == b'{"a": [1]}'


async def test_params_and_meta_arrive():
    seen: list[tuple[str, object]] = []

    def serve(request: wire.Request) -> bytes:
        seen.append((request.method, json.loads(bytes(request.params))))
        return b"{}"

    async with joined(serve) as (asking, _):
        await asking.request("m", b'{"a":1}', meta={"k": 2})
    assert seen == [("m", {"a": 1, "_meta": {"k": 2}})]


async def test_an_error_is_raised_with_its_code_text_and_data():
    def serve(request: wire.Request) -> bytes:
        raise ProtocolError(-7, "not today", {"why": 1})

    async with joined(serve) as (asking, _):
        with pytest.raises(ProtocolError) as caught:
            await asking.request("m")
    assert (caught.value.code, caught.value.message) == (-7, "not today")
    assert caught.value.data == {"why": 1}


async def test_answers_reach_their_own_request_in_whatever_order_they_come():
    async with bare() as b:
        tasks = [asyncio.create_task(b.session.request("m")) for _ in range(5)]
        ids = [(await b.wire.hear())["id"] for _ in tasks]
        for id in reversed(ids):
            await b.wire.say(id=id, result={"for": id})
        results = [json.loads(bytes(result)) for result in await asyncio.gather(*tasks)]
        assert results == [{"for": id} for id in ids]


async def test_a_second_answer_is_reported_and_changes_nothing():
    async with bare() as b:
        task = asyncio.create_task(b.session.request("m"))
        id = (await b.wire.hear())["id"]
        await b.wire.say(id=id, result={"n": 1})
        await b.wire.say(id=id, result={"n": 2})
        await b.wire.say(id=id, error={"code": 1, "message": "no"})
        assert bytes(await task) == b'{"n":1}'
        assert [complaint.split(":")[0] for complaint in b.log.complaints] == [
            "Received a response for an unknown request",
            "Received an error for an unknown request",
        ]


async def test_both_sides_may_ask_at_once_and_from_inside_a_handler():
    sessions: list[Session] = []

    async def serve(request: wire.Request) -> bytes:
        depth = int(request.method)
        if depth == 0:
            return b'{"bottom":true}'
        return bytes(await sessions[depth % 2].request(str(depth - 1)))

    sessions.extend(logged_session(channel, serve)[0] for channel in memory_pair())
    async with sessions[0], sessions[1]:
        answers = await asyncio.gather(*(s.request("7") for s in sessions))
    assert [bytes(answer) for answer in answers] == [b'{"bottom":true}'] * 2


async def test_an_answer_that_must_be_refused_ends_its_request_with_an_error():
    async with bare(peer=Peer(max_bytes=1000)) as b:
        task = asyncio.create_task(b.session.request("tools/call"))
        other = asyncio.create_task(b.session.request("other"))
        id = (await b.wire.hear())["id"]
        await b.wire.say(id=id, result={"id": 1, "x": "y" * 2000})
        error = await ended(task)
        assert isinstance(error, InvalidResult)
        assert str(error).startswith("tools/call: The answer was refused: Message of 20")
        assert len(b.log.problems) == 1
        await b.wire.say(id=(await b.wire.hear())["id"], result={})
        await other


# --- timeouts --------------------------------------------------------------------------------


async def test_a_request_that_is_never_answered_times_out_and_the_other_side_is_told():
    async with bare(timeout=30) as b:
        clock = Clock()
        task = asyncio.create_task(b.session.request("slow"))
        id = (await b.wire.hear())["id"]
        await clock.advance(29)
        assert not task.done()
        await clock.advance(2)
        error = await ended(task)
        assert isinstance(error, RequestTimeout)
        assert str(error) == "slow: no answer within 30 s"
        notice = await b.wire.hear()
        assert notice["method"] == "notifications/cancelled"
        assert notice["params"] == {"requestId": id, "reason": "Request timed out"}
        assert b.session.peer.outgoing == 0


async def test_a_late_answer_is_reported_and_nothing_more():
    async with bare(timeout=30) as b:
        clock = Clock()
        task = asyncio.create_task(b.session.request("slow"))
        id = (await b.wire.hear())["id"]
        await clock.advance(31)
        assert isinstance(await ended(task), RequestTimeout)
        await b.wire.say(id=id, result={})
        assert b.log.complaints == [f"Received a response for an unknown request: {id}"]


async def test_each_request_has_its_own_timeout_and_none_is_for_ever():
    async with bare(timeout=30) as b:
        clock = Clock()
        timeouts = {"own": 5, "zero": 0, "shorter": 2, "never": None}
        tasks = {
            name: asyncio.create_task(b.session.request(name, timeout=seconds))
            for name, seconds in timeouts.items()
        }
        tasks["session's"] = asyncio.create_task(b.session.request("session's"))
        order: list[str] = []
        for name, task in tasks.items():
            task.add_done_callback(lambda _, name=name: order.append(name))
        await turns()
        for _ in range(20):
            await clock.advance(2)
        timed_out = list(order)
        assert timed_out == ["zero", "shorter", "own", "session's"]
        await clock.advance(1e6)
        assert not tasks["never"].done()
    assert isinstance(await ended(tasks["never"]), ConnectionClosed)
    for name in timed_out:
        assert isinstance(await ended(tasks[name]), RequestTimeout)


async def test_one_timer_serves_all_requests(monkeypatch: pytest.MonkeyPatch):
    async with bare() as b:
        loop = asyncio.get_running_loop()
        timers: list[float] = []
        call_at = loop.call_at

        def counted(when: float, *args: object, **options: object) -> asyncio.TimerHandle:
            timers.append(when)
            return call_at(when, *args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "call_at", counted)
        tasks = [asyncio.create_task(b.session.request("m")) for _ in range(100)]
        await turns()
        assert len(timers) == 1
    for task in tasks:
        assert isinstance(await ended(task), ConnectionClosed)


async def test_a_request_times_out_even_when_the_other_side_reads_nothing():
    async with bare(capacity=1, timeout=30) as b:
        clock = Clock()
        tasks = [asyncio.create_task(b.session.request("m")) for _ in range(400)]
        await turns()
        await clock.advance(31)
        await turns()
        assert all(task.done() for task in tasks)
        assert all([isinstance(await ended(task), RequestTimeout) for task in tasks])


@pytest.mark.load
async def test_requests_to_a_side_that_reads_nothing_do_not_pile_up():
    async with bare(capacity=1, timeout=1) as b:
        clock = Clock()
        for _ in range(50):
            tasks = [asyncio.create_task(b.session.request("m")) for _ in range(100)]
            await turns()
            await clock.advance(2)
            assert all([isinstance(await ended(task), RequestTimeout) for task in tasks])
        assert len(b.session._outbox._queued) < 2000


# --- progress --------------------------------------------------------------------------------


async def test_progress_is_told_and_resets_the_timeout():
    async with bare(timeout=30) as b:
        clock = Clock()
        told: list[Progress] = []
        task = asyncio.create_task(b.session.request("m", on_progress=told.append))
        request = await b.wire.hear()
        token = request["params"]["_meta"]["progressToken"]
        for step in range(5):
            await clock.advance(29)
            await b.wire.say(
                method="notifications/progress",
                params={"progressToken": token, "progress": step, "total": 5, "message": "x"},
            )
        steps = [(each.id, each.progress, each.total, each.message) for each in told]
        assert steps == [(request["id"], step, 5, "x") for step in range(5)]
        assert not task.done()
        await clock.advance(31)
        assert isinstance(await ended(task), RequestTimeout)


async def test_async_progress_handlers_run_in_order_and_failures_are_reported():
    async with bare() as b:
        told: list[float] = []
        all_told = asyncio.Event()

        async def on_progress(notice: Progress) -> None:
            await asyncio.sleep(0)
            told.append(notice.progress)
            if notice.progress == 3:
                all_told.set()
            if notice.progress == 1:
                raise ValueError("one")

        task = asyncio.create_task(b.session.request("m", on_progress=on_progress))
        token = (await b.wire.hear())["id"]
        for step in range(4):
            params = {"progressToken": token, "progress": step}
            await b.wire.say(method="notifications/progress", params=params)
        await b.wire.say(id=token, result={})
        await task
        await all_told.wait()
        assert told == [0, 1, 2, 3]
        assert b.log.complaints == ["one"]


async def test_progress_after_the_end_is_reported_and_not_told():
    async with bare() as b:
        told: list[Progress] = []
        task = asyncio.create_task(b.session.request("m", on_progress=told.append))
        token = (await b.wire.hear())["id"]
        await b.wire.say(id=token, result={})
        await task
        params = {"progressToken": token, "progress": 1}
        await b.wire.say(method="notifications/progress", params=params)
        assert told == []
        assert len(b.log.problems) == 1


async def test_a_sync_progress_handler_that_raises_anything_is_reported():
    async with bare() as b:

        def on_progress(_: Progress) -> None:
            raise SystemExit(3)

        task = asyncio.create_task(b.session.request("m", on_progress=on_progress))
        token = (await b.wire.hear())["id"]
        params = {"progressToken": token, "progress": 1}
        await b.wire.say(method="notifications/progress", params=params)
        await b.wire.say(id=token, result={})
        await task
        assert [type(problem) for problem in b.log.problems] == [SystemExit]


# --- cancellation ----------------------------------------------------------------------------


async def test_a_cancelled_request_tells_the_other_side_and_ignores_its_answer():
    async with bare() as b:
        task = asyncio.create_task(b.session.request("m"))
        id = (await b.wire.hear())["id"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        notice = await b.wire.hear()
        assert notice["method"] == "notifications/cancelled"
        assert notice["params"]["requestId"] == id
        await b.wire.say(id=id, result={})
        assert len(b.log.problems) == 1
        assert b.session.peer.outgoing == 0


def test_what_still_waits_when_its_event_loop_is_closed_is_cancelled():
    async def leave_it_waiting() -> asyncio.Task[object]:
        near, _ = memory_pair()
        session, _ = logged_session(near, lambda _: b"{}")
        session.start()

        async def wait() -> object:
            return await session.send("m")

        task = asyncio.create_task(wait())
        await turns()
        session._outbox._send_nowait = None  # as over a socket, where a task writes
        return task

    with asyncio.Runner() as runner:
        task = runner.run(leave_it_waiting())
    assert task.cancelled()


async def test_a_request_cancelled_as_its_answer_arrives_ends_once():
    async with bare() as b:
        for answer in ({"result": {}}, {"error": {"code": 1, "message": "no"}}):
            task = asyncio.create_task(b.session.request("m"))
            id = (await b.wire.hear())["id"]
            await b.wire.say(id=id, **answer)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert b.wire.said() == []
        assert b.log.problems == []


async def test_cancelling_reaches_the_handler_of_the_other_side():
    started, stopped = asyncio.Event(), asyncio.Event()

    async def serve(request: wire.Request) -> bytes:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return b"{}"

    async with joined(serve) as (asking, serving):
        task = asyncio.create_task(asking.request("m"))
        await started.wait()
        task.cancel()
        await stopped.wait()
        await turns()
        assert serving.peer.incoming == 0


# --- in-flight cap ---------------------------------------------------------------------------


async def test_no_more_than_the_cap_are_in_flight_and_the_rest_go_first_come_first_served():
    alive = most = 0
    order: list[int] = []
    gate = asyncio.Semaphore(0)

    async def serve(request: wire.Request) -> bytes:
        nonlocal alive, most
        order.append(int(request.method))
        alive += 1
        most = max(most, alive)
        await gate.acquire()
        alive -= 1
        return b"{}"

    async with joined(serve, peer=Peer(max_outgoing=3)) as (asking, _):
        tasks = [asyncio.create_task(asking.request(str(n))) for n in range(20)]
        for _ in range(20):
            gate.release()
            await turns(3)
        await asyncio.gather(*tasks)
    assert most == 3
    assert order == list(range(20))


@pytest.mark.parametrize(("cap", "workers"), [(1, 2), (1, 5), (2, 3), (5, 8)])
async def test_one_that_asks_again_at_once_does_not_pass_those_who_wait(cap: int, workers: int):
    asked: list[str] = []
    arrived: list[str] = []

    async def serve(request: wire.Request) -> bytes:
        arrived.append(request.method)
        await asyncio.sleep(0)
        return b"{}"

    async with joined(serve, peer=Peer(max_outgoing=cap)) as (asking, _):

        async def worker(name: int) -> None:
            for number in range(20):
                asked.append(f"{name}-{number}")
                await asking.request(asked[-1])

        await asyncio.gather(*(worker(name) for name in range(workers)))
    assert sorted(arrived) == sorted(asked)
    # Two that have a place may go in either order, so by one place less than there are.
    overtaken = [arrived.index(request) - place for place, request in enumerate(asked)]
    assert max(overtaken) < cap


async def test_waiting_for_a_place_can_time_out_and_nothing_is_sent():
    async with bare(peer=Peer(max_outgoing=1)) as b:
        clock = Clock()
        first = asyncio.create_task(b.session.request("first", timeout=None))
        await b.wire.hear()
        second = asyncio.create_task(b.session.request("second", timeout=5))
        await turns()
        await clock.advance(6)
        error = await ended(second)
        assert isinstance(error, RequestTimeout)
        assert str(error) == "second: not sent within 5 s"
        assert b.wire.said() == []
        await b.wire.say(id=0, result={})
        await first
        third = asyncio.create_task(b.session.request("third"))
        assert (await b.wire.hear())["method"] == "third"
        await b.wire.say(id=1, result={})
        await third


@pytest.mark.parametrize("when", ["while it waits", "as its place comes free"])
async def test_one_that_is_cancelled_while_it_waits_passes_its_place_on(when: str):
    async with bare(peer=Peer(max_outgoing=1)) as b:
        names = ["first", "second", "third"]
        first, second, third = (asyncio.create_task(b.session.request(n)) for n in names)
        assert (await b.wire.hear())["method"] == "first"
        await turns()
        if when == "while it waits":
            second.cancel()
            await turns()
            await b.wire.say(id=0, result={})
        else:
            await b.wire.say(id=0, result={})
            # After the first has given its place away, before the second has noticed.
            asyncio.get_running_loop().call_soon(second.cancel)
        await first
        assert (await b.wire.hear())["method"] == "third"
        await b.wire.say(id=1, result={})
        await third
        with pytest.raises(asyncio.CancelledError):
            await second
        assert b.wire.said() == []


async def test_a_request_that_cannot_be_written_passes_its_place_on():
    async with bare(peer=Peer(max_outgoing=1)) as b:
        first = asyncio.create_task(b.session.request("first"))
        await b.wire.hear()
        bad = asyncio.create_task(b.session.request("bad", meta={"x": object()}))
        third = asyncio.create_task(b.session.request("third"))
        await turns()
        await b.wire.say(id=0, result={})
        await first
        assert isinstance(await ended(bad), TypeError)
        request = await b.wire.hear()
        assert request["method"] == "third"
        await b.wire.say(id=request["id"], result={})
        await third


# --- the end of the connection ---------------------------------------------------------------


@pytest.mark.load
@pytest.mark.parametrize("cut_by", ["the other side", "this side", "the channel"])
async def test_ten_thousand_requests_all_end_when_the_channel_is_cut(cut_by: str):
    near, far = memory_pair()
    session, log = logged_session(near, lambda request: b"{}")
    async with session:
        tasks = [asyncio.create_task(session.request("m")) for _ in range(10_000)]
        await turns(3)
        match cut_by:
            case "the other side":
                await far.aclose()
            case "this side":
                await session.aclose()
            case "the channel":
                await near.aclose()
        errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(error) for error in errors} == {ConnectionClosed}
    assert session.peer.outgoing == 0
    assert len(log.closed) == 1


async def test_the_error_says_what_was_asked_and_who_closed():
    async with bare() as b:
        task = asyncio.create_task(b.session.request("tools/call"))
        await b.wire.hear()
        await b.wire.channel.aclose()
        error = await ended(task)
        assert str(error) == "tools/call: connection closed: the other side closed the channel"
    async with bare() as b:
        task = asyncio.create_task(b.session.request("tools/call"))
        await b.wire.hear()
        await b.session.aclose("the user went home")
        assert str(await ended(task)) == "tools/call: connection closed: the user went home"


async def test_a_request_before_the_start_or_after_the_end_is_not_connected():
    near, far = memory_pair()
    session, _ = logged_session(near, lambda request: b"{}")
    with pytest.raises(NotConnected):
        await session.request("m")
    with pytest.raises(NotConnected):
        await session.notify("m")
    with pytest.raises(NotConnected):
        await session.wait_closed()
    async with session:
        assert not session.closed
    assert session.closed
    with pytest.raises(NotConnected):
        await session.request("m")
    with pytest.raises(NotConnected):
        await session.notify("m")
    with pytest.raises(NotConnected):
        session.notify_soon("m")
    await far.aclose()


async def test_a_loop_of_requests_answered_at_once_lets_others_have_their_turn():
    async with joined() as (asking, _):
        ticks = 0

        async def other() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(1000):
            await asking.request("m")
        task.cancel()
        assert ticks > 5


async def test_an_answer_that_comes_while_the_request_is_sent_is_not_missed():
    async with joined() as (asking, _):
        results: list[Awaitable[object]] = [asking.request("m") for _ in range(50)]
        assert len(await asyncio.gather(*results)) == 50
