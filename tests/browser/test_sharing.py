"""Several processes, one page, in Chromium."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.hosting import Chromium, Told, User, hosted, show, text_of
from tests.browser.sharer import VIEW
from tests.processes import ended
from transom import Host, Policy
from transom.web.local.renderers import BrowserRenderer


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's runtime folder, with a name that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="t-") as made:
        monkeypatch.setenv("XDG_RUNTIME_DIR", made)
        yield Path(made)


class Sharer:
    """A process of its own with a Host; `user` opens the pages it wants."""

    def __init__(self, process: asyncio.subprocess.Process, user: User) -> None:
        self.process = process
        self._user = user
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.origin = ""

    async def heard(self, kind: str) -> Any:
        """Wait until it says that."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            said = json.loads(line)
            if "open" in said:
                self.opened.append(said["open"])
                await self._user.open_page(said["open"])
            if "closed" in said:
                self.closed.append(said["closed"])
            assert "failed" not in said, said
            if kind in said:
                return said[kind]
        raise AssertionError("It ended")

    async def ask(self, word: str) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n".encode())
        return await self.heard("done")

    async def end(self) -> None:
        """Have it end as it should."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self.process.wait()


@asynccontextmanager
async def sharers(user: User) -> AsyncIterator[tuple[Sharer, Sharer]]:
    """Two of them, started at the same time."""
    async with sharer(user, wait=False) as first, sharer(user, wait=False) as second:
        for each in (first, second):
            each.origin = await each.heard("ready")
        yield first, second


@asynccontextmanager
async def sharer(user: User, *, wait: bool = True) -> AsyncIterator[Sharer]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.browser.sharer",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
    )
    made = Sharer(process, user)
    try:
        if wait:
            made.origin = await made.heard("ready")
        yield made
    finally:
        if process.returncode is None:
            process.kill()
        await ended(process)


def cards(user: User) -> Any:
    return user.page.locator("transom-view:not([data-state=closed])")


async def kept(user: User) -> list[dict[str, str]]:
    """Whom the page would join again when it is reloaded."""
    return json.loads(await user.page.evaluate("sessionStorage.getItem('transom-joined')"))


def renderer(user: User) -> BrowserRenderer:
    return user.renderer(share=True)


@asynccontextmanager
async def two(user: User) -> AsyncIterator[tuple[Host, Host]]:
    """Two Hosts, each with a Stage of its own."""
    async with hosted(renderer(user), VIEW) as one, hosted(renderer(user), VIEW) as other:
        yield one, other


# --- two processes ---------------------------------------------------------------------------


async def test_two_processes_share_a_tab_and_the_second_goes_on_when_the_first_and_the_tab_end(
    browser: Chromium,
) -> None:
    async with browser.user() as user, sharers(user) as (first, second):
        for process in (first, second):
            assert await process.ask("show") == "tests-1"
        assert len(user.opened) == 1
        assert second.opened == []
        assert await cards(user).count() == 2
        assert await first.ask("tests-1 count") == "1"
        assert await second.ask("tests-1 count") == "1"
        assert await second.ask("tests-1 theme") == "light"
        assert [joined["origin"] for joined in await kept(user)] == [second.origin]
        await first.end()
        await cards(user).nth(1).wait_for(state="detached")
        assert await kept(user) == []
        assert await second.ask("tests-1 count") == "2"
        assert await second.ask("show") == "tests-2"
        assert await cards(user).count() == 2
        assert await user.page.locator("#state").inner_text() == "Connected"
        assert len(user.opened) == 1
        # A page whose own process is gone cannot be reloaded: the next View opens another.
        with pytest.raises(Exception, match="ERR_CONNECTION_REFUSED"):
            await user.page.reload()
        assert {await second.heard("closed") for _ in range(2)} == {"tests-1", "tests-2"}
        assert await second.ask("show") == "tests-3"
        assert len(second.opened) == 1
        assert await second.ask("tests-3 count") == "1"


@pytest.mark.nightly
async def test_a_first_process_that_is_killed_does_not_take_the_second_along(
    browser: Chromium,
) -> None:
    async with browser.user() as user, sharers(user) as (first, second):
        await first.ask("show")
        await second.ask("show")
        first.process.kill()
        await first.process.wait()
        lost = "No connection to one of your agents or programs. Trying again"
        await user.page.get_by_text(lost).wait_for()
        assert await kept(user) == []
        assert await second.ask("tests-1 count") == "1"
        assert await second.ask("show") == "tests-2"
        assert len(user.opened) == 1
        async with sharer(user) as third:
            assert await third.ask("show") == "tests-1"
            assert third.opened == []
            assert await third.ask("tests-1 count") == "1"
        assert await second.ask("tests-1 count") == "2"


# --- two Stages ------------------------------------------------------------------------------


@pytest.mark.nightly
async def test_one_view_of_all_stages_covers_the_page_and_a_reload_brings_all_back(
    browser: Chromium,
) -> None:
    async with browser.user() as user, two(user) as (one, other):
        await show(one)
        await show(other)
        for number in range(2):
            card = cards(user).nth(number)
            await card.get_by_role("button", name="Full screen").dispatch_event("click")
            modes = [await cards(user).nth(n).get_attribute("data-mode") for n in range(2)]
            assert modes == ["fullscreen" if n == number else "inline" for n in range(2)]
        await user.page.keyboard.press("Escape")
        assert await cards(user).nth(1).get_attribute("data-mode") == "inline"
        news = Told(one), Told(other)
        await user.page.reload()
        for told in news:
            again = await told.opened.get()
            assert await text_of(again.call_tool("count")) == "1"
        assert await cards(user).count() == 2
        assert len(user.opened) == 1


async def test_questions_of_both_stages_are_asked_and_answered_apart(browser: Chromium) -> None:
    async with browser.user() as user:
        first, second = renderer(user), renderer(user)
        async with (
            hosted(first, VIEW, policy=Policy(approve=first.approve)) as one,
            hosted(second, VIEW, policy=Policy(approve=second.approve)) as other,
        ):
            views = [await show(one), await show(other)]
            calls = [asyncio.create_task(view.call_tool("count")) for view in views]
            asked = user.page.locator(".question")
            await asked.get_by_text("and 1 more").wait_for()
            assert await user.page.title() == "(2) tests: test-view"
            await asked.get_by_role("button", name="Allow", exact=True).click()
            done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            assert [task.result().text for task in done] == ["1"]
            assert len(waiting) == 1
            assert await user.page.title() == "(1) tests: test-view"
            await asked.get_by_role("button", name="Allow", exact=True).click()
            assert [(await call).text for call in calls] == ["1", "1"]


@pytest.mark.nightly
async def test_a_page_opened_by_hand_takes_its_own_views_and_leaves_the_others(
    browser: Chromium,
) -> None:
    async with browser.user() as user:
        first, second = renderer(user), renderer(user)
        async with hosted(first, VIEW) as one, hosted(second, VIEW) as other:
            kept = await show(one)
            await show(other)
            shared = user.page
            told = Told(other)
            await user.open_page(second.url)
            again = await told.opened.get()
            assert await text_of(again.call_tool("count")) == "1"
            assert await cards(user).count() == 1
            await (
                shared.locator("transom-view:not([data-state=closed])")
                .nth(1)
                .wait_for(state="detached")
            )
            assert await text_of(kept.call_tool("count")) == "1"


# --- what a shared page lets through ---------------------------------------------------------

LEAVE = """
tools.leave = ({ url }) => {
  const script = parent.document.createElement("script");
  script.textContent = `location.href = ${JSON.stringify(url)}`;
  parent.document.body.append(script);
  return "leaving";
};
"""


@pytest.mark.nightly
async def test_a_view_on_a_shared_page_cannot_leave_for_another_local_service(
    browser: Chromium,
) -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if line := await reader.readline():  # a browser may connect ahead of time, and say nothing
            asked.append(line)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    there = f"http://any.localhost:{server.sockets[0].getsockname()[1]}"
    async with browser.user() as user, hosted(renderer(user), LEAVE) as host:
        blocked: asyncio.Queue[str] = asyncio.Queue()
        await show(host)
        user.page.on("console", lambda message: blocked.put_nowait(message.text))
        for path in ("/steal?data=1", "/transom-view/steal", "/transom-viewer", "/x/transom-view"):
            view = await show(host)
            assert await text_of(view.call_tool("leave", {"url": there + path})) == "leaving"
            while not (text := await blocked.get()).startswith(f"Framing '{there}"):
                pass
            assert "frame-src" in text
    server.close()
    assert asked == []
