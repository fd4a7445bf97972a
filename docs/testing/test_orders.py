"""Tests of the example `orders.py`, which is beside this file."""


# region first
async def test_the_model_sees_what_the_user_selects(views):
    view = await views.open("orders.py", "show_orders", status="open")
    await view.page.get_by_text("Oak desk").click()
    assert (await view.call("get_selection")).text == "A-1041"


# endregion
# region tools
from playwright.async_api import expect


async def test_what_cannot_be_selected_is_not_offered(views):
    view = await views.open("orders.py", "show_orders")
    await view.assert_tools("get_selection", "select_orders", "filter_orders")
    await view.page.get_by_label("Search").fill("nobody")
    await expect(view.page.get_by_text("No order matches.")).to_be_visible()
    await view.assert_tools("get_selection", "filter_orders", disabled=["select_orders"])
    assert view.disabled_tools == {"select_orders": "the table is empty"}


# endregion
# region sent
async def test_refresh_asks_the_server(views):
    view = await views.open("orders.py", "show_orders", status="open")
    await view.page.get_by_role("button", name="Refresh").click()
    await view.wait_for_sent("tools/call")
    assert view.sent_calls("refresh-orders") == [{"query": "", "status": "open"}]


# endregion
# region fails
async def test_the_user_is_told_when_the_server_fails(views):
    view = await views.open("orders.py", "show_orders")
    views.server_call("refresh-orders", fails="The database is down")
    await view.page.get_by_role("button", name="Refresh").click()
    await expect(view.page.get_by_text("The database is down")).to_be_visible()


# endregion
# region page
HELLO = """<!doctype html>
<html><head><script data-transom></script></head><body><p></p>
<script type="module">
import { App } from "transom";
const app = new App({ name: "hello", version: "1.0.0" });
app.ontoolinput = async ({ arguments: { name } }) => {
  const { content } = await app.callServerTool({ name: "greet", arguments: { name } });
  document.querySelector("p").textContent = content[0].text;
};
await app.connect();
</script></body></html>"""


async def test_a_page_without_its_server(views):
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    view = await views.open(html=HELLO, tools={"greet": greet}, arguments={"name": "Ines"})
    await expect(view.page.get_by_text("Hello, Ines!")).to_be_visible()


# endregion
# region python
from transom import App


def make_counter() -> App:
    app, counts = App("counter", "1.0.0"), [0]

    @app.tool
    def add(n: int) -> str:
        """Add to the counter."""
        counts[0] += n
        return f"{counts[0]}"

    return app


async def test_a_view_in_python_needs_no_browser(views):
    view = await views.open(app=make_counter)
    assert (await view.call("add", n=3)).text == "3"


# endregion
# region host
import pytest

from transom.errors import Refused


async def test_a_user_who_says_no(views):
    views.configure(approve=False, theme="dark", locale="de")
    view = await views.open(app=make_counter)
    with pytest.raises(Refused, match="The user said no"):
        await view.call("add", n=3)


# endregion
# region snapshot
async def test_how_the_orders_look(views):
    view = await views.open("orders.py", "show_orders", status="open")
    await view.assert_snapshot()


# endregion
# region record
async def test_a_selection(views):
    views.record("orders.jsonl")
    view = await views.open("orders.py", "show_orders", status="open")
    await view.call("select_orders", ids=["A-1041"])


# endregion
# region replay
async def test_the_view_does_what_was_recorded(views):
    await views.replay("orders.jsonl", "orders.py")


async def test_the_server_does_what_was_recorded(views):
    await views.replay("orders.jsonl", "orders.py", leg="server")


# endregion
# region contract
from transom.testing import contract_tests

test_the_contract = contract_tests("orders.py")
# endregion
# region agent
from pydantic_ai import Agent

from transom.agents.pydantic_ai import HostToolset
from transom.testing import Call, make_model


async def test_an_agent_that_adds(views):
    view = await views.open(app=make_counter)
    model = make_model([Call("page-1__add", {"n": 2}), Call("page-1__add", {"n": 3}), "Done."])
    agent = Agent(model, toolsets=[HostToolset(views.host)])
    assert (await agent.run("Add 2 and 3")).output == "Done."
    assert (await view.call("add", n=0)).text == "5"


# endregion
