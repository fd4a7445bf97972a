"""Traffic: every JSON-RPC message between a host and its servers and Views, for whoever watches.

1. Without a listener nothing is in the way: channels are used as they are.
2. A listener gets each message as bytes, in the order in which it was sent or arrived, before
   anyone handles it. It must be quick; one that raises is not called again.
3. Only JSON-RPC messages are traffic. HTTP headers, and so tokens, are none.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import msgspec
from msgspec import UNSET, Raw, UnsetType

from transom.channel import Channel, Receiver
from transom.errors import UsageError

__all__ = [
    "Dropped",
    "Leg",
    "RecordedMessage",
    "Recorder",
    "TrafficListener",
    "TrafficMessage",
    "read_record",
]

_log = logging.getLogger("transom.traffic")
_MB = 1024 * 1024

Leg = Literal["server", "view"]
"""The two legs of a host: between it and a server, or between it and a View."""


class TrafficMessage(msgspec.Struct, frozen=True):
    """One message that a host sent or received."""

    leg: Leg
    """Between whom: the host and a `server`, or the host and a `view`."""
    name: str
    """Which: the server's name, or the View's id."""
    from_host: bool
    """Whether the host sent it."""
    data: bytes
    """The message as it was sent; what a server or a View sends may be no JSON."""
    time: float
    """When, in seconds since 1970."""
    monotonic: float
    """When, by `time.monotonic`."""

    @property
    def sender(self) -> Literal["host", "server", "view"]:
        """Who sent it."""
        return "host" if self.from_host else self.leg

    @property
    def message(self) -> Any:
        """It decoded; its text if it is no JSON."""
        return read_message(self.data)


def read_message(data: bytes) -> Any:
    """A message decoded; its text if it is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return data.decode(errors="replace")


class TrafficListener(Protocol):
    """Gets the messages of a host: see `Host(traffic=...)`."""

    def on_message(self, message: TrafficMessage) -> None:
        """A message was sent or has arrived."""
        ...


def observe(channel: Channel, leg: Leg, name: str, listener: TrafficListener | None) -> Channel:
    """The channel, with `listener` told of each message; just the channel if there is none."""
    return channel if listener is None else _ObservedChannel(channel, leg, name, listener)


class _ObservedChannel:
    """A Channel whose messages a listener gets. It has the shortcuts that `channel` has."""

    def __init__(self, channel: Channel, leg: Leg, name: str, listener: TrafficListener) -> None:
        self._channel: Any = channel
        self._leg: Leg = leg
        self._name = name
        self._listener: TrafficListener | None = listener
        self._unsent: bytes | None = None
        self.aclose = channel.aclose
        # A Session looks for these, and uses them if they are there.
        if hasattr(channel, "send_nowait"):
            self.send_nowait = self._send_nowait
        if hasattr(channel, "attach"):
            self.attach = self._attach
        if hasattr(channel, "receive_many"):
            self.receive_many: Callable[[], Awaitable[list[bytes]]] = self._receive_many

    @property
    def reason(self) -> str | None:
        """Why it is closed, where the channel knows that."""
        return getattr(self._channel, "reason", None)

    def _tell(self, data: bytes, *, from_host: bool) -> None:
        listener = self._listener
        if listener is None:
            return
        try:
            listener.on_message(
                TrafficMessage(
                    self._leg, self._name, from_host, data, time.time(), time.monotonic()
                )
            )
        except Exception:  # noqa: BLE001 - whoever watches must not break what is watched
            self._listener = None
            _log.exception("A listener failed, and gets no more traffic of %s", self._name)

    async def send(self, data: bytes) -> None:
        if data is not self._unsent:
            self._tell(data, from_host=True)
        self._unsent = None
        await self._channel.send(data)

    def _send_nowait(self, data: bytes) -> bool:
        # Before it is sent: in memory, the answer arrives while it is being sent.
        self._tell(data, from_host=True)
        sent: bool = self._channel.send_nowait(data)
        self._unsent = None if sent else data  # `send` gets it next
        return sent

    async def receive(self) -> bytes:
        data: bytes = await self._channel.receive()
        self._tell(data, from_host=False)
        return data

    async def _receive_many(self) -> list[bytes]:
        messages: list[bytes] = await self._channel.receive_many()
        for data in messages:
            self._tell(data, from_host=False)
        return messages

    def _attach(self, receiver: Receiver) -> None:
        def receive(data: bytes | None) -> None:
            if data is not None:
                self._tell(data, from_host=False)
            receiver(data)

        self._channel.attach(receive)


# --- records ---------------------------------------------------------------------------------


