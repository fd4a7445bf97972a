"""Channels from worker to worker: each worker has one inbox, a stream in Redis, that it reads.

1. Frames of a channel are numbered. A missing frame ends the channel; a repeated one is dropped. So
   a message arrives in order, once or not at all.
2. What a worker sends to another in one turn of the event loop is one entry of the other's inbox.
   Entries are deleted when they have been read. If the inbox is full or its worker dead, the
   channels that send there end.
3. Flow control: a sender waits when the other side is a window of bytes behind.
4. A worker that loses Redis closes all its channels at once, and tells the other workers when it
   can reach them again (`RESET`). That ends no channel that was opened since: it is older than what
   was in the inbox of whoever opened it.
5. A worker takes nothing from its inbox before it is sure that it still has its leases: it may have
   been stopped, and others have taken over. What opens a channel has the epoch of the lease, and is
   refused when that is not the one that this worker has.
6. Each heartbeat pings the workers at the other ends. The channels to one that is silent end.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from transom.background import Background, logs_errors, stop
from transom.bus.commands import OPEN, SEND, TAKEN, Argument, Commands
from transom.bus.seal import Seal
from transom.channel import Channel, Pipe, Receiver, Waiters, memory_pair
from transom.errors import (
    INVALID_REQUEST,
    BusError,
    ChannelClosed,
    MessageRefused,
    NoOwner,
    OwnerGone,
    UsageError,
)

_log = logging.getLogger("transom.bus")
_report = logs_errors(_log)

MAX_MESSAGE = 40 * 1024 * 1024  # bytes; more than a client or a View may send
_WINDOW = 1024 * 1024
_OVERHEAD = 64  # bytes that a message costs besides its content
_MAX_ENTRIES = 65536
_MAX_BYTES = 128 * 1024 * 1024
_EXPIRY = 60_000  # milliseconds until an inbox that nobody reads expires
_LIMITS = (_MAX_ENTRIES, _MAX_BYTES, _EXPIRY)
_PACKET = 512 * 1024  # bytes after which another entry is begun
_READ = 256  # entries at once
_ANY = ""  # the place of a packet that goes to whoever has a lease
_RETRY = (0.05, 2.0)  # seconds between attempts to read: at first, at most

_OPEN, _DATA, _CREDIT, _CLOSE, _RESET, _NOBODY, _PING, _PONG = range(8)


class _Frame(msgspec.Struct, array_like=True):
    channel: str
    number: int
    kind: int
    data: bytes = b""


class _Packet(msgspec.Struct, array_like=True):
    sender: str
    frames: list[_Frame]


class _Opening(msgspec.Struct, array_like=True):
    name: str
    kind: str
    hello: bytes


_encode = msgspec.msgpack.Encoder().encode
_read_packet = msgspec.msgpack.Decoder(_Packet).decode
_read_opening = msgspec.msgpack.Decoder(_Opening).decode

_Id = tuple[int, int]
"""When an entry of an inbox was written, and its number."""
OnOpen = Callable[[str, bytes, Channel], Awaitable[object]]
"""Takes the name of a lease, the hello and the channel that was opened to its holder."""


class BusChannel:
    """One end of a channel to another worker. Once it has ended, `reason` and `error` say why."""

    def __init__(self, channels: Channels, id: str, peer: str = "") -> None:
        self.id = id
        self.peer = peer
        self.opened_after: _Id = (0, 0)
        """The last entry of this worker's inbox that may be older than the channel."""
        self.reason = ""
        self.error: BusError | None = None
        self.closed = False
        self._channels = channels
        self._incoming = Pipe(sys.maxsize)  # bounded by the window
        self._expected = 1 if peer else 0  # the first frame is the one that opens it
        self._sent = 0 if peer else 1
        self._credit = _WINDOW
        self._owed = 0
        self._senders = Waiters()

    async def send(self, data: bytes) -> None:
        """Send one message; waits while the other side does not read."""
        while self._credit <= 0 and not self.closed:
            await self._senders.wait(self._senders.wake_one)
        self._post_data(data)

    def send_nowait(self, data: bytes) -> bool:
        """Send one message, unless the other side does not read."""
        if self._credit <= 0 and not self.closed:
            return False
        self._post_data(data)
        return True

    def _post_data(self, data: bytes) -> None:
        if self.closed:
            raise ChannelClosed(self.reason)
        if len(data) > MAX_MESSAGE:
            text = f"A message of {len(data)} bytes is too large for the bus"
            raise MessageRefused(INVALID_REQUEST, text)
        self._credit -= len(data) + _OVERHEAD
        self.post(_DATA, data)

    def post(self, kind: int, data: bytes) -> None:
        """Send a frame, regardless of the window."""
        frame = _Frame(self.id, self._sent, kind, data)
        self._sent += 1
        self._channels.post(self.peer, frame)

    async def receive(self) -> bytes:
        """The next message."""
        data = await self._incoming.receive()
        self._consumed(data)
        return data

    def attach(self, receiver: Receiver) -> None:
        """Hand over each message as it arrives, and None at the end."""

        def take(data: bytes | None) -> None:
            receiver(data)
            if data is not None:
                self._consumed(data)

        self._incoming.attach(take)

    def _consumed(self, data: bytes) -> None:
        self._owed += len(data) + _OVERHEAD
        if self._owed >= _WINDOW // 2 and not self.closed:
            self.post(_CREDIT, _encode(self._owed))
            self._owed = 0

    def feed(self, frame: _Frame) -> None:
        """Handle a frame of the other side."""
        if frame.number < self._expected:
            return  # it was here already
        if frame.number > self._expected:
            error = BusError("A message to this worker was lost on the bus")
            self.post(_CLOSE, str(error).encode())
            self.end(error)
            return
        self._expected += 1
        if frame.kind == _DATA:
            self._incoming.put(frame.data)
        elif frame.kind == _CREDIT:
            self._credit += msgspec.msgpack.decode(frame.data, type=int)
            while self._credit > 0 and self._senders.wake_one():
                pass
        else:
            self.end(None, frame.data.decode(errors="replace"))

    def end(self, error: BusError | None, reason: str = "") -> None:
        """The other side is gone. Messages that have arrived can still be read."""
        if not self.closed:
            self.closed = True
            self.error = error
            self.reason = reason or str(error or "The other side closed the channel")
            self._channels.forget(self)
            self._incoming.reason = self.reason
            self._incoming.close()
            self._senders.wake_all()

    async def aclose(self, reason: str = "") -> None:
        """Close this end; the other side is told why."""
        if not self.closed:
            self.post(_CLOSE, reason.encode()[:500])
            self._incoming.messages.clear()
            self.end(None, "This side closed the channel")


