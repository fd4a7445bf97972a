"""A host whose Views are in Chromium, and a server for it to show."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx2
from mcp.server.mcpserver import MCPServer
from playwright.async_api import Browser, BrowserContext, Locator, async_playwright, expect
from playwright.async_api import Page as BrowserPage
from websockets.asyncio.client import connect

from tests.browser.views import html
from transom import Host, Policy
from transom.host.views.view import View
from transom.server import Views
from transom.web.local.chromium import chromium_arguments, find_chromium
from transom.web.local.renderers import BrowserRenderer
from transom.web.stage import Stage

expect.set_options(timeout=30_000)  # not 5 s: a busy machine may need them

URI = "ui://tests/page.html"
_WORKS = 50  # hundredths of a second of computing that an idle page never needs
TOLD = "tools.told = () => told.map(({ method, params }) => ({ method, params }));"

# What can be seen of an element: all of it is in the window, nothing cuts it off or covers it.
SEEN = """(element) => {
  const text = document.createRange();
  text.selectNodeContents(element);
  return [...text.getClientRects()].every((box) => {
    const { left, top, right, bottom } = box;
    const inside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    const root = element.getRootNode();
    const ends = [left + 1, right - 1].map((x) =>
      root.elementsFromPoint(x, (top + bottom) / 2).find(({ id }) => id !== "transom-shield"));
    return inside && ends.every((there) => element.contains(there));
  });
}"""


def server(script: str = "") -> tuple[MCPServer, list[str]]:
    """A server whose `show` opens a View with this script, and what its helper was called with."""
    views = Views()
    page = views.add(URI, html=html(TOLD + script))
    noted: list[str] = []

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def show(label: str = "") -> str:
        """Open a View."""
        return f"shown {label}"

    @views.helper
    def note(text: str) -> str:
        """Note that it was called."""
        noted.append(text)
        return f"noted {text}"

    return MCPServer("tests", extensions=[views]), noted


@asynccontextmanager
async def hosted(renderer: Any, script: str = "", **options: Any) -> AsyncIterator[Host]:
    """A host with that server, its Views on that renderer."""
    options = {"policy": Policy.trusting(), "open_timeout": 60, **options}
    async with Host(renderer=renderer, audit=None, **options) as host:
        made, host.noted = server(script)  # type: ignore[attr-defined]
        await host.add_server("tests", made)
        yield host


async def show(host: Host, label: str = "") -> View:
    """Call `show` and return the View it opened."""
    result = await host.call_tool("show", {"label": label})
    note = (result.meta or {})["transom/view"]
    assert note["state"] == "live", note
    return host.views[note["id"]]


async def text_of(call: Awaitable[Any]) -> str:
    return (await call).text


def inside(page: BrowserPage, place: str = "transom-view") -> Any:
    """What is in the View at that place: below its guard and its sandbox."""
    return page.frame_locator(f"{place} iframe").frame_locator("iframe").frame_locator("iframe")


class _Retried:
    def __init__(self, page: BrowserPage, checks: Any) -> None:
        self._page = page
        self._checks = checks

    def __getattr__(self, name: str) -> Callable[..., Awaitable[None]]:
        check = getattr(self._checks, name)

        async def retry(*args: Any, **options: Any) -> None:
            while True:
                try:
                    return await check(*args, **options)
                except AssertionError as error:
                    if "has been closed" not in str(error) or self._page.is_closed():
                        raise

        return retry


def expect_shown(found: Locator, why: str | None = None) -> Any:
    """`expect`, of what is in a View that may be replaced meanwhile.

    Playwright gives up if a frame of another process goes away while it looks into it.
    """
    return _Retried(found.page, expect(found, why))


class Chromium:
    """A browser that a test's user sits at: opens the Stage where it is told to."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    @asynccontextmanager
    async def user(self, **options: Any) -> AsyncIterator["User"]:
        """Someone with a window of their own."""
        context = await self._browser.new_context(**options)
        try:
            yield User(context)
        finally:
            if self._browser.is_connected():  # a test may have killed it
                await context.close()


class User:
    """Opens the page, and looks at it."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.opened: list[BrowserPage] = []

    async def open_page(self, url: str) -> None:
        page = await self.context.new_page()
        self.opened.append(page)
        await page.goto(url)

    @property
    def page(self) -> BrowserPage:
        """The page that was opened last."""
        return self.opened[-1]

    def renderer(self, **options: Any) -> BrowserRenderer:
        """A renderer that shows Views here."""
        return BrowserRenderer(open_page=self.open_page, **options)

    def in_view(self, view_id: str) -> Any:
        """What is inside a View."""
        return inside(self.page, f'[id="view-{view_id}"]')

    async def run_in_view(self, view_id: str, script: str) -> Any:
        """Run a script inside a View, by a way that needs neither Stage nor host."""
        frame: Any = self.page
        for selector in (f'[id="view-{view_id}"] iframe', "iframe", "iframe"):
            element = await frame.wait_for_selector(selector, state="attached")
            frame = await element.content_frame()
        return await frame.evaluate(script)


@asynccontextmanager
async def chromium(mark: object = "") -> AsyncIterator[Chromium]:
    """A browser for a whole module of tests, or for one that finds it by a mark to kill it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(), args=[*chromium_arguments(), f"--mark={mark}"]
        )
        try:
            yield Chromium(browser)
        finally:
            await browser.close()


