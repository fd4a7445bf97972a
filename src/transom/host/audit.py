"""What happened, kept: every registration, call, refusal and approval as one JSON line.

1. Recording never waits and never raises. Lines are gathered and written in batches by a thread
   of their own; a crash loses at most the batch that was not written yet.
2. A sink that fails is reported once for each streak of failures; calls go on.
3. Arguments are copied as they were when the call began. Long ones are replaced by their size.
4. The oldest lines go when there are more than `max_rows`, or more than `max_bytes`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Raw

from transom.host.audit_store import AuditDb, read_lines

__all__ = ["AuditEvent", "AuditKind", "AuditLog", "Redact", "Sink", "read_audit"]

AuditKind = Literal["server", "view", "registration", "call", "refusal", "approval", "lost"]


class AuditEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the audit.

    `event` says what it is about and `outcome` how it went, such as `ok`, `error` or `refused`.
    `by` is the id of the View that asked for it; it is None when the model or the host did.
    `when` is in seconds since 1970, `ms` in milliseconds.
    """

    when: float
    event: AuditKind
    outcome: str
    server: str | None = None
    view: str | None = None
    tool: str | None = None
    arguments: Any = None
    ms: float | None = None
    by: str | None = None
    detail: str | None = None

    @property
    def time(self) -> datetime:
        """When it happened."""
        return datetime.fromtimestamp(self.when, UTC)

    def line(self) -> str:
        """The event as one JSON line."""
        return msgspec.json.encode(self).decode()


Redact = Callable[[AuditEvent], AuditEvent | None]
"""Takes an event before it is kept; returns what to keep of it, or None to keep nothing."""

Sink = Callable[[str], object]
"""Takes one JSON line. It runs in the event loop, so it must not block."""

_MAX_WAITING = 100_000  # events that may wait for a slow disk before the oldest are given up
_MAX_AT_ONCE = 4096  # events in one statement

_Call = tuple[float, str, str, str | None, str, bytes, float, str | None]
"""A call that waits to be written; an `AuditEvent` is made of it by the thread that does."""

_now = time.time
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AuditEvent).decode


def _ignore(_: BaseException) -> None:
    pass


