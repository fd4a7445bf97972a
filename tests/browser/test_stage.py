"""The Stage as its user sees it, in Chromium."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.hosting import Chromium, Told, User, hosted, show, text_of
from transom import Host, Limits, Policy
from transom.errors import Refused, ViewClosed
from transom.host.views.view import View

VIEW = """
let asked = 0;
const ask = (method, params) => new Promise((resolve) => {
  asked += 1;
  const id = `ask-${asked}`;
  addEventListener("message", ({ data }) => {
    if (data.id === id) resolve(data.result ?? { error: data.error });
  });
  say({ id, method, params });
});
tools.mode = ({ mode }) => ask("ui/request-display-mode", { mode });
tools.link = ({ url }) => ask("ui/open-link", { url });
tools.download = ({ contents }) => ask("ui/download-file", { contents });
tools.size = ({ height }) => say({ method: "ui/notifications/size-changed", params: { height } });
tools.context = () => host.hostContext;
tools.seen = () => ({ width: innerWidth, height: innerHeight });
let calls = 0;
tools.count = () => { calls += 1; return calls; };
before["ui/resource-teardown"] = () =>
  say({ method: "notifications/message", params: { level: "info", data: "goodbye" } });
const button = document.createElement("button");
button.textContent = "Press";
button.onclick = () => { button.textContent = "Pressed"; };
document.body.append(button);
"""


@asynccontextmanager
async def shown(
    browser: Chromium, *, window: dict[str, Any] | None = None, script: str = VIEW, **options: Any
) -> AsyncIterator[tuple[User, Host, View]]:
    """One View on a page that someone looks at."""
    async with (
        browser.user(**(window or {})) as user,
        hosted(user.renderer(), script, **options) as host,
    ):
        yield user, host, await show(host)


def card(user: User, view: View) -> Any:
    return user.page.locator(f'[id="view-{view.id}"]')


async def changed(view: View, key: str) -> list[Any]:
    """What the View was told of a key of its context since it began."""
    told = json.loads(await text_of(view.call_tool("told")))
    method = "ui/notifications/host-context-changed"
    return [m["params"][key] for m in told if m["method"] == method and key in m["params"]]


async def until_changed(view: View, key: str, value: Any) -> None:
    """Wait until the View has been told that."""
    while value not in await changed(view, key):
        pass


async def size_inside(view: View) -> dict[str, int]:
    """How large the View's own page is, which the browser tells it a little later."""
    return json.loads(await text_of(view.call_tool("seen")))


async def ask_for(user: User, view: View, mode: str) -> dict[str, str]:
    """Have a View ask for a mode, which the user allows; what it was answered."""
    asking = asyncio.create_task(text_of(view.call_tool("mode", {"mode": mode})))
    await user.page.locator(".question").get_by_role("button", name="Show").click()
    return json.loads(await asking)


# --- how a View is shown ---------------------------------------------------------------------


async def test_a_view_is_shown_with_its_name_and_where_it_is_from(browser: Chromium) -> None:
    async with shown(browser) as (user, _, view):
        caption = card(user, view).locator(".caption")
        await expect(card(user, view)).to_have_attribute("aria-label", "“test-view” from tests")
        assert await caption.locator(".whose").inner_text() == "from tests"
        assert "ui://" not in await card(user, view).inner_text()
        assert await user.page.title() == "tests: test-view"
        await user.in_view(view.id).get_by_text("A View").wait_for()
        assert await user.page.locator("#state").inner_text() == "Connected"
        assert await user.page.locator("#empty").is_hidden()
        assert await card(user, view).get_attribute("data-state") == "live"
        assert "token" not in user.page.url


async def test_names_that_are_html_are_shown_as_text(browser: Chromium) -> None:
    nasty = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    rename = f"""
    const post = parent.postMessage.bind(parent);
    parent.postMessage = (message, target) => {{
      if (message.method === "ui/initialize") message.params.appInfo.name = {json.dumps(nasty)};
      post(message, target);
    }};
    """.replace("</", "<\\/")
    async with shown(browser, script=rename + VIEW) as (user, _, view):
        own = nasty.replace('"', "'")[:40]
        await card(user, view).locator(".caption").get_by_text(own).wait_for()
        assert await card(user, view).locator("img").count() == 0
        assert (await user.page.title()).startswith("tests: <img src=x")


