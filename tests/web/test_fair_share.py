"""One user's pages take their share of a worker's time, and no more."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import thread_time

import pytest
from mcp.server.mcpserver import MCPServer
from websockets.exceptions import InvalidStatus

from tests.web.browser import URI, play
from tests.web.site import site
from transom import Host, fair_share
from transom.errors import ChannelClosed, UsageError
from transom.fair_share import FairShare, FairShares, PageTurns
from transom.server import Views
from transom.types import TextContent
from transom.web import UserLimits, WebViews

ENOUGH = 240.0

Answer = Callable[[], Awaitable[object]]


class Clock:
    """Two clocks that a test turns: the time, and how long this process has worked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.worked = 1000.0
        self.paused = 0.0
        self.on_turn: Callable[[], object] = lambda: None
        monkeypatch.setattr(fair_share, "perf_counter", lambda: self.now)
        monkeypatch.setattr(fair_share, "thread_time", lambda: self.worked)
        monkeypatch.setattr(fair_share, "asyncio", self)

    Lock = asyncio.Lock
    get_running_loop = staticmethod(asyncio.get_running_loop)

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds

    async def sleep(self, seconds: float) -> None:
        """Let others have a turn; what they work is part of the time."""
        until = self.now + seconds
        await asyncio.sleep(0)
        self.on_turn()
        if seconds:
            self.paused += seconds
            self.now = max(self.now, until)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class CallingPage:
    """A page that sends calls of a server without end: each begins as it is read."""

    def __init__(self, clock: Clock, share: FairShare) -> None:
        self._clock = clock
        self._turns = PageTurns(share)
        self.read = self.running = self.most_running = 0
        self.worked = 0.0
        self._tasks = set[asyncio.Task[None]]()

    async def send(self, calls: int, call: Callable[[], Awaitable[object]]) -> None:
        for _ in range(calls):
            if (pause := self._turns.next()) is not None:
                await pause
            self.read += 1
            self.work(0.0001)
            task = asyncio.create_task(self._run(call()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def work(self, seconds: float) -> None:
        self.worked += seconds
        self._clock.work(seconds)

    async def in_this_process(self) -> None:
        """A server's work on a call, which takes many turns."""
        for _ in range(20):
            self.work(0.0001)
            await asyncio.sleep(0)

    async def _run(self, call: Awaitable[object]) -> None:
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        await call
        self.running -= 1


@pytest.mark.parametrize("pages", [1, 3])
async def test_what_calls_of_a_server_in_this_process_work_is_charged_while_another_is_active(
    clock: Clock, pages: int
) -> None:
    shares = FairShares(0.25)
    eve = [CallingPage(clock, shares.of("eve")) for _ in range(pages)]

    clock.on_turn = shares.of("ann").note_message
    clock.on_turn()
    began = clock.now
    await asyncio.gather(*(page.send(600 // pages, page.in_this_process) for page in eve))
    assert [page.read for page in eve] == [600 // pages] * pages  # nothing is lost
    worked = sum(page.worked for page in eve) - 0.05  # a burst is free
    assert worked == pytest.approx((clock.now - began) / 4, rel=0.15)
    assert max(page.most_running for page in eve) <= 5


async def test_calls_at_once_of_a_user_who_is_alone_do_not_wait_for_each_other(
    clock: Clock,
) -> None:
    shares = FairShares(0.25)
    shares.of("ann").note_message()
    clock.now += 2  # ann is there no more
    eve = CallingPage(clock, shares.of("eve"))
    for _ in range(10):
        await eve.send(20, eve.in_this_process)
        while eve.running:
            await clock.sleep(0)
    assert clock.paused == 0


async def test_calls_that_wait_for_a_server_elsewhere_are_not_charged(
    clock: Clock,
) -> None:
    shares, answered = FairShares(0.25), asyncio.Event()
    eve = CallingPage(clock, shares.of("eve"))
    shares.of("ann").note_message()
    await eve.send(20, answered.wait)
    await clock.sleep(0)
    assert eve.running == 20
    assert clock.paused == 0
    clock.now += 10
    answered.set()
    await eve.send(20, answered.wait)
    assert clock.paused == 0


class Calls:
    """Calls of servers by the Views of one user."""

    def __init__(self, clock: Clock, share: FairShare) -> None:
        self._clock = clock
        self._share = share
        self.running = self.most_running = self.answered = 0

    def start(self, number: int, answer: Answer) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self._call(answer)) for _ in range(number)]

    async def _call(self, answer: Answer) -> None:
        async with self._share.call():
            self.running += 1
            self.most_running = max(self.running, self.most_running)
            try:
                await answer()
            finally:
                self.running -= 1
            self.answered += 1

    async def in_this_process(self) -> None:
        for turn in range(20):
            self._clock.work(0.00001 if turn % 2 else 0.0001)  # some turns are short
            await asyncio.sleep(0)


async def test_a_users_calls_of_servers_here_are_one_at_a_time_while_another_is_present(
    clock: Clock,
) -> None:
    shares = FairShares(0.25)
    shares.of("ann").note_message()
    clock.now += 5
    eve, ann = (Calls(clock, shares.of(user)) for user in ("eve", "ann"))
    began = clock.worked
    eves, anns = eve.start(8, eve.in_this_process), ann.start(1, ann.in_this_process)
    await asyncio.gather(*anns)
    assert clock.worked - began < 3 * 0.0011  # her own, and no more than that of eve beside it
    await asyncio.gather(*eves)
    assert (eve.answered, eve.most_running) == (8, 1)


async def test_all_calls_of_a_user_who_is_alone_run_at_once(clock: Clock) -> None:
    shares = FairShares(0.25)
    shares.of("ann").note_message()
    clock.now += 11
    shares.of("eve").note_message()
    eve = Calls(clock, shares.of("eve"))
    await asyncio.gather(*eve.start(8, eve.in_this_process))
    assert eve.most_running == 8


async def test_calls_that_wait_for_something_run_at_once(clock: Clock) -> None:
    shares, answered = FairShares(0.25), asyncio.Event()
    shares.of("ann").note_message()
    eve = Calls(clock, shares.of("eve"))
    calls = eve.start(20, answered.wait)
    for _ in range(100):
        await asyncio.sleep(0)
    assert eve.running == 20
    answered.set()
    await asyncio.gather(*calls)


async def test_no_call_waits_long_in_a_process_that_is_never_idle(clock: Clock) -> None:
    shares, answered = FairShares(0.25), asyncio.Event()
    shares.of("ann").note_message()
    eve = Calls(clock, shares.of("eve"))
    calls = eve.start(2, answered.wait)
    began = clock.worked
    while eve.running < 2:
        clock.work(0.001)
        await asyncio.sleep(0)
    assert clock.worked - began == pytest.approx(0.02, rel=0.2)
    answered.set()
    await asyncio.gather(*calls)


async def test_a_chain_of_calls_takes_no_more_than_the_share_while_another_is_active(
    clock: Clock,
) -> None:
    shares = FairShares(0.25)
    eve = Calls(clock, shares.of("eve"))
    began, worked = clock.now, clock.worked
    for _ in range(500):  # each answer starts the next one
        shares.of("ann").note_message()
        await asyncio.gather(*eve.start(1, eve.in_this_process))
    took = clock.now - began
    assert took * 0.25 <= clock.worked - worked <= (took + 0.2) * 0.25 + 0.002

    clock.now += 11  # ann has left
    paused = clock.paused
    for _ in range(500):
        await asyncio.gather(*eve.start(1, eve.in_this_process))
    assert clock.paused == paused


async def test_a_call_that_is_cancelled_while_its_user_is_in_debt_keeps_no_other_from_its_turn(
    clock: Clock,
) -> None:
    shares = FairShares(0.25)
    shares.of("eve").charge(1)
    shares.of("ann").note_message()
    eve = Calls(clock, shares.of("eve"))
    [cancelled] = eve.start(1, eve.in_this_process)
    await asyncio.sleep(0)
    assert shares.of("eve").calls.locked()
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert eve.running == 0
    await asyncio.gather(*eve.start(1, eve.in_this_process))
    assert eve.answered == 1


async def test_a_call_that_is_cancelled_or_fails_keeps_no_other_from_its_turn(clock: Clock) -> None:
    shares = FairShares(0.25)
    shares.of("ann").note_message()
    eve = Calls(clock, shares.of("eve"))

    async def fail() -> None:
        clock.work(0.001)
        await asyncio.sleep(0)
        raise UsageError("no")

    running, waiting = eve.start(2, eve.in_this_process)
    [failing] = eve.start(1, fail)
    last = eve.start(2, eve.in_this_process)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(*last)
    assert running.cancelled()
    assert waiting.cancelled()
    assert isinstance(failing.exception(), UsageError)
    assert (eve.answered, eve.most_running) == (2, 1)
    assert not shares.of("eve").calls.locked()


def test_a_burst_is_free_and_what_comes_after_it_takes_no_more_than_the_share(clock: Clock) -> None:
    share = FairShare(0.25)
    assert share.charge(0.05) == 0  # a quarter of the 0.2 s that a user saves up
    spent, until = 0.0, clock.now + 10
    while clock.now < until:
        spent += 0.001
        clock.now += share.charge(0.001)
    assert spent == pytest.approx(2.5, rel=0.01)
    clock.now += 60
    assert share.charge(0.05) == 0
    assert share.charge(0.05) > 0


def test_no_pause_is_long_whatever_the_worker_was_kept_from(clock: Clock) -> None:
    assert FairShare(0.25).charge(3600) == pytest.approx(1)


def test_a_user_who_is_over_the_limit_is_in_the_log_once_a_minute(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    shares = FairShares(0.25)
    for _ in range(100):
        clock.now += shares.of("eve").charge(0.1)
        shares.of("ann").charge(0.001)
    assert [record.args for record in caplog.records] == [("eve", 25)]
    clock.now += 60
    shares.of("eve").charge(1)
    assert len(caplog.records) == 2


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(UsageError, match="max_share"):
        WebViews(authenticate=lambda _: None, limits=UserLimits(max_share=share))


@pytest.mark.load
async def test_the_flood_of_one_user_waits_and_loses_nothing_and_another_user_does_not_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flood = 400  # more work than the user has saved up, however fast the machine
    async with (
        asyncio.timeout(ENOUGH),
        site(users=UserLimits(max_share=0.04, show_within=30)) as shop,
        shop.page("eve") as eve,
        shop.page("ann"),
    ):
        await play(await shop.views.host("eve"))  # type: ignore[arg-type]
        host = await shop.views.host("ann")
        view = await play(host)  # type: ignore[arg-type]
        [key] = eve.views
        for number in range(flood):
            request = {"jsonrpc": "2.0", "id": f"flood-{number}", "method": "ping"}
            await eve.send(key, json.dumps(request))
        sent = eve.sent
        calls = 0
        while eve.acknowledged < sent:
            assert (await host.call_tool(f"{view.id}__key", {})).text == view.id
            calls += 1
        assert calls > 10  # there was time for them
        assert eve.closed is None
    assert ("eve", 4) in [record.args for record in caplog.records]


@pytest.mark.parametrize("alone", [True, False])
async def test_large_messages_count_for_their_size_while_another_is_active(
    clock: Clock, alone: bool
) -> None:
    shares = FairShares(0.25)
    turns = PageTurns(shares.of("eve"))
    began = clock.now
    for _ in range(100):
        if not alone:
            shares.of("ann").note_message()
        if (pause := turns.next()) is not None:
            await pause
        turns.note_size(1_000_000)
        await clock.sleep(0)  # each comes when the last one was answered
    expected = 0 if alone else 100 * 0.01 / 0.25 - 0.2
    assert clock.now - began == pytest.approx(expected, rel=0.05)


async def test_pages_that_connect_again_and_again_wait_and_others_do_not(clock: Clock) -> None:
    shares = FairShares(0.25)
    for _ in range(20):  # as many as a user may have
        assert await shares.of("eve").connect()
    assert clock.paused == 0
    began = clock.now
    for _ in range(1000):
        assert await shares.of("eve").connect()
    assert clock.now - began == pytest.approx(8, rel=0.05)
    paused = clock.paused
    assert await shares.of("ann").connect()
    assert clock.paused == paused


async def test_a_hundred_connections_of_a_user_wait_and_no_more(clock: Clock) -> None:
    share = FairShares(0.25).of("eve")
    async with share.queue:
        waiting = [asyncio.create_task(share.connect()) for _ in range(101)]
        await asyncio.sleep(0)
        assert [task.result() for task in waiting if task.done()] == [False]
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        waiting.append(asyncio.create_task(share.connect()))
    results = await asyncio.gather(*waiting[1:])
    assert results.count(True) == 100


async def test_a_connection_for_which_there_is_no_room_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site() as shop:
        with monkeypatch.context() as patch:
            patch.setattr(fair_share, "_MAX_CONNECTING", 0)
            with pytest.raises(InvalidStatus, match="403"):
                await shop.page("eve").__aenter__()
        async with shop.page("eve"):
            pass


class BusyServer:
    """A server in this process whose tools take many turns, one for each user."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.most_running: Counter[str] = Counter()
        self.hosts: dict[str, Host] = {}

    async def connect(self, user: str, host: Host) -> None:
        self.hosts[user] = host
        views = Views()
        page = views.add(URI, html="<!doctype html><html><body></body></html>")

        @views.tool(opens=page, annotations={"readOnlyHint": True})
        def play(song: str = "") -> str:
            """Play a song."""
            return song

        @views.helper
        async def work() -> str:
            """Work in this process."""
            self.running[user] += 1
            self.most_running[user] = max(self.most_running[user], self.running[user])
            for _ in range(20):
                until = thread_time() + 0.0001
                while thread_time() < until:
                    pass
                await asyncio.sleep(0)
            self.running[user] -= 1
            return "done"

        @views.helper
        async def ask() -> str:
            """Have the View work."""
            [view] = host.views.values()
            return (await host.call_tool(f"{view.id}__work", {})).text

        await host.add_server("busy", MCPServer("busy", extensions=[views]))


async def test_a_view_that_calls_its_server_again_and_again_has_one_call_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fair_share, "_MOST", 60)  # a turn ends with its call, however busy it is
    server = BusyServer()
    async with (
        asyncio.timeout(ENOUGH),
        site(servers=server.connect) as shop,
        shop.page("eve") as eve,
        shop.page("ann") as ann,
    ):
        for user in ("eve", "ann"):
            await play(await shop.views.host(user))  # type: ignore[arg-type]
        [eves] = eve.apps.values()
        [anns] = ann.apps.values()

        async def chain() -> None:
            for _ in range(3):
                assert (await eves.call_server_tool("work")).content == [TextContent("done")]

        await asyncio.gather(*(chain() for _ in range(8)), anns.call_server_tool("work"))
        assert server.most_running == {"eve": 1, "ann": 1}


async def test_a_call_whose_answer_needs_another_call_of_the_same_view_ends() -> None:
    server = BusyServer()
    async with (
        asyncio.timeout(ENOUGH),
        site(servers=server.connect) as shop,
        shop.page("eve") as eve,
        shop.page("ann"),
    ):
        for user in ("eve", "ann"):
            await play(await shop.views.host(user))  # type: ignore[arg-type]
        [app] = eve.apps.values()

        async def work() -> str:
            return (await app.call_server_tool("work")).content[0].text  # type: ignore[union-attr]

        app.register_tool("work", work, annotations={"readOnlyHint": True})
        answers = await asyncio.gather(*(app.call_server_tool("ask") for _ in range(3)))
        assert [answer.content for answer in answers] == [[TextContent("done")]] * 3


@pytest.mark.load
async def test_pages_of_one_user_that_read_nothing_have_one_limit_together() -> None:
    limits = UserLimits(max_unread=50_000, max_share=1)
    async with (
        asyncio.timeout(ENOUGH),
        site(users=limits) as shop,
        shop.page("eve") as eve,
        shop.page("eve") as other,
        shop.page("ann"),
    ):
        await play(await shop.views.host("eve"))  # type: ignore[arg-type]
        view = await play(await shop.views.host("ann"))  # type: ignore[arg-type]
        [offered] = {message["view"] for message in eve.told if message["do"] == "offer"}
        for page in (eve, other):
            page.acknowledge = deaf  # type: ignore[method-assign]
        while not (closed := eve.closed or other.closed):
            with suppress(ChannelClosed):
                await eve.place(offered)
                await other.place(offered)
            await asyncio.sleep(0)
        assert closed[1] == "the pages of this user do not read what is sent to them"
        assert await view.call_tool("key") is not None


async def deaf(_: int) -> None:
    """Take what was sent, and do not say so."""
