import asyncio
import sys

import pytest
from redis.asyncio import Redis

from tests.bus.workers import quick, until
from transom.bus import Bus, Lease
from transom.errors import BusError, BusUnreachable, LeaseLost, UsageError

HOSTILE = ["", "a b\r\nDEL x", "{}*?[", "x" * 100_000, "\ud800", "transom:alive:", "\x00"]


def ignore(_: Lease) -> None:
    pass


class Calls:
    """Waits for what a lease calls."""

    def __init__(self) -> None:
        self.lost: asyncio.Queue[Lease] = asyncio.Queue()
        self.renewed: asyncio.Queue[Lease] = asyncio.Queue()


async def test_one_of_two_workers_gets_it(here: Bus, there: Bus):
    first, second = await asyncio.gather(here.claim("x", ignore), there.claim("x", ignore))
    assert (first is None) != (second is None)


async def test_a_worker_that_has_it_gets_the_same_lease_again(here: Bus):
    first, second = await asyncio.gather(here.claim("x", ignore), here.claim("x", ignore))
    assert first is second is await here.claim("x", ignore)


async def test_what_was_released_can_be_claimed_and_has_a_higher_epoch(here: Bus, there: Bus):
    first = await here.claim("x", ignore)
    assert first is not None
    assert await there.claim("x", ignore) is None
    await first.release()
    await first.release()
    second = await there.claim("x", ignore)
    assert second is not None
    assert second.epoch > first.epoch
    assert await here.claim("x", ignore) is None


async def test_a_lease_that_was_released_and_claimed_at_once_is_held(here: Bus, there: Bus):
    first = await here.claim("x", ignore)
    assert first is not None
    _, second = await asyncio.gather(first.release(), here.claim("x", ignore))
    assert second is not None
    assert second.held
    assert await there.claim("x", ignore) is None


async def test_a_cancelled_claim_leaves_nothing_that_cannot_be_released(here: Bus, there: Bus):
    claiming = asyncio.create_task(here.claim("x", ignore))
    await asyncio.sleep(0)
    claiming.cancel()
    lease = await here.claim("x", ignore)
    assert lease is not None
    await lease.release()
    assert await there.claim("x", ignore) is not None


async def test_a_worker_that_ends_gives_up_what_it_had(redis_url: str, here: Bus, redis: Redis):
    async with quick(redis_url) as other:
        assert await other.claim("x", ignore) is not None
        assert await here.claim("x", ignore) is None
    assert await here.claim("x", ignore) is not None
    keys = [key async for key in redis.scan_iter(f"*{other.worker}*")]
    assert keys == []


async def test_a_heartbeat_keeps_a_lease(here: Bus, there: Bus, redis: Redis):
    assert await here.claim("x", ignore) is not None
    key = f"transom:alive:{here.worker}"
    await redis.pexpire(key, 1000)

    async def is_renewed() -> bool:
        return await redis.pttl(key) > 1000

    await until(is_renewed, True)
    assert await there.claim("x", ignore) is None


async def test_who_was_away_for_too_long_loses_what_another_has_claimed(
    here: Bus, there: Bus, redis: Redis
):
    calls = Calls()
    lost = await here.claim("x", calls.lost.put_nowait)
    kept = await here.claim("y", calls.lost.put_nowait, calls.renewed.put_nowait)
    assert lost is not None
    assert kept is not None
    await redis.delete(f"transom:alive:{here.worker}")  # as if its heartbeat had not come
    taken = await there.claim("x", ignore)
    assert taken is not None
    async with asyncio.timeout(20):
        assert await calls.lost.get() is lost
    assert not lost.held
    assert kept.held
    assert calls.renewed.empty()
    with pytest.raises(LeaseLost, match="Another worker"):
        await lost.write({"a": b"1"})
    await kept.write({"a": b"1"})
    await lost.release()
    assert await here.claim("x", ignore) is None


async def test_a_dead_worker_keeps_nothing_for_long_when_the_clock_of_redis_is_set_back(
    here: Bus, redis_url: str, redis: Redis
):
    async with quick(redis_url, 1.0) as dead:
        assert await dead.claim("x", ignore) is not None
        [lease] = await redis.keys("transom:lease:*")
        alive = f"transom:alive:{dead.worker}"
        left = {key: await redis.get(key) for key in (lease, alive)}
    for key, value in left.items():  # as if it had been killed, and the clock set back then
        await redis.set(key, value, px=5 * 3600 * 1000)
    assert await here.claim("x", ignore) is None
    assert 0 < await redis.pttl(alive) <= 1000
    await redis.delete(alive)  # that time is over
    assert await here.claim("x", ignore) is not None