async def test_a_view_asks_for_a_mode_and_is_told_the_mode_it_is_in(browser: Chromium) -> None:
    async with shown(browser, window={"viewport": {"width": 900, "height": 700}}) as (
        user,
        _,
        view,
    ):
        first = json.loads(await text_of(view.call_tool("context")))
        assert first["displayMode"] == "inline"
        assert first["availableDisplayModes"] == ["inline", "fullscreen", "pip"]
        assert first["theme"] == "light"
        assert first["platform"] == "web"
        assert await ask_for(user, view, "fullscreen") == {"mode": "fullscreen"}
        await until_changed(view, "displayMode", "fullscreen")
        box = await card(user, view).bounding_box()
        assert box == {"x": 0, "y": 0, "width": 900, "height": 700}
        while (seen := await size_inside(view))["width"] != 900:  # no event says so
            pass
        await until_changed(view, "containerDimensions", seen)
        await ask_for(user, view, "pip")
        await until_changed(view, "displayMode", "pip")
        box = await card(user, view).bounding_box()
        assert box is not None
        assert (box["x"] + box["width"], box["y"] + box["height"]) == (884, 684)
        await view.call_tool("mode", {"mode": "inline"})
        await until_changed(view, "displayMode", "inline")


async def test_the_user_changes_the_mode_and_the_view_is_told(browser: Chromium) -> None:
    async with shown(browser) as (user, _, view):
        big = card(user, view).get_by_role("button", name="Full screen")
        await big.click()
        await until_changed(view, "displayMode", "fullscreen")
        assert await big.get_attribute("aria-pressed") == "true"
        await user.page.keyboard.press("Escape")
        await until_changed(view, "displayMode", "inline")
        assert await big.get_attribute("aria-pressed") == "false"
        await card(user, view).get_by_role("button", name="Picture in the corner").click()
        await until_changed(view, "displayMode", "pip")
        assert await card(user, view).get_attribute("data-mode") == "pip"


async def test_one_view_at_a_time_covers_the_page_and_the_others_cannot_be_reached(
    browser: Chromium,
) -> None:
    async with shown(browser) as (user, host, one):
        two = await show(host)
        await ask_for(user, one, "fullscreen")
        await until_changed(one, "displayMode", "fullscreen")
        assert await card(user, two).evaluate("(view) => view.inert") is True
        await ask_for(user, two, "fullscreen")
        await until_changed(one, "displayMode", "inline")
        assert await card(user, one).evaluate("(view) => view.inert") is True
        assert await card(user, two).evaluate("(view) => view.inert") is False
        await two.close()
        await card(user, two).locator("iframe").wait_for(state="detached")
        assert await card(user, one).evaluate("(view) => view.inert") is False


async def test_a_view_is_as_high_as_it_says_within_limits(browser: Chromium) -> None:
    async with shown(browser) as (user, _, view):
        frame = card(user, view).locator("iframe")
        for said, shown_height in ((120, 120), (333.2, 334), (1e9, 6000), (-5, 6000), ("x", 6000)):
            await view.call_tool("size", {"height": said})
            await view.call_tool("seen")
            await expect(frame).to_have_css("height", f"{shown_height}px")


async def test_a_view_hears_of_the_theme_and_of_a_page_of_another_size(browser: Chromium) -> None:
    window = {"color_scheme": "dark", "viewport": {"width": 900, "height": 700}, "locale": "nl-NL"}
    async with shown(browser, window=window) as (user, host, view):
        first = json.loads(await text_of(view.call_tool("context")))
        assert first["theme"] == "dark"
        assert first["locale"] == "nl-NL"
        seen = await size_inside(view)
        assert first["containerDimensions"] == {"width": seen["width"], "maxHeight": 6000}
        await user.page.emulate_media(color_scheme="light")
        await until_changed(view, "theme", "light")
        await user.page.set_viewport_size({"width": 500, "height": 700})
        while (seen := await size_inside(view))["width"] >= 500:
            pass
        await until_changed(
            view, "containerDimensions", {"width": seen["width"], "maxHeight": 6000}
        )
        later = await show(host)
        assert json.loads(await text_of(later.call_tool("context")))["theme"] == "light"


