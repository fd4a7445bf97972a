"""Workers that were stopped and woken, half-open connections, and keys that vanish from Redis."""

import asyncio
import signal

import msgspec
import pytest
from redis.asyncio import Redis

from tests.bus.workers import Opened, answer, calls, quick, until, worker
from tests.redis_server import RedisServer, Wire
from transom.bus import Bus, Lease
from transom.errors import BusError, ConnectionClosed, LeaseLost


def ignore(_: object) -> None:
    pass


async def other_worker(redis: Redis, bus: Bus) -> str:
    """The id of the one worker besides that one."""
    [key] = [
        each async for each in redis.scan_iter("transom:alive:*") if bus.worker not in str(each)
    ]
    return key.decode().rpartition(":")[2]


@pytest.mark.processes
@pytest.mark.parametrize("kept", [True, False], ids=["taken", "taken and released"])
async def test_who_was_stopped_past_its_lease_executes_nothing_that_was_queued(
    kept: bool, redis_url: str, here: Bus, redis: Redis
):
    async with worker(redis_url, "x") as process, calls(await here.open("x", "rpc")) as session:
        assert process.stdout is not None
        await session.request("before")
        assert await process.stdout.readline() == b"before\n"
        stopped = await other_worker(redis, here)
        process.send_signal(signal.SIGSTOP)
        queued = [asyncio.create_task(session.request("queued")) for _ in range(5)]
        late = calls(await here.open("x", "rpc"))
        late.start()
        queued += [asyncio.create_task(late.request("queued")) for _ in range(5)]
        for each in queued:
            with pytest.raises(ConnectionClosed):
                await each
        await until(lambda: redis.exists(f"transom:alive:{stopped}"), 0)
        lease = await here.claim("x", ignore)
        assert lease is not None
        if not kept:
            await lease.release()
        process.send_signal(signal.SIGCONT)
        await until(lambda: redis.exists(f"transom:alive:{stopped}"), 1)
        await until(lambda: redis.xlen(f"transom:inbox:{stopped}"), 0)
        if not kept:  # it has it again, and serves what comes now
            async with calls(await here.open("x", "rpc")) as again:
                await again.request("after")
        process.kill()
        said = (await process.stdout.read()).split()
        assert said == ([] if kept else [b"after"])


async def test_after_a_gap_a_worker_that_has_lost_a_name_does_not_say_that_it_has_it(
    here: Bus, there: Bus, redis: Redis, monkeypatch: pytest.MonkeyPatch
):
    lease = await here.claim("x", ignore)
    assert lease is not None
    await redis.delete(f"transom:alive:{here.worker}")  # as if it had been stopped
    assert await there.claim("x", ignore) is not None
    monkeypatch.setattr(here, "_renewed_at", 0.0)
    await here.confirm()
    assert not lease.held
    assert await here.claim("x", ignore) is None


@pytest.mark.processes
async def test_a_worker_hears_again_after_its_connections_went_dead(here: Bus, redis_url: str):
    async with Wire(redis_url).running() as wire, quick(wire.url, 2.0) as there:
        there.on_open("rpc", answer)
        assert await there.claim("x", ignore) is not None

        async def is_answered() -> bool:
            try:
                async with calls(await here.open("x", "rpc")) as session:
                    return bytes(await session.request("echo", b'{"n":1}')) == b'{"n":1}'
            except (BusError, ConnectionClosed):  # it says that it had lost its connection
                return False

        assert await is_answered()
        wire.cut()
        await until(is_answered, True)


async def test_calls_to_a_worker_that_is_alive_and_deaf_end(here: Bus, redis_url: str):
    async with quick(redis_url, 2.0) as caller:
        opened = Opened(here)
        assert await here.claim("x", ignore) is not None
        assert here._channels._reading is not None
        here._channels._reading.cancel()
        channel = await caller.open("x", "pipe")
        async with asyncio.timeout(20):
            with pytest.raises(Exception, match="does not answer"):
                await channel.receive()
        assert opened.queue.empty()


HOSTILE = [
    {b"x": b"y"}, {b"p": b"\xc1"}, {b"p": b""}, {b"p": b"\x91" * 100_000}, {b"a": b"", b"b": b""},
    {b"p": msgspec.msgpack.encode(["s", [["c", 0, 0, b"\xc1"]]])},
    {b"p": msgspec.msgpack.encode(["s", [["c", 0, 99, b""]]])},
    {b"p": msgspec.msgpack.encode(["s", [["c", -1, 2, b"x"]]]), b"e": b"x"},
    {b"p": msgspec.msgpack.encode(["s", [["c", 0, 0, msgspec.msgpack.encode(["x", "k", b""])]]]),
     b"e": b"x"},
]  # fmt: skip


async def test_an_entry_of_the_inbox_that_no_worker_writes_is_dropped(
    here: Bus, there: Bus, redis: Redis
):
    opened = Opened(there)
    assert await there.claim("x", ignore) is not None
    for fields in HOSTILE:
        await redis.xadd(f"transom:inbox:{there.worker}", fields)
    channel = await here.open("x", "pipe", b"hello")
    _, hello, served = await opened.next()
    assert hello == b"hello"
    for fields in HOSTILE:
        await redis.xadd(f"transom:inbox:{there.worker}", fields)
    await channel.send(b"one")
    assert await served.receive() == b"one"
    await until(lambda: redis.xlen(f"transom:inbox:{there.worker}"), 0)


async def test_a_write_finds_out_that_another_worker_has_it(here: Bus, there: Bus, redis: Redis):
    lost: asyncio.Queue[Lease] = asyncio.Queue()
    lease = await here.claim("x", lost.put_nowait)
    assert lease is not None
    [key] = [each async for each in redis.scan_iter("transom:lease:*")]
    await redis.delete(key)  # as if it had been evicted
    assert await there.claim("x", ignore) is not None
    with pytest.raises(LeaseLost):
        await lease.write({"a": b"1"})
    assert not lease.held
    assert await lost.get() is lease
    assert await here.claim("x", ignore) is None


async def test_a_write_claims_again_what_has_vanished(here: Bus, there: Bus, redis: Redis):
    renewed: asyncio.Queue[Lease] = asyncio.Queue()
    lease = await here.claim("x", ignore, renewed.put_nowait)
    assert lease is not None
    [key] = [each async for each in redis.scan_iter("transom:lease:*")]
    await redis.delete(key)
    await lease.write({"a": b"1"})
    assert lease.held
    assert await renewed.get() is lease
    assert await there.records("x") == {"a": b"1"}
    assert await there.claim("x", ignore) is None


@pytest.mark.processes
async def test_a_redis_that_evicts_keys_is_refused():
    with RedisServer() as server:
        async with Redis.from_url(server.url) as admin:
            await admin.config_set("maxmemory-policy", "volatile-lru")
            async with Bus(server.url):
                pass  # without a limit, nothing is evicted
            await admin.config_set("maxmemory", "100mb")
            with pytest.raises(BusError, match=r"volatile-lru.*noeviction"):
                async with Bus(server.url):
                    pass
            account = "ACL SETUSER other on >word ~* +@all -info"
            await admin.execute_command(*account.split())
        async with Bus(server.url.replace("//", "//other:word@")):
            pass  # it cannot be known
