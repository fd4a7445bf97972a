"""Views in a browser without a window, for servers, tests and pictures. Needs Playwright.

When a browser crashes, hangs or is killed, its Views are reported closed, and the next View gets a
new browser. A View whose process dies can take down the whole browser, because Playwright's driver
may crash.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from transom.background import Background, ignore, shared_task
from transom.channel import Channel
from transom.errors import Refused, TransomError, UsageError, ViewClosed
from transom.host.views.ui_resource import UIResource
from transom.web.csp import CspMode
from transom.web.local.chromium import (
    ChromiumProcess,
    Profile,
    chromium_arguments,
    chromium_environment,
    find_chromium,
    start_chromium,
)
from transom.web.local.local_stage import LocalStage
from transom.web.local.real_input import RealInput, brief
from transom.web.mounted_views import Violation
from transom.web.seat import Seat, SeatOptions
from transom.web.stage import Stage, StageListener
from transom.web.view_storage import ViewStorage

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, BrowserType, Locator, Playwright, ViewportSize
    from playwright.async_api import Page as BrowserPage

_CLOSE_WITHIN = 3.0
# Nothing lies over the frame of a View when its picture is taken, no other View either, and it has
# the size that it told, which the page holds back for a second at most. Returns its height.
_UNCOVER = """async (frame) => {
  document.querySelector(".bar").style.position = "static";
  const { host } = frame.getRootNode();
  for (const view of document.querySelectorAll("transom-view")) {
    if (view !== host) view.style.opacity = "0";  // its frame keeps the focus
  }
  await new Promise((resolve) => {
    if (!host?.hasAttribute("data-resizing")) resolve();
    else new MutationObserver(resolve).observe(host, { attributeFilter: ["data-resizing"] });
    setTimeout(resolve, 2000);
  });
  return frame.getBoundingClientRect().height;
}"""
_SHOW_ALL = """() => {
  for (const view of document.querySelectorAll("transom-view")) view.style.opacity = "";
}"""
_VIEWS_OF_A_PAGE = 10
_NO_PEERS = """
for (const name of Object.getOwnPropertyNames(window)) {
  if (/^(webkit)?RTC/.test(name)) delete window[name];
}
"""


class BrowserOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How Chromium is started, and who learns what it reports."""

    executable: str | None
    size: tuple[int, int]
    dark: bool
    timeout: float
    profile: Path | None
    process: ChromiumProcess | None
    on_console: Callable[[str, str], object] | None
    on_request: Callable[[str], object] | None