async def test_the_close_button_lets_the_view_wind_up_and_then_it_is_closed(
    browser: Chromium,
) -> None:
    async with shown(browser) as (user, host, view):
        logged: list[Any] = []
        told = Told(host)
        view.bridge.on_log = lambda entry: logged.append(entry.data)  # type: ignore[union-attr]
        await card(user, view).get_by_role("button", name="Close").click()
        closed = await told.closed.get()
        assert (closed.id, closed.reason) == (view.id, "the user closed it")
        assert logged == ["goodbye"]
        await card(user, view).locator("iframe").wait_for(state="detached")
        await user.page.get_by_text("Nothing is open").wait_for()
        with pytest.raises(ViewClosed, match="the user closed it"):
            await host.call_tool(f"{view.id}__count")


# --- what the user is asked ------------------------------------------------------------------


@asynccontextmanager
async def careful(browser: Chromium, script: str = VIEW) -> AsyncIterator[tuple[User, Host, View]]:
    """A host whose user is asked before a tool of a View is called."""
    async with browser.user() as user:
        renderer = user.renderer()
        policy = Policy(approve=renderer.approve)
        async with hosted(renderer, script, policy=policy) as host:
            yield user, host, await show(host)


def question(user: User) -> Any:
    return user.page.get_by_role("alertdialog")


async def test_the_user_allows_a_call_once(browser: Chromium) -> None:
    async with careful(browser) as (user, _, view):
        for turn in ("1", "2"):
            call = asyncio.create_task(view.call_tool("count", {"why": "<b>because</b>"}))
            await question(user).get_by_text("Let the model call count?").wait_for()
            said = await question(user).inner_text()
            asker = question(user).locator(".label")
            assert await asker.text_content() == "“test-view” from tests"
            assert '"why": "<b>because</b>"' in said
            assert await user.page.title() == "(1) tests: test-view"
            await question(user).get_by_role("button", name="Allow", exact=True).click()
            assert await text_of(call) == turn
            assert await question(user).count() == 0
        assert await user.page.title() == "tests: test-view"


async def test_the_user_allows_a_tool_for_good(browser: Chromium) -> None:
    async with careful(browser) as (user, _, view):
        call = asyncio.create_task(view.call_tool("count"))
        await question(user).get_by_role("button", name="Always allow").click()
        assert await text_of(call) == "1"
        assert await text_of(view.call_tool("count")) == "2"
        assert await question(user).count() == 0


async def test_a_question_shows_the_tools_description_and_what_was_granted_before(
    browser: Chromium,
) -> None:
    described = 'tools.count.description = "Counts\\u202e <i>its calls</i>.";'
    script = VIEW + described + 'tools.size.description = "long ".repeat(700);'
    async with careful(browser, script) as (user, _, view):
        for tool in ("count", "mode"):
            call = asyncio.create_task(view.call_tool(tool, {"mode": "inline"}))
            await question(user).get_by_text(f"Let the model call {tool}?").wait_for()
            said = await question(user).inner_text()
            assert ("Counts <i>its calls</i>." in said) == (tool == "count")
            assert ("You always allow this View: count." in said) == (tool == "mode")
            await question(user).get_by_role("button", name="Always allow").click()
            await call
        call = asyncio.create_task(view.call_tool("size", {"height": 10}))
        await question(user).get_by_text("Let the model call size?").wait_for()
        said = await question(user).inner_text()
        assert "You always allow this View: count, mode." in said
        assert 900 < said.count("long") * 5 <= 1000
        await question(user).get_by_role("button", name="Refuse").click()
        with pytest.raises(Refused):
            await call


