"""What the user is asked before the model uses the page of a View."""

import asyncio

import pytest
from playwright.async_api import expect

from tests.browser.driven import driven
from tests.browser.hosting import Chromium
from transom import Allow, Policy
from transom.errors import ToolError
from transom.host.asking.policy import ApprovalRequest

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
    async with browser.user() as user:
        renderer = user.renderer()
        policy = Policy(approve=renderer.approve, look="ask")
        async with driven(renderer, COUNTER, policy=policy) as [shown]:
            view, question = shown.view, user.page.get_by_role("alertdialog")
            asked = asyncio.create_task(view.snapshot())
            await question.get_by_text("Let the model use this View: look_at_view?").wait_for()
            assert "The View says" not in await question.inner_text()  # the words are our own
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
    async with browser.user() as user:

        async def approve(request: ApprovalRequest) -> Allow:
            assert request.arguments["to"] == 'clickable "Trash"'
            await user.run_in_view("tests-1", "() => { to.textContent = 'Everyone' }")
            return Allow()

        async with driven(user.renderer(), DRAGGED, policy=Policy(approve=approve)) as [shown]:
            [card] = (await shown.view.snapshot(find="Card")).refs
            [to] = (await shown.view.snapshot(find="Trash")).refs
            with pytest.raises(ToolError, match="is clickable 'Everyone' now"):
                await shown.view.act(card, "drag_to", to)
