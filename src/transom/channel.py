"""Channels: duplex pipes of JSON-RPC messages, one message at a time.

A Channel does not look into the messages. `memory_pair()` joins two ends in one process,
`lines(reader, writer)` speaks newline-delimited JSON over asyncio streams.

A Channel may offer these shortcuts, which a `Session` then uses:

1. `send_nowait(data) -> bool` sends without waiting, or returns False when it would have to.
2. `attach(receiver)` hands each message to `receiver` as it arrives, and None at the end, in place
   of `receive`. The receiver must not raise. After the end, an attribute `reason` may say why.
3. `async receive_many() -> list[bytes]` returns all messages that have arrived, up to a limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from transom.errors import ChannelClosed

__all__ = ["Channel", "Receiver", "ReplaceLong", "lines", "memory_pair"]

_BURST = 64  # messages delivered before other tasks get a turn
_BATCH = 16  # messages written at once
_HIGH_WATER = 65536  # bytes queued in a transport before a sender waits
_STUCK = 1.0  # seconds without a byte read after which closing no longer waits for the other side

_ENDS = 128  # bytes to keep of each end of a line that is too long

Receiver = Callable[[bytes | None], None]
"""Takes the messages of a channel one by one, then None."""

ReplaceLong = Callable[[bytes, bytes], bytes | None]
"""Takes the beginning and the end of a line that is too long; returns a message to use instead."""


@runtime_checkable
class Channel(Protocol):
    """A duplex pipe of messages. One task receives; any number may send."""

    async def send(self, data: bytes) -> None:
        """Send one message; waits while the pipe is full.

        Raises:
            ChannelClosed: this end or the other has closed.
        """
        ...

    async def receive(self) -> bytes:
        """The next message. What was sent before the other end closed still arrives.

        Raises:
            ChannelClosed: there will be no more.
        """
        ...

    async def aclose(self) -> None:
        """Close this end. Both ends' waiting calls end. Closing twice is fine."""
        ...


class Waiters:
    """Tasks that wait for room in a queue: first come, first served."""

    __slots__ = ("queue",)

    def __init__(self) -> None:
        self.queue: deque[asyncio.Future[None]] = deque()

    async def wait(self, on_unused: Callable[[], object]) -> None:
        """Wait to be woken. If it is cancelled after that, `on_unused` lets the next one run."""
        waiter = asyncio.get_running_loop().create_future()
        self.queue.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self.queue:
                self.queue.remove(waiter)
            elif not waiter.cancelled():
                on_unused()
            raise

    def wake_one(self) -> bool:
        """Wake the first one that still waits; False if there is none."""
        while self.queue:
            waiter = self.queue.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return True
        return False

    def wake_all(self) -> None:
        """Wake everyone."""
        while self.wake_one():
            pass


# --- in memory -------------------------------------------------------------------------------