class AuditLog:
    """Keeps audit events in SQLite, or hands their lines to a callable.

    Args:
        sink: the path of an SQLite file, `":memory:"`, a callable that takes JSON lines, or None
            to keep nothing.
        max_rows: how many events are kept.
        max_bytes: how much room they may take.
        redact: sees each event first and returns what may be kept of it.
        max_arguments: arguments whose JSON is longer than this many bytes are left out.
        batch: how many events are written at once.
        interval: how many seconds an event waits for its batch at most.
        on_problem: told when the sink fails or `redact` raises. Must not raise.
    """

    def __init__(
        self,
        sink: str | Path | Sink | None = ":memory:",
        *,
        max_rows: int = 100_000,
        max_bytes: int = 64 * 1024 * 1024,
        redact: Redact | None = None,
        max_arguments: int = 4096,
        batch: int = 512,
        interval: float = 0.25,
        on_problem: Callable[[BaseException], object] = _ignore,
    ) -> None:
        self.on_problem = on_problem
        self._call = sink if callable(sink) else None
        keeps = isinstance(sink, str | Path)
        self._db = AuditDb(str(sink), max_rows, max_bytes) if keeps else None
        self._redact = redact
        self._max_arguments = max_arguments
        self._batch = batch
        self._interval = interval
        self._waiting: deque[AuditEvent | _Call] = deque()
        self._given_up = 0
        self._failing = False
        self._timer: asyncio.Handle | None = None
        self._writing: asyncio.Future[None] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._closed = sink is None
        self._slow = self._closed or self._db is None or redact is not None

    # --- writing -----------------------------------------------------------------------------

    def record(
        self,
        event: AuditKind,
        outcome: str,
        *,
        server: str | None = None,
        view: str | None = None,
        tool: str | None = None,
        arguments: object = None,
        ms: float | None = None,
        by: str | None = None,
        detail: str | None = None,
    ) -> None:
        """Keep one event."""
        if self._closed:
            return
        copied = None if arguments is None else self._copy(arguments)
        entry = AuditEvent(_now(), event, outcome, server, view, tool, copied, ms, by, detail)
        if self._redact is not None:
            entry = self._redacted(entry)
            if entry is None:
                return
        if self._call is not None:
            self._hand_over(self._call, entry)
            return
        self._waiting.append(entry)
        if self._timer is None or len(self._waiting) >= self._batch:
            self._hurry()

    def record_call(
        self,
        outcome: str,
        server: str,
        view: str | None,
        tool: str,
        arguments: object,
        ms: float,
        detail: str | None = None,
    ) -> None:
        """Keep a call. The same as `record`, made for what happens most."""
        if self._slow:
            self.record(
                "call",
                outcome,
                server=server,
                view=view,
                tool=tool,
                arguments=arguments,
                ms=ms,
                detail=detail,
            )
            return
        try:
            data = _encode(arguments)
        except (TypeError, ValueError, RecursionError):
            data = b'{"omitted":"not JSON"}'
        waiting = self._waiting
        waiting.append((_now(), outcome, server, view, tool, data, ms, detail))
        if self._timer is None or len(waiting) >= self._batch:
            self._hurry()

    def _hurry(self) -> None:
        """See that what waits is written in time, and that not too much does."""
        waiting, loop = self._waiting, asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(self._interval, self._write)
        if len(waiting) == self._batch:
            self._timer.cancel()
            self._timer = loop.call_soon(self._write)
        elif len(waiting) > _MAX_WAITING:
            waiting.popleft()
            self._given_up += 1

    def _copy(self, arguments: object) -> object:
        try:
            data = arguments if isinstance(arguments, bytes) else _encode(arguments)
        except (TypeError, ValueError, RecursionError):
            return {"omitted": "not JSON"}
        if len(data) > self._max_arguments:
            return {"omitted": f"{len(data)} bytes"}
        # A hook wants to look inside. Without one the JSON is kept as it is.
        return Raw(data) if self._redact is None else msgspec.json.decode(data)

    def _redacted(self, entry: AuditEvent) -> AuditEvent | None:
        assert self._redact is not None  # noqa: S101 - for the type checker
        try:
            return self._redact(entry)
        except Exception as error:  # noqa: BLE001 - a broken hook must not break the call
            # What could not be redacted may be secret: keep only that something happened.
            self._report(error)
            return AuditEvent(entry.when, entry.event, entry.outcome, detail="redaction failed")

    def _hand_over(self, call: Sink, entry: AuditEvent) -> None:
        try:
            call(entry.line())
            self._failing = False
        except Exception as error:  # noqa: BLE001 - a broken sink must not break the call
            self._report(error)

    def _report(self, error: BaseException) -> None:
        if not self._failing:
            self._failing = True
            self.on_problem(error)

    def _write(self) -> None:
        """Hand what waits to the thread, unless it is still busy with the batch before."""
        self._timer = None
        if self._writing is not None or self._db is None or not (self._waiting or self._given_up):
            return
        if self._given_up:
            text = f"{self._given_up} events: the disk was too slow"
            self._waiting.appendleft(AuditEvent(_now(), "lost", "lost", detail=text))
            self._given_up = 0
        waiting = self._waiting
        batch = [waiting.popleft() for _ in range(min(len(waiting), _MAX_AT_ONCE))]
        loop = asyncio.get_running_loop()
        self._writing = loop.run_in_executor(
            self._executor(), _write_batch, self._db, batch, self._max_arguments
        )
        self._writing.add_done_callback(lambda future: self._written(future, batch))

    def _written(self, future: asyncio.Future[None], batch: list[AuditEvent | _Call]) -> None:
        self._writing = None
        error = None if future.cancelled() else future.exception()
        if error is None:
            self._failing = False
        else:
            self._waiting.extendleft(reversed(batch))  # tried again with the next batch
            self._report(error)
        if self._waiting and self._timer is None and not self._closed:
            delay = 0 if len(self._waiting) >= self._batch and error is None else self._interval
            self._timer = asyncio.get_running_loop().call_later(delay, self._write)

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="transom-audit")
        return self._thread

    # --- reading -----------------------------------------------------------------------------

    async def read(
        self,
        *,
        event: AuditKind | None = None,
        server: str | None = None,
        view: str | None = None,
        tool: str | None = None,
        since: float | None = None,
        limit: int = 1000,
    ) -> list[AuditEvent]:
        """The newest events that fit, oldest first. A callable sink has nothing to read.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        await self.flush()
        if self._db is None:
            return []
        filters = {"since": since, "event": event, "server": server, "view": view, "tool": tool}
        loop = asyncio.get_running_loop()
        lines = await loop.run_in_executor(self._executor(), self._db.read, filters, limit)
        return [_decode(line) for line in lines]

    async def flush(self) -> None:
        """Write what waits. What the sink refuses stays waiting."""
        while self._waiting or self._writing is not None:
            if self._writing is None:
                self._write()
            writing = self._writing
            if writing is None:
                return
            await asyncio.wait([writing])
            # The callback that takes the batch off the queue runs in the same turn as this.
            if self._writing is writing:
                await asyncio.sleep(0)
            if self._failing:
                return

    async def aclose(self) -> None:
        """Write what waits and close. Recording does nothing from now on."""
        self._closed = self._slow = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.flush()
        if self._thread is not None and self._db is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._db.close)
            self._thread.shutdown(wait=False)
            self._thread = None


def _write_batch(db: AuditDb, batch: list[AuditEvent | _Call], max_arguments: int) -> None:
    events = [
        _call_event(each, max_arguments) if isinstance(each, tuple) else each for each in batch
    ]
    db.write(_encode(events))


def _call_event(call: _Call, max_arguments: int) -> AuditEvent:
    when, outcome, server, view, tool, data, ms, detail = call
    if len(data) > max_arguments:
        data = b'{"omitted":"%d bytes"}' % len(data)
    return AuditEvent(when, "call", outcome, server, view, tool, Raw(data), ms, None, detail)


def read_audit(
    path: str | Path,
    *,
    event: AuditKind | None = None,
    server: str | None = None,
    view: str | None = None,
    tool: str | None = None,
    since: float | None = None,
    limit: int = 1000,
) -> list[AuditEvent]:
    """The newest events of an audit file that fit, oldest first. The host may go on writing to it.

    Raises:
        FileNotFoundError: there is no such file.
        sqlite3.Error: it is not an audit.
    """
    filters = {"since": since, "event": event, "server": server, "view": view, "tool": tool}
    return [_decode(line) for line in read_lines(path, filters, limit)]
