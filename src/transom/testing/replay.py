"""Replays a record: sends again what the host sent, and compares what the other side says.

The other side is a server, or a View. The record's messages are gone through in their order:

1. What the host sent is sent, with the ids of the record. An answer goes to the request of the
   other side that stands for the recorded one.
2. For what the other side sent, a message is awaited that stands for it: the answer to the same
   request, or a request or notification of the same method, one with the same params first.
3. Values that differ in each run are equal if both look alike: UUIDs, times, long random words.
4. What the other side sends beyond the record is a difference, too, be it a message or not.
5. The other side may send without end, or not read: every wait has an end, and of what is not in
   the record only so much is kept.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

import msgspec

from transom.background import stop
from transom.channel import Channel
from transom.errors import ChannelClosed, UsageError
from transom.json_values import as_object, visible
from transom.traffic import Leg, RecordedMessage, read_message, read_record

# How large a View is depends on fonts, and how far a call is on time; logs are for people.
_NOT_COMPARED = (
    "ui/notifications/size-changed",
    "notifications/progress",
    "notifications/message",
    "transom/notifications/problem",
    "transom/notifications/unconnected",
)
_ALIKE = (
    re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?"),
    re.compile(r"(?=.*\d)[\w-]{20,}"),
)
_FIRST_TIME, _LAST_TIME = 1.0e9, 1.0e11  # seconds since 1970, or 1000 times that
_MAX_SHOWN = 200
_LEAD = 40  # characters before the first that differs
_QUIET = 0.3  # seconds in which the other side may still say more
_MAX_EXTRAS, _MAX_EXTRA_BYTES = 200, 4 * 1024 * 1024  # of what is not in the record
_NOTHING: Any = msgspec.UNSET


class Difference(msgspec.Struct, frozen=True):
    """Something that is otherwise than in the record."""

    number: int
    """Which message of the record, from 1; 0 for one that is not in it."""
    what: str
    """What message: `the answer to tools/call show_orders`."""
    path: str
    """Where in it."""
    recorded: Any = None
    now: Any = None

    def __str__(self) -> str:
        what = _cut(self.what)
        where = f"message {self.number}, {what}" if self.number else what
        place = f", {_cut(self.path)}" if self.path else ""
        recorded, now = _json(self.recorded), _json(self.now)
        pairs = enumerate(zip(recorded, now, strict=False))
        alike = next((at for at, (old, new) in pairs if old != new), 0)
        begin = alike - _LEAD if alike > _MAX_SHOWN // 2 else 0
        return (
            f"{where}{place}\n  recorded: {_cut(recorded, begin)}\n  now:      {_cut(now, begin)}"
        )


def _json(value: Any) -> str:
    return "nothing" if value is _NOTHING else msgspec.json.encode(value).decode()


def _cut(text: str, begin: int = 0) -> str:
    """A part of a text; a terminal obeys what a record or a server may hold, so it is escaped."""
    shown = visible(text[begin : begin + _MAX_SHOWN])
    whole = begin == 0 and len(text) <= _MAX_SHOWN
    before, after = "…" if begin else "", "…" if begin + _MAX_SHOWN < len(text) else ""
    return shown if whole else f"{before}{shown}{after} ({len(text)} characters)"


class Replay:
    """A replay of the messages between a host and one server, or one View.

    Args:
        path: the record.
        leg: `server` or `view`.
        name: which server or View, if the record has several.
        ignore: paths that are not compared, such as `result.structuredContent.*.price`.

    Raises:
        UsageError: that is no record, or there are no such messages in it.
    """

    def __init__(
        self,
        path: str | Path,
        leg: Leg = "server",
        *,
        name: str | None = None,
        ignore: Sequence[str] = (),
    ) -> None:
        read = [each for each in read_record(path) if isinstance(each, RecordedMessage)]
        numbered = [(number, each) for number, each in enumerate(read, 1) if each.leg == leg]
        names = list(dict.fromkeys(each.name for _, each in numbered))
        if not names:
            raise UsageError(f"{path} has no messages of a {leg}")
        if name is None and len(names) > 1:
            raise UsageError(f"{path} has several of a {leg}, name one: {', '.join(names)}")
        self.name = names[0] if name is None else name
        """The server or View whose messages they are."""
        if self.name not in names:
            raise UsageError(f"{path} has no {leg} {self.name}; it has: {', '.join(names)}")
        self.messages = [(n, each) for n, each in numbered if each.name == self.name]
        self._ignore = ignore

    def page_uri(self) -> str:
        """The resource that the View showed."""
        for _, each in self.messages:
            tool = _at(each.value, "result", "hostContext", "toolInfo", "tool", "_meta")
            uri = _at(tool, "ui", "resourceUri") or _at(tool, "ui/resourceUri")
            if isinstance(uri, str):
                return uri
        raise UsageError(f"The record does not say which page View {self.name} showed")

    async def run(self, channel: Channel, *, timeout: float = 10.0) -> list[Difference]:
        """Play the host's part to the other side of a channel, which is closed; the differences.

        Args:
            channel: to a server, or to a View that has just begun.
            timeout: seconds to wait for each message, and for the end of what it sends.
        """
        theirs = [each.value for _, each in self.messages if each.sender != "host"]
        other = _OtherSide(channel, theirs, timeout)
        found: list[Difference] = []
        try:
            for number, each in self.messages:
                message = as_object(each.value)
                if not message:
                    continue  # it was too large to be recorded, or no JSON
                if each.sender == "host":
                    await other.send(message)
                elif not other.changes_always(message):
                    found += await self._compare(number, message, other)
            for extra in await other.rest():
                what = f"{other.title(extra)} that is not in the record"
                found.append(Difference(0, what, "", _NOTHING, extra))
        except TimeoutError:
            said = f"does not take what it is sent, for {timeout:g} s"
            found.append(Difference(0, "the connection", "", "open", said))
        except ChannelClosed as closed:
            found.append(Difference(0, "the connection", "", "open", f"closed: {closed}"))
        finally:
            await other.aclose()
        if other.left_out:
            said = f"{other.left_out} more, {other.left_out_bytes} bytes, that are left out here"
            what = "messages that are not in the record"
            found.append(Difference(0, what, "", _NOTHING, said))
        return found

    async def _compare(
        self, number: int, recorded: dict[str, Any], other: _OtherSide
    ) -> list[Difference]:
        what = other.title(recorded)
        now = await other.counterpart(recorded)
        if now is None:
            return [Difference(number, what, "", recorded, _NOTHING)]
        parts = ("params",) if "method" in recorded else ("result", "error")
        return [
            Difference(number, what, path, before, after)
            for part in parts
            for path, before, after in differences(
                recorded.get(part, _NOTHING), now.get(part, _NOTHING), part
            )
            if not any(fnmatchcase(path, pattern) for pattern in self._ignore)
        ]


class _OtherSide:
    """The other side of a channel; what it sends is kept until the record has it as well."""

    def __init__(self, channel: Channel, recorded: Sequence[Any], timeout: float) -> None:
        self._channel = channel
        self._timeout = timeout
        self._asked: dict[str, str] = {}  # by id: what the host asked for
        self._ids: dict[str, Any] = {}  # by id in the record: that of the request now
        self._expected = Counter(map(_kind, recorded))
        self._unmatched: list[Any] = []
        self._extras = 0
        self._extra_bytes = 0
        self.left_out = 0
        self.left_out_bytes = 0
        self._arrived = asyncio.Event()
        self._closed: ChannelClosed | None = None
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        try:
            while True:
                data = await self._channel.receive()
                message = read_message(data)
                if as_object(message).get("method") not in _NOT_COMPARED:
                    self._keep(message, len(data))
        except ChannelClosed as closed:
            self._closed = closed
            self._arrived.set()

    def _keep(self, message: Any, size: int) -> None:
        kind = _kind(message)
        if self._expected[kind] > 0:
            self._expected[kind] -= 1
            if not as_object(message):
                return  # what is no message was none in the record, either
        elif self._extras < _MAX_EXTRAS and self._extra_bytes + size <= _MAX_EXTRA_BYTES:
            self._extras += 1
            self._extra_bytes += size
        else:
            self.left_out += 1
            self.left_out_bytes += size
            return
        self._unmatched.append(message)
        self._arrived.set()

    async def send(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            if (id := self._ids.get(_key(message.get("id")))) is None:
                return  # it has not asked for it this time, which is a difference already
            message = {**message, "id": id}
        elif "id" in message:
            self._asked[_key(message["id"])] = _call(message)
        async with asyncio.timeout(self._timeout):
            await self._channel.send(msgspec.json.encode(message))

    def title(self, message: Any) -> str:
        if not as_object(message):
            return "a line that is no message"
        if "method" in message:
            return _call(message)
        return f"the answer to {self._asked.get(_key(message.get('id')), 'an unknown request')}"

    def changes_always(self, message: dict[str, Any]) -> bool:
        """Whether a message says nothing; a subscription is answered when the connection ends."""
        answers = "method" not in message and self._asked.get(_key(message.get("id")))
        return message.get("method") in _NOT_COMPARED or answers == "subscriptions/listen"

    async def counterpart(self, recorded: dict[str, Any]) -> dict[str, Any] | None:
        """Wait for the message that stands for a recorded one; None if there is none in time."""
        kind = _kind(recorded)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                while True:
                    alike = [each for each in self._unmatched if _kind(each) == kind]
                    if alike:
                        params = recorded.get("params")
                        same = (each for each in alike if each.get("params") == params)
                        found = next(same, alike[0])
                        self._unmatched.remove(found)
                        if "id" in recorded and "method" in recorded:
                            self._ids[_key(recorded["id"])] = found["id"]
                        return found
                    if self._closed is not None:
                        raise self._closed
                    self._arrived.clear()
                    await self._arrived.wait()
        return None

    async def rest(self) -> list[Any]:
        """What nothing in the record stands for, once the other side is quiet, or it is time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                while self._closed is None:
                    self._arrived.clear()
                    async with asyncio.timeout(_QUIET):
                        await self._arrived.wait()
        return self._unmatched

    async def aclose(self) -> None:
        await stop(self._reading)
        await self._channel.aclose()


