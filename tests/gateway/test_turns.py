"""One HTTP client's flood does not slow down the others."""

import asyncio

import pytest

from tests.gateway.chatty import chatty, in_memory
from tests.gateway.test_http import by_hand, gateway
from transom import fair_share
from transom.bus import Bus
from transom.gateway import turns
from transom.gateway.http_session import SESSION_HEADER
from transom.gateway.turns import ClientTurns


class Clock:
    """Two clocks that a test turns: the time, and how long this process has worked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.worked = 1000.0
        self.paused = 0.0
        monkeypatch.setattr(fair_share, "perf_counter", lambda: self.now)
        monkeypatch.setattr(turns, "thread_time", lambda: self.worked)
        monkeypatch.setattr(turns, "asyncio", self)

    Lock = asyncio.Lock

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.paused += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def paused(clock: Clock, turns: ClientTurns, client: str) -> float:
    """How long a request waits that makes this process work for a millisecond."""
    before = clock.paused
    await turns.wait(client)
    clock.work(0.001)
    return clock.paused - before


async def test_a_client_that_is_alone_never_waits(clock: Clock) -> None:
    queue = ClientTurns()
    assert sum([await paused(clock, queue, "eve") for _ in range(1000)]) == 0
    await paused(clock, queue, "ann")
    clock.now += 2
    assert sum([await paused(clock, queue, "eve") for _ in range(1000)]) == 0


async def test_a_flood_takes_its_share_while_others_are_there_and_they_do_not_wait(
    clock: Clock,
) -> None:
    queue = ClientTurns()
    began, spent, ann = clock.now, 0.0, 0.0
    while clock.now < began + 10:
        ann += await paused(clock, queue, "ann")
        for _ in range(10):
            await paused(clock, queue, "eve")
            spent += 0.001
    assert ann == 0
    assert spent == pytest.approx(2.5, rel=0.1)


async def test_what_is_worked_on_the_parts_of_a_request_is_charged_to_its_client(
    clock: Clock,
) -> None:
    async def receive() -> dict[str, str]:
        return {"type": "http.request"}

    queue = ClientTurns()
    began, spent, ann = clock.now, 0.0, 0.0
    while clock.now < began + 10:
        next_part = queue.charging(await queue.wait("eve"), receive)
        for _ in range(10):
            ann += await paused(clock, queue, "ann")  # between the parts of a large request
            await next_part()
            clock.work(0.005)
            spent += 0.005
    assert ann == 0
    assert spent == pytest.approx(2.5, rel=0.1)


async def test_clients_that_all_send_much_do_not_wait_for_each_other(clock: Clock) -> None:
    queue, turn = ClientTurns(), asyncio.sleep
    began = clock.now

    async def sleep(seconds: float) -> None:
        until = clock.now + seconds
        while clock.now < until:  # meanwhile the other one works
            clock.now += 0.0001
            await turn(0)

    async def send(client: str) -> None:
        while clock.now < began + 10:
            await paused(clock, queue, client)
            await turn(0)

    clock.sleep = sleep
    await asyncio.gather(send("eve"), send("ann"))
    assert clock.worked - 1000 > 9


async def test_requests_of_one_client_wait_one_after_the_other(clock: Clock) -> None:
    queue, order = ClientTurns(), list[int]()

    async def ask(number: int) -> None:
        await queue.wait("eve")
        order.append(number)

    for _ in range(100):
        await paused(clock, queue, "eve")
    await paused(clock, queue, "ann")
    await asyncio.gather(*(ask(number) for number in range(5)))
    assert order == list(range(5))
    assert clock.paused > 0


async def test_the_requests_of_a_session_are_its_own_and_those_of_strangers_are_one_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[str] = []

    async def wait(_: ClientTurns, client: str) -> None:
        waited.append(client)

    monkeypatch.setattr(ClientTurns, "wait", wait)
    async with gateway(in_memory(chatty())) as (url, served), by_hand(url) as (http, headers):
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        await http.post(url, headers=headers, json=listing)
        [session] = served._clients
        for strange in ("a", "b"):
            await http.post(url, headers={**headers, SESSION_HEADER: strange}, json=listing)
        await http.post(url, headers={"mcp-protocol-version": "2026-07-28"}, json=listing)
    stranger = "at 127.0.0.1"
    assert set(waited[1:-3]) == {session}
    assert [waited[0], *waited[-3:]] == [stranger, stranger, stranger, "principal:"]


async def test_a_session_that_another_replica_has_is_a_client_of_its_own(
    monkeypatch: pytest.MonkeyPatch, redis_url: str
) -> None:
    waited: list[str] = []

    async def wait(_: ClientTurns, client: str) -> None:
        waited.append(client)

    monkeypatch.setattr(ClientTurns, "wait", wait)
    async with (
        Bus(redis_url) as one,
        Bus(redis_url) as two,
        gateway(in_memory(chatty()), bus=one) as (url, served),
        gateway(in_memory(chatty()), bus=two) as (other, _),
        by_hand(url) as (http, headers),
    ):
        [session] = served._clients
        waited.clear()
        for _ in range(2):
            listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
            assert (await http.post(other, headers=headers, json=listing)).status_code == 200
    assert waited[:4] == ["at 127.0.0.1", session, session, session]
