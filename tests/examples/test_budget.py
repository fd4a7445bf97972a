"""The budget: the model moves the sliders that the user moves, and compares."""

import pytest
from playwright.async_api import expect

from tests.examples.conftest import Open
from tests.examples.driving import enum, fresh, tools_when
from transom import ToolError
from transom.testing import OpenedView

pytestmark = pytest.mark.processes

SHARES = {"engineering": 35, "sales": 20, "marketing": 25, "operations": 10, "research": 5}


async def opened(open_view: Open, **arguments: str) -> OpenedView:
    shown = await open_view("budget", "show_budget", **arguments)
    await expect(shown.page.get_by_label("Total")).to_have_value("400000")
    return shown


async def test_the_model_moves_a_slider_and_the_server_keeps_it(open_view: Open) -> None:
    shown = await opened(open_view)
    tools = await tools_when(shown, bool)
    assert list(tools) == [
        "get-allocations", "set-allocation", "set-total-budget", "compare-to-benchmark",
    ]  # fmt: skip
    assert enum(tools, "set-allocation", "category") == list(SHARES)

    done = await shown.call("set-allocation", category="marketing", percent=20)
    assert done.structured_content["allocations"][2] == {
        "category": "marketing", "percent": 20, "amount": 80_000,
    }  # fmt: skip
    assert done.structured_content["unallocated"] == 10
    assert open_view.module.budget.allocations == SHARES | {"marketing": 20}
    await expect(shown.page.get_by_label("Marketing, percent")).to_have_value("20")
    await expect(shown.page.get_by_text("10 % is not allocated: €40,000")).to_be_visible()


async def test_no_more_than_all_of_it_is_allocated(open_view: Open) -> None:
    shown = await opened(open_view)
    assert await shown.refusal("set-allocation", category="research", percent=11) == (
        "Research can get 10 % at most: the rest is allocated. Lower another category first."
    )
    assert "percent: must have maximum 100" in await shown.refusal(
        "set-allocation", category="research", percent=101
    )
    assert open_view.module.budget.allocations == SHARES
    # A slider stops there, too.
    slider = shown.page.get_by_label("Research, percent")
    await slider.press("End")
    await expect(slider).to_have_value("10")
    await expect(shown.page.get_by_text("All of it is allocated.")).to_be_visible()
    with pytest.raises(ToolError, match="more than 100 % together"):
        fresh("budget").keep_budget(1000, SHARES | {"sales": 26})


async def test_the_total_changes_every_amount_and_no_share(open_view: Open) -> None:
    shown = await opened(open_view)
    done = await shown.call("set-total-budget", amount=1_000_000)
    amounts = {each["category"]: each["amount"] for each in done.structured_content["allocations"]}
    assert amounts == {name: percent * 10_000 for name, percent in SHARES.items()}
    assert open_view.module.budget.total == 1_000_000
    await expect(shown.page.locator("#chart .big")).to_have_text("€1,000,000")
    assert "amount: must have minimum 1000" in await shown.refusal("set-total-budget", amount=1)


async def test_a_comparison_is_an_answer_and_a_second_ring_in_the_chart(open_view: Open) -> None:
    shown = await opened(open_view)
    rings = shown.page.locator("#chart circle")
    assert await rings.count() == 6
    compared = await shown.call("compare-to-benchmark", stage="growth")
    assert compared.structured_content["stage"] == "growth"
    assert compared.structured_content["categories"][0] == {
        "category": "engineering", "percent": 35, "benchmark": 28, "difference": 7,
    }  # fmt: skip
    assert "Sales: 20 % against 29 %, −9 points" in compared.text  # noqa: RUF001
    assert await rings.count() == 11
    await expect(shown.page.get_by_label("Benchmark")).to_have_value("growth")
    furthest = "Furthest from Growth: Sales, −9 points"  # noqa: RUF001
    await expect(shown.page.get_by_text(furthest)).to_be_visible()
    assert "stage: must be one of" in await shown.refusal("compare-to-benchmark", stage="x")


@pytest.mark.nightly
async def test_what_the_user_does_is_kept_and_told(open_view: Open) -> None:
    shown = await opened(open_view, stage="seed")
    await expect(shown.page.get_by_label("Benchmark")).to_have_value("seed")
    await shown.page.get_by_label("Sales, percent").press("ArrowRight")
    allocated = await shown.call("get-allocations")
    assert allocated.structured_content["allocations"][1]["percent"] == 21
    (context,) = shown.host.model_context()
    assert context.structured_content["unallocated"] == 4
    total = shown.page.get_by_label("Total")
    await total.fill("500")  # less than it may be
    await total.press("Tab")
    await expect(total).to_have_value("400000")
    await total.fill("250000")
    await total.press("Tab")
    await expect(shown.page.locator("#chart .big")).to_have_text("€250,000")

    await expect(shown.page.get_by_text("Saved", exact=True)).to_be_visible()
    again = await shown.host.call_tool("show_budget")  # opens with what was kept
    assert again.structured_content["total"] == 250_000
    assert again.structured_content["allocations"]["sales"] == 21