class StageBrowser(StageListener):
    """A browser without a window that shows the page of a Stage. It runs once it is needed."""

    def __init__(self, options: BrowserOptions) -> None:
        self.options = options
        self._driver: asyncio.Future[Playwright] | None = None  # once it has begun to start
        self._playwright: Playwright | None = None
        self._context: BrowserContext | None = None
        self._profile: Profile | None = None
        self.page: BrowserPage | None = None
        """Playwright's page that shows the Stage, if there is one."""
        self.input = RealInput()
        self.picturing = asyncio.Lock()
        """Held while the other Views are hidden for a picture of one."""
        self._retired: BrowserPage | None = None
        self.shown = 0
        """How many Views the page has shown."""
        self._checking = Background(ignore, limit=1)  # one check of the browser at a time

    async def close(self) -> None:
        """End the browser, and Playwright."""
        checking, self._checking = self._checking, Background(ignore, limit=1)
        checking.cancel()
        await self._close_browser()
        await self._stop_driver()

    @asynccontextmanager
    async def window_of(self, page: BrowserPage, least: float) -> AsyncGenerator[None]:
        """Make the window at least so high for a moment: a browser draws what its window shows."""
        width, height = self.options.size
        if least <= height:
            yield
            return
        async with self.input.in_use:  # what is pressed must not move
            await page.set_viewport_size({"width": width, "height": ceil(least)})
            try:
                yield
            finally:
                with suppress(Exception):  # the page may be gone
                    await page.set_viewport_size({"width": width, "height": height})

    async def open_page(self, stage: Stage, url: str) -> None:
        """Open the page of a Stage, in a new browser if there is none."""
        page = self.page = await self._fresh_page() or await self._start_browser(stage)
        self.shown = 0
        page.on("crash", lambda _: self._lost(stage, page, "the page crashed"))
        if (on_console := self.options.on_console) is not None:
            page.on("console", lambda m: ignore(on_console(m.type, m.text)))
            page.on("pageerror", lambda error: ignore(on_console("uncaught", str(error))))
        if (on_request := self.options.on_request) is not None:
            page.on("request", lambda request: ignore(on_request(request.url)))
            page.on("websocket", lambda socket: ignore(on_request(socket.url)))
        try:
            await page.goto(url, timeout=self.options.timeout * 1000)
        except Exception as error:
            raise TransomError(f"The Stage did not load in Chromium: {brief(error)}") from error

    def before_view(self, stage: Stage) -> None:
        """Let the next View get a fresh page, because Playwright never frees the frames of a page.

        Only while no View is open.
        """
        if self.page is not None and not stage.views and self.shown >= _VIEWS_OF_A_PAGE:
            self._retired, self.page = self.page, None
            stage.page_lost("a fresh page is opened")

    async def _fresh_page(self) -> BrowserPage | None:
        """A page that replaces the retired one, in the same browser; None if there is none."""
        retired, self._retired = self._retired, None
        if retired is None:
            return None
        try:
            async with asyncio.timeout(self.options.timeout):
                page = await self._new_page(retired.context)
                await retired.close()
        except Exception:  # noqa: BLE001 - whatever is wrong with that browser, there are others
            return None
        return page

    async def _start_browser(self, stage: Stage) -> BrowserPage:
        lost = self._context is not None
        await self._close_browser()
        if lost and self.options.process is not None:
            await asyncio.to_thread(self.options.process.close)
        context = self._context = await self._launch()
        context.on("close", lambda _: self._browser_closed(stage, context))
        try:
            await context.add_init_script(_NO_PEERS)
            return context.pages[0] if context.pages else await self._new_page(context)
        except Exception as error:
            raise TransomError(f"Chromium ended as it started: {brief(error)}") from error

    async def _new_page(self, context: BrowserContext) -> BrowserPage:
        page = await context.new_page()
        if self.options.process is not None:  # nobody has told it what its pages are like
            await page.set_viewport_size(self._viewport)
            await page.emulate_media(color_scheme=self._color_scheme)
        return page

    @property
    def _viewport(self) -> ViewportSize:
        return {"width": self.options.size[0], "height": self.options.size[1]}

    @property
    def _color_scheme(self) -> Literal["dark", "light"]:
        return "dark" if self.options.dark else "light"

    async def _launch(self) -> BrowserContext:
        while True:
            used_before = self._playwright is not None
            try:
                return await self._start()
            except asyncio.CancelledError:
                await self._stop_driver()  # which also ends a browser that is starting
                raise
            except TransomError:
                await self._stop_driver()
                if not used_before:
                    raise

    async def _start(self) -> BrowserContext:
        if self._playwright is None:
            self._playwright = await self._start_driver()
        chromium = self._playwright.chromium
        try:
            if self.options.process is not None:
                async with asyncio.timeout(self.options.timeout):
                    return await _connect(chromium, self.options.process)
            profile = self._profile
            if profile is None:
                profile = self._profile = Profile(self.options.profile)
            executable = self.options.executable or find_chromium()
            return await start_chromium(
                executable or "Playwright's",
                lambda sandbox: chromium.launch_persistent_context(
                    profile.path,
                    executable_path=executable,
                    chromium_sandbox=sandbox,
                    args=chromium_arguments(),
                    viewport=self._viewport,
                    color_scheme=self._color_scheme,
                    accept_downloads=False,
                    env=dict(chromium_environment(profile.path)),
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=self.options.timeout * 1000,
                ),
            )
        except UsageError:  # a setting is wrong, not the Chromium
            raise
        except Exception as error:
            if self.options.process is not None:  # it may hang
                await asyncio.to_thread(self.options.process.close)
            if isinstance(error, TimeoutError):  # so it is there
                text = f"it did not answer within {self.options.timeout:g} s"
                raise TransomError(f"Chromium could not be started: {text}") from error
            raise TransomError(
                f"Chromium could not be started: {brief(error)}. Install it from your system's "
                "packages (chromium), or with: playwright install chromium"
            ) from error

    async def _start_driver(self) -> Playwright:
        try:
            # Playwright is an optional dependency, and slow to import.
            from playwright.async_api import async_playwright  # noqa: PLC0415
        except ImportError:
            raise TransomError(
                "Views without a window need Playwright: pip install 'transom[headless]'"
            ) from None
        # If it is cancelled as it starts, Playwright leaves its process behind.
        starting = self._driver = asyncio.ensure_future(async_playwright().start())
        try:
            return await asyncio.shield(starting)
        except Exception as error:
            raise TransomError(f"Playwright could not be started: {brief(error)}") from error

    def _lost(self, stage: Stage, page: BrowserPage, reason: str) -> None:
        if self.page is page:
            self.page = None
            stage.page_lost(reason)

    def _browser_closed(self, stage: Stage, context: BrowserContext) -> None:
        if self._context is context and self.page is not None:
            self._lost(stage, self.page, "the browser is gone")

    def page_away(self, stage: Stage) -> None:
        """The page's socket is gone, so the browser may be gone, too."""
        if (page := self.page) is not None:
            self._checking.start(self._check_page(stage, page))

    async def check(self, stage: Stage) -> None:
        """Give up a page that cannot be used: it may outlive Playwright, and nobody is told."""
        if self.page is not None and stage.has_page:  # it is not just being loaded
            await self._check_page(stage, self.page)

    async def _check_page(self, stage: Stage, page: BrowserPage) -> None:
        try:
            async with asyncio.timeout(self.options.timeout):
                await page.evaluate("0")
        except Exception:  # noqa: BLE001 - whatever Playwright raises, there is no page left
            self._lost(stage, page, "the browser is gone")

    def page_over(self, stage: Stage) -> None:
        """Close the Views that the page has not shown yet, as the others are."""
        for key in stage.views:
            stage.remove(key, "the browser is gone")

    def view_unloaded(self, stage: Stage) -> None:
        """A View did not load: Chromium may have lost the process that starts its renderers.

        Or that process hangs.
        """
        if (page := self.page) is not None:
            self._checking.start(self._check_loading(stage, page))

    async def _check_loading(self, stage: Stage, page: BrowserPage) -> None:
        try:
            async with asyncio.timeout(self.options.timeout):
                another = await page.context.new_page()
                await another.goto(stage.sandbox.replace("*", "nobody"))
                await another.close()
        except Exception:  # noqa: BLE001 - as above
            self._lost(stage, page, "the browser loads no more pages")

    async def _close_browser(self) -> None:
        context, self._context, self.page, self._retired = self._context, None, None, None
        if context is not None:
            try:
                async with asyncio.timeout(_CLOSE_WITHIN):
                    if self.options.process is not None:  # it goes on
                        await asyncio.gather(*(page.close() for page in context.pages))
                    await context.close()
            except Exception:  # noqa: BLE001 - a hung browser, or no driver left to close it
                await self._stop_driver()
                if self.options.process is not None:
                    await asyncio.to_thread(self.options.process.close)
        if self._profile is not None:
            profile, self._profile = self._profile, None
            await profile.remove()

    async def _stop_driver(self) -> None:
        """End Playwright's own process, which kills its browsers."""
        driver, self._driver, self._playwright = self._driver, None, None
        if driver is not None:
            with suppress(Exception):  # it may be dead already
                async with asyncio.timeout(self.options.timeout):
                    playwright = await driver
                async with asyncio.timeout(_CLOSE_WITHIN):
                    await playwright.stop()


