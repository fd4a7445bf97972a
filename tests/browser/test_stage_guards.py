"""The guard of the next View, which the page loads before there is such a View."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.mcpserver import MCPServer
from playwright.async_api import Route, expect

from tests.browser.hosting import Chromium, User, hosted, show, text_of
from tests.browser.views import html
from transom import Host
from transom.server import Views

HI = "let calls = 0; tools.hi = () => 'hi'; tools.count = () => { calls += 1; return calls; };"
SPARE = "iframe[data-spare=ready]"
KEEP = "(frame) => { window.kept = frame; }"
HOLDS = "(id) => window.kept.getRootNode().host?.id === id && window.kept.isConnected"


@asynccontextmanager
async def after_the_first(browser: Chromium) -> AsyncIterator[tuple[User, Host]]:
    """A host and its user, who has seen a View; `window.kept` is the guard of the next."""
    async with browser.user() as user, hosted(user.renderer(), HI) as host:
        await show(host)
        await user.page.locator(SPARE).evaluate(KEEP)
        yield user, host


async def test_the_next_view_has_a_guard_that_was_loaded_before(browser: Chromium) -> None:
    async with after_the_first(browser) as (user, host):
        view = await show(host)
        assert await user.page.evaluate(HOLDS, f"view-{view.id}")
        assert await text_of(view.call_tool("hi")) == "hi"
        await expect(user.page.locator(f"#view-{view.id} iframe")).to_be_visible()
        await user.page.locator(SPARE).wait_for(state="attached")  # and there is one again
        await expect(user.page.locator(SPARE)).to_be_hidden()


async def test_views_that_open_together_do_not_share_a_guard(browser: Chromium) -> None:
    async with after_the_first(browser) as (user, host):
        views = await asyncio.gather(*(show(host) for _ in range(4)))
        for view in views:
            assert await text_of(view.call_tool("hi")) == "hi"
        await user.page.locator(SPARE).wait_for(state="attached")
        assert await user.page.locator("transom-view iframe").count() == 5
        assert await user.page.locator("iframe").count() == 6


async def test_a_guard_that_is_gone_when_its_view_comes_is_loaded_again(browser: Chromium) -> None:
    async with after_the_first(browser) as (user, host):
        await user.page.evaluate(
            "() => new Promise((gone) => { kept.onload = gone; kept.src = 'about:blank'; })"
        )
        view = await show(host)
        assert await user.page.evaluate(HOLDS, f"view-{view.id}")
        assert await text_of(view.call_tool("hi")) == "hi"


async def test_a_page_may_remove_a_guard_that_waits(browser: Chromium) -> None:
    async with after_the_first(browser) as (user, host):
        await user.page.evaluate("() => kept.getRootNode().host.remove()")
        view = await show(host)
        assert await text_of(view.call_tool("hi")) == "hi"
        await user.page.locator(SPARE).wait_for(state="attached")


async def test_a_view_whose_guard_waited_is_loaded_again_where_the_page_moves_it(
    browser: Chromium,
) -> None:
    async with after_the_first(browser) as (user, host):
        view = await show(host)
        assert await text_of(view.call_tool("count")) == "1"
        moved = user.page.locator(f"#view-{view.id}")
        await moved.evaluate("(view) => view.parentElement.prepend(view)")
        again = f"{view.id}__count"
        while (await host.answer(again, {})).text != "1":  # noqa: ASYNC110 - no event
            await asyncio.sleep(0)  # between the two pages there is no tool: answered at once


async def test_a_view_with_permissions_has_a_guard_of_its_own(browser: Chromium) -> None:
    views = Views()
    page = views.add("ui://tests/write.html", html=html(HI), permissions=["clipboardWrite"])

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def write() -> str:
        """Open a View that may write to the clipboard."""
        return "written"

    async with after_the_first(browser) as (user, host):
        await host.add_server("writing", MCPServer("writing", extensions=[views]))
        await host.call_tool("write")
        frame = user.page.locator("#view-writing-1 iframe")
        assert "clipboard-write" in (await frame.get_attribute("allow") or "")
        assert not await user.page.evaluate(HOLDS, "view-writing-1")
        assert (await host.call_tool("writing-1__hi")).text == "hi"


async def test_an_error_page_is_no_guard_and_gives_way_to_one(browser: Chromium) -> None:
    async with browser.user() as user, hosted(user.renderer(), HI) as host:
        failed = asyncio.Event()

        async def serve(route: Route) -> None:
            if failed.is_set() or "?" in route.request.url:  # not the one that is loaded ahead
                await route.continue_()
            else:
                failed.set()
                await route.fulfill(status=502, body="No host")

        await user.context.route("**/transom-view*", serve)
        await show(host)
        await failed.wait()
        view = await show(host)
        assert await text_of(view.call_tool("hi")) == "hi"
        await user.page.locator(SPARE).wait_for(state="attached")
        assert await user.page.locator("iframe").count() == 3


async def test_a_press_before_a_view_opens_does_not_count_for_it(browser: Chromium) -> None:
    async with after_the_first(browser) as (user, host):
        slow, loads = asyncio.Event(), asyncio.Event()

        async def serve(route: Route) -> None:
            if "guard." not in route.request.url and not slow.is_set():
                slow.set()
                await loads.wait()
            await route.continue_()

        await user.context.route("**/transom-view*", serve)
        opening = asyncio.create_task(show(host))
        await slow.wait()  # the page has the guard of this View, and nothing in it
        await show(host)
        await user.page.locator(SPARE).wait_for(state="attached")
        box = await user.page.locator("#view-tests-2 iframe").bounding_box()
        assert box is not None
        # Not `click`, which waits until the frame is visible: a press in it counts for its origin.
        await user.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        view = await show(host)
        was_pressed = "(view) => view.wasPressed()"
        assert not await user.page.locator(f"#view-{view.id}").evaluate(was_pressed)
        assert await text_of(view.call_tool("hi")) == "hi"
        loads.set()
        await opening
