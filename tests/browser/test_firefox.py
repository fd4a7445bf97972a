"""What Chromium is tested for, in Firefox: sandbox, `transom.js`, a question, presses and focus."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.browser.application import site
from tests.browser.firefox import WITHIN, firefox
from tests.browser.hosting import show
from tests.browser.test_pressing import BODY, HOSTILE, state
from transom import Host, Policy
from transom.web import BrowserRenderer

ORDERS = [sys.executable, str(Path(__file__).parents[2] / "examples" / "orders.py")]

FETCH = """new Promise((resolve) => {
  addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
  fetch("https://example.com").then(() => resolve("reached"), () => {});
})"""


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.timeout(400)
async def test_in_firefox_a_view_runs_reaches_nothing_else_and_asks_its_user() -> None:
    async with firefox() as browser:
        renderer = BrowserRenderer(open_page=browser.open_page)
        policy = Policy(approve=renderer.approve, read_only_runs=True)
        async with Host(renderer=renderer, policy=policy, open_timeout=WITHIN) as host:
            await host.add_server("orders", ORDERS)
            shown = await host.call_tool("show_orders", {})
            assert (shown.meta or {})["transom/view"]["state"] == "live"
            selected = await host.call_tool("orders-1__get_selection", {})
            assert selected.text == "Nothing is selected."

            view = (await browser.frames())[-1]
            reaches = "(() => { try { return WHAT } catch (error) { return error.name } })()"
            for what in ("top.document.title", "parent.parent.document.title"):
                assert await browser.run(reaches.replace("WHAT", what), view) == "SecurityError"
            assert await browser.run(FETCH, view) == "connect-src"
            assert await browser.run("document.cookie", view) == ""

            call = asyncio.create_task(host.answer("orders-1__filter_orders", {"status": "open"}))
            async with asyncio.timeout(WITHIN):
                while not call.done():  # a press too early does not count, nor do many in a row
                    await browser.press("Allow")
                    await asyncio.wait([call], timeout=3)
            assert not call.result().is_error, call.result().text

            again = await host.call_tool("show_orders", {})  # its guard was there before
            assert (again.meta or {})["transom/view"]["state"] == "live"
            selected = await host.call_tool("orders-2__get_selection", {})
            assert selected.text == "Nothing is selected."


SHIELDED = """void (globalThis.shielded = new Promise((resolve) => {
  new MutationObserver(() => {
    if (document.querySelector("#transom-shield") === null) return;
    const { x, y, width, height } = document.querySelector("#last").getBoundingClientRect();
    resolve(document.elementFromPoint(x + width / 2, y + height / 2).id);
  }).observe(document, { childList: true, subtree: true });
}))"""


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.timeout(400)
async def test_in_firefox_what_a_view_moves_takes_no_presses_and_it_gets_no_keys() -> None:
    async with firefox() as browser, site(show_within=WITHIN) as made:
        made.view_script, made.body = HOSTILE, BODY
        await browser.open_page(made.origin)
        await browser.run("document.cookie = 'user=ada'")
        await browser.open_page(made.origin)
        view = await show(await made.views.host("ada"))
        await browser.run("document.querySelector('#secret').focus()")
        await browser.type("se")
        for _ in range(3):
            await view.call_tool("steal")
            async with asyncio.timeout(WITHIN):
                while await browser.run("document.activeElement.id") != "secret":
                    pass
        await browser.type("cret")
        assert await browser.run("document.querySelector('#secret').value") == "secret"
        assert (await state(view))["typed"] == []

        async with asyncio.timeout(WITHIN):
            while await browser.run("document.querySelector('#transom-shield') !== null"):
                pass
        await browser.run(SHIELDED)
        await view.call_tool("resize", {"height": 200})
        assert await browser.run("shielded") == "transom-shield"
