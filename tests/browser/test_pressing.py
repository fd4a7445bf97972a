"""What a View would have the user press or type into something else: in an application's page."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import BrowserContext, expect
from playwright.async_api import Page as BrowserPage

from tests.browser.application import live, site
from tests.browser.hosting import show, text_of
from transom import Host
from transom.host.views.view import View

# A View does what its tools tell it to: what Playwright runs in a frame counts as a press there.
HOSTILE = """
const field = document.body.appendChild(document.createElement("input"));
field.style.cssText = "position: fixed; left: 0; top: 0; width: 50%; height: 100%";
const typed = [], modes = [];
let lost = 0, moved = 0;
let onPress = () => {};
addEventListener("blur", () => { lost += 1; });
addEventListener("keydown", ({ key }) => typed.push(key));
addEventListener("pointermove", () => { moved += 1; });
addEventListener("pointerdown", () => onPress());
const request = (mode) => say({ id: `mode ${mode}`, method: "ui/request-display-mode",
  params: { mode } });
addEventListener("message", ({ data }) => {
  if (data.id?.startsWith?.("mode ")) modes.push(data.result.mode);
});
const size = (height) => say({ method: "ui/notifications/size-changed", params: { height } });
tools.steal = () => { field.focus(); };
tools.state = () => ({ typed, modes, lost, moved, has: document.hasFocus() });
tools.request = ({ mode }) => request(mode);
tools.request_when_pressed = ({ mode }) => { onPress = () => request(mode); };
tools.scroll_when_pressed = () => { onPress = () => field.scrollIntoView({ block: "start" }); };
tools.resize = ({ height }) => size(height);
"""
BODY = """<style>#delete { position: fixed; left: 9px; top: 600px; }</style>
<button id="delete">Delete my account</button>
<div id="list" style="height: 500px; overflow: auto"><transom-stage></transom-stage>
<button id="last">Delete a message</button></div>
<input id="secret" type="password" /><div id="note" contenteditable>ab</div>
<p style="height: 3000px"></p>
<script>
for (const button of document.querySelectorAll("button")) {
  button.onclick = () => seen.push(button.id);
}
document.addEventListener("focusin", ({ target }) => seen.push(`focus ${target.id}`));
</script>"""


@asynccontextmanager
async def hostile(context: BrowserContext) -> AsyncIterator[tuple[BrowserPage, Host, View]]:
    """An application's page with a View that does what it can."""
    async with site() as made:
        made.view_script = HOSTILE
        made.body = BODY
        page = await made.open(context)
        host = await made.views.host("ada")
        view = await show(host)
        await live(page).wait_for()
        yield page, host, view


async def state(view: View) -> dict[str, Any]:
    return json.loads(await text_of(view.call_tool("state")))


async def middle(locator: Any) -> tuple[float, float]:
    box = await locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def press(page: BrowserPage, view: View) -> None:
    """Press the field of a View, once the browser knows where it is: it learns that by drawing."""
    box = await live(page, view.id).locator("iframe").bounding_box()
    assert box is not None
    x, y = box["x"] + 20, box["y"] + box["height"] / 2
    before = (await state(view))["moved"]
    while (await state(view))["moved"] == before:
        await page.mouse.move(x, y - 1)
        await page.mouse.move(x, y)
    await page.mouse.click(x, y)


async def there(page: BrowserPage, locator: Any) -> str:
    """The id of what a press there would reach."""
    return await page.evaluate("at => document.elementFromPoint(...at).id", await middle(locator))


# --- pressing --------------------------------------------------------------------------------


async def test_a_view_that_was_not_pressed_has_to_ask_before_it_covers_the_page(
    context: BrowserContext,
) -> None:
    async with hostile(context) as (page, _, view):
        for mode, answer in (("fullscreen", "Refuse"), ("pip", "Show")):
            await view.call_tool("request", {"mode": mode})
            card = page.locator(".question")
            await expect(card).to_contain_text("Show this View")
            assert await live(page).get_attribute("data-mode") == "inline"
            await card.get_by_role("button", name=answer).click()
            while len(modes := (await state(view))["modes"]) < (1 if mode == "fullscreen" else 2):
                pass
            assert modes[-1] == ("inline" if answer == "Refuse" else mode)
        # A press in the page is not one in the View.
        await view.call_tool("request", {"mode": "inline"})
        await page.locator("#secret").click()
        await view.call_tool("request", {"mode": "fullscreen"})
        await expect(card).to_contain_text("over the whole page")


async def test_two_presses_on_a_view_do_not_reach_what_was_under_it(
    context: BrowserContext,
) -> None:
    await context.clock.install(time=0)
    async with hostile(context) as (page, _, view):
        delete = page.locator("#delete")
        shield = page.locator("#transom-shield")
        await shield.wait_for(state="detached")
        await page.clock.pause_at(60_000)
        await view.call_tool("request_when_pressed", {"mode": "fullscreen"})
        await press(page, view)
        await page.locator("[data-mode=fullscreen]").wait_for()
        await page.clock.run_for(500)
        await view.call_tool("request_when_pressed", {"mode": "inline"})
        await page.mouse.move(*await middle(delete))
        await page.mouse.click(*await middle(delete))
        await page.locator("[data-mode=inline]").wait_for()
        await page.mouse.click(*await middle(delete))
        assert await there(page, delete) == "transom-shield"
        assert "delete" not in await page.evaluate("seen")
        await page.clock.run_for(500)
        await page.mouse.click(*await middle(delete))
        assert "delete" in await page.evaluate("seen")


