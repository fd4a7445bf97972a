"""What the Stage itself says and shows of Views, whatever they do."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.browser.hosting import SEEN, Chromium, chromium, hosted, show
from tests.browser.views import page

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Chromium]:
    async with chromium() as made:
        yield made


# --- whose it is -----------------------------------------------------------------------------


def calling_itself(name: str) -> str:
    """A View's script: it says that this is its name."""
    return f"""
    const post = parent.postMessage.bind(parent);
    parent.postMessage = (message, target) => {{
      if (message.method === "ui/initialize") message.params.appInfo.name = {json.dumps(name)};
      post(message, target);
    }};
    """


@pytest.mark.parametrize("width", [320, 1000])
async def test_whose_a_view_is_comes_first_and_is_seen_in_every_mode_whatever_it_calls_itself(
    browser: Chromium, width: int
) -> None:
    name = "bank-1 from bank " + "\u202e\u2800x" * 100
    window = {"viewport": {"width": width, "height": 700}}
    async with (
        browser.user(**window) as user,
        user.renderer() as renderer,
        hosted(renderer.seat("a client with a long name"), calling_itself(name)) as host,
    ):
        view = await show(host)
        caption = user.page.locator("transom-view .caption")
        await caption.get_by_text("calls itself “bank-1 from bank").wait_for()
        for mode in ("inline", "fullscreen", "pip"):
            renderer.stage.set_mode(renderer.stage.views[0], mode)
            await user.page.locator(f"transom-view[data-mode={mode}]").wait_for()
            shown = await caption.inner_text()
            assert shown.startswith(f"{view.id} from tests for a client with a long name"), mode
            assert await caption.locator(".whose").evaluate(SEEN), mode
            own = await caption.locator(".own").inner_text()
            assert len(own) < 120
            assert "\u202e" not in own


# --- presses ---------------------------------------------------------------------------------

GROW = """
const size = (height) => say({ method: "ui/notifications/size-changed", params: { height } });
size(300);
onmessage = ({ data }) => data.method === "shrink" && size(40);
"""
THERE = "([x, y]) => document.elementFromPoint(x, y).tagName"


async def test_a_press_for_one_view_does_not_reach_another_that_has_just_moved_there(
    browser: Chromium,
) -> None:
    async with browser.user() as user, user.renderer() as renderer:
        await user.context.clock.install(time=0)
        await renderer.show_page()
        hostile = renderer.stage.mount(page("hostile-1", GROW))
        renderer.stage.mount(page("good-1"))
        await user.page.locator("#view-hostile-1 iframe[style*='300px']").wait_for()
        await user.in_view("good-1").locator("body").wait_for()
        await user.page.clock.pause_at(60_000)
        await hostile.send(b'{"jsonrpc":"2.0","method":"shrink"}')
        await user.page.locator("#view-hostile-1 iframe[style*='40px']").wait_for()
        middles = [
            await middle(user.page.locator(f"#view-{who}-1 iframe")) for who in ("hostile", "good")
        ]
        assert [await user.page.evaluate(THERE, at) for at in middles] == ["IFRAME", "TRANSOM-VIEW"]
        await user.page.clock.run_for(500)
        assert [await user.page.evaluate(THERE, at) for at in middles] == ["IFRAME", "IFRAME"]


async def middle(element: Any) -> list[float]:
    box = await element.bounding_box()
    return [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
