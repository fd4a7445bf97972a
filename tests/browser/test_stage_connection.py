"""A connection that is lost, and a page in more tabs than one, as the user sees it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.browser.hosting import (
    SEEN,
    Chromium,
    Cut,
    Told,
    User,
    hosted,
    show,
    text_of,
)
from transom import Host
from transom.web.local.renderers import BrowserRenderer

VIEW = "let calls = 0; tools.count = () => { calls += 1; return calls; };"


@asynccontextmanager
async def lost_and_found(
    browser: Chromium,
) -> AsyncIterator[tuple[User, BrowserRenderer, Cut, Host]]:
    """A host whose connection to its page can be cut."""
    async with (
        browser.user() as user,
        user.renderer() as renderer,
        Cut.of(renderer) as cut,
        hosted(renderer.seat(), VIEW) as host,
    ):
        yield user, renderer, cut, host


async def test_a_lost_connection_dims_the_views_under_a_banner_until_it_is_back(
    browser: Chromium,
) -> None:
    async with lost_and_found(browser) as (user, renderer, cut, host):
        view = await show(host)
        for mode in ("inline", "fullscreen"):
            renderer._stage.set_mode(renderer._stage.views[0], mode)
            await user.page.locator(f"transom-view[data-mode={mode}]").wait_for()
            cut.cut()
            banner = user.page.get_by_role("alert")
            lost = "No connection to your agent or program. Trying again"
            await banner.get_by_text(lost).wait_for()
            assert await banner.evaluate(SEEN)
            frame = user.page.locator("transom-view[data-lost] iframe")
            await frame.wait_for()
            assert await frame.evaluate("(frame) => getComputedStyle(frame).filter") != "none"
            assert await user.page.locator("transom-view .whose").evaluate(SEEN)
            cut.restore()
            await banner.wait_for(state="hidden")
            await user.page.locator("transom-view:not([data-lost])").wait_for()
        assert await text_of(view.call_tool("count")) == "1"


async def test_a_host_that_falls_silent_is_noticed_within_two_seconds(browser: Chromium) -> None:
    async with lost_and_found(browser) as (user, _, cut, host):
        await user.context.clock.install(time=0)
        view = await show(host)
        banner = user.page.get_by_role("alert")
        await user.page.clock.pause_at(60_000)
        for _ in range(10):  # while it answers, nothing is lost however long it has nothing to say
            await user.page.clock.run_for(1000)
            await text_of(view.call_tool("count"))
        assert await banner.is_hidden()
        cut.silence()
        await user.page.clock.run_for(1000)
        await user.page.clock.run_for(1000)
        if await banner.is_hidden():  # a last message was under way, and came meanwhile
            await user.page.clock.run_for(1000)
        await banner.get_by_text("No connection to your agent or program").wait_for()
        # The socket stays silent: another one is tried, on which everything goes on.
        await user.page.clock.run_for(8000)
        await banner.wait_for(state="hidden")
        assert await text_of(view.call_tool("count")) == "11"


async def test_who_waits_in_vain_is_told_what_to_do(browser: Chromium) -> None:
    async with browser.user() as user, user.renderer() as renderer, Cut.of(renderer) as cut:
        await user.context.clock.install(time=0)
        await renderer.show_page()
        await user.page.clock.pause_at(60_000)
        cut.cut()
        banner = user.page.get_by_role("alert")
        await banner.get_by_text("Trying again").wait_for()
        await user.page.clock.run_for(30_000)
        await banner.get_by_text("If you have ended it, you can close this tab").wait_for()


async def test_the_address_alone_opens_the_page_in_another_tab_when_the_user_says_so(
    browser: Chromium,
) -> None:
    async with browser.user() as user, hosted(user.renderer(), VIEW) as host:
        view = await show(host)
        assert await text_of(view.call_tool("count")) == "1"
        before, told = user.page, Told(host)
        await user.open_page(host.renderer._stage.page_origin)
        await user.page.get_by_text("Everything is shown in another tab").wait_for()
        assert view.state == "live"
        await user.page.get_by_role("button", name="Show it here").click()
        again = await told.opened.get()
        assert (again.id, await text_of(again.call_tool("count"))) == (view.id, "1")
        await user.in_view(view.id).get_by_text("A View").wait_for()
        await before.get_by_text("Everything is shown in another tab").wait_for()
        await before.get_by_role("button", name="Show it here").click()
        assert (await told.opened.get()).id == view.id
        assert await before.locator("transom-view[data-state=live]").count() == 1


async def test_the_address_alone_is_worth_nothing_in_another_browser(browser: Chromium) -> None:
    async with (
        browser.user() as user,
        browser.user() as other,
        hosted(user.renderer(), VIEW) as host,
    ):
        await show(host)
        await other.open_page(host.renderer._stage.page_origin)
        await other.page.get_by_text("This address is not valid any more").wait_for()
        assert await other.page.get_by_role("button").count() == 0


MANY = """async (number) => {
  const { Link } = await import("/stage.js");
  const sockets = [];
  globalThis.WebSocket = class {
    constructor() { sockets.push(this); }
    send() {}
    close() {}
  };
  const on = { state() {}, frame() {}, fresh() {}, flood() {} };
  const link = new Link({ url: "ws://x", token: "x", on });
  const [socket] = sockets;
  socket.onopen();
  socket.onmessage({ data: JSON.stringify({ page: "x", received: 0, resumed: false }) });
  for (let sent = 0; sent < number; sent += 1) link.send("view", "{}");
  for (let has = 32; has <= number; has += 32) socket.onmessage({ data: String(has) });
}"""


async def test_half_a_million_small_messages_are_forgotten_in_no_time(browser: Chromium) -> None:
    """As the host says that it has them. If each moved the rest, it would take minutes."""
    async with browser.user() as user, user.renderer() as renderer:
        await renderer.show_page()
        await user.page.evaluate(MANY, 500_000)
