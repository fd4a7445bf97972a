"""A renderer that shows Views on a page in the user's own browser."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self

from transom.background import ignore, stop
from transom.channel import Channel
from transom.errors import TransomError, UsageError
from transom.host.host import Host
from transom.host.page import Page
from transom.host.policy import ApprovalRequest, Decision
from transom.web.csp import CspMode
from transom.web.seat import Seat, Seats
from transom.web.stage import Stage, Violation
from transom.web.stage_server import RunningStages, StageServer
from transom.web.view_storage import ViewStorage

OpenPage = Callable[[str], Awaitable[object]]
"""Opens the Stage's page, given its address."""

_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.stdin.read()))"
_OPEN_WITHIN = 5.0
_PAGE_OPENED_WITHIN = 60.0


async def open_in_browser(url: str) -> None:
    """Open a page in the user's browser.

    The browser gets none of this process's streams, and stays open when this process ends. The
    process that opens it reads the address from its standard input, because every user of this
    machine can see a command line; how the browser itself gets it depends on the system.

    Raises:
        TransomError: there is no browser to open.
    """
    process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once, and must outlive this loop
        [sys.executable, "-c", _OPEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if process.stdin is not None:
        with suppress(OSError), process.stdin as stdin:  # it may have failed already
            stdin.write(url.encode())
    loop = asyncio.get_running_loop()
    until = loop.time() + _OPEN_WITHIN
    while (failed := process.poll()) is None and loop.time() < until:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.02)
    if failed:
        raise TransomError("No browser could be opened")