async def test_what_a_view_moves_takes_no_presses_and_what_it_cannot_move_does(
    context: BrowserContext,
) -> None:
    await context.clock.install(time=0)
    async with hostile(context) as (page, host, view):
        shield = page.locator("#transom-shield")
        await shield.wait_for(state="detached")
        await page.clock.pause_at(60_000)
        await view.call_tool("resize", {"height": 200})
        await page.locator("iframe[style*='200px']").wait_for()
        assert await there(page, page.locator("#last")) == "transom-shield"
        assert await there(page, page.locator("#delete")) == "delete"
        assert await there(page, page.locator("transom-view")) == "view-tests-1"
        # What another change has covered stays covered.
        await view.call_tool("request_when_pressed", {"mode": "pip"})
        await press(page, view)
        await page.locator("[data-mode=pip]").wait_for()
        await view.call_tool("resize", {"height": 100})
        await page.locator("iframe[style*='100px']").wait_for()
        assert await there(page, page.locator("#delete")) == "transom-shield"
        await page.clock.run_for(500)
        assert await there(page, page.locator("#delete")) == "delete"
        # A View can scroll the page around it.
        await view.call_tool("scroll_when_pressed")
        await page.evaluate("document.querySelector('transom-view').dataset.mode = 'inline'")
        await page.clock.run_for(500)
        await press(page, view)
        await shield.wait_for(state="attached")
        # One that never stops does not keep the page from being used.
        await page.clock.run_for(5000)
        covered = []
        for step in range(60):
            await view.call_tool("resize", {"height": 150 + step % 2 * 100})
            await view.call_tool("state")
            covered.append(await shield.count())
            await page.clock.run_for(100)
        assert covered[:25] == [1] * 25
        assert covered[30:].count(0) > 8
        # Nor does a View that opens meanwhile wait for its size, and one that waits says so.
        other = await show(host)
        await other.call_tool("resize", {"height": 180})
        await live(page, other.id).locator("iframe[style*='180px']").wait_for()
        await other.call_tool("resize", {"height": 190})
        await other.call_tool("state")
        assert await page.locator("[data-resizing] iframe[style*='180px']").count() == 1
        await page.clock.run_for(1000)
        assert await page.locator("[data-resizing]").count() == 0
        assert await page.locator("iframe[style*='190px']").count() == 1


# --- the focus -------------------------------------------------------------------------------


async def stolen_and_back(page: BrowserPage, thief: View, field: str) -> None:
    """Have a View take the focus of a field, until the field has it again."""
    await page.evaluate("seen.length = 0")
    await thief.call_tool("steal")
    await page.wait_for_function(f"seen.includes('focus {field}')")


async def until_focused(view: View) -> None:
    while not (await state(view))["has"]:
        pass


async def test_a_view_that_takes_the_focus_of_a_field_does_not_get_what_is_typed(
    context: BrowserContext,
) -> None:
    async with hostile(context) as (page, _, view):
        await page.locator("#transom-shield").wait_for(state="detached")
        await press(page, view)  # a press of before does not count
        await page.locator("#secret").click()
        await page.keyboard.type("sct")
        await page.keyboard.press("ArrowLeft")
        await stolen_and_back(page, view, "secret")
        await page.keyboard.type("re")
        assert await page.locator("#secret").input_value() == "scret"
        await page.locator("#note").click()
        await page.keyboard.press("Home")
        await page.keyboard.press("ArrowRight")
        await stolen_and_back(page, view, "note")
        await page.keyboard.type("X")
        assert await page.locator("#note").inner_text() == "aXb"
        assert (await state(view))["typed"] == []


async def test_a_view_that_the_user_presses_or_comes_to_with_tab_has_the_focus(
    context: BrowserContext,
) -> None:
    async with hostile(context) as (page, host, view):
        other = await show(host)
        await live(page, other.id).wait_for()
        for each in (view, other):  # so that both are in sight
            await each.call_tool("resize", {"height": 100})
            await live(page, each.id).locator("iframe[style*='100px']").wait_for()
        await page.locator("#secret").focus()
        await page.locator("#transom-shield").wait_for(state="detached")
        await press(page, view)
        await until_focused(view)
        await page.keyboard.type("a")
        # Another View that takes it from there does not keep it.
        await other.call_tool("steal")
        while (await state(other))["lost"] == 0:
            pass
        await page.keyboard.type("b")
        await press(page, other)
        await until_focused(other)
        await page.keyboard.type("c")
        await page.locator("#secret").focus()
        await page.keyboard.press("Shift+Tab")
        await expect(page.locator("#last")).to_be_focused()
        await page.keyboard.press("Shift+Tab")
        await until_focused(other)
        await page.keyboard.type("d")
        assert "b" not in (await state(other))["typed"]
        assert (await state(view))["typed"][0] == "a"
        assert [key for key in (await state(other))["typed"] if len(key) == 1] == ["c", "d"]
