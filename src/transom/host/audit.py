"""The audit: every registration, call, refusal and approval as one JSON line.

1. Recording never waits and never raises. Lines are written in batches by a thread of their own; a
   crash loses at most the batch that was not written yet.
2. A sink that fails is reported once for each streak of failures; calls are not affected.
3. Arguments are copied. Long ones are replaced by their size.
4. The oldest lines are dropped when there are more than `max_rows`, or more than `max_bytes`.
5. Only the writing thread touches the SQLite connection.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, Unpack

import msgspec
from msgspec import Raw

from transom.background import Background, Debounced, logs_errors, shared_task
from transom.errors import RequestTimeout, TransomError
from transom.events import Event
from transom.types import Task, ToolResult

AuditKind = Literal[
    "server",
    "view",
    "registration",
    "call",
    "refusal",
    "approval",
    "elicitation",
    "problem",
    "lost",
]
"""What an event is about; `elicitation`: what a user did when a server asked them; `lost`: events
that could not be written."""


# Quicker to make without the garbage collector's watch. None is part of a cycle.
class AuditEvent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of the audit.

    `event` says what it is about and `outcome` how it went, such as `ok`, `error` or `refused`.
    `by` is the id of the View that requested it, or None for the model or the host.
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
        return _line(self).decode()


class AuditDetails(TypedDict, total=False):
    """What is known of an event."""

    server: str | None
    view: str | None
    tool: str | None
    arguments: object
    ms: float | None
    by: str | None
    detail: str | None


class AuditFilter(TypedDict, total=False):
    """Which events to read; those that pass every filter given."""

    event: AuditKind | None
    server: str | None
    view: str | None
    tool: str | None
    since: float | None


Redact = Callable[[AuditEvent], AuditEvent | None]
"""Takes an event before it is stored; returns what to store of it, or None to drop it."""

Sink = Callable[[str], object]
"""Takes one JSON line. It runs in the event loop, so it must not block."""

_log_failure = logs_errors(logging.getLogger("transom.host"))

_MAX_WAITING = 100_000  # events that may wait for a slow disk before the oldest are dropped
_MAX_AT_ONCE = 4096  # events in one statement
_MAX_DETAIL = 500  # characters of an error
_BUSY_FOR = 5.0  # seconds that other hosts may keep a file locked
_LOOK_EVERY = 0.01

_NOT_JSON = Raw(b'{"omitted":"not JSON"}')
_now = time.time
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AuditEvent).decode


class AuditLog:
    """Stores audit events in SQLite, or hands their lines to a callable.

    Args:
        sink: the path of an SQLite file, `":memory:"`, a callable that takes JSON lines, or None to
            store nothing.
        max_rows: how many events are stored.
        max_bytes: how much room they may take.
        redact: sees each event first and returns what may be stored of it.
        max_arguments: arguments whose JSON is longer than this many bytes are left out.
        batch: how many events are written at once.
        interval: how many seconds an event waits for its batch at most.
        on_error: called when the sink fails or `redact` raises. A `Host` that has the log reports
            that to its own `on_error` too.
    """

    on_error = Event["AuditLog"]()

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
        on_error: Callable[[BaseException], object] | None = None,
    ) -> None:
        self.on_error.assign(on_error)
        self._sink = sink if callable(sink) else None
        stored = isinstance(sink, str | Path)
        self._db = _Database(str(sink), max_rows, max_bytes) if stored else None
        self._redact = redact
        self._max_arguments = max_arguments
        self._batch = batch
        self._waiting: deque[AuditEvent] = deque()
        self._dropped = 0
        self._failing = False
        self._writing = asyncio.Lock()
        self._write_soon = Debounced(partial(self._write, batch), self._report, delay=interval)
        self._thread: ThreadPoolExecutor | None = None
        self._background = Background(_log_failure)
        self._closed = sink is None

    # --- writing -----------------------------------------------------------------------------

    def record(self, event: AuditKind, outcome: str, **fields: Unpack[AuditDetails]) -> None:
        """Record one event."""
        if self._closed:
            return
        fields["arguments"] = self._copy(fields.get("arguments"))
        self._store(AuditEvent(_now(), event, outcome, **fields))

    def record_call(
        self,
        outcome: str,
        server: str,
        view: str | None,
        tool: str,
        arguments: object,
        ms: float,
        by: str | None = None,
        detail: str | None = None,
    ) -> None:
        """Record a call. `record` does the same; this is faster, because most events are calls."""
        if self._closed:
            return
        given = self._copy(arguments)
        self._store(AuditEvent(_now(), "call", outcome, server, view, tool, given, ms, by, detail))

    def record_refusal(self, tool: str, arguments: object, error: BaseException) -> None:
        """Record a call that reaches no server and no View."""
        detail = str(error)
        self.record("refusal", "refused", tool=tool[:128], arguments=arguments, detail=detail)

    def _store(self, event: AuditEvent) -> None:
        """Write it after `interval`, or at once when a batch is full; drop what is too much."""
        entry = event if self._redact is None else self._redacted(event, self._redact)
        if entry is None:
            return
        if self._sink is not None:
            self._hand_over(entry, self._sink)
            return
        self._waiting.append(entry)
        self._write_soon.trigger()
        if len(self._waiting) == self._batch:
            self._write_soon.flush()
        elif len(self._waiting) > _MAX_WAITING:
            self._waiting.popleft()
            self._dropped += 1

    def _redacted(self, event: AuditEvent, redact: Redact) -> AuditEvent | None:
        try:
            entry = redact(event)
            if entry is not None:
                _line(entry)
            return entry
        except Exception as error:  # noqa: BLE001 - a broken hook must not break the call
            # What could not be redacted may be secret: store only that something happened.
            self._report(error)
            return AuditEvent(event.when, event.event, event.outcome, detail="redaction failed")

    def _hand_over(self, entry: AuditEvent, sink: Sink) -> None:
        try:
            sink(entry.line())
            self._failing = False
        except Exception as error:  # noqa: BLE001 - a broken sink must not break the call
            self._report(error)

    def _copy(self, arguments: object) -> object:
        if arguments is None:
            return None
        try:
            raw = Raw(_encode(arguments))
        except (TypeError, ValueError, RecursionError):
            raw = _NOT_JSON
        if len(raw) > self._max_arguments and raw is not _NOT_JSON:
            raw = Raw(b'{"omitted":"%d bytes"}' % len(raw))
        # A hook needs the decoded arguments. Without one the JSON is stored as it is.
        return raw if self._redact is None else msgspec.json.decode(raw)

    def _report(self, error: BaseException) -> None:
        if not self._failing:
            self._failing = True
            self._background.fire(self.on_error, error)

    async def _write(self, least: int) -> None:
        """Have the thread write what waits, until fewer events than that do."""
        async with self._writing:
            while self._db is not None and (self._waiting or self._dropped):
                if self._dropped:
                    text = f"{self._dropped} events: the disk was too slow"
                    self._waiting.appendleft(AuditEvent(_now(), "lost", "lost", detail=text))
                    self._dropped = 0
                size = min(len(self._waiting), _MAX_AT_ONCE)
                batch = [self._waiting.popleft() for _ in range(size)]
                try:
                    await self._in_thread(self._db.write, batch)
                except Exception as error:  # noqa: BLE001 - a broken disk must not break the call
                    self._waiting.extendleft(reversed(batch))
                    self._report(error)
                    self._write_soon.trigger()
                    return
                self._failing = False
                if len(self._waiting) < least:
                    return

    def _in_thread(self, work: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="transom-audit")
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    # --- reading -----------------------------------------------------------------------------

    async def read(self, *, limit: int = 1000, **filters: Unpack[AuditFilter]) -> list[AuditEvent]:
        """The newest events that pass, oldest first. A callable sink has nothing to read.

        Args:
            limit: how many at most.
            filters: `event`, `server`, `view`, `tool` must be equal; `since` is the earliest time.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        await self.flush()
        if self._db is None:
            return []
        return await self._in_thread(self._db.read, limit, filters)

    async def flush(self) -> None:
        """Write the waiting events. What the sink refuses keeps waiting."""
        await asyncio.shield(shared_task(self._write(1)))

    async def aclose(self) -> None:
        """Write the waiting events and close. Recording does nothing from now on."""
        self._closed = True
        await self.flush()
        self._write_soon.close()
        if self._thread is not None and self._db is not None:
            await self._in_thread(self._db.close)
            self._thread.shutdown(wait=False)
            self._thread = None
        await self._background.aclose()


