"""One user of a web application: the pages, which View is on which, and what the next Host needs.

1. Every page is a Stage of its own. A *place* is an element for a View in a page. A View is on one
   page at a time, at its newest place; the page that had it before is told so.
2. A View that opens is offered to all pages, and waits for the first place.
3. A View whose page closes, or whose place is removed, is closed. It is reopened, with its input
   and result, as soon as a page has a place for it. A View that was closed for another reason is
   reopened only when the user asks for that.
4. A user whose Host was closed gets another one as soon as a page has a place for one of its Views.
5. Records of the Views are stored for the next Host, on this worker or on another: one field for
   the host, one for each View. If there is no room, the oldest Views are left out; the last ids are
   always stored.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from weakref import WeakSet

import msgspec

from transom.background import Background, Debounced, ignore, logs_errors, stop
from transom.bus import Lease
from transom.errors import BusError, LeaseLost, Refused, TransomError
from transom.host.host import Host
from transom.host.open_views import HostRecords, ViewRecord
from transom.host.page import Page
from transom.host.view import View
from transom.json_values import clean
from transom.web.page_link import Link
from transom.web.remote_host import SharedHost
from transom.web.seat import Seat, SeatOptions
from transom.web.stage import Hello, Stage, StageListener, Wish

_MAX_PAGES = 20  # of one user
_MAX_GONE = 1000  # Views of one user
_MAX_REASON = 200
_MOVED = "it is shown on another page now"
_UNSEEN = "no page shows it any more"


class UserPages(StageListener):
    """The pages of one user. `seat` is the renderer of the user's Host.

    `find_host` returns that Host, if there is one; `wake` an awaitable that creates one, if the
    user had Views; `on_away` is called when no page is left; `label_of` returns the label of a
    View's persistent origin, if it has one.
    """

    def __init__(
        self,
        find_host: Callable[[], Host | None],
        wake: Callable[[], Awaitable[object] | None],
        *,
        show_within: float,
        on_away: Callable[[], object],
        label_of: Callable[[Page, Stage], Awaitable[str | None]] | None = None,
    ) -> None:
        self._find_host = find_host
        self._wake = wake
        self._label_of = label_of
        self._wishes: dict[tuple[Stage, str], Wish] = {}  # of pages, until there is a Host
        self._show_within = show_within
        self._on_away = on_away
        self._places: dict[str, Stage] = {}
        self._place_found = asyncio.Condition()
        self._gone: dict[str, str] = {}  # why Views were closed; "": their place was removed
        self._left: WeakSet[View] = WeakSet()  # Views whose place was removed
        self._leaving: dict[str, asyncio.Task[None]] = {}
        # The Host reports what fails in opening and closing Views.
        self._background = Background(ignore)
        self.stages: list[Stage] = []
        self.options = SeatOptions(confirm=True)
        self.seat = Seat(self)

    url = ""  # the application's pages have their own

    def __len__(self) -> int:
        return len(self.stages)

    def attach_host(self, host: Host) -> None:
        """Forward events of this Host's Views to the pages."""
        host.on_view_closed(self._closed)

    def records(self, host: Host) -> HostRecords:
        """The Host's records. A View that was closed with its page counts as open."""
        records = host.records()
        views = {
            key: msgspec.structs.replace(each, reason=self._gone.get(key, each.reason))
            for key, each in records.views.items()
        }
        return msgspec.structs.replace(records, views=views)

    def restore(self, host: Host, records: HostRecords) -> None:
        """Restore the Views that the user had."""
        host.restore(records)
        for key, each in records.views.items():
            self._keep_reason(key, each.reason)

    # --- pages -------------------------------------------------------------------------------

    def connect(
        self, hello: Hello, origin: str, make_stage: Callable[[StageListener], Stage]
    ) -> tuple[Link, bool]:
        """A page of the user connects: returns its link, and whether it resumes an earlier one.

        Raises:
            Refused: the user has too many pages open.
        """
        for stage in self.stages:
            if hello.page is not None and stage.has_link(hello.page):
                return stage.open_link(hello, origin)
        if len(self.stages) >= _MAX_PAGES:
            raise Refused(f"You have {_MAX_PAGES} pages open: close one, then load this one again")
        stage = make_stage(self)
        self.stages.append(stage)
        return stage.open_link(hello, origin)

    def page_connected(self, stage: Stage) -> None:
        """Offer a new page the Views that there are."""
        if (host := self._find_host()) is not None:
            for view in host.views.values():
                waits = view.state == "opening" and view.id not in self._places
                stage.send({**_offer(view), "new": waits})

    def surroundings_changed(self, stage: Stage) -> None:
        """Send all Views what the page knows about its user."""
        self.seat.set_context(stage.surroundings)

    def page_over(self, stage: Stage) -> None:
        """Close the Views of a page that has closed, and offer them to the others."""
        self.stages.remove(stage)
        for key in [key for key, place in self._places.items() if place is stage]:
            self._lose(stage, key)
        if not self.stages:
            self._on_away()

    async def close(self) -> None:
        """Close all pages and their links."""
        self._background.cancel()
        for stage in list(self.stages):
            stage.page_lost("this session has ended")  # the reason for the Views' end
            stage.close()

    # --- the seat ----------------------------------------------------------------------------

    def take(self, seat: Seat) -> None:
        """There is one seat, which the user's Host takes."""

    def leave(self, seat: Seat) -> None:
        """The next Host takes it again."""

    async def label(self, page: Page, stage: Stage) -> str | None:
        """The label of a View's persistent origin, if it has one."""
        return None if self._label_of is None else await self._label_of(page, stage)

    def stage_of(self, key: str) -> Stage | None:
        """The Stage of the page that has the View's place."""
        return self._places.get(key)

    async def show_page(self, key: str) -> Stage:
        """Wait for a place for a View."""
        if key not in self._places and (host := self._find_host()) is not None:
            for stage in self.stages:
                stage.send({**_offer(host.views[key]), "new": True})
        try:
            async with asyncio.timeout(self._show_within), self._place_found:
                await self._place_found.wait_for(lambda: key in self._places)
        except TimeoutError:
            text = f"No page of the user showed the View within {self._show_within:g} s"
            raise TransomError(text) from None
        return self._places[key]

    # --- places ------------------------------------------------------------------------------

    def place_changed(self, stage: Stage, key: str, wish: Wish) -> None:
        """A page has added or removed the place of a View."""
        if (stage, key) in self._wishes:
            self._wishes[stage, key] = wish
        elif len(self._wishes) >= _MAX_GONE:
            pass  # more than there ever were
        elif wish is Wish.GONE:
            if self._places.get(key) is stage:
                self._lose(stage, key)
        elif (waking := self._wake()) is not None:
            self._wishes[stage, key] = wish
            self._background.start(self._place_awake(waking, stage, key))
        else:
            self._add_place(stage, key, wish)

    def _add_place(self, stage: Stage, key: str, wish: Wish) -> None:
        """Show a View on a page that has a place for it, or tell the page why not."""
        before, host = self._places.get(key), self._find_host()
        view = None if host is None else host.views.get(key)
        opening = view is not None and view.state == "opening"
        elsewhere = before not in (None, stage)
        reason = self._gone.get(key, "it is not open") if view is None else ""
        if elsewhere and (wish is Wish.FREE or (wish is Wish.TAKE and opening)):
            stage.send({"do": "elsewhere", "view": key})
        elif host is None or not host.was_view(key):
            _send_absent(stage, key, "it is not open", again=False)
        elif reason and wish is not Wish.AGAIN:
            _send_absent(stage, key, reason)
        elif key not in stage.views:
            self._places[key] = stage
            if before is not None and elsewhere:
                self._leave(before, key, _MOVED)
                before.send({"do": "elsewhere", "view": key})
            self._background.start(self._put(host, key, stage))

    async def _place_awake(self, waking: Awaitable[object], stage: Stage, key: str) -> None:
        reason = "it cannot be opened now"
        try:
            await waking
        except TransomError as error:
            reason = str(error)
        finally:
            wish = self._wishes.pop((stage, key), None)
            if wish is not None and stage in self.stages:
                if self._find_host() is None:
                    _send_absent(stage, key, reason)
                else:
                    self.place_changed(stage, key, wish)

    async def _put(self, host: Host, key: str, stage: Stage) -> None:
        """Show a View at its place: one that waits for a place, or one that is reopened."""
        if (leaving := self._leaving.get(key)) is not None:
            await asyncio.wait([leaving])
        async with self._place_found:
            self._place_found.notify_all()
        if self._places.get(key) is not stage or key in host.views:
            return
        self._gone.pop(key, None)
        try:
            await host.reopen(key)
        except TransomError as error:
            if self._places.get(key) is stage and key not in stage.gone:
                _send_absent(stage, key, str(error))

    def _lose(self, stage: Stage, key: str) -> None:
        """The place of a View was removed: close it, and offer it to other pages."""
        del self._places[key]
        self._keep_reason(key, "")
        self._leave(stage, key, _UNSEEN)
        for other in self.stages:
            if other is not stage:
                other.send({"do": "offer", "view": key, "new": False})

    def _leave(self, stage: Stage, key: str, reason: str) -> None:
        """Close a View whose frame is gone, or about to be."""
        host = self._find_host()
        view = None if host is None else host.views.get(key)
        if view is not None:
            self._left.add(view)
        stage.remove(key, reason)
        if view is not None:
            task = self._leaving[key] = asyncio.create_task(view.close(reason))
            task.add_done_callback(lambda ended: self._left_place(key, ended))

    def _left_place(self, key: str, task: asyncio.Task[None]) -> None:
        if self._leaving.get(key) is task:
            del self._leaving[key]

    def _closed(self, view: View) -> None:
        """A View was closed: with its page, by the user, by itself, or to make room."""
        if view in self._left:
            return
        stage = self._places.get(view.id)
        if stage is not None and not stage.has_page:
            self._lose(stage, view.id)
            return
        self._keep_reason(view.id, view.reason)
        if stage is not None:
            del self._places[view.id]
            _send_absent(stage, view.id, view.reason)

    def _keep_reason(self, key: str, reason: str) -> None:
        self._gone[key] = reason
        while len(self._gone) > _MAX_GONE:
            del self._gone[next(iter(self._gone))]


