"""The Stage on the user's own machine: it is served here, and its page is found or opened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Literal
from urllib.parse import urlsplit

from transom.background import Background, ignore, stop
from transom.errors import TransomError, UsageError
from transom.host.views.ui_resource import UIResource
from transom.web.csp import CspMode
from transom.web.local.stage_server import RunningStages, StageServer
from transom.web.mounted_views import Violation
from transom.web.seat import MARK, Seat, SeatOptions
from transom.web.stage import Stage, StageListener
from transom.web.view_storage import ViewStorage

_log = logging.getLogger("transom.web")

_PAGE_OPENED_WITHIN = 60.0
_WRITTEN_WITHIN = 2.0


OpenPage = Callable[[str], Awaitable[object]]
"""Opens the Stage's page, given its address."""


class _PageOpening:
    """Finds or opens the page of a Stage when it is needed: once, however many wait for it."""

    def __init__(
        self,
        stage: Stage,
        open_page: OpenPage | None,
        sharing: RunningStages | None,
        due_within: float,
        on_unopened: Callable[[str], object] | None,
    ) -> None:
        self._stage = stage
        self._open_page = open_page
        self._sharing = sharing
        self._due_within = due_within  # seconds after which a page that was opened should be there
        self._due = 0.0
        self._on_unopened = on_unopened
        self._reported = False
        self._lock = asyncio.Lock()
        self._opening: asyncio.Task[None] | None = None

    async def page(self, url: str, timeout: float | None) -> None:
        """Find or open a page if there is none, and wait for it."""
        async with self._lock:
            await self._stage.wait_while_leaving()
            if not self._stage.has_page and not (self._sharing and await self._sharing.join()):
                await self._open_and_wait(url, timeout)
            self._reported = False

    async def stop(self) -> None:
        """Stop opening a page."""
        opening, self._opening = self._opening, None
        await stop(opening)

    async def _open_and_wait(self, url: str, timeout: float | None) -> None:
        await self._open(url)
        try:
            async with asyncio.timeout(timeout):
                await self._stage.wait_for_page()
        except TimeoutError:
            text = f"No page showed up at {self._stage.origin} within {timeout:g} s"
            raise TransomError(text) from None
        finally:
            if self._stage.has_page:
                self._opening = None

    async def _open(self, url: str) -> None:
        if self._open_page is not None:
            try:
                await self._begin_opening(self._open_page, url)
            except TransomError:
                if self._on_unopened is None:
                    raise
            else:
                return
        if self._on_unopened is not None and not self._reported:
            self._reported = True
            self._on_unopened(url)

    async def _begin_opening(self, open_page: OpenPage, url: str) -> None:
        """Open the page, or wait until it is opened if that has begun.

        It continues if the caller stops waiting, as a View does after its timeout. Otherwise a
        browser that takes longer to start would be started over for each View.
        """
        loop = asyncio.get_running_loop()
        opening = self._opening
        if opening is None or (opening.done() and (loop.time() > self._due or _failed(opening))):
            opening = self._opening = loop.create_task(self._open_within(open_page, url))
            opening.add_done_callback(_failed)  # so that its error counts as seen
        await asyncio.shield(opening)

    async def _open_within(self, open_page: OpenPage, url: str) -> None:
        try:
            async with asyncio.timeout(_PAGE_OPENED_WITHIN):
                await open_page(url)
        except TimeoutError:
            text = f"No page could be opened within {_PAGE_OPENED_WITHIN:g} s"
            raise TransomError(text) from None
        self._due = asyncio.get_running_loop().time() + self._due_within


def _failed(opening: asyncio.Task[None]) -> bool:
    return opening.cancelled() or opening.exception() is not None