async def test_the_user_refuses_a_call_with_a_click_or_escape(browser: Chromium) -> None:
    async with careful(browser) as (user, _, view):
        call = asyncio.create_task(view.call_tool("count"))
        await question(user).get_by_role("button", name="Refuse").click()
        with pytest.raises(Refused, match="The user refused on the Stage"):
            await call
        call = asyncio.create_task(view.call_tool("count"))
        await question(user).wait_for()
        await question(user).focus()
        await user.page.keyboard.press("Escape")
        with pytest.raises(Refused):
            await call


async def test_a_question_ends_with_its_page_and_with_its_caller(browser: Chromium) -> None:
    async with careful(browser) as (user, _, view):
        call = asyncio.create_task(view.call_tool("count"))
        await question(user).wait_for()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await question(user).wait_for(state="detached")
        call = asyncio.create_task(view.call_tool("count"))
        await question(user).wait_for()
        await user.page.close()
        with pytest.raises((Refused, ViewClosed)):
            await call


async def test_a_question_cannot_be_answered_by_a_click_that_was_meant_for_something_else(
    browser: Chromium,
) -> None:
    async with careful(browser) as (user, _, view):
        await user.page.evaluate(
            """() => {
              globalThis.early = new Promise((resolve) => {
                const place = document.getElementById("questions").shadowRoot;
                const look = new MutationObserver(() => {
                  const button = place.querySelector("button");
                  look.disconnect();
                  button.click();
                  resolve([button.ariaDisabled, button.isConnected]);
                });
                look.observe(place, { childList: true, subtree: true });
              });
            }"""
        )
        call = asyncio.create_task(view.call_tool("count"))
        assert await user.page.evaluate("early") == ["true", True]
        await question(user).get_by_role("button", name="Allow", exact=True).click()
        assert await text_of(call) == "1"


async def test_a_link_is_opened_when_the_user_says_so(browser: Chromium) -> None:
    async with shown(browser) as (user, _, view):
        url = "http://127.0.0.1:9/page?q=1"
        call = asyncio.create_task(view.call_tool("link", {"url": url}))
        await question(user).get_by_text("Open 127.0.0.1:9?").wait_for()
        assert url in await question(user).locator("pre").inner_text()
        async with user.context.expect_page() as opened:
            await question(user).get_by_role("button", name="Open").click()
        assert json.loads(await text_of(call)) == {}
        popup = await opened.value
        assert await popup.evaluate("window.opener") is None
        await popup.close()
        call = asyncio.create_task(view.call_tool("link", {"url": "https://x.example"}))
        await question(user).get_by_role("button", name="Refuse").click()
        assert json.loads(await text_of(call)) == {"isError": True}
        assert len(user.context.pages) == 1


async def test_other_links_are_not_even_asked_about(browser: Chromium) -> None:
    async with shown(browser) as (user, _, view):
        for url in ("javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "https://"):
            answer = await text_of(view.call_tool("link", {"url": url}))
            assert json.loads(answer) == {"isError": True}, url
            assert await question(user).count() == 0, url


async def test_a_host_in_letters_that_look_like_others_is_spelled_out(browser: Chromium) -> None:
    async with shown(browser) as (user, _, view):
        call = asyncio.create_task(view.call_tool("link", {"url": "https://p\u0430ypal.com/login"}))
        await question(user).get_by_text("Open xn--pypal-4ve.com?").wait_for()
        await question(user).get_by_role("button", name="Refuse").click()
        await call


def file(uri: str, **content: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, **content}}


async def test_a_file_is_saved_under_a_safe_name_when_the_user_says_so(
    browser: Chromium, tmp_path: Path
) -> None:
    async with shown(browser, window={"accept_downloads": True}) as (user, _, view):
        contents = [file("file:///a/..%2f..%2fnotes%00.txt", text="Grüße", mimeType="text/plain")]
        call = asyncio.create_task(view.call_tool("download", {"contents": contents}))
        await question(user).get_by_text("Save this file?").wait_for()
        shown_name = (await question(user).locator("pre").inner_text()).partition("  (")[0]
        assert "/" not in shown_name
        async with user.page.expect_download() as saving:
            await question(user).get_by_role("button", name="Save").click()
        assert json.loads(await text_of(call)) == {}
        download = await saving.value
        assert download.suggested_filename == shown_name
        await download.save_as(tmp_path / "saved")
        assert (tmp_path / "saved").read_text("utf-8") == "Grüße"