class Channels:
    """All channels of one worker, and its inbox. `epoch_of` and `ensure_renewed` are the Bus's."""

    def __init__(
        self,
        commands: Commands,
        seal: Seal,
        worker: str,
        epoch_of: Callable[[str], int | None],
        ensure_renewed: Callable[[], Awaitable[object]],
    ) -> None:
        self._commands = commands
        self._seal = seal
        self._worker = worker
        self._epoch_of = epoch_of
        self._ensure_renewed = ensure_renewed
        self._open: dict[str, BusChannel] = {}
        self._served: dict[Channel, str] = {}  # channels that others opened here, and to which name
        self._handlers: dict[str, OnOpen] = {}
        self._handling = Background(_report)
        self._outgoing: dict[str, list[_Frame]] = {}
        # By worker: channels that closed here and that it does not know of yet; "": all of them.
        self._unreset: set[tuple[str, str]] = set()
        self._heard: dict[str, float] = {}  # when something came from the workers at other ends
        self._reading: asyncio.Task[None] | None = None

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Read the inbox from now on."""
        self._reading = asyncio.create_task(self._read(), name="transom-bus-inbox")

    async def aclose(self) -> None:
        """Close every channel, and wait briefly for their handlers."""
        for channel in [*self._open.values(), *self._served]:
            await channel.aclose()
        await self._handling.aclose(grace=1.0)
        self.flush()
        await stop(self._reading)

    @property
    def peers(self) -> set[str]:
        """The workers at the other ends."""
        return {channel.peer for channel in self._open.values() if channel.peer}

    def forget(self, channel: BusChannel) -> None:
        """It is closed."""
        if self._open.get(channel.id) is channel:
            del self._open[channel.id]

    def end_all(self, error: BusError) -> None:
        """Close every channel: messages in flight may be lost."""
        self._unreset |= {(worker, "") for worker in self.peers}
        self._outgoing.clear()
        for channel in list(self._open.values()):
            channel.end(error)

    def reset_peers(self) -> None:
        """Tell the other workers which channels ended here while Redis was unreachable."""
        for worker, channel in self._unreset:
            self.post(worker, _Frame(channel, 0, _RESET))
        self._unreset.clear()
        self.flush()

    def ping_peers(self, patience: float) -> None:
        """Find out whether the other workers read their inboxes, and close channels if not.

        `patience` is how many seconds one may be silent.
        """
        now = asyncio.get_running_loop().time()
        self._heard = {peer: self._heard.get(peer, now) for peer in self.peers}
        for peer, heard in self._heard.items():
            if now - heard > patience:
                self._unreset.add((peer, ""))
                self.end_peer(peer, BusError("The worker that has it does not answer"))
            else:
                self.post(peer, _Frame("", 0, _PING))

    def end_peer(self, worker: str, error: BusError | None = None) -> None:
        """Close every channel to a worker, which is dead unless there is another error."""
        for channel in list(self._open.values()):
            if channel.peer == worker:
                channel.end(error or _failure(b"gone"))

    async def end_served(self, name: str, reason: str) -> None:
        """Close every channel that was opened to a name that this worker no longer has."""
        for channel in [each for each, to in self._served.items() if to == name]:
            if isinstance(channel, BusChannel):
                await channel.aclose(reason)
            else:
                await channel.aclose()

    # --- opening -----------------------------------------------------------------------------

    def on_open(self, kind: str, handler: OnOpen) -> None:
        """Serve the channels of this kind."""
        self._handlers[kind] = handler

    async def open(self, name: str, key: str, kind: str, hello: bytes) -> Channel:
        """A channel to the worker that has the lease. See `Bus.open`."""
        if len(hello) > MAX_MESSAGE:
            raise UsageError(f"A hello of {len(hello)} bytes is too large for the bus")
        if self._epoch_of(name) is not None:
            ours, theirs = memory_pair()
            self._serve(name, kind, hello, theirs)
            return ours
        channel = BusChannel(self, secrets.token_hex(8))
        self._open[channel.id] = channel  # before it is sent, because the answer may come first
        frame = _Frame(channel.id, 0, _OPEN, _encode(_Opening(name, kind, hello)))
        # Which worker it goes to is decided in Redis.
        packet = self._seal.write(_ANY, _encode(_Packet(self._worker, [frame])))
        opened = self._commands.run(OPEN, key, *_LIMITS, packet, self._worker)
        try:
            outcome, holder, last = await asyncio.shield(opened)
        except asyncio.CancelledError:
            opened.add_done_callback(lambda opened: self._abandon(channel, opened))
            raise
        except BusError as error:
            channel.end(error)
            raise
        if outcome != b"ok":
            error = _failure(outcome)
            channel.end(error)
            raise error
        channel.peer, channel.opened_after = holder.decode(), _read_id(last)
        return channel

    @staticmethod
    def _abandon(channel: BusChannel, opened: asyncio.Future[Any]) -> None:
        """The caller was cancelled while it opened a channel."""
        if opened.exception() is None and (result := opened.result())[0] == b"ok":
            channel.peer = result[1].decode()
            channel.post(_CLOSE, b"")
        channel.end(None)

    def _opened(self, sender: str, frame: _Frame, epoch: int | None) -> None:
        """Another worker opens a channel to a lease that was ours, with that epoch, in Redis."""
        if frame.channel in self._open:
            return  # it was here already
        opening = _read_opening(frame.data)
        channel = BusChannel(self, frame.channel, sender)
        self._open[frame.channel] = channel
        if epoch is not None and self._epoch_of(opening.name) == epoch:
            self._serve(opening.name, opening.kind, opening.hello, channel)
        else:
            self.post(sender, _Frame(frame.channel, 0, _NOBODY))
            channel.end(None)

    def _serve(self, name: str, kind: str, hello: bytes, channel: Channel) -> None:
        self._served[channel] = name
        self._handling.start(self._run_handler(name, kind, hello, channel))

    async def _run_handler(self, name: str, kind: str, hello: bytes, channel: Channel) -> None:
        try:
            if kind in self._handlers:
                await self._handlers[kind](name, hello, channel)
            else:
                _log.warning("nobody here serves %r, which another worker asked for", kind)
        finally:
            self._served.pop(channel, None)
            await channel.aclose()

    # --- out ---------------------------------------------------------------------------------

    def post(self, worker: str, frame: _Frame) -> None:
        """Send a frame at the end of this turn of the event loop."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self.flush)
        self._outgoing.setdefault(worker, []).append(frame)

    def flush(self) -> None:
        """Send the queued frames."""
        outgoing, self._outgoing = self._outgoing, {}
        for worker, frames in outgoing.items():
            start, size = 0, 0
            for i, frame in enumerate(frames):
                if size and size + len(frame.data) > _PACKET:
                    self._send(worker, frames[start:i])
                    start, size = i, 0
                size += len(frame.data) + _OVERHEAD
            self._send(worker, frames[start:])

    def _send(self, worker: str, frames: list[_Frame]) -> None:
        packet = self._seal.write(worker, _encode(_Packet(self._worker, frames)))
        sent = self._commands.run(SEND, worker, *_LIMITS, packet)
        ids = {frame.channel for frame in frames}
        sent.add_done_callback(lambda sent: self._check_sent(ids, sent))

    def _check_sent(self, ids: set[str], sent: asyncio.Future[Any]) -> None:
        """End the channels whose frames may not have arrived: nothing is resent."""
        error = sent.exception()
        if error is None:
            if sent.result() == b"ok":
                return
            error = _failure(sent.result())
        for id in ids & self._open.keys():
            channel = self._open[id]
            self._unreset.add((channel.peer, id))
            channel.end(error if isinstance(error, BusError) else BusError(str(error)))

    # --- in ----------------------------------------------------------------------------------

    async def _read(self) -> None:
        inbox = self._commands.key("inbox", self._worker)
        read: list[Argument] = []  # entries that were read and not deleted yet, with their sizes
        retry = _RETRY[0]
        while True:
            taken = (TAKEN.sha, self._worker, *read) if read else ()
            try:
                entries = await self._commands.read(inbox, _READ, *taken)
                await self._ensure_renewed()
            except BusError:
                self._commands.on_trouble()
                await asyncio.sleep(retry)
                retry = min(retry * 2, _RETRY[1])
                continue
            retry = _RETRY[0]
            known, read = set(read[::2]), []
            for id, fields in entries:
                entry = dict(zip(fields[::2], fields[1::2], strict=True))
                packet = entry.get(b"p", b"")
                read += (id, len(packet))
                if id not in known:  # else it was read before, and its deletion failed
                    self._take(packet, entry.get(b"e"), _read_id(id))

    def _take(self, data: bytes, epoch: bytes | None, id: _Id) -> None:
        try:
            packet = _read_packet(self._seal.read(self._worker if epoch is None else _ANY, data))
            if packet.sender in self._heard:
                self._heard[packet.sender] = asyncio.get_running_loop().time()
            for frame in packet.frames:
                self._take_frame(packet.sender, frame, None if epoch is None else int(epoch), id)
        except (ValueError, RecursionError) as error:  # includes those of msgspec
            _log.warning("the inbox of this worker has something that no worker sends: %s", error)

    def _take_frame(self, sender: str, frame: _Frame, epoch: int | None, id: _Id) -> None:
        channel = self._open.get(frame.channel)
        if frame.kind == _OPEN:
            self._opened(sender, frame, epoch)
        elif frame.kind == _NOBODY:
            if channel is not None:
                channel.end(_failure(b"nobody"))
        elif frame.kind == _RESET:
            for each in list(self._open.values()):
                is_meant = each.id == frame.channel or (
                    not frame.channel and id > each.opened_after
                )
                if each.peer == sender and is_meant:
                    each.end(BusError("The worker at the other side lost its connection"))
        elif frame.kind == _PING:
            self.post(sender, _Frame("", 0, _PONG))
        elif frame.kind == _PONG:
            pass  # that it came is all
        elif channel is not None:
            channel.feed(frame)
        elif frame.kind != _CLOSE:
            self.post(sender, _Frame(frame.channel, 0, _RESET))


def _read_id(entry: bytes) -> _Id:
    milliseconds, _, number = entry.partition(b"-")
    return int(milliseconds), int(number)


def _failure(outcome: bytes) -> BusError:
    if outcome == b"nobody":
        return NoOwner("No worker has it")
    if outcome == b"gone":
        return OwnerGone("The worker that had it is gone")
    return BusError("The worker that has it does not keep up: its inbox is full")
