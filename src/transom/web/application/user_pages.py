"""The pages of one user of a web application, and which View is on which.

1. Every page is a Stage of its own. A *place* is an element for a View in a page. A View is on one
   page at a time, at its newest place; the page that had it before is told so.
2. A View that opens is offered to all pages, and waits for the first place: no call waits for
   that longer than `show_within`.
3. A View whose page closes, or whose place is removed, is closed. It is reopened, with its input
   and result, as soon as a page has a place for it. A View that was closed for another reason is
   reopened only when the user asks for that.
4. A user whose Host was closed gets another one as soon as a page has a place for one of its Views.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

import msgspec

from transom.background import Background, ignore
from transom.errors import Refused, TransomError
from transom.host.host import Host
from transom.host.open_views import HostRecords
from transom.host.views.liveness import ViewState
from transom.host.views.renderers import NoPlace, Turn
from transom.host.views.ui_resource import UIResource
from transom.host.views.view import View
from transom.json_values import clean
from transom.recent import Recent
from transom.web.cards import MAX_REASON
from transom.web.page_link import Link
from transom.web.seat import Seat, SeatOptions
from transom.web.stage import Hello, Stage, StageListener, Wish

_log = logging.getLogger("transom.web")

_MAX_PAGES = 20  # of one user
_MAX_GONE = 1000  # Views of one user
_MOVED = "it is shown on another page now"
_UNSEEN = "no page shows it any more"


class PageUser(Protocol):
    """Whose pages they are."""

    @property
    def host(self) -> Host | None:
        """The user's Host, if there is one."""
        ...

    def wake(self) -> Awaitable[object] | None:
        """Create the Host of a user who had Views; None if that is not needed."""
        ...

    def mark_used(self) -> None:
        """The last page has closed."""
        ...

    async def label(self, resource: UIResource, stage: Stage) -> str | None:
        """The label of a View's persistent origin, if it has one."""
        ...


class UserPages(StageListener):
    """The pages of one user. `seat` is the renderer of the user's Host, with their `turn`.

    A call waits `show_within` seconds for a place of its View.
    """

    def __init__(self, user: PageUser, turn: Turn, show_within: float) -> None:
        self._user = user
        self._show_within = show_within
        self._wishes: dict[tuple[Stage, str], Wish] = {}  # of pages, until there is a Host
        self._places: dict[str, Stage] = {}
        self._place_found = asyncio.Condition()
        # Why Views were closed; "": their place was removed.
        self._gone: Recent[str, str] = Recent(_MAX_GONE)
        self._left: WeakSet[View] = WeakSet()  # Views whose place was removed
        self._leaving: dict[str, asyncio.Task[None]] = {}
        # The Host reports what fails in opening and closing Views.
        self._background = Background(ignore)
        self.stages: list[Stage] = []
        self.label = user.label
        self.options = SeatOptions(confirm=True)
        self.seat = Seat(self, turn=turn)

    url = ""  # the application's pages have their own

    def attach_host(self, host: Host) -> None:
        """Forward events of this Host's Views to the pages."""
        host.on_view_closed(self._closed)
        host.on_view_failed(self._failed)

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
            self._gone[key] = each.reason

    # --- pages -------------------------------------------------------------------------------

    def connect(
        self, hello: Hello, origin: str, make_stage: Callable[[], Stage]
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
        stage = make_stage()
        self.stages.append(stage)
        return stage.open_link(hello, origin)

    def page_connected(self, stage: Stage) -> None:
        """Offer a new page the Views that there are."""
        if (host := self._user.host) is not None:
            for view in host.views.values():
                opens = view.state in (ViewState.OPENING, ViewState.WAITING)
                waits = opens and view.id not in self._places
                stage.send({**_offer(view), "new": waits})

    def surroundings_changed(self, stage: Stage) -> None:
        """Send all Views what the page knows about its user."""
        self.seat.set_surroundings(stage.surroundings)

    def page_over(self, stage: Stage) -> None:
        """Close the Views of a page that has closed, and offer them to the others."""
        self.stages.remove(stage)
        for key in [key for key, place in self._places.items() if place is stage]:
            self._lose(stage, key)
        if not self.stages:
            self._user.mark_used()

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

    def stage_of(self, key: str) -> Stage | None:
        """The Stage of the page that has the View's place."""
        return self._places.get(key)

    async def show_page(self, key: str) -> Stage:
        """Wait a while for a place for a View; for one that does not exist, the newest page.

        Raises:
            NoPlace: there is none yet.
            Refused: there is no page.
        """
        host = self._user.host
        view = None if host is None else host.views.get(key)
        if view is None:  # the user is asked before it opens, or by a server
            if not (pages := [stage for stage in self.stages if stage.has_page]):
                raise Refused("There is no page to ask on")
            return pages[-1]
        if key not in self._places:
            for stage in self.stages:
                stage.send({**_offer(view), "new": True})
        try:
            async with asyncio.timeout(self._show_within):
                await self._place_of(key)
        except TimeoutError:
            _log.warning("no page has a place for View %s", key)
            self._gone[key] = ""  # if it is closed to make room, it opens at its place, too
            found = partial(self._place_of, key)
            raise NoPlace("no page has a place for it", found) from None
        return self._places[key]

    async def _place_of(self, key: str) -> None:
        async with self._place_found:
            await self._place_found.wait_for(lambda: key in self._places)

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
        elif (waking := self._user.wake()) is not None:
            self._wishes[stage, key] = wish
            self._background.start(self._place_awake(waking, stage, key))
        else:
            self._add_place(stage, key, wish)

    def _add_place(self, stage: Stage, key: str, wish: Wish) -> None:
        """Show a View on a page that has a place for it, or tell the page why not."""
        before, host = self._places.get(key), self._user.host
        view = None if host is None else host.views.get(key)
        opening = view is not None and view.state is ViewState.OPENING
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
                if self._user.host is None:
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
        self._gone[key] = ""
        self._leave(stage, key, _UNSEEN)
        for other in self.stages:
            if other is not stage:
                other.send({"do": "offer", "view": key, "new": False})

    def _leave(self, stage: Stage, key: str, reason: str) -> None:
        """Close a View whose frame is gone, or about to be."""
        host = self._user.host
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
        self._gone[view.id] = view.reason
        if stage is not None:
            del self._places[view.id]
            _send_absent(stage, view.id, view.reason)

    def _failed(self, view: View, error: BaseException) -> None:
        """A View was closed before it was live. Its seat tells the page of other failures."""
        if isinstance(error.__cause__, asyncio.CancelledError) and view.id in self._places:
            self._closed(view)


def _send_absent(stage: Stage, key: str, reason: str, *, again: bool = True) -> None:
    text = clean(reason, MAX_REASON)
    stage.send({"do": "absent", "view": key, "reason": text, "again": again})


def _offer(view: View) -> dict[str, Any]:
    return {"do": "offer", "view": view.id, "server": view.server, "tool": view.origin.tool.name}
