"""The browser of a test session, and how the Views of one test get into it.

1. All tests share one Chromium, until the session ends.
2. Playwright belongs to one event loop. Tests that run on the plugin's own loop share its
   connection to that Chromium. A test on a loop of another plugin, where its async fixtures are,
   has a connection of its own. The plugin's is closed meanwhile: a new page starts only when
   every connection has taken note of it.
3. Nothing is started for a test whose Views are all in Python.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Self

from transom.background import Background, ignore
from transom.channel import Channel
from transom.errors import InvalidResult, TransomError, UsageError
from transom.host.host import Host
from transom.host.views.renderers import InProcessRenderer, MakeApp
from transom.host.views.ui_resource import UIResource, view_uri
from transom.types import Tool
from transom.web.csp import CspMode

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

    from transom.web.local.chromium import ChromiumProcess
    from transom.web.local.headless import HeadlessRenderer, HeadlessSeat


class SharedBrowser:
    """Runs tests on an event loop of its own, and has the browser of that loop."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._shared: HeadlessRenderer | None = None
        self._process: ChromiumProcess | None = None
        self._on_console: Callable[[str], object] = ignore

    def run(self, test: Coroutine[Any, Any, object]) -> None:
        """Run a test."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        self._runner.run(test)

    async def seat(
        self, stack: AsyncExitStack, on_console: Callable[[str], object], csp: CspMode
    ) -> tuple[HeadlessRenderer, HeadlessSeat]:
        """A browser, and a place in it for the Views of a test, which ends with `stack`.

        The browser is still starting: whoever opens a View there waits for it.
        """
        own = self._runner is not None and asyncio.get_running_loop() is self._runner.get_loop()
        self._on_console = on_console
        renderer = self._shared if own else None
        if renderer is None:
            renderer = self._make()
            if own:
                self._shared = await renderer.__aenter__()
            else:
                await stack.enter_async_context(renderer)
        renderer._stage.csp_mode = csp
        stack.callback(self._forget)
        starting = Background(ignore)  # a View that is opened there fails for the same reason
        stack.push_async_callback(starting.aclose, grace=0)
        starting.start(renderer.show_page())
        return renderer, await stack.enter_async_context(renderer.seat())

    def _make(self) -> HeadlessRenderer:
        # The web server takes a while to load.
        from transom.web.local.chromium import ChromiumProcess  # noqa: PLC0415
        from transom.web.local.headless import HeadlessRenderer  # noqa: PLC0415

        if self._process is None and os.name == "posix":
            self._process = ChromiumProcess()
        return HeadlessRenderer(
            process=self._process,
            on_console=lambda kind, text: self._on_console(f"{kind}: {text}"),
        )

    def _forget(self) -> None:
        self._on_console = ignore

    def disconnect(self) -> None:
        """Leave the browser to a test on another event loop."""
        shared, self._shared = self._shared, None
        if shared is not None and self._runner is not None:
            self._runner.run(shared.__aexit__())

    def close(self) -> None:
        """End the browser, and the event loop."""
        self.disconnect()
        if self._runner is not None:
            self._runner.close()
        if self._process is not None:
            self._process.close()


class MixedRenderer:
    """Runs the Views in Python that it knows in this process, and shows others in a browser.

    Args:
        apps: by resource, what makes a View in Python.
        browser: finds a place in the browser, when it is first needed.
        configure: called when there is one, to take back what it changed of the host.
    """

    def __init__(
        self,
        apps: Mapping[str, MakeApp],
        browser: Callable[[], Awaitable[tuple[HeadlessRenderer, HeadlessSeat]]],
        configure: Callable[[], object],
    ) -> None:
        self.apps = dict(apps)
        self._browser = browser
        self._configure = configure
        self._python = InProcessRenderer(self.apps)
        self._host: Host | None = None
        self._seat: HeadlessSeat | None = None
        self._shown: HeadlessRenderer | None = None
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._python.__aexit__(*exc_info)

    def add_app(self, uri: str, make: MakeApp) -> None:
        """Run this View in Python."""
        self.apps[uri] = make
        self._python = InProcessRenderer(self.apps)

    def attach_host(self, host: Host) -> None:
        """See `AttachesToHost`."""
        self._host = host

    async def open(self, resource: UIResource) -> Channel:
        """See `Renderer`."""
        if resource.uri in self.apps:
            return await self._python.open(resource)
        seat = await self._take_seat()
        return await seat.open(resource)

    async def prepare(self) -> None:
        """Begin to start the browser, if a View may need it, beside whatever else has to start."""
        if not self.apps:
            await self._take_seat()

    async def wait_for_browser(self, tool: Tool) -> str:
        """Wait until it has started, if the tool's View needs it: that has its own time to open.

        Returns:
            Why it has not started, if so: the View's opening tries again.
        """
        with suppress(InvalidResult):  # it links no page: its opening says so
            if view_uri(tool) not in (None, *self.apps):
                try:
                    await self._take_seat()
                    assert self._shown is not None  # noqa: S101 - it came with the seat
                    await self._shown.show_page()
                except TransomError as error:
                    return str(error)
        return ""

    async def _take_seat(self) -> HeadlessSeat:
        async with self._starting:
            if self._seat is None:
                self._shown, self._seat = await self._browser()
                assert self._host is not None  # noqa: S101 - a Host opens Views when it has begun
                self._seat.attach_host(self._host)
                self._configure()
            return self._seat

    async def screenshot(self, view_id: str) -> bytes:
        """See `TakesScreenshots`."""
        return await self._in_browser(view_id).screenshot(view_id)

    async def drive(self, view_id: str, request: dict[str, Any]) -> dict[str, Any]:
        """See `DrivesViews`."""
        return await self._in_browser(view_id).drive(view_id, request)

    def _in_browser(self, view_id: str) -> HeadlessSeat:
        if self._seat is None:
            raise UsageError(f"View {view_id} is written in Python: it has no page")
        return self._seat

    @property
    def stage_page(self) -> Page | None:
        """The page that shows the Views."""
        return None if self._shown is None else self._shown.page

    async def frame(self, view_id: str, uri: str) -> Frame | None:
        """The frame of a View's page; None for one in Python."""
        if uri in self.apps or self._seat is None:
            return None
        page = self.stage_page
        if page is None:
            raise TransomError("The browser is gone")
        place = f'[id="view-{self._seat.key_of(view_id)}"] iframe'
        frame = await _frame_at(page.locator(place))
        for _ in range(2):  # the guard and the sandbox around the View
            known = frame.child_frames  # Playwright may not have learned of it yet
            frame = known[0] if len(known) == 1 else await _frame_at(frame.locator("iframe"))
        return frame


async def _frame_at(element: Any) -> Frame:
    handle = await element.element_handle()
    frame = await handle.content_frame()
    if frame is None:
        raise TransomError("The View's page is gone")
    return frame