class RecordedMessage(msgspec.Struct, frozen=True, rename={"sender": "from"}):
    """A line of a record."""

    time: datetime
    at: float
    """Seconds since the record began."""
    leg: Leg
    name: str
    sender: Literal["host", "server", "view"]
    message: Raw | UnsetType = UNSET
    text: str | UnsetType = UNSET
    """What was sent, if it is no JSON."""
    left_out: int | UnsetType = UNSET
    """How many bytes it has, if it was too large to be recorded."""

    @property
    def value(self) -> Any:
        """The message decoded, or its text; None if it was left out."""
        if isinstance(self.message, Raw):
            return read_message(bytes(self.message))
        return None if self.text is UNSET else self.text


def recorded(seen: TrafficMessage, began: float, max_bytes: int) -> RecordedMessage:
    """A message as a line of a record that began at that `time.monotonic`."""
    content: dict[str, Any]
    if len(seen.data) > max_bytes:
        content = {"left_out": len(seen.data)}
    else:
        try:
            seen.data.decode()  # the next one does not look at this
            content = {"message": Raw(msgspec.json.format(seen.data, indent=-1))}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            content = {"text": seen.data.decode(errors="replace")}
    when = datetime.fromtimestamp(seen.time, UTC)
    at = round(seen.monotonic - began, 6)
    return RecordedMessage(when, at, seen.leg, seen.name, seen.sender, **content)


class Dropped(msgspec.Struct, frozen=True):
    """How much was not recorded, because the record was full or could not be written."""

    messages: int = 0
    bytes: int = 0


class _DroppedLine(msgspec.Struct):
    dropped: Dropped


class Recorder:
    """Writes traffic to a file, a line of JSON for each message.

        with Recorder("orders.jsonl") as recorder:
            async with Host(traffic=recorder, ...) as host:
                ...

    Each line has the `time`, the seconds since the first message (`at`), the `leg` (`server` or
    `view`), the `name` of the server or View, who it is `from` (`host`, `server` or `view`) and
    the `message`. What servers and Views send is in it whole: only this user can read the file.

    Args:
        path: the file; a regular file that exists is replaced.
        max_messages: how many messages it takes.
        max_bytes: how large the file may become.
        max_message_bytes: of a larger message, only the size is recorded.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        max_messages: int = 100_000,
        max_bytes: int = 256 * _MB,
        max_message_bytes: int = 8 * _MB,
    ) -> None:
        self._file = _open_private(Path(path))
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._max_message_bytes = max_message_bytes
        self._messages = 0
        self._bytes = 0
        self._began: float | None = None
        self.dropped = Dropped()
        """What the record does not have."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def on_message(self, message: TrafficMessage) -> None:
        """See `TrafficListener`."""
        if self._file < 0:
            return
        if self._began is None:
            self._began = message.monotonic
        made = recorded(message, self._began, self._max_message_bytes)
        line = msgspec.json.encode(made) + b"\n"
        if self._messages >= self._max_messages or self._bytes + len(line) > self._max_bytes:
            self._drop(message)
            return
        try:
            _write(self._file, line)
        except OSError as error:  # the disk is full, say
            _log.warning("A message was not recorded: %s", error)
            self._max_messages = 0
            self._drop(message)
            return
        self._messages += 1
        self._bytes += len(line)

    def _drop(self, message: TrafficMessage) -> None:
        first = not self.dropped.messages
        self.dropped = Dropped(self.dropped.messages + 1, self.dropped.bytes + len(message.data))
        if first:  # at once, so that a record whose writer is killed tells of it
            self._write_dropped()

    def _write_dropped(self) -> None:
        try:
            _write(self._file, msgspec.json.encode(_DroppedLine(self.dropped)) + b"\n")
        except OSError:
            _log.warning("%d messages were not recorded", self.dropped.messages)

    def close(self) -> None:
        """Finish the file. Safe to repeat."""
        if self._file >= 0:
            if self.dropped.messages > 1:
                self._write_dropped()
            os.close(self._file)
            self._file = -1


def _open_private(path: Path) -> int:
    """A new file in place of the one that is there, which others may read or have open."""
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise UsageError(f"{path} cannot be written: it is no regular file")
        new = path.parent / f".transom-record-{os.getpid()}-{time.monotonic_ns()}"
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            new.replace(path)
        except OSError:
            os.close(file)
            new.unlink()
            raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    return file


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def read_record(path: str | Path) -> Iterator[RecordedMessage | Dropped]:
    """The messages of a record, in order; where some are missing, how many.

    Raises:
        UsageError: the file cannot be read, or is no record.
    """
    number = 0
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):  # noqa: B007 - see below
                line.decode()  # what is decoded later is not looked at below
                if line.startswith(b'{"dropped":'):
                    yield msgspec.json.decode(line, type=_DroppedLine).dropped
                else:
                    yield msgspec.json.decode(line, type=RecordedMessage)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}, line {number}: not UTF-8") from None
    except (msgspec.DecodeError, RecursionError) as error:
        text = f"{path}, line {number}: not a line of a record: {error}"
        raise UsageError(text) from None