class LocalStage(StageListener):
    """A Stage that is served on this machine while it runs, with its page and its seats.

    Args:
        open_page: opens the page; None: the user does, by hand.
        options: what the user of the page can do.
        listener: gets what the page reports as well, such as the page's browser, if it is our own.
        csp: what a View's page may run.
        ports: those of the page and of the sandboxes; 0: any that is free.
        page_timeout: seconds that a View waits for the page.
        max_away: seconds the page may be disconnected, or read nothing.
        page: which page it is: see `stage_app`.
        share: use the page of another process, and let others use this one's.
        storage: has the persistent origins of Views; None: they have none.
        on_violation: called with everything that a View's policy blocked.
        on_unopened: called with the address when a page is needed but could not be opened.
    """

    def __init__(
        self,
        open_page: OpenPage | None,
        options: SeatOptions,
        *,
        listener: StageListener | None = None,
        csp: CspMode,
        ports: tuple[int, int] = (0, 0),
        page_timeout: float = 30.0,
        max_away: float = 30.0,
        page: Literal["stage", "dev"] = "stage",
        share: bool = False,
        storage: ViewStorage | None,
        on_violation: Callable[[Violation], object] | None,
        on_unopened: Callable[[str], object] | None = None,
    ) -> None:
        self.options = options
        self.stage = Stage(
            listener=self, on_violation=on_violation, csp=csp, grace=max_away, patience=max_away
        )
        self._listener = StageListener() if listener is None else listener
        self._storage = storage
        self._server = StageServer(
            self.stage,
            ports=ports,
            storage=storage,
            shared=share,
            clears=self._take_cleared,
            page=page,
        )
        self._sharing = RunningStages(self.stage) if share else None
        self._page_timeout = page_timeout
        self._opening = _PageOpening(
            self.stage, open_page, self._sharing, page_timeout, on_unopened
        )
        self._running = False
        self._seats: set[Seat] = set()
        self._numbers = count(1)
        self._clearing: set[str] = set()  # origins whose storage the browser should delete
        self._notice = ""  # what the user has to know about all Views
        self._writing = Background(ignore)

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return self._server.url

    async def start(self) -> None:
        """Begin to serve the page."""
        if self._running:
            raise UsageError(
                "The renderer is already running: give each of several Hosts a renderer.seat()"
            )
        await self._server.__aenter__()
        if self._sharing is not None:
            with suppress(TransomError):  # nothing is shared then
                await self._sharing.__aenter__()
        self._writing = Background(ignore)
        self._running = True

    async def stop_opening(self) -> None:
        """Stop opening a page."""
        await self._opening.stop()

    async def close(self) -> None:
        """Remove all Views, and serve nothing any more."""
        self._running = False
        await self.stop_opening()
        if self._sharing is not None:
            await self._sharing.__aexit__()
        for seat in list(self._seats):
            await seat.leave()
        await self._writing.aclose(grace=_WRITTEN_WITHIN)
        await self._server.__aexit__()

    # --- seats -------------------------------------------------------------------------------

    def new_mark(self) -> str:
        """The mark of the next seat."""
        return f"{MARK}{next(self._numbers)}"

    @property
    def stages(self) -> Sequence[Stage]:
        """The Stages of a user who has one page."""
        return [self.stage]

    def stage_of(self, key: str) -> Stage | None:  # noqa: ARG002 - all Views are on one
        """The Stage of every View."""
        return self.stage

    def take(self, seat: Seat) -> None:
        """A Host has taken a seat."""
        self._seats.add(seat)

    def leave(self, seat: Seat) -> None:
        """A Host has left its seat."""
        self._seats.discard(seat)

    async def label(self, resource: UIResource, stage: Stage) -> str | None:
        """The label of a View's persistent origin, if it has one."""
        storage, port = self._storage, urlsplit(stage.sandbox).port
        if storage is None or port is None or not resource.identity:
            return None
        label = await asyncio.to_thread(storage.origin, resource, port)
        if label is not None:
            self._clearing.update(await asyncio.to_thread(storage.cleared, port))
            self._send_clearing()
        elif not self._notice:
            text = f"What Views store does not last: {storage.failure}"
            _log.warning("%s", text)
            self._notice = f"{text}."
            self._send_notice()
        return label

    def _send_notice(self) -> None:
        if self._notice:
            self.stage.send({"do": "notice", "text": self._notice})

    def _send_clearing(self) -> None:
        if self._clearing:
            self.stage.send({"do": "clear", "origins": sorted(self._clearing)})

    def _take_cleared(self, host: str) -> bool:
        """Whether the browser asks for an origin whose storage it should delete."""
        origin = f"{urlsplit(self.stage.sandbox).scheme}://{host}"
        if self._storage is None or origin not in self._clearing:
            return False
        self._clearing.discard(origin)
        self._writing.start(asyncio.to_thread(self._storage.confirm_cleared, origin))
        return True

    # --- the page ----------------------------------------------------------------------------

    async def show_page(self, key: str) -> Stage:  # noqa: ARG002 - all Views are on one
        """Find or open a page if there is none, and wait for it."""
        await self.find_page(self._page_timeout)
        return self.stage

    async def find_page(self, timeout: float | None) -> None:
        """As `BrowserRenderer.show_page`."""
        if not self._running:
            raise UsageError("The renderer is not running: use `async with renderer`")
        await self._opening.page(self.url, timeout)

    def page_connected(self, stage: Stage) -> None:
        """Send a new page what the one before was sent."""
        self._send_notice()
        self._send_clearing()
        self._listener.page_connected(stage)

    def request_received(self, stage: Stage, request: dict[str, Any]) -> None:
        """Pass it on."""
        self._listener.request_received(stage, request)

    def surroundings_changed(self, stage: Stage) -> None:
        """Send all Views what the page knows about its user."""
        for seat in list(self._seats):
            seat.set_surroundings(stage.surroundings)

    def page_over(self, stage: Stage) -> None:
        """Pass it on."""
        self._listener.page_over(stage)

    def view_unloaded(self, stage: Stage) -> None:
        """Pass it on."""
        self._listener.view_unloaded(stage)

    def page_away(self, stage: Stage) -> None:
        """Pass it on."""
        self._listener.page_away(stage)