class Pipe:
    """One direction: a bounded queue. Messages leave it in order, one at a time."""

    def __init__(self, capacity: int) -> None:
        self.messages: deque[bytes] = deque()
        self.capacity = capacity
        self.closed = False
        self.reason = "The other side closed the channel"
        self.receiver: Receiver | None = None
        self.idle = False
        """Whether a message can be handed to the receiver at once."""
        self.reader: asyncio.Future[None] | None = None
        self.writers = Waiters()

    def put(self, data: bytes) -> None:
        """Queue a message, whatever the capacity, and deliver what can be."""
        self.messages.append(data)
        self.deliver()

    async def send(self, data: bytes) -> None:
        while len(self.messages) >= self.capacity and not self.closed:
            await self.writers.wait(self.writers.wake_one)
        if self.closed:
            raise ChannelClosed("The channel is closed")
        self.put(data)

    def send_nowait(self, data: bytes) -> bool:
        receiver = self.receiver
        if self.idle and receiver is not None:
            self.idle = False
            receiver(data)
            self.idle = True
            if self.messages or self.closed:
                self.deliver()
            return True
        if self.closed:
            raise ChannelClosed("The channel is closed")
        if self.writers.queue or len(self.messages) >= self.capacity:
            return False
        self.put(data)
        return True

    def deliver(self) -> None:
        """Deliver everything that is queued, without re-entry: what arrives meanwhile is queued."""
        receiver = self.receiver
        if receiver is None:
            if self.reader is not None and not self.reader.done():
                self.reader.set_result(None)
            return
        if not self.idle:
            return
        self.idle = False
        left = _BURST
        while self.messages:
            if not left:  # two ends that keep answering each other must not starve other tasks
                asyncio.get_running_loop().call_soon(self.deliver_more)
                return
            left -= 1
            receiver(self.messages.popleft())
            if self.writers.queue:
                self.writers.wake_one()
        if self.closed:
            self.receiver = None
            receiver(None)
        else:
            self.idle = True

    def deliver_more(self) -> None:
        self.idle = True
        self.deliver()

    def attach(self, receiver: Receiver) -> None:
        self.receiver = receiver
        if self.messages or self.closed:
            asyncio.get_running_loop().call_soon(self.deliver_more)
        else:
            self.idle = True

    async def receive(self) -> bytes:
        while not self.messages:
            if self.closed:
                raise ChannelClosed(self.reason)
            self.reader = asyncio.get_running_loop().create_future()
            await self.reader
        message = self.messages.popleft()
        if self.writers.queue:
            self.writers.wake_one()
        return message

    def close(self) -> None:
        self.closed = True
        self.deliver()
        self.writers.wake_all()