class RecordedCall:
    """Records how a call ended, and how long it took: give it the result in its `with` block."""

    __slots__ = ("_about", "_began", "_by", "_log", "result")

    def __init__(
        self,
        log: AuditLog,
        server: str,
        view: str | None,
        tool: str,
        arguments: object,
        *,
        by: str | None = None,
    ) -> None:
        self.result: ToolResult | Task | None = None
        self._log = log
        self._about = server, view, tool, arguments
        self._by = by
        self._began = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        result, detail = self.result, None
        if error is not None:
            cancelled = isinstance(error, asyncio.CancelledError)
            outcome = "cancelled" if cancelled else "failed"
            if isinstance(error, TransomError):
                outcome = "timeout" if isinstance(error, RequestTimeout) else "failed"
                detail = str(error)[:_MAX_DETAIL]
        elif isinstance(result, ToolResult):
            outcome = "error" if result.is_error else "ok"
        else:
            outcome = "task"
        ms = int((time.perf_counter() - self._began) * 1e6) / 1e3
        self._log.record_call(outcome, *self._about, ms, self._by, detail)


def _line(event: AuditEvent) -> bytes:
    """An event as JSON. Half of a surrogate pair, as a model may write it, becomes `?`."""
    try:
        return _encode(event)
    except UnicodeEncodeError:
        texts = [(name, getattr(event, name)) for name in AuditDetails.__annotations__]
        plain = {k: v.encode(errors="replace").decode() for k, v in texts if isinstance(v, str)}
        return _encode(msgspec.structs.replace(event, **plain))


