"""What holds for every Channel. See `channels.py` for how to add one."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from tests.contract.channels import CHANNELS, Ends
from tests.ids import plain
from transom.channel import Channel
from transom.errors import ChannelClosed, ProtocolError
from transom.protocol import wire
from transom.session import Session

pytestmark = pytest.mark.processes

CHUNK = b'"' + b"x" * 16384 + b'"'


@pytest.fixture(params=CHANNELS.values(), ids=CHANNELS)
async def ends(request: pytest.FixtureRequest) -> AsyncIterator[Ends]:
    async with request.param() as joined:
        yield joined


def numbered(count: int, *, start: int = 0) -> list[bytes]:
    return [b'{"n":%d}' % number for number in range(start, start + count)]


async def receive_until_closed(channel: Channel) -> list[bytes]:
    received: list[bytes] = []
    try:
        while True:
            received.append(await channel.receive())
    except ChannelClosed:
        return received


async def fill(channel: Channel) -> tuple[int, asyncio.Task[None]]:
    """Send until a send has to wait; how many came before it, and the one that waits."""
    for sent in range(4096):
        task = asyncio.create_task(channel.send(b'{"n":%d,"x":%b}' % (sent, CHUNK)))
        await asyncio.wait({task}, timeout=0.25)
        if not task.done():
            return sent, task
        task.result()
    pytest.fail("64 MB unread, and a send still does not wait")


async def send_for_ever(channel: Channel) -> None:
    while True:
        await channel.send(CHUNK)


def number_of(message: bytes) -> int:
    return json.loads(message)["n"]


# --- order and content -----------------------------------------------------------------------


async def test_it_is_a_channel(ends: Ends):
    assert all(isinstance(end, Channel) for end in ends)


async def test_messages_arrive_as_they_were_sent_in_order_both_ways(ends: Ends):
    left, right = ends
    there, back = numbered(10), numbered(10, start=100)
    for a, b in zip(there, back, strict=True):
        await left.send(a)
        await right.send(b)
    assert [await right.receive() for _ in there] == there
    assert [await left.receive() for _ in back] == back


async def test_a_receive_that_waits_gets_what_is_sent_later(ends: Ends):
    left, right = ends
    waiting = asyncio.create_task(right.receive())
    await asyncio.sleep(0)
    await left.send(b'{"a":1}')
    assert await waiting == b'{"a":1}'


@pytest.mark.parametrize(
    "value",
    [{}, {"a": "line\nbreak\r\n\u2028"}, {"é": "☃ \U0001f30a \0"}, {"deep": [[[[{}]]]]}],
    ids=plain,
)
@pytest.mark.parametrize("indent", [None, 2], ids=["compact", "indented"])
async def test_any_json_arrives_with_the_same_meaning(
    ends: Ends, value: object, indent: int | None
):
    left, right = ends
    sent = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    await left.send(sent)
    await left.send(b'{"next":1}')
    assert json.loads(await right.receive()) == value
    assert await right.receive() == b'{"next":1}'


async def test_a_large_message_arrives_whole(ends: Ends):
    left, right = ends
    large = b'{"x":"' + b"y" * 4_000_000 + b'"}'
    sending = asyncio.gather(left.send(large), left.send(b"{}"))
    assert await right.receive() == large
    assert await right.receive() == b"{}"
    await sending


async def test_concurrent_senders_lose_nothing_and_keep_their_own_order(ends: Ends):
    left, right = ends

    async def sender(name: int) -> None:
        for number in range(50):
            await left.send(b'{"s":%d,"n":%d}' % (name, number))

    senders = [asyncio.create_task(sender(name)) for name in range(8)]
    received = [json.loads(await right.receive()) for _ in range(400)]
    await asyncio.gather(*senders)
    for name in range(8):
        assert [m["n"] for m in received if m["s"] == name] == list(range(50))


async def test_a_receive_that_is_cancelled_loses_nothing(ends: Ends):
    left, right = ends
    waiting = asyncio.create_task(right.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    messages = numbered(3)
    for message in messages:
        await left.send(message)
    assert [await right.receive() for _ in messages] == messages


async def test_a_receive_cancelled_as_its_message_arrives_leaves_it_for_the_next(ends: Ends):
    left, right = ends
    for message in numbered(20):
        waiting = asyncio.create_task(right.receive())
        await asyncio.sleep(0)
        await left.send(message)
        waiting.cancel()
        try:
            received = await waiting
        except asyncio.CancelledError:
            received = await right.receive()
        assert received == message


# --- closing ---------------------------------------------------------------------------------


async def test_what_was_sent_before_close_still_arrives_and_then_it_is_over(ends: Ends):
    left, right = ends
    messages = numbered(10)
    for message in messages:
        await left.send(message)
    await left.aclose()
    assert await receive_until_closed(right) == messages
    for _ in range(2):
        with pytest.raises(ChannelClosed):
            await right.receive()


@pytest.mark.parametrize("closer", [0, 1], ids=["this end", "the other end"])
async def test_closing_ends_a_receive_that_waits(ends: Ends, closer: int):
    waiting = asyncio.create_task(ends[0].receive())
    await asyncio.sleep(0)
    await ends[closer].aclose()
    with pytest.raises(ChannelClosed):
        await waiting


async def test_after_closing_this_end_neither_sends_nor_receives(ends: Ends):
    left, right = ends
    for message in numbered(3):
        await right.send(message)
    assert await left.receive() == b'{"n":0}'
    await left.aclose()
    for _ in range(2):
        with pytest.raises(ChannelClosed):
            await left.send(b"{}")
        with pytest.raises(ChannelClosed):
            await left.receive()


async def test_sending_to_an_end_that_has_closed_fails_before_long(ends: Ends):
    left, right = ends
    await right.aclose()
    with pytest.raises(ChannelClosed):
        await send_for_ever(left)


async def test_closing_twice_at_once_and_from_both_ends_is_fine(ends: Ends):
    left, right = ends
    await asyncio.gather(left.aclose(), right.aclose(), left.aclose(), right.aclose())
    await left.aclose()
    with pytest.raises(ChannelClosed):
        await left.receive()
    with pytest.raises(ChannelClosed):
        await right.receive()


async def test_closing_does_not_wait_for_an_other_end_that_never_reads(ends: Ends):
    left, _ = ends
    _, waiting = await fill(left)
    async with asyncio.timeout(20):
        await left.aclose()
    with pytest.raises(ChannelClosed):
        await waiting


async def test_what_arrives_after_this_end_has_closed_is_ignored(ends: Ends):
    left, right = ends
    waiting = asyncio.create_task(left.receive())
    await asyncio.sleep(0)
    await left.aclose()
    with pytest.raises(ChannelClosed):
        await waiting
    problems: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    with pytest.raises(ChannelClosed):
        await send_for_ever(right)
    assert problems == []


# --- back-pressure ---------------------------------------------------------------------------


async def test_a_send_waits_while_the_pipe_is_full_and_goes_on_when_it_is_read(ends: Ends):
    left, right = ends
    before, waiting = await fill(left)
    received = [number_of(await right.receive()) for _ in range(before)]
    await waiting
    received.append(number_of(await right.receive()))
    assert received == list(range(before + 1))


async def test_a_send_that_is_cancelled_while_it_waits_takes_nothing_else_with_it(ends: Ends):
    left, right = ends
    before, first = await fill(left)
    second = asyncio.create_task(left.send(b'{"n":-2}'))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert [number_of(await right.receive()) for _ in range(before)] == list(range(before))
    await second
    await left.send(b'{"n":-3}')
    rest = [number_of(await right.receive())]
    while rest[-1] != -3:
        rest.append(number_of(await right.receive()))
    # A pipe that had begun to send the cancelled one has to finish it.
    assert rest in ([-2, -3], [before, -2, -3])


async def test_a_send_cancelled_as_its_place_comes_free_passes_the_place_on(ends: Ends):
    left, right = ends
    before, first = await fill(left)
    others = [asyncio.create_task(left.send(b'{"n":%d}' % -n)) for n in range(2, 6)]
    await asyncio.sleep(0)
    received = [number_of(await right.receive())]
    first.cancel()
    await asyncio.wait({first})
    await left_sent_all(right, others, received)
    assert [n for n in received if n >= 0][:before] == list(range(before))
    assert [n for n in received if n < 0] == [-2, -3, -4, -5]


async def left_sent_all(
    right: Channel, sends: list[asyncio.Task[None]], received: list[int]
) -> None:
    while received[-1] != -5:
        received.append(number_of(await right.receive()))
    await asyncio.gather(*sends)


@pytest.mark.parametrize("closer", [0, 1], ids=["this end", "the other end"])
async def test_closing_ends_a_send_that_waits(ends: Ends, closer: int):
    _, waiting = await fill(ends[0])
    await ends[closer].aclose()
    with pytest.raises(ChannelClosed):
        await waiting


# --- the shortcuts ---------------------------------------------------------------------------


async def test_send_nowait_keeps_the_order_and_says_when_it_would_have_to_wait(ends: Ends):
    left, right = ends
    send_nowait = getattr(left, "send_nowait", None)
    if send_nowait is None:
        return
    sent = 0
    while send_nowait(b'{"n":%d,"x":%b}' % (sent, CHUNK)):
        sent += 1
        assert sent < 4096
    last = asyncio.create_task(left.send(b'{"n":%d}' % sent))
    assert [number_of(await right.receive()) for _ in range(sent + 1)] == list(range(sent + 1))
    await last
    assert send_nowait(b"{}")
    await left.aclose()
    with pytest.raises(ChannelClosed):
        send_nowait(b"{}")


async def test_an_attached_receiver_gets_what_was_there_before_what_comes_and_the_end(ends: Ends):
    left, right = ends
    attach = getattr(right, "attach", None)
    if attach is None:
        return
    received: list[bytes | None] = []
    over = asyncio.Event()

    def receiver(message: bytes | None) -> None:
        received.append(message)
        if message is None:
            over.set()

    for message in numbered(3):
        await left.send(message)
    attach(receiver)
    for message in numbered(3, start=3):
        await left.send(message)
    await left.aclose()
    await over.wait()
    assert received == [*numbered(6), None]
    await right.aclose()
    assert received[6:] == [None]


# --- a session over it -----------------------------------------------------------------------


async def test_a_session_runs_over_it_in_both_directions(ends: Ends):
    left, right = ends
    heard: list[str] = []

    async def serve(request: wire.Request) -> bytes:
        if request.method == "no":
            raise ProtocolError(-5, "no")
        return b'{"method":"%b"}' % request.method.encode()

    async with (
        Session(left, on_request=serve, on_notification=lambda n: heard.append(n.method)) as a,
        Session(right, on_request=serve, on_notification=lambda n: heard.append(n.method)) as b,
    ):
        for session in (a, b):
            answers = await asyncio.gather(*(session.request(f"m{n}") for n in range(200)))
            assert [bytes(answer) for answer in answers] == [
                b'{"method":"m%d"}' % n for n in range(200)
            ]
            with pytest.raises(ProtocolError, match="no"):
                await session.request("no")
            await session.notify("hello")
            await session.request("after")
        assert heard == ["hello", "hello"]
    assert a.closed
    assert b.closed
