"""The checklist: a View made with Vite and React, built as its README says, and driven."""

import re
from pathlib import Path

import pytest

from tests.examples.building import build
from tests.examples.conftest import Open
from tests.examples.driving import enum, tools_when
from transom.testing import OpenedView

pytestmark = [pytest.mark.processes, pytest.mark.nightly]


@pytest.fixture(scope="session")
def built() -> Path:
    return build("vite-react")


async def show(open_view: Open, built: Path) -> OpenedView:
    return await open_view(str(built / "checklist"), "show_checklist", name="Weekend")


@pytest.mark.processes
def test_the_page_is_one_file(built: Path):
    page = (built / "dist" / "index.html").read_text()
    assert [file.name for file in (built / "dist").iterdir()] == ["index.html"]
    assert re.findall(r"<(?:script|link)[^>]*(?:src|href)=", page) == []


async def test_the_model_reads_adds_and_ticks_off(open_view: Open, built: Path):
    checklist = await show(open_view, built)
    page = checklist.page
    await page.get_by_label("Tent").wait_for()
    tools = await tools_when(checklist, lambda tools: "check_item" in tools)
    assert enum(tools, "check_item", "item") == ["Tent", "Torch"]
    assert checklist.result.text == "Weekend: Tent, Torch left."

    assert (await checklist.call("add_item", text="  Rope ")).text == 'Added "Rope".'
    await page.get_by_label("Rope").wait_for()
    assert await checklist.refusal("add_item", text="Rope") == '"Rope" is on the list already.'
    assert "add_item" in await checklist.refusal("add_item", text=" ")
    assert (await checklist.call("check_item", item="Rope")).text == "2 left."
    assert "must be one of" in await checklist.refusal("check_item", item="Rope")
    items = (await checklist.call("get_list")).structured_content["items"]
    assert [item["text"] for item in items if item["done"]] == ["Matches", "Rope"]
    kept = open_view.module.lists["Weekend"]
    assert [item.text for item in kept.items if item.done] == ["Matches", "Rope"]


async def test_the_users_clicks_change_what_the_model_can_do(open_view: Open, built: Path):
    checklist = await show(open_view, built)
    page = checklist.page
    assert (await checklist.call("clear_done")).text == "Removed 1."
    await tools_when(checklist, lambda tools: "clear_done" not in tools)
    assert await checklist.refusal("clear_done") == (
        "Tool clear_done is disabled: nothing is ticked off"
    )
    for name in ("Tent", "Torch"):
        await page.get_by_label(name).check()
    await tools_when(checklist, lambda tools: "check_item" not in tools)
    assert await checklist.refusal("check_item", item="Tent") == (
        "Tool check_item is disabled: everything is ticked off"
    )
    await page.get_by_label("Something to remember").fill("Map")
    await page.get_by_role("button", name="Add").click()
    await page.get_by_label("Map").wait_for()
    await tools_when(checklist, lambda tools: "check_item" in tools)
    await page.get_by_label("Something to remember").fill("Map")
    await page.get_by_role("button", name="Add").click()
    await page.get_by_text('"Map" is on the list already.').wait_for()
