"""The orders: a table that the user and the model select in, and helpers that only it may call."""

import pytest
from playwright.async_api import expect

from tests.examples.conftest import Open
from tests.examples.driving import fresh, tools_when
from transom import ToolError
from transom.errors import TransomError

pytestmark = pytest.mark.processes

IDS = [f"A-104{n}" for n in range(1, 8)]


def listed_ids(schema: dict) -> list[str]:
    return schema["properties"]["ids"]["items"]["enum"]


@pytest.mark.processes
async def test_what_one_selects_the_other_sees(open_view: Open) -> None:
    shown = await open_view("orders", "show_orders")
    assert shown.result.text == "7 orders, €2423.50 in all."
    await expect(shown.page.locator("tbody tr")).to_have_count(7)
    assert (await shown.call("get_selection")).text == "Nothing is selected."

    await shown.page.get_by_text("Oak desk").click()
    chosen = await shown.call("get_selection")
    assert chosen.text == "A-1041"
    assert chosen.structured_content["orders"][0]["customer"] == "Ines Moreau"
    (context,) = shown.host.model_context()
    assert context.content[0].text == "The user has selected: A-1041."

    await shown.call("select_orders", ids=["A-1042", "A-1046"])
    selected = shown.page.locator("tr[aria-selected=true] .id")
    await expect(selected).to_have_text(["A-1042", "A-1046"])
    await expect(shown.page.get_by_text("2 selected · €869.50")).to_be_visible()


@pytest.mark.nightly
@pytest.mark.processes
async def test_the_orders_that_can_be_selected_are_those_in_the_table(open_view: Open) -> None:
    shown = await open_view("orders", "show_orders")
    tools = await tools_when(shown, lambda tools: "select_orders" in tools)
    assert listed_ids(tools["select_orders"].input_schema) == IDS

    filtered = await shown.call("filter_orders", query="bram")
    assert filtered.text == "2 orders are shown."
    await expect(shown.page.get_by_label("Search")).to_have_value("bram")
    two = ["A-1042", "A-1047"]
    await tools_when(shown, lambda tools: listed_ids(tools["select_orders"].input_schema) == two)
    assert "ids[0]: must be one of" in await shown.refusal("select_orders", ids=["A-1041"])
    assert "ids: is required" in await shown.refusal("select_orders")

    await shown.call("filter_orders", query="nobody")
    await tools_when(shown, lambda tools: "select_orders" not in tools)
    await expect(shown.page.get_by_text("No order matches.")).to_be_visible()
    assert await shown.refusal("select_orders", ids=[]) == (
        "Tool select_orders is disabled: the table is empty"
    )


async def test_the_user_searches_selects_and_ships_with_the_keyboard(open_view: Open) -> None:
    shown = await open_view("orders", "show_orders", status="paid")
    await expect(shown.page.get_by_label("Status")).to_have_value("paid")
    await expect(shown.page.locator("tbody tr")).to_have_count(2)
    await shown.page.locator("#A-1042").press("ArrowDown")
    await shown.page.locator("#A-1044").press("Enter")
    await expect(shown.page.locator("#A-1044")).to_be_focused()
    assert (await shown.call("get_selection")).text == "A-1044"

    await shown.page.get_by_label("Ship A-1042").press("Enter")
    await expect(shown.page.locator("tbody tr")).to_have_count(1)  # it is not paid, but shipped
    assert next(each for each in open_view.module.ORDERS if each.id == "A-1042").status == "shipped"
    await shown.page.get_by_label("Search").fill("rug")
    await expect(shown.page.get_by_text("No order matches.")).to_be_visible()


@pytest.mark.nightly
async def test_a_refresh_shows_what_is_true_now(open_view: Open) -> None:
    shown = await open_view("orders", "show_orders")
    row = shown.page.locator("#A-1041 .status")
    await expect(row).to_have_text("open")
    open_view.module.ORDERS[0].status = "paid"  # somebody else has done so
    await shown.page.get_by_role("button", name="Refresh").press("Enter")
    await expect(row).to_have_text("paid")
    await expect(shown.page.get_by_label("Ship A-1041")).to_be_visible()


@pytest.mark.processes
async def test_the_model_counts_but_does_not_call_what_is_for_the_view(open_view: Open) -> None:
    shown = await open_view("orders", "show_orders")
    counted = await shown.host.call_tool("count_orders", {"status": "open"})
    assert counted.structured_content == {"result": 3}
    names = {tool.name for tool in await shown.host.list_tools()}
    assert not {"refresh-orders", "ship_order"} & names
    for helper in ("refresh-orders", "ship_order"):
        with pytest.raises(TransomError):
            await shown.host.call_tool(helper, {})


def test_the_helpers_say_no_in_words() -> None:
    orders = fresh("orders")
    with pytest.raises(ToolError, match="A-1041 is not paid yet."):
        orders.ship_order("A-1041")
    with pytest.raises(ToolError, match="There is no order X."):
        orders.ship_order("X")
    assert orders.ship_order("A-1042").status == "shipped"
