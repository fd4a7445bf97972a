"""A renderer that shows Views on a page in the user's own browser."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from transom.channel import Channel
from transom.errors import Refused, TransomError
from transom.host.pages import Page
from transom.host.policy import Allow, AllowAlways, ApprovalRequest, Decision, Deny
from transom.host.requests import Download
from transom.types import EmbeddedResource
from transom.web.csp import CspMode
from transom.web.files import download_of
from transom.web.serving import StageServer
from transom.web.stage import DisplayMode, Stage, Violation

if TYPE_CHECKING:
    from transom.host.host import Host
    from transom.host.views import View

__all__ = ["BrowserRenderer", "OpenPage", "open_in_browser"]

OpenPage = Callable[[str], Awaitable[object]]
"""Opens the Stage's page, given its address."""

_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
_OPEN_WITHIN = 5.0


async def open_in_browser(url: str) -> None:
    """Open a page in the user's browser.

    It gets none of this process's streams, and lives on when this process ends.

    Raises:
        TransomError: there is no browser to open.
    """
    process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once, and must outlive this loop
        [sys.executable, "-c", _OPEN, url],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    loop = asyncio.get_running_loop()
    until = loop.time() + _OPEN_WITHIN
    while (failed := process.poll()) is None and loop.time() < until:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.02)
    if failed:
        raise TransomError("No browser could be opened")


class BrowserRenderer:
    """Shows Views on a page in the user's browser.

    Args:
        csp: how much a View's page may do with itself: `compat` or `strict`.
        open_page: opens the page; the user's browser unless given. It is called when a View is to
            be shown and no page is there.
        port: the port of the page; 0: any that is free.
        sandbox_port: the port of the sandboxes; 0: any that is free.
        page_timeout: seconds to wait for the page.
        confirm: ask the user on the page before links are opened and files are saved. False:
            nobody sits there, so links are refused and files are saved.
        on_violation: told of everything a View tried and was not allowed.

    `renderer.approve` asks on the page whether the model may call a tool:
    `Host(renderer=renderer, policy=Policy(approve=renderer.approve))`.
    """

    def __init__(
        self,
        *,
        csp: CspMode = "compat",
        open_page: OpenPage = open_in_browser,
        port: int = 0,
        sandbox_port: int = 0,
        page_timeout: float = 30.0,
        confirm: bool = True,
        on_violation: Callable[[Violation], object] | None = None,
    ) -> None:
        self.stage = Stage(csp=csp)
        if on_violation is not None:
            self.stage.on_violation = on_violation
        self._server = StageServer(self.stage, port=port, sandbox_port=sandbox_port)
        self._open_page = open_page
        self._page_timeout = page_timeout
        self._confirm = confirm
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        """The address of the page. Keep it to yourself: whoever has it is the user."""
        return self._server.url

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        await self._server.__aexit__(kind, error, trace)

    async def show_page(self, *, timeout: float | None = None) -> None:
        """Have a page there: open one if there is none, and wait for it.

        Args:
            timeout: seconds to wait; None: for as long as it takes.

        Raises:
            TransomError: none could be opened, or none showed up in time.
        """
        async with self._opening:
            await self.stage.settled()
            if self.stage.has_page:
                return
            await self._open_page(self.url)
            try:
                async with asyncio.timeout(timeout):
                    await self.stage.page_there()
            except TimeoutError:
                text = f"No page showed up at {self.stage.origin} within {timeout:g} s"
                raise TransomError(text) from None

    async def open(self, page: Page) -> Channel:
        """Show a View, on a page that is opened if there is none.

        Raises:
            TransomError: no page could be opened.
        """
        await self.show_page(timeout=self._page_timeout)
        await self.stage.room(page.view_id)
        return self.stage.mount(page)

    # --- with a host -------------------------------------------------------------------------

    def attach_host(self, host: Host) -> None:
        """Serve a host: its Views' wishes that the page can grant, and its Views after a reload."""
        modes = ["inline", "fullscreen", "pip"]
        host.set_context(displayMode="inline", availableDisplayModes=modes)
        if not host.on_open_link:
            host.on_open_link = self._open_link
        if not host.on_download_file:
            host.on_download_file = self._download
        if not host.on_request_display_mode:
            host.on_request_display_mode = self._set_mode

        @host.on_view_opened
        def named(view: View) -> None:
            if view.app is not None:
                self.stage.named(view.id, view.app.name, view.app.version)

        self.stage.on_surroundings = lambda changes: host.set_context(**changes)
        self.stage.on_mode = lambda view_id, changes: self._mode_changed(host, view_id, changes)
        self.stage.on_lost = lambda view_ids: self._lost(host, view_ids)
        self.stage.on_close = lambda view_id: self._close(host, view_id)

    def _lost(self, host: Host, view_ids: list[str]) -> None:
        if self.stage.has_page:  # a reloaded page: show them again
            for view_id in view_ids:
                self._aside(self._reopen(host, view_id))

    @staticmethod
    async def _reopen(host: Host, view_id: str) -> None:
        view = host.views.get(view_id)
        if view is not None and view.opening is not None:
            await asyncio.wait([view.opening])  # it is about to fail, and can be opened then
        await host.reopen(view_id)

    def _close(self, host: Host, view_id: str) -> None:
        view = host.views.get(view_id)
        if view is not None:
            self._aside(view.close("the user closed it"))
        else:
            self.stage.unmount(view_id)

    def _aside(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the host has told of it already

    def _mode_changed(self, host: Host, view_id: str, changes: dict[str, Any]) -> None:
        view = host.views.get(view_id)
        if view is not None and view.bridge is not None:
            self._aside(view.bridge.set_context(**changes))

    def _set_mode(self, view: View, mode: DisplayMode) -> str:
        self.stage.set_mode(view.id, mode)
        return mode

    async def _open_link(self, view: View, url: str) -> None:
        if not self._confirm:
            raise Refused("Nobody is there to open links for")
        if await self._ask("link", view, url=url) is not True:
            raise Refused("The user did not open the link")

    async def _download(self, view: View, files: Sequence[Download]) -> None:
        ready: list[tuple[str, str, str]] = []
        for file in files:
            if not isinstance(file.content, EmbeddedResource):
                raise Refused("Only files that are in the message can be saved")
            ready.append((file.name, *download_of(file.content.resource)))
        if self._confirm and ready:
            told = [{"name": name, "bytes": _decoded(data)} for name, _, data in ready]
            if await self._ask("download", view, files=told) is not True:
                raise Refused("The user did not save the file")
        for name, mime, data in ready:
            self.stage.save(name, mime, data)

    async def _ask(self, kind: str, view: View, **details: Any) -> bool | str:
        try:
            return await self.stage.ask(kind, view.id, server=view.server, **details)
        except Refused:
            raise
        except TransomError as error:
            raise Refused(str(error)) from None

    async def approve(self, request: ApprovalRequest) -> Decision:
        """Ask the user on the page; give it to `Policy(approve=...)`."""
        try:
            answer = await self.stage.ask(
                "approve",
                request.view_id,
                tool=request.tool.name[:200],
                server=request.server,
                arguments=request.arguments,
                changed=request.changed,
            )
        except TransomError as error:
            return Deny(str(error))
        if answer == "always":
            return AllowAlways()
        return Allow() if answer == "allow" else Deny("The user refused on the Stage")


def _decoded(base64: str) -> int:
    """How many bytes it stands for."""
    return len(base64) * 3 // 4 - base64.count("=")
