"""What the user is asked before the model uses the page of a View."""

import asyncio

import pytest
from mcp.server.mcpserver import MCPServer
from playwright.async_api import expect

from tests.browser.driven import page
from tests.browser.hosting import Chromium
from transom import Allow, Host, Policy
from transom.errors import ToolError
from transom.host.policy import ApprovalRequest
from transom.server import Views

COUNTER = """
<button onclick="this.nextElementSibling.textContent++">Add</button><output>0</output>
"""
DRAGGED = """<div id="card" draggable="true" onclick="1">Card</div>
<div id="to" onclick="1" ondragover="return false" ondrop="card.textContent = 'Dropped'">Trash</div>
"""
OUTLINE = "body > div"  # in the page around the View; see js/src/outlines.ts


async def test_the_element_is_outlined_while_the_question_about_it_stands(
    browser: Chromium,
) -> None:
    views = Views()
    made = views.add("ui://tests/counter.html", html=page(COUNTER))

    @views.tool(opens=made, annotations={"readOnlyHint": True})
    def show() -> str:
        """Open it."""
        return "shown"

    async with browser.user() as user:
        renderer = user.renderer()
        policy = Policy(approve=renderer.approve, look="ask")
        async with Host(renderer=renderer, policy=policy, audit=None) as host:
            await host.add_server("tests", MCPServer("tests", extensions=[views]))
            await host.call_tool("show")
            view, question = host.views["tests-1"], user.page.get_by_role("alertdialog")
            asked = asyncio.create_task(view.snapshot())
            await question.get_by_text("Let the model use this View: look_at_view?").wait_for()
            await question.get_by_role("button", name="Allow", exact=True).click()
            [ref] = (await asked).refs
            acting = asyncio.create_task(view.act(ref, "click"))
            await question.get_by_text("use this View: act_on_view/click?").wait_for()
            assert r'"element": "button \"Add\""' in await question.inner_text()
            guard = user.page.frame_locator('[id="view-tests-1"] iframe')
            sandbox = guard.frame_locator("iframe")
            await expect(sandbox.locator(OUTLINE)).to_have_count(1)
            await question.get_by_role("button", name="Always allow").click()
            assert '+ "1"' in (await acting).changes
            assert '+ "2"' in (await view.act(ref, "click")).changes
            assert [(each.tool, each.by) for each in view.grants] == [
                ("look_at_view", "drive"),
                ("act_on_view/click", "drive"),
            ]
            await user.page.get_by_role("button", name="What is always allowed: tests-1").click()
            await expect(user.page.get_by_text("The model uses the View: act_on")).to_be_visible()


async def test_nothing_is_dropped_on_what_the_user_was_not_asked_about(browser: Chromium) -> None:
    views = Views()
    made = views.add("ui://tests/dragged.html", html=page(DRAGGED))

    @views.tool(opens=made, annotations={"readOnlyHint": True})
    def show() -> str:
        """Open it."""
        return "shown"

    async with browser.user() as user:

        async def approve(request: ApprovalRequest) -> Allow:
            assert request.arguments["to"] == 'clickable "Trash"'
            await user.run_in_view("tests-1", "() => { to.textContent = 'Everyone' }")
            return Allow()

        policy = Policy(approve=approve)
        async with Host(renderer=user.renderer(), policy=policy, audit=None) as host:
            await host.add_server("tests", MCPServer("tests", extensions=[views]))
            await host.call_tool("show")
            view = host.views["tests-1"]
            [card] = (await view.snapshot(find="Card")).refs
            [to] = (await view.snapshot(find="Trash")).refs
            with pytest.raises(ToolError, match="is clickable 'Everyone' now"):
                await view.act(card, "drag_to", to)
