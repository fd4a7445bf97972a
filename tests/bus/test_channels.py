import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.bus.workers import Opened, answer, calls, quick, until, worker
from transom.bus import Bus
from transom.channel import Channel
from transom.errors import (
    BusError,
    ChannelClosed,
    ConnectionClosed,
    MessageRefused,
    NoOwner,
    OwnerGone,
    RequestTimeout,
)


def ignore(_: object) -> None:
    pass


async def joined(opener: Bus, owner: Bus, name: str = "x") -> tuple[Any, Any]:
    """Both ends of a channel."""
    opened = Opened(owner)
    assert await owner.claim(name, ignore) is not None
    ours = await opener.open(name, "pipe", b"hello")
    _, _, theirs = await opened.next()
    return ours, theirs


async def ended(channel: Any) -> str:
    async with asyncio.timeout(20):
        while True:
            try:
                await channel.receive()
            except ChannelClosed as closed:
                return str(closed)


async def test_a_channel_reaches_who_has_the_name(here: Bus, there: Bus):
    opened = Opened(there)
    assert await there.claim("user:1", ignore) is not None
    channel = await here.open("user:1", "pipe", b"who I am")
    name, hello, theirs = await opened.next()
    assert (name, hello) == ("user:1", b"who I am")
    await channel.send(b"there")
    await theirs.send(b"and back")
    assert (await theirs.receive(), await channel.receive()) == (b"there", b"and back")


async def test_a_channel_to_oneself_needs_no_redis(here: Bus):
    ours, theirs = await joined(here, here)
    await ours.send(b"there")
    await theirs.send(b"and back")
    assert (await theirs.receive(), await ours.receive()) == (b"there", b"and back")


async def test_messages_keep_their_order_both_ways(here: Bus, there: Bus):
    ours, theirs = await joined(here, there)
    messages = [b"%d" % i * (i % 50) for i in range(3000)]

    async def send(channel: Any) -> None:
        for i, message in enumerate(messages):
            await channel.send(message)
            if not i % 100:
                await asyncio.sleep(0)

    async def receive(channel: Any) -> list[bytes]:
        return [await channel.receive() for _ in messages]

    _, _, first, second = await asyncio.gather(
        send(ours), send(theirs), receive(ours), receive(theirs)
    )
    assert first == second == messages


async def test_what_was_read_is_not_kept(here: Bus, there: Bus, redis: Redis):
    ours, theirs = await joined(here, there)
    for _ in range(100):
        await ours.send(bytes(1000))
        await theirs.receive()
    await until(lambda: redis.xlen(f"transom:inbox:{there.worker}"), 0)
    assert int(await redis.get(f"transom:size:{there.worker}") or 0) == 0


async def test_a_large_message_arrives_and_one_that_is_too_large_is_refused(here: Bus, there: Bus):
    ours, theirs = await joined(here, there)
    large = bytes(range(256)) * 16384
    await ours.send(large)
    assert await theirs.receive() == large
    with pytest.raises(MessageRefused, match="too large"):
        await ours.send(bytes(41 * 1024 * 1024))
    await ours.send(b"still there")
    assert await theirs.receive() == b"still there"


async def test_who_sends_waits_while_the_other_side_does_not_read(here: Bus, there: Bus):
    ours, theirs = await joined(here, there)
    sent = 0
    while ours.send_nowait(bytes(100_000)):
        sent += 1
    assert 0 < sent < 20
    waiting = asyncio.create_task(ours.send(b"last"))
    for _ in range(sent):
        assert len(await theirs.receive()) == 100_000
    assert await theirs.receive() == b"last"
    await waiting


async def test_what_was_sent_before_a_close_still_arrives(here: Bus, there: Bus):
    ours, theirs = await joined(here, there)
    for i in range(10):
        await ours.send(b"%d" % i)
    await ours.aclose("That was all")
    await ours.aclose()
    assert [await theirs.receive() for _ in range(10)] == [b"%d" % i for i in range(10)]
    assert await ended(theirs) == "That was all"
    assert theirs.error is None
    with pytest.raises(ChannelClosed):
        await theirs.send(b"too late")
    with pytest.raises(ChannelClosed):
        await ours.send(b"too late")


async def test_a_missing_message_ends_the_channel_on_both_sides(here: Bus, there: Bus):
    ours, theirs = await joined(here, there)
    ours._sent += 1
    await ours.send(b"after the gap")
    assert "lost" in await ended(theirs)
    assert "lost" in await ended(ours)
    assert isinstance(theirs.error, BusError)


async def test_nobody_there_is_said_at_once(here: Bus, there: Bus):
    with pytest.raises(NoOwner):
        await here.open("x", "pipe")
    lease = await there.claim("x", ignore)
    assert lease is not None
    await lease.release()
    with pytest.raises(NoOwner):
        await here.open("x", "pipe")