def _kind(value: Any) -> str:
    """What has to be the same for one message to stand for another."""
    message = as_object(value)
    if not message:
        return f"no message {_key(value)}"
    if "method" in message:
        return f"{'request' if 'id' in message else 'notification'} {_key(message['method'])}"
    return f"answer {_key(message.get('id'))}"


def _key(id: object) -> str:
    return msgspec.json.encode(id).decode()  # "1" and 1 are two ids


def _call(message: dict[str, Any]) -> str:
    name = _at(message, "params", "name") or _at(message, "params", "uri")
    return f"{message['method']} {name}" if name else str(message["method"])


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = as_object(value).get(key)
    return value


# --- comparing -------------------------------------------------------------------------------


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two values differ: the path, and what is there. What only looks alike is equal."""
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for key in sorted({*old, *new}):
            yield from differences(old.get(key, _NOTHING), new.get(key, _NOTHING), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list):
        pairs = zip_longest(cast("list[Any]", before), cast("list[Any]", after), fillvalue=_NOTHING)
        for index, (old, new) in enumerate(pairs):
            yield from differences(old, new, f"{path}[{index}]")
    elif before != after and not _look_alike(before, after):
        yield path, before, after


def _look_alike(before: Any, after: Any) -> bool:
    if isinstance(before, str) and isinstance(after, str):
        return any(form.fullmatch(before) and form.fullmatch(after) for form in _ALIKE)
    if isinstance(before, int | float) and isinstance(after, int | float):
        return all(_FIRST_TIME < each < _LAST_TIME * 1000 for each in (before, after))
    return False
