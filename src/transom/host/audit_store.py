"""Audit lines in SQLite: one file, write-ahead log, oldest lines dropped at the caps.

An `AuditDb` belongs to one thread at a time: the one that calls it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

__all__ = ["AuditDb", "read_lines"]

# The columns are read out of the line when somebody asks for them: writing costs more often.
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

# One statement for a whole batch: SQLite takes the lines apart while Python goes on.
_INSERT = "INSERT INTO events (line) SELECT value FROM json_each(?)"

_FILTERS = {
    "since": '"when" >= ?',
    "event": "event = ?",
    "server": "server = ?",
    "view": "view = ?",
    "tool": "tool = ?",
}


class AuditDb:
    """The table of audit lines in one SQLite file, or in memory."""

    def __init__(self, path: str, max_rows: int, max_bytes: int) -> None:
        self.path = path
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._connection: sqlite3.Connection | None = None

    def write(self, lines: bytes) -> None:
        """Append the lines of a JSON array, then drop the oldest ones over the caps.

        Raises:
            sqlite3.Error: nothing was written.
        """
        connection = self._connected()
        with connection:
            connection.execute(_INSERT, (lines.decode(),))
            connection.execute(
                "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?",
                (self._max_rows,),
            )
            self._drop_until_it_fits(connection)

    def read(self, filters: Mapping[str, object], limit: int) -> list[str]:
        """The newest lines that pass the filters, oldest first."""
        return _select(self._connected(), filters, limit)

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
                connection.execute("PRAGMA busy_timeout = 5000")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(f"PRAGMA journal_size_limit = {self._max_bytes}")
                connection.execute(_SCHEMA)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _drop_until_it_fits(self, connection: sqlite3.Connection) -> None:
        # Pages freed here are used again, so the file stops growing at the cap.
        while _used_bytes(connection) > self._max_bytes:
            gone = connection.execute(
                "DELETE FROM events WHERE id <= (SELECT min(id) + (max(id) - min(id)) / 10"
                " FROM events)"
            )
            if not gone.rowcount:
                return


def _used_bytes(connection: sqlite3.Connection) -> int:
    [[pages]] = connection.execute("PRAGMA page_count").fetchall()
    [[free]] = connection.execute("PRAGMA freelist_count").fetchall()
    [[size]] = connection.execute("PRAGMA page_size").fetchall()
    return (pages - free) * size


def read_lines(path: str | Path, filters: Mapping[str, object], limit: int) -> list[str]:
    """The newest lines of a file that pass the filters, oldest first. The file is not changed.

    Raises:
        FileNotFoundError: there is no such file.
        sqlite3.Error: it is not an audit.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no audit at {path}")
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        return _select(connection, filters, limit)


def _select(connection: sqlite3.Connection, filters: Mapping[str, object], limit: int) -> list[str]:
    given = {name: value for name, value in filters.items() if value is not None}
    where = " AND ".join(_FILTERS[name] for name in given) or "1"
    # Only the fixed texts above go into the statement; what the user gave is bound.
    statement = f"SELECT line FROM events WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608
    rows: Sequence[tuple[str]] = connection.execute(statement, (*given.values(), limit)).fetchall()
    return [line for (line,) in reversed(rows)]