def _send_absent(stage: Stage, key: str, reason: str, *, again: bool = True) -> None:
    text = clean(reason, _MAX_REASON)
    stage.send({"do": "absent", "view": key, "reason": text, "again": again})


def _offer(view: View) -> dict[str, Any]:
    return {"do": "offer", "view": view.id, "server": view.server, "tool": view.origin.tool.name}


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


def read_records(fields: Mapping[str, bytes]) -> HostRecords | None:
    """Decode records; None if there are none, or none that can be read."""
    if _HOST not in fields:
        return None
    views: dict[str, ViewRecord] = {}
    try:
        host = _read_host(fields[_HOST])
        for field, data in fields.items():
            if field.startswith(_VIEW):
                views[field.removeprefix(_VIEW)] = _read_view(data)
    except msgspec.DecodeError as error:  # written by another version
        _log.warning("What was kept of a user's Views cannot be read: %s", error)
        return None
    return msgspec.structs.replace(host, views=views)


def _write_host(records: HostRecords) -> bytes:
    return _encode(msgspec.structs.replace(records, views={}))


def _write_view(record: ViewRecord) -> bytes | None:
    if record.size > _MAX_USER_BYTES:
        return None
    try:
        return _encode(record)
    except (TypeError, ValueError, OverflowError):  # arguments that are not JSON
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

    `records` returns the current ones; `known` are the Views that the bus has already.
    """

    def __init__(
        self, lease: Lease, records: Callable[[], HostRecords | None], known: HostRecords | None
    ) -> None:
        self._lease = lease
        self._records = records
        self._grants = True
        self._host = b""
        self._written: dict[str, int] = dict.fromkeys(() if known is None else known.views, 0)
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
        self._grants = grants
        await self._write(again=False)

    async def _write(self, *, again: bool = True) -> None:
        records = self._records()
        if records is None or not self._lease.held:
            return
        if not self._grants:
            records = msgspec.structs.replace(records, grants=[])
        changes = self._changes(records)
        try:
            if changes:
                await self._lease.write(changes)
        except LeaseLost:
            pass  # the worker that has the user now has the records
        except BusError as error:
            _log.warning("What a user's Views need to outlive this worker is not kept: %s", error)
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


class User:
    """One user: their Host, pages and lease."""

    def __init__(
        self,
        name: str,
        show_within: float,
        wake: Callable[[User], Awaitable[object] | None],
        label_of: Callable[[User, Page, Stage], Awaitable[str | None]],
    ) -> None:
        self.name = name
        self.used = time.monotonic()
        self.host: Host | None = None
        self.starting: asyncio.Task[Host] | None = None
        self.moving = False  # to another worker
        self.lease: Lease | None = None
        self.stored: HostRecords | None = None  # records of the last Host, until there is a new one
        self.records: SharedRecords | None = None
        self.shared: SharedHost | None = None
        self.origins: dict[str, Lease] = {}  # leases for the origins of the user's Views, by `Host`
        self.pages = UserPages(
            lambda: self.host,
            lambda: wake(self),
            show_within=show_within,
            on_away=self.mark_used,
            label_of=partial(label_of, self),
        )

    def mark_used(self) -> None:
        """It is in use now: it is not closed for a while."""
        self.used = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether no page is open, and no Host is starting."""
        starting = self.starting is not None and not self.starting.done()
        return not starting and not len(self.pages)

    def current_records(self) -> HostRecords | None:
        """What the next Host needs; None if there is no Host."""
        if self.host is None:
            return None
        return self.pages.records(self.host)

    async def close_host(self) -> None:
        """Close the Host, even while it starts."""
        await stop(self.starting)
        if self.host is not None:
            await self.host.aclose()

    async def release(self) -> None:
        """Let another worker have the user."""
        origins, self.origins = self.origins, {}
        await asyncio.gather(*(lease.release() for lease in origins.values()))
        if self.lease is not None:
            await self.lease.release()
