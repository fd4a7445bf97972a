"""Redis is killed and started again: what is local goes on, the rest fails at once and recovers."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
import uvloop
from redis.asyncio import Redis

from tests.bus.workers import answer, calls, quick, until
from tests.redis_server import RedisServer, Wire
from transom.bus import Bus, Lease
from transom.errors import BusError, BusUnreachable, ConnectionClosed, LeaseLost, NotConnected

pytestmark = pytest.mark.processes


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as redis:
        yield redis


@pytest.fixture
async def here(server: RedisServer) -> AsyncGenerator[Bus]:
    async with quick(server.url) as bus:
        yield bus


@pytest.fixture
async def there(server: RedisServer) -> AsyncGenerator[Bus]:
    async with quick(server.url) as bus:
        bus.on_open("rpc", answer)
        yield bus


def ignore(_: object) -> None:
    pass


async def is_away(bus: Bus) -> bool:
    return bus.unreachable is not None


async def test_a_call_on_its_way_fails_at_once_and_later_ones_too_until_redis_is_back(
    server: RedisServer, here: Bus, there: Bus, capfd: pytest.CaptureFixture[str]
):
    renewed: asyncio.Queue[Lease] = asyncio.Queue()
    lease = await there.claim("x", ignore, renewed.put_nowait)
    assert lease is not None
    await lease.write({"a": b"1"})
    async with calls(await here.open("x", "rpc")) as session:
        waiting = asyncio.create_task(session.request("hang"))
        await session.request("echo")
        server.kill()
        with pytest.raises(ConnectionClosed, match="cannot be reached"):
            await waiting
    with pytest.raises(BusUnreachable, match="cannot be reached"):
        await here.open("x", "rpc")
    with pytest.raises(BusUnreachable):
        await here.claim("y", ignore)
    with pytest.raises(BusUnreachable):
        await here.records("x")
    await until(lambda: is_away(there), True)

    # What is local goes on.
    assert lease.held
    assert await there.claim("x", ignore) is lease
    async with calls(await there.open("x", "rpc")) as session:
        assert bytes(await session.request("echo", b'{"local":1}')) == b'{"local":1}'

    server.start()
    await until(lambda: is_away(here), False)
    async with asyncio.timeout(20):
        assert await renewed.get() is lease
    assert lease.held
    assert await here.claim("x", ignore) is None
    assert await here.records("x") == {}
    await lease.write({"a": b"2"})
    assert await here.records("x") == {"a": b"2"}
    async with calls(await here.open("x", "rpc")) as session:
        assert bytes(await session.request("echo", b'{"again":1}')) == b'{"again":1}'
    assert capfd.readouterr().out.count("hang") == 1


async def test_a_worker_that_lost_redis_ends_no_channel_that_was_opened_after_it_was_back(
    here: Bus, there: Bus, monkeypatch: pytest.MonkeyPatch
):
    reading = asyncio.Event()
    assert await there.claim("x", ignore) is not None
    async with calls(await here.open("x", "rpc")) as before:
        await before.request("echo")
        monkeypatch.setattr(here._channels, "_ensure_renewed", reading.wait)  # behind by that
        there._channels.end_all(BusError("Redis cannot be reached"))
        there._channels.reset_peers()
        async with calls(await here.open("x", "rpc")) as after:
            answer = asyncio.create_task(after.request("echo", b'{"n":1}'))
            reading.set()
            assert bytes(await answer) == b'{"n":1}'
            with pytest.raises((ConnectionClosed, NotConnected)):
                await before.request("echo")


async def test_nothing_runs_twice_while_redis_comes_and_goes(
    server: RedisServer, here: Bus, there: Bus
):
    """Each call ends once: with its result, or with an error and at most one effect."""
    effects: list[int] = []
    assert await there.claim("x", ignore) is not None

    async def count(name: str, hello: bytes, channel: object) -> None:
        effects.append(int(hello))

    there.on_open("count", count)
    results: dict[int, str] = {}

    async def call(n: int) -> None:
        try:
            channel = await here.open("x", "count", b"%d" % n)
        except BusError as error:
            results[n] = type(error).__name__
        else:
            results[n] = "opened"
            await channel.aclose()

    stop = asyncio.Event()

    async def keep_calling() -> None:
        n = 0
        while not stop.is_set():
            await asyncio.gather(*(call(n + i) for i in range(20)))
            n += 20
            await asyncio.sleep(0.001)

    calling = asyncio.create_task(keep_calling())
    for _ in range(3):
        seen = len(effects)
        async with asyncio.timeout(30):
            while len(effects) < seen + 40:  # noqa: ASYNC110 - it is not about this worker
                await asyncio.sleep(0.01)
        server.kill()
        await until(lambda: is_away(here), True)
        server.start()
    stop.set()
    await calling
    assert len(effects) == len(set(effects))
    assert (
        {"opened", "BusUnreachable"}
        <= set(results.values())
        <= {*("opened", "BusUnreachable", "NoOwner", "OwnerGone")}
    )


async def test_who_is_first_after_redis_came_back_empty_takes_nothing_from_others(
    server: RedisServer, here: Bus, there: Bus, monkeypatch: pytest.MonkeyPatch
):
    lease = await there.claim("x", ignore)
    assert lease is not None
    late, beat = asyncio.Event(), there._beat

    async def beat_late() -> None:
        await late.wait()
        await beat()

    monkeypatch.setattr(there, "_beat", beat_late)
    server.kill()
    await until(lambda: is_away(here), True)
    server.start()
    await until(lambda: is_away(here), False)
    claim = asyncio.create_task(here.claim("x", ignore))
    done, _ = await asyncio.wait([claim], timeout=0.3)
    assert not done
    late.set()
    assert await claim is None
    assert lease.held
    assert await here.claim("y", ignore) is not None  # which nobody had


async def test_who_took_over_while_the_other_was_cut_off_keeps_it(server: RedisServer, here: Bus):
    lost: asyncio.Queue[Lease] = asyncio.Queue()
    async with Redis.from_url(server.url) as admin:
        account = ("ACL", "SETUSER", "other", "on", ">word", "~*", "+@all")
        await admin.execute_command(*account)
        async with quick(server.url.replace("//", "//other:word@"), 2.0) as other:
            old = await other.claim("x", lost.put_nowait)
            assert old is not None
            await admin.execute_command("ACL", "SETUSER", "other", "off")
            await admin.execute_command("CLIENT", "KILL", "USER", "other")
            await until(lambda: is_away(other), True)
            await until(lambda: admin.exists(f"transom:alive:{other.worker}"), 0)
            new = await here.claim("x", ignore)
            assert new is not None
            assert old.held
            await admin.execute_command(*account)
            async with asyncio.timeout(20):
                assert await lost.get() is old
            assert new.held
            assert not old.held
            with pytest.raises(LeaseLost):
                await old.write({"a": b"1"})


async def test_a_redis_that_does_not_answer_is_as_one_that_is_away(
    server: RedisServer, here: Bus, there: Bus
):
    assert await there.claim("x", ignore) is not None
    session = calls(await here.open("x", "rpc"))
    async with session:
        waiting = asyncio.create_task(session.request("hang"))
        await session.request("echo")
        server.pause()
        try:
            with pytest.raises(ConnectionClosed, match="cannot be reached"):
                await waiting
            with pytest.raises(BusUnreachable):
                await here.open("x", "rpc")
        finally:
            server.resume()
    await until(lambda: is_away(here), False)
    await until(lambda: is_away(there), False)
    async with asyncio.timeout(20):
        while await there.claim("x", ignore) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    async with calls(await here.open("x", "rpc")) as session:
        assert bytes(await session.request("echo", b'{"again":1}')) == b'{"again":1}'


async def test_a_lost_connection_alone_ends_nothing(server: RedisServer, here: Bus, there: Bus):
    assert await there.claim("x", ignore) is not None
    async with calls(await here.open("x", "rpc")) as session:
        await session.request("echo")
        async with Redis.from_url(server.url) as admin:
            await admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await asyncio.sleep(0.1)
        assert bytes(await session.request("echo", b'{"n":1}')) == b'{"n":1}'


def test_a_connection_that_is_closed_under_a_command_is_a_lost_one_with_uvloop_too(
    server: RedisServer,
):
    async def lose() -> None:
        async with asyncio.timeout(30), quick(server.url) as bus:
            assert await bus.claim("x", ignore) is not None
            commands: Any = bus._commands
            send = commands._client.connection_pool.connection_class.send_packed_command

            async def send_late(connection: Any, *given: Any, **options: Any) -> None:
                monkeypatch.undo()
                connection._writer.transport.abort()
                await asyncio.sleep(0.01)
                await send(connection, *given, **options)

            with pytest.MonkeyPatch.context() as monkeypatch:
                monkeypatch.setattr(
                    commands._client.connection_pool.connection_class,
                    "send_packed_command",
                    send_late,
                )
                with pytest.raises(BusUnreachable, match="cannot be reached"):
                    await bus.claim("y", ignore)
            assert await bus.claim("z", ignore) is not None

    uvloop.run(lose())


@pytest.mark.parametrize("answer", [b":what\r\n", b"$what\r\n", b"HTTP/1.1 400\r\n"])
async def test_an_answer_that_cannot_be_read_is_an_error_and_nobody_waits_for_ever(
    server: RedisServer, answer: bytes
):
    async with Wire(f"{server.url}/0").running() as wire, quick(wire.url, 60.0) as bus:
        async with asyncio.timeout(20):
            wire.garbled = answer
            with pytest.raises(BusUnreachable, match="cannot be reached"):
                await bus.records("x")
            await until(lambda: is_away(bus), False)
            assert await bus.claim("x", ignore) is not None
