"""Back-pressure: whoever sends waits, the reader never does, and nothing piles up."""

import asyncio
import json
import socket

import pytest

from tests.joined import bare, logged_session, turns
from transom.channel import lines, memory_pair
from transom.errors import ChannelClosed, ConnectionClosed, NotConnected, ProtocolError
from transom.protocol import wire
from transom.protocol.peer import Peer
from transom.session import Session

BIG = b'{"x":"' + b"y" * 200_000 + b'"}'


async def test_notify_waits_while_the_other_side_does_not_read_and_keeps_the_order():
    async with bare(capacity=4) as b:
        told = 0

        async def tell() -> None:
            nonlocal told
            for number in range(1000):
                await b.session.notify(str(number))
                told += 1

        telling = asyncio.create_task(tell())
        await turns(50)
        stuck_at = told
        assert stuck_at < 300
        heard = [(await b.wire.hear())["method"] for _ in range(1000)]
        assert heard == [str(number) for number in range(1000)]
        await telling
        assert told == 1000


async def test_a_notify_that_is_cancelled_while_it_waits_sends_nothing():
    async with bare(capacity=1) as b:
        filled = 0
        while not b.session._outbox.full:
            b.session.notify_soon("fill")
            await turns(1)
            filled += 1
        tasks = [asyncio.create_task(b.session.notify(str(number))) for number in range(4)]
        await turns()
        tasks[0].cancel()
        tasks[2].cancel()
        heard = [(await b.wire.hear())["method"] for _ in range(filled + 2)]
        assert heard[filled:] == ["1", "3"]
        await asyncio.wait(tasks)


async def test_large_messages_count_by_their_size():
    async with bare(capacity=1) as b:
        tasks = [asyncio.create_task(b.session.notify("m", BIG)) for _ in range(100)]
        await turns()
        assert sum(task.done() for task in tasks) < 30
        for _ in tasks:
            await b.wire.hear()
        await asyncio.gather(*tasks)


async def test_a_notify_that_waits_when_the_connection_closes_is_not_connected():
    async with bare(capacity=1) as b:
        tasks = [asyncio.create_task(b.session.notify("m")) for _ in range(400)]
        await turns()
        assert not all(task.done() for task in tasks)
        await b.wire.channel.aclose()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {type(None), NotConnected}


async def test_a_peer_that_asks_and_never_reads_is_cut_off():
    async def serve(request: wire.Request) -> bytes:
        return b"{}"

    async with bare(serve, capacity=4, peer=Peer(max_incoming=8)) as b:
        asked = 0

        async def flood() -> None:
            nonlocal asked
            while True:
                await b.wire.say(id=asked, method="m")
                asked += 1
                if asked % 64 == 0:
                    await turns(2)

        with pytest.raises(ChannelClosed):
            await flood()
        assert await b.session.wait_closed() == "the other side sends requests but does not read"
        assert asked < 10_000
        assert b.session._incoming.handlers == {}
        assert b.session.peer.incoming == 0


async def test_a_peer_that_asks_and_never_reads_is_cut_off_over_a_socket():
    near, far = socket.socketpair()
    channel = lines(*await asyncio.open_connection(sock=near))
    session, log = logged_session(channel, lambda request: BIG, peer=Peer(max_incoming=8))
    _, writer = await asyncio.open_connection(sock=far)
    async with session:

        async def flood() -> None:
            for id in range(1_000_000):
                writer.write(wire.encode_request(id, "m", None) + b"\n")
                await writer.drain()

        with pytest.raises(ConnectionError):
            await flood()
        assert log.closed == ["the other side sends requests but does not read"]
    writer.close()


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
async def test_answers_wait_for_room_and_all_arrive_when_the_other_side_reads_again(later: bool):
    async def answer_later(request: wire.Request) -> bytes:
        await asyncio.sleep(0)
        return b'{"for":"%b"}' % request.method.encode()

    def answer(request: wire.Request) -> bytes:
        return b'{"for":"%b"}' % request.method.encode()

    async with bare(answer_later if later else answer, capacity=4) as b:
        for id in range(1000):
            await b.wire.say(id=id, method=str(id))
        await turns()
        assert b.session.peer.incoming > 500, "they are alive until there is room for their answer"
        assert len(b.session._outbox._queued) < 300
        answers = [await b.wire.hear() for _ in range(1000)]
        assert sorted(answer["id"] for answer in answers) == list(range(1000))
        assert all(answer["result"] == {"for": str(answer["id"])} for answer in answers)
        await turns()
        assert b.session.peer.incoming == 0
        assert b.log.problems == []


