"""What the next Host of a user needs to reopen their Views, in memory or on the bus.

One field is for the host, one for each View. If there is no room, the oldest Views are left out;
the last ids are always stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from transom.background import Debounced, logs_errors
from transom.bus import Lease
from transom.errors import BusError, LeaseLost
from transom.host.host import Host
from transom.host.open_views import HostRecords, ViewRecord
from transom.host.views.view import View

_log = logging.getLogger("transom.web")
_report = logs_errors(_log)

_MAX_USERS = 100_000  # users without a Host whose ids are stored
_MAX_BYTES = 64 * 1024 * 1024  # of the records of their Views
_MAX_USER_VIEWS = 100
_MAX_USER_BYTES = 2 * 1024 * 1024
_RETRY = 1.0  # seconds until a failed write is retried

_HOST = "host"
_VIEW = "view "

_encode = msgspec.msgpack.Encoder().encode
_read_host = msgspec.msgpack.Decoder(HostRecords).decode
_read_view = msgspec.msgpack.Decoder(ViewRecord).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_records(fields: Mapping[str, bytes]) -> HostRecords | None:
    """Decode records; None if there are none, or none that can be read."""
    if _HOST not in fields:
        return None
    try:
        host = _read_host(fields[_HOST])
    except _UNREADABLE as error:  # written by another version
        _log.warning("What was kept of a user's Views cannot be read: %s", error)
        return None
    views: dict[str, ViewRecord] = {}
    for field, data in fields.items():
        if field.startswith(_VIEW):
            try:
                views[field.removeprefix(_VIEW)] = _read_view(data)
            except _UNREADABLE as error:  # or by a Python that writes what is nested deeper
                _log.warning("What was kept of a View cannot be read: %s", error)
    return msgspec.structs.replace(host, views=views)


def _write_host(records: HostRecords) -> bytes:
    return _encode(msgspec.structs.replace(records, views={}))


def _write_view(record: ViewRecord) -> bytes | None:
    if record.size > _MAX_USER_BYTES:
        return None
    try:
        return _encode(record)
    except (TypeError, ValueError, OverflowError, RecursionError):  # changed since the call
        return None


class KeptRecords:
    """The records of users who have no Host now, in memory."""

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, bytes] = OrderedDict()
        self._views: OrderedDict[str, dict[str, bytes]] = OrderedDict()
        self._bytes = 0

    def __contains__(self, user: str) -> bool:
        return user in self._hosts

    def keep(self, user: str, records: HostRecords) -> None:
        """Store a user's records; those of the least recent users make room."""
        if not records.numbers:
            return
        self._hosts[user] = _write_host(records)
        written = {key: _write_view(each) for key, each in records.views.items()}
        views = {_VIEW + key: data for key, data in written.items() if data is not None}
        self._views[user] = views
        self._bytes += _size(views)
        while self._bytes > _MAX_BYTES:
            self._bytes -= _size(self._views.popitem(last=False)[1])
        while len(self._hosts) > _MAX_USERS:
            self.take(next(iter(self._hosts)))

    def take(self, user: str) -> HostRecords | None:
        """Remove and return a user's records."""
        host, views = self._hosts.pop(user, None), self._views.pop(user, {})
        self._bytes -= _size(views)
        return None if host is None else read_records({_HOST: host, **views})


def _size(views: Mapping[str, bytes]) -> int:
    return sum(map(len, views.values()))


class SharedRecords:
    """Writes the records of a user's Host to the bus, as they change.

    `records` returns the current ones; `known` are the fields that the bus has already, with those
    that nobody can read: they are deleted.
    """

    def __init__(
        self, lease: Lease, records: Callable[[], HostRecords | None], known: Iterable[str]
    ) -> None:
        self._lease = lease
        self._records = records
        self._host = b""
        views = [field.removeprefix(_VIEW) for field in known if field.startswith(_VIEW)]
        self._written = dict.fromkeys(views, 0)
        self._changed: set[str] = set(self._written)
        self._writing = Debounced(self._write, _report)
        self._retry: asyncio.TimerHandle | None = None

    def watch(self, host: Host) -> None:
        """Write the changes of a Host."""
        for slot in (
            *(host.on_view_opened, host.on_view_changed),
            *(host.on_view_closed, host.on_view_failed),
        ):
            slot(self.changed)
        self._writing.trigger()

    def changed(self, view: View) -> None:
        """A View has changed."""
        self._changed.add(view.id)
        self._writing.trigger()

    def rewrite(self) -> None:
        """Write everything again, because the bus has lost it."""
        self._host = b""
        self._changed |= self._written.keys()
        self._writing.trigger()

    async def finish(self, *, grants: bool = True) -> None:
        """Write the last changes, with or without the user's grants."""
        self._writing.close()
        if self._retry is not None:
            self._retry.cancel()
        await self._write(again=False, grants=grants)

    async def _write(self, *, again: bool = True, grants: bool = True) -> None:
        records = self._records()
        if records is None or not self._lease.held:
            return
        if not grants:
            records = msgspec.structs.replace(records, grants=[])
        changes = self._changes(records)
        try:
            if changes:
                await self._lease.write(changes)
        except LeaseLost:
            pass  # the worker that has the user now has the records
        except BusError as error:
            _log.warning("What a user's Views need to outlive this worker is not kept: %s", error)
            deleted = [field.removeprefix(_VIEW) for field in changes if changes[field] is None]
            self._written.update(dict.fromkeys(deleted, 0))
            self.rewrite()
            self._writing.drop()
            if again:
                loop = asyncio.get_running_loop()
                self._retry = loop.call_later(_RETRY, self._writing.trigger)

    def _changes(self, records: HostRecords) -> dict[str, bytes | None]:
        changes: dict[str, bytes | None] = {}
        if (host := _write_host(records)) != self._host:
            changes[_HOST] = self._host = host
        changed, self._changed = self._changed, set()
        left, room = set(self._written), _MAX_USER_BYTES
        for key, record in list(records.views.items())[: -_MAX_USER_VIEWS - 1 : -1]:
            if key in changed or key not in self._written:
                data = _write_view(record)
                if data is None or len(data) > room:
                    continue
                changes[_VIEW + key], self._written[key] = data, len(data)
            room -= self._written[key]
            left.discard(key)
        for key in left:
            changes[_VIEW + key] = None
            del self._written[key]
        return changes