class BrowserRenderer:
    """Shows Views on a page in the user's browser.

    Args:
        csp: what a View's page may run: `compat` or `strict`.
        open_page: opens the page; in the user's browser unless given. It is called when a View
            opens and there is no page. None: the user opens `renderer.url` by hand.
        port: the port of the page; 0: any that is free.
        sandbox_port: the port of the sandboxes; 0: any that is free.
        page_timeout: seconds to wait for the page.
        share: use a page that another process of this user has open, if there is one, and let
            others use this one's. If that fails, a page is opened as usual.
        confirm: ask the user on the page before links are opened and files are saved. False:
            there is no user, so both are refused.
        ephemeral: store nothing for Views: each View has an origin that is never used again, and
            none can be reopened in the next run. Otherwise a View finds what Views of the same
            server and resource have stored, also in the next run, if its server is a command or a
            URL.
        program: identifies this program among others of the user that show Views at the same time.
            What Views store belongs to one program, which has its own ports.
        on_violation: called with everything that a View's policy blocked.
        on_unopened: called with the address when a page is needed but could not be opened, so that
            the user can open it by hand; the View waits for that. Without it, a View whose page
            cannot be opened fails at once.

    `renderer.approve` asks on the page whether the model may call a tool:
    `Host(renderer=renderer, policy=Policy(approve=renderer.approve))`. Several Hosts share the page
    when each has a `renderer.seat()`.
    """

    def __init__(
        self,
        *,
        csp: CspMode = "compat",
        open_page: OpenPage | None = open_in_browser,
        port: int = 0,
        sandbox_port: int = 0,
        page_timeout: float = 30.0,
        confirm: bool = True,
        share: bool = False,
        ephemeral: bool = False,
        program: str = "",
        on_violation: Callable[[Violation], object] | None = None,
        on_unopened: Callable[[str], object] | None = None,
    ) -> None:
        self.stage = Stage(csp=csp, shared=share)
        if on_violation is not None:
            self.stage.on_violation = on_violation
        storage = None if ephemeral else ViewStorage(program)
        self._server = StageServer(
            self.stage, port=port, sandbox_port=sandbox_port, storage=storage
        )
        self._open_page = open_page
        self._on_unopened = on_unopened
        self._reported_unopened = False
        self._sharing = RunningStages(self.stage) if share else None
        self._page_timeout = page_timeout
        self._opening = asyncio.Lock()
        self._page_opening: asyncio.Task[None] | None = None
        self._page_due = 0.0
        self._running = False
        self.before_page: Callable[[], object] = ignore
        """Called whenever a page is needed, before checking whether there is one."""
        self.seats = Seats(
            lambda _: self.stage,
            self._show_page,
            lambda: self.url,
            confirm=confirm,
            storage=storage,
            keeps_closed=True,
        )
        self.seats.add_stage(self.stage)
        self._own = Seat(self.seats, mark="")

    @property
    def url(self) -> str:
        """The address of the page. Keep it secret: anyone who has it can act as the user."""
        return self._server.url

    async def __aenter__(self) -> Self:
        if self._running:
            raise UsageError(
                "The renderer is already running: give each of several Hosts a renderer.seat()"
            )
        await self._server.__aenter__()
        if self._sharing is not None:
            with suppress(TransomError):  # nothing is shared then
                await self._sharing.__aenter__()
        self._running = True
        return self

    async def __aexit__(self, *error: object) -> None:
        self._running = False
        await self.stop_opening()
        if self._sharing is not None:
            await self._sharing.__aexit__(*error)
        await self.seats.close()
        await self._server.__aexit__(*error)

    async def show_page(self, *, timeout: float | None = None) -> None:
        """Find or open a page if there is none, and wait for it.

        Args:
            timeout: seconds to wait; None: for as long as it takes.

        Raises:
            TransomError: none could be opened, or none connected in time.
            UsageError: the renderer is not running.
        """
        if not self._running:
            raise UsageError("The renderer is not running: use `async with renderer`")
        async with self._opening:
            await self.stage.wait_while_leaving()
            self.before_page()
            if not self.stage.has_page and not await self._join():
                await self._open_and_wait(timeout)
            self._reported_unopened = False

    async def _show_page(self, _: str) -> Stage:
        await self.show_page(timeout=self._page_timeout)
        return self.stage

    async def _join(self) -> bool:
        return self._sharing is not None and await self._sharing.join()

    async def stop_opening(self) -> None:
        """Stop opening a page."""
        opening, self._page_opening = self._page_opening, None
        await stop(opening)

    async def _open_and_wait(self, timeout: float | None) -> None:
        await self._open()
        try:
            async with asyncio.timeout(timeout):
                await self.stage.wait_for_page()
        except TimeoutError:
            text = f"No page showed up at {self.stage.origin} within {timeout:g} s"
            raise TransomError(text) from None
        finally:
            if self.stage.has_page:
                self._page_opening = None

    async def _begin_opening(self, open_page: OpenPage) -> None:
        """Open the page, or wait until it is opened if that has begun.

        It continues if the caller stops waiting, as a View does after its timeout. Otherwise a
        browser that takes longer to start would be started over for each View.
        """
        loop = asyncio.get_running_loop()
        opening = self._page_opening
        if opening is None or (
            opening.done() and (loop.time() > self._page_due or _failed(opening))
        ):
            opening = self._page_opening = loop.create_task(self._open_within(open_page))
            opening.add_done_callback(_failed)  # so that its error counts as seen
        await asyncio.shield(opening)

    async def _open_within(self, open_page: OpenPage) -> None:
        try:
            async with asyncio.timeout(_PAGE_OPENED_WITHIN):
                await open_page(self.url)
        except TimeoutError:
            text = f"No page could be opened within {_PAGE_OPENED_WITHIN:g} s"
            raise TransomError(text) from None
        self._page_due = asyncio.get_running_loop().time() + self._page_timeout

    async def _open(self) -> None:
        if self._open_page is not None:
            try:
                await self._begin_opening(self._open_page)
            except TransomError:
                if self._on_unopened is None:
                    raise
            else:
                return
        if self._on_unopened is not None and not self._reported_unopened:
            self._reported_unopened = True
            self._on_unopened(self.url)

    async def open(self, page: Page) -> Channel:
        """Show a View, on a page that is opened if there is none.

        Raises:
            TransomError: no page could be opened.
        """
        return await self._own.open(page)

    # --- with a host -------------------------------------------------------------------------

    def attach_host(self, host: Host) -> None:
        """Handle requests of the Host's Views that a page can fulfil: links, files, display modes.

        Raises:
            UsageError: another Host is attached; `seat()` is for several.
        """
        self._own.attach_host(host)

    def seat(self, label: str = "") -> Seat:
        """A renderer for one of several Hosts that share this page: `Host(renderer=r.seat())`.

        The page stays until this renderer is left, not with the Host.

        Args:
            label: for whom the Host works, such as the name of an MCP client. The user sees it
                beside the Host's Views and in questions.
        """
        return Seat(self.seats, self.seats.new_mark(), label)

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Ask the user on the page; give it to `Policy(approve=...)`."""
        return await self._own.approve(request)


def _failed(opening: asyncio.Task[None]) -> bool:
    return opening.cancelled() or opening.exception() is not None