async def _connect(chromium: BrowserType, process: ChromiumProcess) -> BrowserContext:
    browser = await chromium.connect_over_cdp(await process.address(chromium.executable_path))
    session: Any = await browser.new_browser_cdp_session()
    await session.send("Browser.setDownloadBehavior", {"behavior": "deny"})
    return browser.contexts[0]


class HeadlessSeat(Seat):
    """The renderer of one Host among others that use the same browser without a window."""

    def __init__(
        self, stage: LocalStage, browser: StageBrowser, mark: str = "", client: str = ""
    ) -> None:
        super().__init__(stage, mark, client)
        self._local = stage
        self._browser = browser

    async def open(self, resource: UIResource) -> Channel:
        """Show a View, in a browser that is started if there is none.

        Raises:
            TransomError: it could not be started, or did not show its page in time.
        """
        self._browser.before_view(self._local.stage)
        channel = await super().open(resource)
        self._browser.shown += 1
        return channel

    async def screenshot(self, view_id: str) -> bytes:
        """A PNG of what a View of this Host shows now.

        Raises:
            ViewClosed: it is not on the Stage.
            TransomError: the browser could not take the picture.
        """
        page, timeout = self._browser.page, self._browser.options.timeout * 1000
        if page is None or self.key_of(view_id) not in self._local.stage.views:
            raise _not_shown(view_id)
        frame = page.locator(self._frame_of(view_id))
        # It goes on to its end: one that was left in the middle would change the window later.
        picture = shared_task(self._picture(page, frame, timeout))
        try:
            return await asyncio.shield(picture)
        except Exception as error:
            text = f"There is no picture of View {view_id}: {brief(error)}"
            raise TransomError(text) from error

    async def _picture(self, page: BrowserPage, frame: Locator, timeout: float) -> bytes:
        async with self._browser.picturing:
            # Of the element itself, which ends with it; one that is looked for is waited for.
            element = await frame.element_handle(timeout=timeout)
            try:
                least = await element.evaluate(_UNCOVER)
                async with self._browser.window_of(page, least):
                    return await element.screenshot(timeout=timeout)
            finally:
                with suppress(Exception):  # the page may be gone
                    await page.evaluate(_SHOW_ALL)

    async def drive(self, view_id: str, request: dict[str, Any]) -> dict[str, Any]:
        """As `Seat.drive`; what is done with a mouse or a keyboard is done with real ones."""

        async def drive(request: dict[str, Any]) -> dict[str, Any]:
            return await super(HeadlessSeat, self).drive(view_id, request)

        if request.get("op") != "act" or (page := self._browser.page) is None:
            return await drive(request)
        key = self.key_of(view_id)
        return await self._browser.input.act(page, key, request, drive)

    async def wait_for(self, view_id: str, selector: str) -> None:
        """Wait until a View of this Host shows something that this CSS selector finds.

        Raises:
            ViewClosed: it is not on the Stage.
            TransomError: it does not in time, or that is no selector.
        """
        inside, timeout = self._inside(view_id), self._browser.options.timeout * 1000
        try:
            await inside.locator(selector).first.wait_for(timeout=timeout)
        except Exception as error:
            text = f"View {view_id} does not show {selector}: {brief(error)}"
            raise TransomError(text) from error

    async def evaluate(self, view_id: str, script: str, *, timeout: float = 5.0) -> Any:
        """Run a JavaScript function in the page of a View of this Host; what it returned.

        It gets the page's root element. The page may have replaced whatever it calls: its answer
        is the View's word.

        Raises:
            ViewClosed: it is not on the Stage.
            TransomError: the page does not answer in time, or the function failed.
        """
        root = self._inside(view_id).locator(":root")
        try:
            async with asyncio.timeout(timeout):  # Playwright's own is for finding the page
                return await root.evaluate(script, timeout=timeout * 1000)
        except TimeoutError:
            text = f"The page of View {view_id} did not answer within {timeout:g} s"
            raise TransomError(text) from None
        except Exception as error:
            text = f"The page of View {view_id} cannot be looked into: {brief(error)}"
            raise TransomError(text) from error

    def _inside(self, view_id: str) -> Any:
        """Where Playwright finds what is in a View's page."""
        place: Any = self._browser.page
        if place is None:
            raise _not_shown(view_id)
        for frame in (self._frame_of(view_id), "iframe", "iframe"):  # guard, sandbox, View
            place = place.frame_locator(frame)
        return place

    def _frame_of(self, view_id: str) -> str:
        return f'[id="view-{self.key_of(view_id)}"] iframe'