def read_audit(
    path: str | Path, *, limit: int = 1000, **filters: Unpack[AuditFilter]
) -> list[AuditEvent]:
    """The newest events of an audit file, as `AuditLog.read`. The host may still be writing to it.

    Raises:
        FileNotFoundError: there is no such file.
        sqlite3.Error: it is not an audit.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no audit at {path}")
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        return _select(connection, limit, filters)


# --- SQLite ----------------------------------------------------------------------------------

# The columns are computed from the line when they are read, because writes are more frequent.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY,
    line TEXT NOT NULL,
    "when" REAL AS (line ->> 'when') VIRTUAL,
    event TEXT AS (line ->> 'event') VIRTUAL,
    outcome TEXT AS (line ->> 'outcome') VIRTUAL,
    server TEXT AS (line ->> 'server') VIRTUAL,
    view TEXT AS (line ->> 'view') VIRTUAL,
    tool TEXT AS (line ->> 'tool') VIRTUAL
)
"""

# One statement for a whole batch: SQLite splits the lines without holding Python's GIL.
_INSERT = "INSERT INTO events (line) SELECT value FROM json_each(?)"
_DELETE_A_TENTH = (
    "DELETE FROM events WHERE id <= (SELECT min(id) + (max(id) - min(id)) / 10 FROM events)"
)

_FILTERS = {
    "since": '"when" >= ?',
    "event": "event = ?",
    "server": "server = ?",
    "view": "view = ?",
    "tool": "tool = ?",
}


class _Database:
    """The table of audit lines in one SQLite file, or in memory."""

    def __init__(self, path: str, max_rows: int, max_bytes: int) -> None:
        self.path = path
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._connection: sqlite3.Connection | None = None

    def write(self, batch: list[AuditEvent]) -> None:
        """Append a batch, then drop the oldest lines over the caps."""
        try:
            lines = _encode(batch)
        except UnicodeEncodeError:
            lines = b"[%b]" % b",".join(map(_line, batch))
        connection = self._connected()
        with connection:
            connection.execute(_INSERT, (lines.decode(),))
            connection.execute(
                "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?",
                (self._max_rows,),
            )
            # Pages freed here are used again, so the file stops growing at the cap.
            while _used_bytes(connection) > self._max_bytes:
                if not connection.execute(_DELETE_A_TENTH).rowcount:
                    return

    def read(self, limit: int, filters: AuditFilter) -> list[AuditEvent]:
        """The newest events that pass the filters, oldest first."""
        return _select(self._connected(), limit, filters)

    def close(self) -> None:
        """Close the file. Writing opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            if self.path != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, check_same_thread=False)
            try:
                connection.execute(f"PRAGMA busy_timeout = {_BUSY_FOR * 1000:.0f}")
                _log_ahead(connection)
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(f"PRAGMA journal_size_limit = {self._max_bytes}")
                connection.execute(_SCHEMA)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log, so that several hosts can write to one file.

    SQLite does not wait here for a host that is turning it on at the same time.
    """
    give_up = time.perf_counter() + _BUSY_FOR
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.perf_counter() > give_up:
                raise
        time.sleep(_LOOK_EVERY)  # in the thread that writes


def _used_bytes(connection: sqlite3.Connection) -> int:
    counts = ("page_count", "freelist_count", "page_size")
    pages, free, size = (connection.execute(f"PRAGMA {count}").fetchone()[0] for count in counts)
    return (pages - free) * size


def _select(connection: sqlite3.Connection, limit: int, filters: AuditFilter) -> list[AuditEvent]:
    given = {name: value for name, value in filters.items() if value is not None}
    where = " AND ".join(_FILTERS[name] for name in given) or "1"
    # Only the fixed texts above go into the statement; values are bound as parameters.
    statement = f"SELECT line FROM events WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608
    rows = connection.execute(statement, (*given.values(), limit)).fetchall()
    return [_decode(line) for (line,) in reversed(rows)]
