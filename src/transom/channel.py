"""Channels: duplex pipes of JSON-RPC messages, one message at a time.

A Channel knows nothing of what the messages say. `memory_pair()` joins two ends in one process,
`lines(reader, writer)` speaks newline-delimited JSON over asyncio streams.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol, runtime_checkable

from transom.errors import ChannelClosed

__all__ = ["Channel", "lines", "memory_pair"]


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


# --- in memory -------------------------------------------------------------------------------


class _Pipe:
    """One direction: a bounded queue with a waiter at each end."""

    def __init__(self, capacity: int) -> None:
        self.messages: deque[bytes] = deque()
        self.capacity = capacity
        self.closed = False
        self.reader: asyncio.Future[None] | None = None
        self.writers: deque[asyncio.Future[None]] = deque()

    def wake_reader(self) -> None:
        if self.reader is not None and not self.reader.done():
            self.reader.set_result(None)

    def wake_writer(self) -> None:
        while self.writers:
            writer = self.writers.popleft()
            if not writer.done():
                writer.set_result(None)
                return

    def close(self) -> None:
        self.closed = True
        self.wake_reader()
        while self.writers:
            self.wake_writer()


class _MemoryChannel:
    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def send(self, data: bytes) -> None:
        pipe = self._outgoing
        while len(pipe.messages) >= pipe.capacity and not pipe.closed:
            writer = asyncio.get_running_loop().create_future()
            pipe.writers.append(writer)
            try:
                await writer
            except asyncio.CancelledError:
                if writer.done() and not writer.cancelled():
                    pipe.wake_writer()  # the place was given to us; pass it on
                raise
        if pipe.closed:
            raise ChannelClosed("The channel is closed")
        pipe.messages.append(data)
        pipe.wake_reader()

    def send_nowait(self, data: bytes) -> bool:
        """Send without waiting. False: the pipe is full, or others wait for it."""
        pipe = self._outgoing
        if pipe.closed:
            raise ChannelClosed("The channel is closed")
        if pipe.writers or len(pipe.messages) >= pipe.capacity:
            return False
        pipe.messages.append(data)
        pipe.wake_reader()
        return True

    async def receive(self) -> bytes:
        pipe = self._incoming
        while not pipe.messages:
            if pipe.closed:
                raise ChannelClosed("The channel is closed")
            pipe.reader = asyncio.get_running_loop().create_future()
            await pipe.reader
        message = pipe.messages.popleft()
        if pipe.writers:
            pipe.wake_writer()
        return message

    async def aclose(self) -> None:
        self._incoming.close()
        self._incoming.messages.clear()
        self._outgoing.close()


def memory_pair(*, capacity: int = 1024) -> tuple[Channel, Channel]:
    """Two Channels joined in memory; each holds at most `capacity` unread messages."""
    there, back = _Pipe(capacity), _Pipe(capacity)
    return _MemoryChannel(back, there), _MemoryChannel(there, back)


# --- lines -----------------------------------------------------------------------------------


class _LinesChannel:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_bytes: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._closed = False

    async def send(self, data: bytes) -> None:
        self._write(data)
        try:
            await self._writer.drain()
        except (ConnectionError, RuntimeError) as error:
            raise ChannelClosed(f"The channel is closed: {error}") from error

    def send_nowait(self, data: bytes) -> bool:
        """Send without waiting. False: the other side is slow, wait with `send`."""
        transport = self._writer.transport
        if transport.get_write_buffer_size() > 65536:
            return False
        self._write(data)
        return True

    def _write(self, data: bytes) -> None:
        if self._closed or self._writer.is_closing():
            raise ChannelClosed("The channel is closed")
        if b"\n" in data or b"\r" in data:
            # JSON has raw line breaks between tokens only, where a space means the same.
            data = data.replace(b"\n", b" ").replace(b"\r", b" ")
        self._writer.write(data + b"\n")

    async def receive(self) -> bytes:
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end]).strip()
                del self._buffer[: end + 1]
                self._searched = 0
                if line:
                    return line
                continue
            self._searched = len(self._buffer)
            if self._searched > self._max_bytes:
                await self.aclose()
                raise ChannelClosed(f"A line is longer than {self._max_bytes} bytes")
            try:
                chunk = await self._reader.read(262144)
            except (ConnectionError, OSError) as error:
                raise ChannelClosed(f"The channel broke: {error}") from error
            if not chunk or self._closed:
                raise ChannelClosed("The other side closed the channel")
            self._buffer += chunk

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._reader.feed_eof()
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except (ConnectionError, OSError):
            pass  # it was broken before we closed it


def lines(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    max_bytes: int = 32 * 1024 * 1024,
) -> Channel:
    """Newline-delimited JSON over asyncio streams, such as a subprocess's pipes or a socket.

    A line longer than `max_bytes` closes the channel: there is no telling where the next begins.
    """
    return _LinesChannel(reader, writer, max_bytes)
