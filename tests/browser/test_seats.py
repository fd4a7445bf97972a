"""Several Hosts on one page, in Chromium."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.browser.hosting import Chromium, Told, User, hosted, show, text_of
from transom import Host, Policy
from transom.errors import UsageError, ViewClosed
from transom.web.local.headless import HeadlessRenderer
from transom.web.local.renderers import BrowserRenderer

VIEW = """
let calls = 0;
tools.count = () => { calls += 1; return calls; };
tools.paint = ({ colour }) => { document.body.style.background = colour; return "painted"; };
tools.context = () => host.hostContext;
"""


@asynccontextmanager
async def two(renderer: BrowserRenderer | HeadlessRenderer) -> AsyncIterator[tuple[Host, Host]]:
    """Two Hosts on one renderer."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(renderer)
        hosts = [
            await stack.enter_async_context(hosted(renderer.seat(client), VIEW))
            for client in ("cursor", "codex")
        ]
        yield hosts[0], hosts[1]


def cards(user: User) -> Any:
    return user.page.locator("transom-view:not([data-state=closed])")


async def test_views_of_two_hosts_share_a_page_and_are_told_apart(browser: Chromium) -> None:
    async with browser.user() as user, two(user.renderer()) as (one, other):
        first, second = await show(one), await show(other)
        assert first.id == second.id
        assert len(user.opened) == 1
        assert await cards(user).count() == 2
        captions = [await cards(user).nth(n).locator(".whose").inner_text() for n in range(2)]
        assert captions == ["from tests for codex", "from tests for cursor"]  # the newest first
        label = await cards(user).last.get_attribute("aria-label")
        assert label == "“test-view” from tests for cursor"
        for expected in ("1", "2"):
            assert await text_of(first.call_tool("count")) == expected
        assert await text_of(second.call_tool("count")) == "1"
        context = json.loads(await text_of(second.call_tool("context")))
        assert context["theme"] == "light"


async def test_closing_one_hosts_view_leaves_the_others(browser: Chromium) -> None:
    async with browser.user() as user, two(user.renderer()) as (one, other):
        first, second = await show(one), await show(other)
        told = Told(other)
        await cards(user).nth(0).get_by_role("button", name=f"Close: {second.id}").click()
        assert await told.closed.get() is second
        assert await text_of(first.call_tool("count")) == "1"
        with pytest.raises(ViewClosed):
            await second.call_tool("count")


async def test_a_reload_brings_back_the_views_of_both(browser: Chromium) -> None:
    async with browser.user() as user, two(user.renderer()) as (one, other):
        await show(one)
        await show(other)
        news = Told(one), Told(other)
        await user.page.reload()
        for told in news:
            again = await told.opened.get()
            assert await text_of(again.call_tool("count")) == "1"
        assert await cards(user).count() == 2


async def test_a_question_says_for_whom_the_model_works(browser: Chromium) -> None:
    async with browser.user() as user, user.renderer() as renderer:
        seat = renderer.seat("cursor")
        async with hosted(seat, VIEW, policy=Policy(approve=seat.approve)) as host:
            view = await show(host)
            called = asyncio.create_task(text_of(view.call_tool("count")))
            said = await user.page.locator(".question .whose").inner_text()
            await user.page.get_by_role("button", name="Allow", exact=True).click()
            assert await called == "1"
            assert said == "from tests for cursor"


async def test_a_host_that_leaves_leaves_the_page_to_the_others(browser: Chromium) -> None:
    async with browser.user() as user, user.renderer() as renderer:
        async with hosted(renderer.seat(), VIEW) as stays:
            kept = await show(stays)
            async with hosted(renderer.seat(), VIEW) as goes:
                await show(goes)
                assert await cards(user).count() == 2
            await cards(user).nth(1).wait_for(state="detached")
            assert await text_of(kept.call_tool("count")) == "1"
        await cards(user).first.wait_for(state="detached")
        assert await user.page.locator("#state").inner_text() == "Connected"


@pytest.mark.processes
@pytest.mark.nightly
async def test_pictures_are_of_the_hosts_own_view() -> None:
    async with two(HeadlessRenderer()) as (one, other):
        first, second = await show(one), await show(other)
        before = await first.screenshot()
        assert await text_of(second.call_tool("paint", {"colour": "rgb(200, 30, 30)"})) == "painted"
        assert await first.screenshot() == before
        assert await second.screenshot() != before
        await second.close()
        with pytest.raises(ViewClosed, match=f"{second.id} "):
            await second.screenshot()


async def test_a_page_in_the_users_browser_has_no_pictures(browser: Chromium) -> None:
    async with browser.user() as user, two(user.renderer()) as (one, _):
        with pytest.raises(UsageError, match="cannot take screenshots"):
            await (await show(one)).screenshot()
