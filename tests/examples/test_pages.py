"""What holds for the page of every example."""

import pytest
from playwright.async_api import expect

from tests.examples.conftest import Open

pytestmark = pytest.mark.processes

OPENS = {
    "budget": "show_budget",
    "editor": "open_document",
    "lunch": "show_vote",
    "music": "show_player",
    "orders": "show_orders",
    "tictactoe": "show_board",
}
WIDER_THAN_ITS_FRAME = "element => document.documentElement.scrollWidth - innerWidth"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in {"music", "lunch"} else pytest.mark.nightly)
        for name in OPENS
    ],
)
async def test_it_fits_a_narrow_frame_and_follows_the_theme(open_view: Open, name: str) -> None:
    shown = await open_view(name, OPENS[name])
    body = shown.page.locator("body")
    await expect(body).to_have_css("background-color", "rgb(255, 255, 255)")
    page = shown.page.page
    usual = page.viewport_size
    await page.set_viewport_size({"width": 400, "height": 800})
    await page.emulate_media(color_scheme="dark")
    try:
        await expect(body).to_have_css("background-color", "rgb(27, 28, 31)")
        assert await body.evaluate("() => innerWidth") < 400
        assert await body.evaluate(WIDER_THAN_ITS_FRAME) <= 0
    finally:
        await page.emulate_media(color_scheme="light")
        await page.set_viewport_size(usual)