class _MemoryChannel:
    def __init__(self, incoming: Pipe, outgoing: Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self.attach = incoming.attach
        self.receive = incoming.receive
        self.send = outgoing.send
        self.send_nowait = outgoing.send_nowait

    async def aclose(self) -> None:
        if not self._incoming.closed:
            self._incoming.messages.clear()
            self._incoming.close()
        if not self._outgoing.closed:
            self._outgoing.close()


def memory_pair(*, capacity: int = 1024) -> tuple[Channel, Channel]:
    """Two Channels joined in memory, in one event loop.

    Each holds at most `capacity` unread messages. An end that a `Session` reads gets its messages
    during the other end's `send`.
    """
    there, back = Pipe(capacity), Pipe(capacity)
    return _MemoryChannel(back, there), _MemoryChannel(there, back)


# --- lines -----------------------------------------------------------------------------------


class _LinesChannel:
    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        max_bytes: int,
        replace_long: ReplaceLong | None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._max_bytes = max_bytes
        self._replace = replace_long
        self._lines: deque[bytes] = deque()  # read, but not received yet
        self._rest = bytearray()  # of the line that is being read
        self._beginning: bytes | None = None  # of a line that is too long, while it is dropped
        self._too_long = False
        self._unsent: list[bytes] = []
        self._sent_this_turn = False
        self._closed = False

    # --- out ---------------------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        self._check_open()
        self._unsent.append(data)
        self._flush()
        try:
            await self._writer.drain()
        except (OSError, RuntimeError) as error:
            raise ChannelClosed(f"The channel is closed: {error}") from error
        if self._closed:
            raise ChannelClosed("This side closed the channel")

    def send_nowait(self, data: bytes) -> bool:
        # The first message of a turn of the event loop goes out at once, and those after it in
        # batches: a write costs more than everything else about a small message.
        if not self._unsent:
            self._check_open()
            if self._writer.transport.get_write_buffer_size() > _HIGH_WATER:
                return False
        self._unsent.append(data)
        if not self._sent_this_turn:
            self._sent_this_turn = True
            asyncio.get_running_loop().call_soon(self._turn_ended)
            self._flush()
        elif len(self._unsent) >= _BATCH or len(data) > _HIGH_WATER:
            self._flush()
        return True

    def _turn_ended(self) -> None:
        self._sent_this_turn = False
        self._flush()

    def _check_open(self) -> None:
        if self._closed or self._writer.is_closing():
            raise ChannelClosed("The channel is closed")

    def _flush(self) -> None:
        if self._unsent:
            unsent, self._unsent = self._unsent, []
            data = b"\n".join(unsent)
            if data.count(b"\n") >= len(unsent) or b"\r" in data:
                data = b"\n".join(map(_one_line, unsent))
            self._writer.write(data + b"\n")

    # --- in ----------------------------------------------------------------------------------

    async def receive(self) -> bytes:
        return (await self.receive_many(1))[0]

    async def receive_many(self, limit: int = _BURST) -> list[bytes]:
        while not self._lines or self._closed:
            if self._closed:
                raise ChannelClosed("This side closed the channel")
            if self._too_long:
                await self.aclose()
                raise ChannelClosed(f"A line is longer than {self._max_bytes} bytes")
            try:
                chunk = await self._reader.read(262144)
            except OSError as error:
                raise ChannelClosed(f"The channel broke: {error}") from error
            if not chunk:
                raise ChannelClosed("The other side closed the channel")
            self._take(chunk)
        take = self._lines.popleft
        return [take() for _ in range(min(limit, len(self._lines)))]

    def _take(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._rest += first
        if others:
            whole = [bytes(self._rest), *others[:-1]]
            self._rest = bytearray(others[-1])
            for line in whole:
                if self._beginning is not None or len(line) > self._max_bytes:
                    line = self._replaced(line)  # noqa: PLW2901 - what stands in its place
                line = line.strip()  # noqa: PLW2901 - the same line
                if line and not self._too_long:
                    self._lines.append(line)
        if len(self._rest) > self._max_bytes:
            if self._beginning is None:
                self._beginning = bytes(self._rest[:_ENDS])
            del self._rest[:-_ENDS]
            self._too_long |= self._replace is None

    def _replaced(self, line: bytes) -> bytes:
        """The message that replaces a line that is too long."""
        beginning, self._beginning = self._beginning or line[:_ENDS], None
        self._too_long |= self._replace is None
        return b"" if self._replace is None else self._replace(beginning, line[-_ENDS:]) or b""

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._flush()
        # Not `feed_eof`: the transport would then fail on what the other side still sends.
        self._reader.set_exception(ChannelClosed("This side closed the channel"))
        # With two pipes, the reader has a transport of its own, which asyncio does not expose.
        reading: asyncio.ReadTransport | None = getattr(self._reader, "_transport", None)
        if reading is not None:
            reading.close()
        self._writer.close()
        await self._wait_flushed()

    async def _wait_flushed(self) -> None:
        """Wait while what is queued goes out, for as long as the other side reads."""
        transport = self._writer.transport
        # A pipe that broke before we closed it is no error here.
        closed = asyncio.gather(self._writer.wait_closed(), return_exceptions=True)
        left = transport.get_write_buffer_size()
        while not (await asyncio.wait((closed,), timeout=_STUCK))[0]:
            before, left = left, transport.get_write_buffer_size()
            if left and left >= before:
                transport.abort()


def _one_line(data: bytes) -> bytes:
    # JSON has raw line breaks between tokens only, where a space means the same.
    return data.replace(b"\n", b" ").replace(b"\r", b" ")


def lines(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    max_bytes: int = 32 * 1024 * 1024,
    replace_long: ReplaceLong | None = None,
) -> Channel:
    """Newline-delimited JSON over asyncio streams, such as a subprocess's pipes or a socket.

    A line longer than `max_bytes` closes the channel. With `replace_long` it is dropped as it is
    read, and the message that `replace_long` makes of its ends is received instead. Closing first
    flushes what was sent, unless the other side has stopped reading.
    """
    return _LinesChannel(reader, writer, max_bytes, replace_long)


async def pipe_streams(source: Any, sink: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Streams of two pipes, such as the standard output and input of a process, for `lines`."""
    loop = asyncio.get_running_loop()
    reader, unused = asyncio.StreamReader(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(unused), sink
    )
    return reader, asyncio.StreamWriter(transport, protocol, unused, loop)
