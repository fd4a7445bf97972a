"""What is particular to each Channel; what all have in common is in `contract/`."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from transom import channel as channel_module
from transom.channel import Channel, lines, memory_pair
from transom.errors import ChannelClosed

# --- lines -----------------------------------------------------------------------------------


class Wired:
    """A lines channel, and the bare socket at its other end."""

    def __init__(
        self,
        channel: Channel,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far: socket.socket,
    ) -> None:
        self.channel = channel
        self.reader = reader
        self.writer = writer
        self.far = far

    async def write(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.far, data)

    async def read(self, size: int) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self.far, size)


@pytest.fixture
async def wired() -> AsyncIterator[Wired]:
    near, far = socket.socketpair()
    far.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=near)
    wired = Wired(lines(reader, writer, max_bytes=100), reader, writer, far)
    yield wired
    await wired.channel.aclose()
    far.close()


async def test_a_message_is_one_line(wired: Wired):
    await wired.channel.send(b'{"a":1}')
    assert await wired.read(100) == b'{"a":1}\n'


async def test_line_breaks_between_tokens_become_spaces(wired: Wired):
    await wired.channel.send(b'{\r\n  "a": "x\\ny"\n}')
    assert await wired.read(100) == b'{    "a": "x\\ny" }\n'


async def test_blank_lines_and_carriage_returns_are_no_messages(wired: Wired):
    await wired.write(b'\n\r\n  \n{"a":1}\r\n\n {"b":2} \n')
    assert await wired.channel.receive() == b'{"a":1}'
    assert await wired.channel.receive() == b'{"b":2}'


async def test_a_line_that_comes_in_pieces_is_one_message(wired: Wired):
    waiting = asyncio.create_task(wired.channel.receive())
    for byte in b'{"a":"\xc3\xa9"}\n':
        await wired.write(bytes([byte]))
        await asyncio.sleep(0)
    assert await waiting == '{"a":"é"}'.encode()


async def test_a_line_without_an_end_is_not_a_message(wired: Wired):
    await wired.write(b'{"a":1}\n{"b"')
    wired.far.close()
    assert await wired.channel.receive() == b'{"a":1}'
    with pytest.raises(ChannelClosed, match="The other side closed"):
        await wired.channel.receive()


async def test_a_line_may_have_max_bytes(wired: Wired):
    line = b'"' + b"x" * 98 + b'"'
    await wired.write(line + b"\n")
    assert await wired.channel.receive() == line


@pytest.mark.parametrize("ending", [b"\n", b"", b"\n{}\n"], ids=["ended", "not ended", "and more"])
async def test_a_line_that_is_too_long_closes_the_channel(wired: Wired, ending: bytes):
    await wired.write(b"{}\n" + b"x" * 101 + ending)
    assert await wired.channel.receive() == b"{}"
    with pytest.raises(ChannelClosed, match="longer than 100 bytes"):
        await wired.channel.receive()
    with pytest.raises(ChannelClosed):
        await wired.channel.receive()
    with pytest.raises(ChannelClosed):
        await wired.channel.send(b"{}")


async def test_what_is_sent_without_waiting_goes_out_in_order_and_in_few_writes(wired: Wired):
    sent = [b"%d" % number for number in range(100)]
    writes = 0
    write = wired.writer.write

    def count(data: bytes) -> None:
        nonlocal writes
        writes += 1
        write(data)

    wired.writer.write = count  # type: ignore[method-assign]
    for number in sent[:50]:
        assert wired.channel.send_nowait(number)  # type: ignore[attr-defined]
    await wired.channel.send(sent[50])
    for number in sent[51:]:
        assert wired.channel.send_nowait(number)  # type: ignore[attr-defined]
    await wired.channel.aclose()
    assert (await wired.read(1000)).split() == sent
    assert writes < 12


async def test_the_first_message_of_a_turn_goes_out_at_once(wired: Wired):
    for message in (b"1", b"2", b"3\n4"):
        wired.channel.send_nowait(message)  # type: ignore[attr-defined]
    assert wired.far.recv(10) == b"1\n"
    assert await wired.read(10) == b"2\n3 4\n"


async def test_messages_that_came_together_are_received_together(wired: Wired):
    await wired.write(b"1\n2\n\n3\n4")
    assert await wired.channel.receive_many() == [b"1", b"2", b"3"]  # type: ignore[attr-defined]
    await wired.write(b"\n" * 10_000 + b"5\n" * 70)
    assert await wired.channel.receive() == b"4"
    received: list[bytes] = []
    while len(received) < 70:
        received += await wired.channel.receive_many()  # type: ignore[attr-defined]
    assert received == [b"5"] * 70


async def test_a_connection_that_is_reset_is_a_closed_channel():
    listener = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    reader, writer = await asyncio.open_connection(sock=near)
    channel = lines(reader, writer)
    waiting = asyncio.create_task(channel.receive())
    await asyncio.sleep(0)
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    far.close()
    with pytest.raises(ChannelClosed, match="The channel broke"):
        await waiting
    with pytest.raises(ChannelClosed):
        await channel.send(b"{}")
    await channel.aclose()
    listener.close()


class ScriptedTransport:
    """A transport that lets a test say how much is still to be written, each time it is asked."""

    def __init__(self, left: list[int]) -> None:
        self.left = left
        self.gone = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        return self.left.pop(0)

    def abort(self) -> None:
        self.gone.set()


class ScriptedWriter:
    def __init__(self, transport: ScriptedTransport, *, fails: bool = False) -> None:
        self.transport = transport
        self.fails = fails

    def close(self) -> None: ...

    async def wait_closed(self) -> None:
        await self.transport.gone.wait()
        if self.fails:
            raise BrokenPipeError


@pytest.mark.parametrize("fails", [False, True], ids=["cleanly", "broken"])
async def test_closing_waits_while_the_other_side_reads_and_gives_up_when_it_stops(
    monkeypatch: pytest.MonkeyPatch, fails: bool
):
    monkeypatch.setattr(channel_module, "_STUCK", 0.001)
    transport = ScriptedTransport([100, 60, 30, 10, 10])
    channel = lines(asyncio.StreamReader(), ScriptedWriter(transport, fails=fails))  # type: ignore[arg-type]
    await channel.aclose()
    assert transport.gone.is_set()
    assert transport.left == []


# --- in memory -------------------------------------------------------------------------------


async def test_each_direction_holds_as_many_messages_as_it_was_made_for():
    left, right = memory_pair(capacity=3)
    for _ in range(3):
        await left.send(b"{}")
    waiting = asyncio.create_task(left.send(b"{}"))
    await asyncio.sleep(0)
    assert not waiting.done()
    await right.send(b"{}")
    await right.receive()
    await waiting


async def test_an_end_with_a_receiver_gets_its_messages_during_the_send():
    left, right = memory_pair(capacity=1)
    received: list[bytes | None] = []
    right.attach(received.append)  # type: ignore[attr-defined]
    for _ in range(5):
        await left.send(b"{}")
    assert received == [b"{}"] * 5


async def test_a_receiver_is_never_entered_twice_and_keeps_the_order():
    left, right = memory_pair()
    received: list[bytes | None] = []

    def receiver(message: bytes | None) -> None:
        received.append(message)
        if message == b"1":
            assert left.send_nowait(b"3")  # type: ignore[attr-defined]
            received.append(b"after the nested send")

    right.attach(receiver)  # type: ignore[attr-defined]
    await left.send(b"1")
    await left.send(b"4")
    assert received == [b"1", b"after the nested send", b"3", b"4"]


async def test_two_receivers_that_answer_each_other_for_ever_starve_nobody():
    left, right = memory_pair()
    rallies = 0

    def ping(message: bytes | None) -> None:
        nonlocal rallies
        if message is not None:
            rallies += 1
            left.send_nowait(message)  # type: ignore[attr-defined]

    def pong(message: bytes | None) -> None:
        if message is not None:
            right.send_nowait(message)  # type: ignore[attr-defined]

    left.attach(ping)  # type: ignore[attr-defined]
    right.attach(pong)  # type: ignore[attr-defined]
    await left.send(b"{}")
    for _ in range(10):
        await asyncio.sleep(0)
    assert rallies > 10
    await left.aclose()
    played = rallies
    for _ in range(10):
        await asyncio.sleep(0)
    assert rallies == played


async def test_a_receiver_that_closes_its_end_is_told_once_and_hears_no_more():
    left, right = memory_pair()
    received: list[bytes | None] = []
    closing: list[asyncio.Task[None]] = []

    def receiver(message: bytes | None) -> None:
        received.append(message)
        closing.append(asyncio.ensure_future(right.aclose()))

    right.attach(receiver)  # type: ignore[attr-defined]
    await left.send(b"1")
    await asyncio.gather(*closing)
    with pytest.raises(ChannelClosed):
        await left.send(b"2")
    await asyncio.gather(*closing)
    assert received == [b"1", None]


async def test_sends_that_give_up_leave_nothing_behind():
    left, _ = memory_pair(capacity=1)
    await left.send(b"{}")
    for _ in range(100):
        waiting = asyncio.create_task(left.send(b"{}"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    assert len(left._outgoing.writers.queue) == 0  # type: ignore[attr-defined]
    assert len(left._outgoing.messages) == 1  # type: ignore[attr-defined]