async def test_closing_while_answers_wait_for_room_leaves_nothing_behind():
    async with bare(lambda request: b"{}", capacity=1) as b:
        for id in range(500):
            await b.wire.say(id=id, method="m")
        await turns()
        assert len(b.session.background) > 0
        reading = asyncio.create_task(read_all(b.wire.channel))
        await b.session.aclose()
        await reading
        assert len(b.session.background) == 0
        assert b.session.peer.incoming == 0


async def read_all(channel: object) -> list[bytes]:
    received: list[bytes] = []
    try:
        while True:
            received.append(await channel.receive())  # type: ignore[attr-defined]
    except ChannelClosed:
        return received


async def test_two_sides_that_flood_each_other_over_a_socket_do_not_lock_up():
    near, far = socket.socketpair()
    sessions: list[Session] = []
    for sock in (near, far):
        channel = lines(*await asyncio.open_connection(sock=sock))

        async def serve(request: wire.Request) -> bytes:
            await asyncio.sleep(0)
            return bytes(request.params)

        sessions.append(logged_session(channel, serve)[0])
    body = b'{"x":"' + b"y" * 20_000 + b'"}'
    async with sessions[0], sessions[1]:
        results = await asyncio.gather(
            *(session.request("m", body) for session in sessions for _ in range(300))
        )
    assert len(results) == 600
    assert all(len(bytes(result)) == len(body) for result in results)


async def test_messages_leave_in_the_order_they_were_said_whoever_says_them():
    async with bare(capacity=2) as b:
        said: list[str] = []

        async def ask(name: str) -> None:
            said.append(name)
            await b.session.request(name)

        asking: list[asyncio.Task[None]] = []
        for number in range(40):
            if number % 2:
                asking.append(asyncio.create_task(ask(f"ask {number}")))
                await turns(1)
            else:
                said.append(f"tell {number}")
                b.session.notify_soon(f"tell {number}")
        heard = [await b.wire.hear() for _ in range(40)]
        assert [message["method"] for message in heard] == said
        for message in heard:
            if "id" in message:
                await b.wire.say(id=message["id"], result={})
        await asyncio.gather(*asking)


async def test_a_flood_over_a_plain_channel_lets_other_tasks_have_their_turn():
    class PlainChannel:
        """Has a message ready at all times, and no shortcuts."""

        def __init__(self) -> None:
            self.received = 0

        async def send(self, data: bytes) -> None: ...

        async def receive(self) -> bytes:
            self.received += 1
            if self.received > 10_000:
                raise ChannelClosed("all said")
            return b'{"jsonrpc":"2.0","method":"m"}'

        async def aclose(self) -> None: ...

    session, log = logged_session(PlainChannel(), lambda request: b"{}")
    ticks = 0
    async with session:
        while not session.closed:
            ticks += 1
            await asyncio.sleep(0)
    assert len(log.heard) == 10_000
    assert ticks > 100
    assert log.closed == ["all said"]


@pytest.mark.load
async def test_refusals_to_a_peer_that_reads_do_not_cut_it_off():
    async with bare(capacity=4, peer=Peer(max_incoming=1)) as b:
        for id in range(20_000):
            await b.wire.say(id=id, method="m", params=[])
            if id % 2 == 0:
                assert "error" in await b.wire.hear()
            else:
                assert (await b.wire.hear())["id"] == id
        assert b.log.closed == []


async def test_a_request_that_waits_for_room_ends_when_the_connection_does():
    async with bare(capacity=1) as b:
        tasks = [asyncio.create_task(b.session.request("m", BIG)) for _ in range(100)]
        await turns()
        assert b.session.peer.outgoing < 50
        await b.wire.channel.aclose()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {ConnectionClosed}


async def test_a_session_without_limits_of_time_still_answers_errors_in_order():
    def serve(request: wire.Request) -> bytes:
        number = json.loads(bytes(request.params))["n"]
        if number % 3 == 0:
            raise ProtocolError(number, "third")
        return b'{"n":%d}' % number

    near, far = memory_pair(capacity=3)
    asking, _ = logged_session(near, serve, timeout=None)
    serving, _ = logged_session(far, serve)
    async with asking, serving:
        outcomes = await asyncio.gather(
            *(asking.request("m", b'{"n":%d}' % number) for number in range(300)),
            return_exceptions=True,
        )
    for number, outcome in enumerate(outcomes):
        if number % 3 == 0:
            assert isinstance(outcome, ProtocolError)
            assert outcome.code == number
        else:
            assert bytes(outcome) == b'{"n":%d}' % number