async def test_a_worker_goes_on_with_what_it_has_when_the_clock_of_redis_jumps(
    here: Bus, there: Bus, redis: Redis
):
    lost: list[Lease] = []
    lease = await here.claim("x", lost.append)
    assert lease is not None

    async def jump(hours: int) -> None:
        for key in await redis.keys("transom:*"):
            expiry = await redis.pttl(key)
            if expiry > 0:
                await redis.pexpire(key, expiry - hours * 3600 * 1000)

    async def is_held() -> bool:
        left = await redis.pttl(f"transom:alive:{here.worker}")
        return 0 < left <= 4000 and await redis.exists(*await redis.keys("transom:lease:*"), "-")

    for hours in (5, -5, 24 * 30, -24 * 30):
        await jump(hours)
        await until(is_held, True)
        assert await there.claim("x", ignore) is None
        await lease.write({"a": b"1"})
    assert lease.held
    assert not lost


async def test_only_who_has_it_now_can_write(here: Bus, there: Bus, redis: Redis):
    old = await here.claim("x", ignore)
    assert old is not None
    await old.write({"view-1": b"one", "view-2": b"two"})
    await redis.delete(f"transom:alive:{here.worker}")
    new = await there.claim("x", ignore)
    assert new is not None
    with pytest.raises(LeaseLost):
        await old.write({"view-1": b"late"})
    assert await there.records("x") == {"view-1": b"one", "view-2": b"two"}
    await new.write({"view-1": None, "view-3": b"\xff\x00"})
    assert await here.records("x") == {"view-2": b"two", "view-3": b"\xff\x00"}
    assert await here.records("y") == {}


async def test_records_are_bounded(here: Bus):
    lease = await here.claim("x", ignore)
    assert lease is not None
    await lease.write({"a": b"1"})
    with pytest.raises(BusError, match="At most 512 records"):
        await lease.write({str(i): b"" for i in range(512)})
    with pytest.raises(BusError, match="At most"):
        await lease.write({"b": bytes(5_000_000)})
    assert await here.records("x") == {"a": b"1"}
    await lease.write({"a": None, **{str(i): b"" for i in range(512)}})


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
async def test_any_text_is_a_name_and_no_part_of_a_key(
    name: str, here: Bus, there: Bus, redis: Redis
):
    lease = await here.claim(name, ignore)
    assert lease is not None
    assert await there.claim(name, ignore) is None
    await lease.write({"a": b"1"})
    assert await there.records(name) == {"a": b"1"}
    assert all([len(key) < 100 async for key in redis.scan_iter()])
    assert await there.claim(name + "x", ignore) is not None


async def test_a_lease_is_refreshed_before_redis_forgets_it(here: Bus, redis: Redis):
    lease = await here.claim("x", ignore)
    assert lease is not None
    [key] = [key async for key in redis.scan_iter("transom:lease:*")]
    await redis.expire(key, 10)
    lease.refresh_at = 0.0

    async def is_renewed() -> bool:
        return await redis.ttl(key) > 10

    await until(is_renewed, True)


async def test_a_script_that_redis_has_forgotten_is_loaded_again(here: Bus, redis: Redis):
    await redis.script_flush()
    assert await here.claim("x", ignore) is not None


async def test_a_redis_that_is_not_there_is_said_at_the_start():
    with pytest.raises(BusUnreachable, match="redis://127.0.0.1:1 cannot be reached"):
        async with Bus("redis://user:secret@127.0.0.1:1"):
            pass


@pytest.mark.parametrize(
    "url",
    ["", "localhost:6379", "http://localhost", "redis://", "redis://h:99999999", "redis://[::1",
     "redis://h/db?socket_timeout=x", "secret"],
)  # fmt: skip
def test_what_is_no_url_of_redis_is_refused(url: str):
    with pytest.raises(UsageError, match="URL") as refusal:
        Bus(url)
    assert "secret" not in str(refusal.value)


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(UsageError, match=r"pip install 'transom\[bus\]'"):
        Bus("redis://localhost")


async def test_a_wrong_password_is_told_without_it(shared_redis: object, redis_url: str):
    url = redis_url.replace("//", "//:secret@")
    with pytest.raises(BusUnreachable) as refusal:
        async with Bus(url):
            pass
    assert "secret" not in str(refusal.value)