@asynccontextmanager
async def lasting_browser(profile: Path, **options: Any) -> AsyncIterator["User"]:
    """A browser with a profile, and in it what pages stored; it is there again the next time."""
    preferences = profile / "Default" / "Preferences"
    if not preferences.exists():
        preferences.parent.mkdir(parents=True)
        allowed = {"block_third_party_cookies": False, "cookie_controls_mode": 0}
        preferences.write_text(json.dumps({"profile": allowed}))
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            profile, executable_path=find_chromium(), args=chromium_arguments(), **options
        )
        try:
            yield User(context)
        finally:
            await context.close()


class Told:
    """Waits for what a host tells: `opened`, `closed`."""

    def __init__(self, host: Host) -> None:
        self.opened: asyncio.Queue[View] = asyncio.Queue()
        self.closed: asyncio.Queue[View] = asyncio.Queue()
        host.on_view_opened(self.opened.put_nowait)
        host.on_view_closed(self.closed.put_nowait)


class Cut:
    """Stands between the page and the Stage, and can be cut."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._port = int(stage.origin.rpartition(":")[2])
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused: asyncio.Queue[None] = asyncio.Queue()
        self._refusing = False
        self._silent: set[asyncio.StreamWriter] = set()

    @classmethod
    def of(cls, renderer: BrowserRenderer) -> Self:
        """In front of a renderer's Stage, which knows of it."""
        return cls(renderer._stage)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._stage.origin = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._abort()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            self.refused.put_nowait(None)
            writer.transport.abort()
            return
        there, to_there = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, to_there}
        for source, target in ((reader, to_there), (there, writer)):
            task = asyncio.create_task(self._copy(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                if target in self._silent:
                    continue
                target.write(data)
                await target.drain()
        except OSError:
            pass
        target.close()

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def cut(self) -> None:
        """Cut every connection, and let none through."""
        self._refusing = True
        self._abort()

    def silence(self) -> None:
        """Let nothing more through on the connections there are, without closing any."""
        self._silent = set(self._writers)

    def restore(self) -> None:
        """Let them through again."""
        self._refusing = False


def processes(mark: str) -> list[int]:
    """The processes that have this in their command line, the oldest first."""
    found: list[tuple[int, int]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
                started = (entry / "stat").read_text().rpartition(")")[2].split()[19]
            except OSError:
                continue
            if mark.encode() in command:
                found.append((int(started), int(entry.name)))
    return [pid for _, pid in sorted(found)]  # after the highest id come low ones again


def cpu_time(pid: int) -> int:
    """How much of the processor a process has used, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


class UsersOwnBrowser:
    """A Chromium that nobody watches: Playwright's driver ends when a View's process is killed.

    What is opened with `open_behind` is in a tab behind another, where its user does not see it.
    """

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._process: asyncio.subprocess.Process | None = None

    async def open_page(self, url: str) -> None:
        await self._start(url, stderr=asyncio.subprocess.DEVNULL)

    async def open_behind(self, url: str) -> None:
        process = await self._start(
            "about:blank", "--remote-debugging-port=0", stderr=asyncio.subprocess.PIPE
        )
        assert process.stderr is not None
        async for line in process.stderr:
            if found := re.search(rb"DevTools listening on ws://([^/]+)/", line):
                break
        else:
            raise AssertionError("Chromium has ended")
        async with httpx2.AsyncClient(base_url=f"http://{found[1].decode()}/json/") as browser:
            page = (await browser.put(f"new?{quote(url, safe='')}")).json()
            in_front = (await browser.put("new?about:blank")).json()
            await browser.get(f"activate/{in_front['id']}")
        self._behind = page["webSocketDebuggerUrl"]

    async def run_behind(self, script: str) -> None:
        """Run a script on the page that is behind another, and wait for what it awaits."""
        params = {"expression": script, "awaitPromise": True}
        command = {"id": 1, "method": "Runtime.evaluate", "params": params}
        async with connect(self._behind) as page:
            await page.send(json.dumps(command))
            answer = json.loads(await page.recv())
        assert "exceptionDetails" not in answer["result"], answer

    async def _start(self, *arguments: str, stderr: int) -> asyncio.subprocess.Process:
        chromium = find_chromium()
        assert chromium is not None
        self._process = await asyncio.create_subprocess_exec(
            *(chromium, *chromium_arguments(), "--headless"),
            *(f"--user-data-dir={self._profile}", *arguments),
            stderr=stderr,
        )
        return self._process

    async def working_processes(self) -> list[int]:
        """Wait until processes of pages compute without a break; their ids."""
        assert self._process is not None
        pages = [pid for pid in descendants(self._process.pid) if shows_pages(pid)]
        before = {pid: cpu_time(pid) for pid in pages}
        async with asyncio.timeout(60):
            while True:  # there is no event for a stranger's work
                if busy := [pid for pid in pages if cpu_time(pid) - before[pid] > _WORKS]:
                    return busy
                await asyncio.sleep(0.05)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.wait()


def shows_pages(pid: int) -> bool:
    return b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()


def descendants(pid: int) -> list[int]:
    """The processes that this one started, and those that they started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for word in task.read_text().split():
            found += [int(word), *descendants(int(word))]
    return found


async def until_gone(mark: str) -> None:
    """Wait until none of these processes is left: there is no event for a stranger's end."""
    async with asyncio.timeout(60):
        while processes(mark):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