async def test_a_kind_that_nobody_serves_closes_the_channel(here: Bus, there: Bus):
    assert await there.claim("x", ignore) is not None
    assert await here.claim("y", ignore) is not None
    assert "closed" in await ended(await here.open("x", "unheard-of"))
    assert "closed" in await ended(await here.open("y", "unheard-of"))


async def test_a_handler_that_fails_closes_its_channel_without_its_words(
    here: Bus, there: Bus, caplog: pytest.LogCaptureFixture
):
    async def fails(name: str, hello: bytes, channel: Channel) -> None:
        raise ValueError("secret")

    there.on_open("pipe", fails)
    assert await there.claim("x", ignore) is not None
    assert "secret" not in await ended(await here.open("x", "pipe"))
    assert "secret" in caplog.text


async def test_a_lease_that_is_given_up_closes_its_channels(here: Bus, there: Bus):
    ours, theirs = await joined(here, there)
    local, _ = await joined(there, there, "x")
    other, _ = await joined(here, there, "y")
    lease = await there.claim("x", ignore)
    assert lease is not None
    await lease.release()
    assert "given it up" in await ended(ours)
    assert await ended(local)
    assert await ended(theirs)
    await other.send(b"still there")


async def test_a_full_inbox_ends_the_channel_that_would_have_filled_it(
    here: Bus, there: Bus, redis: Redis, monkeypatch: pytest.MonkeyPatch
):
    ours, theirs = await joined(here, there)
    other, others = await joined(here, there, "y")
    await redis.set(f"transom:size:{there.worker}", 10**9)
    await ours.send(b"no room")
    assert "inbox is full" in await ended(ours)
    with pytest.raises(BusError, match="inbox is full"):
        await here.open("x", "pipe")
    await redis.set(f"transom:size:{there.worker}", 0)
    assert "lost its connection" in await ended(theirs)
    await other.send(b"still there")
    assert await others.receive() == b"still there"


async def test_a_dead_worker_ends_the_channels_to_it(here: Bus, redis_url: str):
    async with worker(redis_url, "x") as process, calls(await here.open("x", "rpc")) as session:
        assert bytes(await session.request("echo", b'{"a":1}')) == b'{"a":1}'
        waiting = asyncio.create_task(session.request("hang"))
        assert process.stdout is not None
        assert await process.stdout.readline() == b"echo\n"
        assert await process.stdout.readline() == b"hang\n"
        process.kill()
        async with asyncio.timeout(20):
            with pytest.raises(ConnectionClosed, match="The worker that had it is gone"):
                await waiting
    with pytest.raises(OwnerGone):
        await here.open("x", "rpc")
    assert await here.claim("x", ignore) is not None


async def test_requests_over_a_channel_have_deadlines_and_can_be_cancelled(here: Bus, there: Bus):
    there.on_open("rpc", answer)
    assert await there.claim("x", ignore) is not None
    async with calls(await here.open("x", "rpc")) as session:
        with pytest.raises(RequestTimeout):
            await session.request("hang", timeout=0.05)
        waiting = asyncio.create_task(session.request("hang"))
        await session.request("echo")
        waiting.cancel()
        results = await asyncio.gather(
            *(session.request("echo", b'{"n":%d}' % i) for i in range(200))
        )
        assert [bytes(each) for each in results] == [b'{"n":%d}' % i for i in range(200)]


async def test_who_opens_and_goes_away_leaves_no_channel(here: Bus, there: Bus):
    opened = Opened(there)
    assert await there.claim("x", ignore) is not None
    opening = asyncio.create_task(here.open("x", "pipe"))
    await asyncio.sleep(0)
    opening.cancel()
    _, _, theirs = await opened.next()
    assert await ended(theirs)
    assert not here._channels._open


async def test_a_frame_to_a_channel_that_is_not_there_ends_it(here: Bus, there: Bus):
    ours, theirs = await joined(here, there)
    there._channels.forget(theirs)
    await ours.send(b"anybody?")
    assert "lost its connection" in await ended(ours)


async def test_rubbish_in_an_inbox_is_left_out(here: Bus, there: Bus, redis: Redis):
    ours, theirs = await joined(here, there)
    for rubbish in (b"", b"\xff", b"\x92\xa1x\x91\x94\xa1x\x00\x00\xc4\x00", b"\x92\xa1x\x90"):
        await redis.xadd(f"transom:inbox:{there.worker}", {"p": rubbish})
    await ours.send(b"still there")
    assert await theirs.receive() == b"still there"


async def test_a_worker_that_ends_closes_its_channels(here: Bus, redis_url: str):
    async with quick(redis_url) as other:
        ours, _ = await joined(here, other)
        Opened.let_go()
    assert await ended(ours)
    with pytest.raises(NoOwner):
        await here.open("x", "pipe")