class HeadlessRenderer(HeadlessSeat):
    """Shows Views in a browser without a window. Links are refused: no user would see them.

    Args:
        csp: what a View's page may run: `compat` or `strict`.
        executable: the browser; the machine's Chromium unless given.
        size: the page's width and height.
        dark: whether the page is dark.
        timeout: seconds to wait for the browser to start, for pictures, and for a browser that does
            not respond.
        profile: the folder of a browser profile to keep for the next run, with what Views store;
            only one browser at a time can use it. None: a temporary one.
        process: a Chromium that runs already, or is started when it is needed, and goes on when
            this renderer is left; one renderer at a time can use it. None: a new one.
        downloads: the folder in which the files of Views are saved; None: they are refused.
        max_download_bytes: how much all Views together may save there.
        on_violation: called with everything that a View's policy blocked.
        on_console: called with what Views write to the browser's console: kind, text.
        on_request: called with every address that the page or a View loads or connects to.
    """

    def __init__(
        self,
        *,
        csp: CspMode = "compat",
        executable: str | None = None,
        size: tuple[int, int] = (1100, 800),
        dark: bool = False,
        timeout: float = 30.0,
        profile: Path | None = None,
        process: ChromiumProcess | None = None,
        downloads: Path | None = None,
        max_download_bytes: int = 100 * 1024 * 1024,
        on_violation: Callable[[Violation], object] | None = None,
        on_console: Callable[[str, str], object] | None = None,
        on_request: Callable[[str], object] | None = None,
    ) -> None:
        browser = StageBrowser(
            BrowserOptions(
                executable=executable,
                size=size,
                dark=dark,
                timeout=timeout,
                profile=profile,
                process=process,
                on_console=on_console,
                on_request=on_request,
            )
        )
        save = None if downloads is None else _Downloads(downloads, max_download_bytes).save
        local = LocalStage(
            self._open_page,
            SeatOptions(confirm=False, keeps_closed=True, save=save),
            listener=browser,
            csp=csp,
            page_timeout=timeout,
            max_away=min(timeout, 30.0),
            storage=None if profile is None else ViewStorage(f"headless {profile.absolute()}"),
            on_violation=on_violation,
        )
        super().__init__(local, browser)

    async def _open_page(self, url: str) -> None:
        await self._browser.open_page(self._local.stage, url)

    @property
    def _stage(self) -> Stage:
        """The Stage the Views are on."""
        return self._local.stage

    @property
    def page(self) -> BrowserPage | None:
        """Playwright's page that shows the Stage, if there is one."""
        return self._browser.page

    async def show_page(self) -> None:
        """Start the browser now if it does not run, not only with the first View.

        Raises:
            TransomError: it could not be started, or did not show its page in time.
        """
        await self._browser.check(self._stage)
        await self._local.show_page("")

    async def __aenter__(self) -> Self:
        await self._local.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._local.stop_opening()
            await self._browser.close()
        finally:
            await self._local.close()

    def seat(self, client: str = "") -> HeadlessSeat:
        """A renderer for one of several Hosts that share this browser: `Host(renderer=r.seat())`.

        The browser runs until this renderer is left, not with the Host.

        Args:
            client: for whom the Host works, such as the name of an MCP client.
        """
        return HeadlessSeat(self._local, self._browser, self._local.new_mark(), client)


class _Downloads:
    """Saves the files of Views in a folder, up to a number of bytes altogether."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._left = most

    async def save(self, name: str, content: bytes) -> None:
        if len(content) > self._left:
            raise Refused("The file is refused: Views have saved as much as they may")
        self._left -= len(content)
        try:
            await asyncio.to_thread(self._write, Path(name), content)
        except OSError as error:
            self._left += len(content)
            raise Refused(f"The file could not be saved: {error.strerror}") from None

    def _write(self, name: Path, content: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / name.name
        if path.exists():
            path = path.with_stem(f"{name.stem}-{secrets.token_hex(4)}")
        with path.open("xb") as file:
            file.write(content)


def _not_shown(view_id: str) -> ViewClosed:
    return ViewClosed(view_id, f"View {view_id} is not on the Stage")
