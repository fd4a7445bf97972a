"""Applications that share a Redis, and whoever else writes to it."""

import msgspec
import pytest
from redis.asyncio import Redis

from tests.bus.workers import Opened
from transom.bus import Bus
from transom.errors import UsageError


def ignore(_: object) -> None:
    pass


SECRETS = ("a" * 32, "b" * 32)


async def test_applications_with_secrets_of_their_own_do_not_meet(redis_url: str):
    shop, chat = (Bus(redis_url, secret=secret) for secret in SECRETS)
    async with shop, chat, Bus(redis_url, secret=SECRETS[0]) as same, Bus(redis_url) as plain:
        lease = await shop.claim("user:1", ignore)
        assert lease is not None
        await lease.write({"a": b"1"})
        assert await same.claim("user:1", ignore) is None
        assert await same.records("user:1") == {"a": b"1"}
        for other in (chat, plain):
            assert await other.records("user:1") == {}
            assert await other.claim("user:1", ignore) is not None
        opened = [Opened(bus) for bus in (shop, chat)]
        await same.open("user:1", "pipe", b"hello")
        assert (await opened[0].next())[1] == b"hello"
        assert opened[1].queue.empty()
        Opened.let_go()


async def test_what_was_written_without_the_secret_is_refused_by_name(
    redis_url: str, redis: Redis, caplog: pytest.LogCaptureFixture
):
    async with Bus(redis_url, secret=SECRETS[0]) as bus, Bus(redis_url, secret=SECRETS[0]) as there:
        lease = await bus.claim("x", ignore)
        other = await bus.claim("y", ignore)
        assert lease is not None
        assert other is not None
        await lease.write({"a": b"1", "b": b"2", "c": b"3"})
        await other.write({"a": b"4"})
        keys = [key async for key in redis.scan_iter("transom:*:records:*")]
        [mine] = [key for key in keys if await redis.hlen(key) == 3]
        [theirs] = [key for key in keys if key != mine]
        await redis.hset(mine, "b", b"forged")
        await redis.hset(mine, "a", await redis.hget(theirs, "a"))  # of another name
        assert await there.records("x") == {"c": b"3"}
        assert "'b'" in caplog.text
        assert "'a'" in caplog.text


async def test_what_was_sent_without_the_secret_is_refused(
    redis_url: str, redis: Redis, caplog: pytest.LogCaptureFixture
):
    async with Bus(redis_url, secret=SECRETS[0]) as bus, Bus(redis_url, secret=SECRETS[0]) as there:
        assert await bus.claim("x", ignore) is not None
        opened = Opened(bus)
        [alive] = [key async for key in redis.scan_iter(f"transom:*:alive:{bus.worker}")]
        frame = ["c" * 16, 0, 0, msgspec.msgpack.encode(["x", "pipe", b"forged"])]
        packet = msgspec.msgpack.encode([there.worker, [frame]])
        epoch = str(bus.epoch_of("x"))
        for forged in (packet, bytes(16) + packet):
            await redis.xadd(alive.replace(b"alive", b"inbox"), {"p": forged, "e": epoch})
        await there.open("x", "pipe", b"true")
        assert (await opened.next())[1] == b"true"
        assert opened.queue.empty()
        assert "another secret" in caplog.text
        Opened.let_go()


@pytest.mark.parametrize("secret", ["", "short", "x" * 31])
def test_a_secret_that_can_be_guessed_is_refused(secret: str):
    with pytest.raises(UsageError, match="32 characters"):
        Bus("redis://localhost", secret=secret)