async def test_files_are_asked_about_together_and_none_is_saved_when_refused(
    browser: Chromium,
) -> None:
    async with shown(browser, window={"accept_downloads": True}) as (user, _, view):
        saved: list[Any] = []
        user.page.on("download", lambda download: saved.append(download))
        contents = [file("file:///a.txt", text="a" * 5000), file("file:///a.txt", text="b")]
        call = asyncio.create_task(view.call_tool("download", {"contents": contents}))
        await question(user).get_by_text("Save 2 files?").wait_for()
        listed = await question(user).locator("pre").inner_text()
        assert listed == "a.txt  (4.9 KB)\na (2).txt  (1 bytes)"
        await question(user).get_by_role("button", name="Refuse").click()
        assert json.loads(await text_of(call)) == {"isError": True}
        linked = {"type": "resource_link", "uri": "https://x.example/y", "name": "y"}
        answer = await text_of(view.call_tool("download", {"contents": [linked]}))
        assert json.loads(answer) == {"isError": True}
        assert await question(user).count() == 0
        assert saved == []


async def test_a_view_cannot_bury_the_page_in_questions(browser: Chromium) -> None:
    async with shown(browser) as (user, _, view):
        calls = [
            asyncio.create_task(view.call_tool("link", {"url": f"https://{n}.example"}))
            for n in range(10)
        ]
        done, _ = await asyncio.wait(calls, timeout=20, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 9:
            done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            done = {call for call in calls if call.done()}
        assert await question(user).count() == 1
        await question(user).get_by_role("button", name="Refuse").click()
        answers = [json.loads(await text_of(call)) for call in calls]
        assert answers == [{"isError": True}] * 10


# --- keyboard, narrow screens, many Views ----------------------------------------------------


async def test_everything_can_be_reached_with_the_keyboard(browser: Chromium) -> None:
    async with careful(browser) as (user, _, view):
        call = asyncio.create_task(view.call_tool("count"))
        allow = question(user).get_by_role("button", name="Allow", exact=True)
        await question(user).wait_for()
        controls = ("Full screen", "Picture in the corner", "Close")
        wanted = {f"{control}: {view.id}" for control in controls} | {"IFRAME"}
        reached: list[str] = []
        # More than one round: the page learns only later that the focus went into another process.
        while not wanted.issubset(reached) and len(reached) < 100:
            await user.page.keyboard.press("Tab")
            reached.append(
                await user.page.evaluate(
                    """() => {
                      const within = (focused) => focused.shadowRoot?.activeElement ?? focused;
                      const focused = within(document.activeElement);
                      return focused.ariaLabel ?? focused.tagName;
                    }"""
                )
            )
        assert wanted.issubset(reached), reached
        assert reached.count("BUTTON") >= 3
        await allow.focus()
        await expect(allow).to_be_enabled()
        await user.page.keyboard.press("Enter")
        assert await text_of(call) == "1"


async def test_a_narrow_screen_shows_everything_without_scrolling_sideways(
    browser: Chromium,
) -> None:
    window = {"viewport": {"width": 320, "height": 640}}
    async with shown(browser, window=window) as (user, _, view):
        call = asyncio.create_task(
            view.call_tool("link", {"url": "https://x.example/" + "y" * 500})
        )
        await question(user).wait_for()
        width = await user.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 320
        for button in await user.page.get_by_role("button").all():
            box = await button.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 320
        await question(user).get_by_role("button", name="Refuse").click()
        await call


@pytest.mark.nightly
async def test_a_dozen_views_opened_at_once_live_on_one_page(browser: Chromium) -> None:
    async with shown(browser, limits=Limits(max_live_views=12)) as (user, host, _):
        views = await asyncio.gather(*(show(host, str(n)) for n in range(11)))
        assert len(host.views) == 12
        counts = await asyncio.gather(*(text_of(view.call_tool("count")) for view in views))
        assert counts == ["1"] * 11
        assert await user.page.locator("transom-view[data-state=live]").count() == 12
        await asyncio.gather(*(view.close() for view in views))
        assert len(host.views) == 1
