"""The orders example: a server that keeps the contract, and a page that works in a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp
import pytest
from playwright.async_api import Page, async_playwright

from examples import orders
from tests.server import clients
from tests.server.clients import SHOWS_VIEWS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "orders.py"
KNOWN = ROOT / ".venv" / ".chromium"
HOST_PAGE = Path(__file__).with_name("host_page.html")
STRICT = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"


@pytest.fixture(autouse=True)
def fresh_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = [
        orders.Order(**{f: getattr(o, f) for f in o.__struct_fields__}) for o in orders.ORDERS
    ]
    monkeypatch.setattr(orders, "ORDERS", copies)


async def test_it_runs_over_stdio_and_has_all_three_shapes():
    server = mcp.StdioServerParameters(command=sys.executable, args=[str(EXAMPLE)])
    async with clients.official_client(server, SHOWS_VIEWS) as client:
        tools = await clients.tools_of(client)
        shown = await clients.call(client, "show_orders", {"status": "open"})
        counted = await clients.call(client, "count_orders", {"status": "open"})
        read = await client.read_resource("ui://orders/list.html")
    shapes = {name: tool.get("_meta", {}).get("ui") for name, tool in tools.items()}
    assert shapes == {
        "show_orders": {"resourceUri": "ui://orders/list.html"},
        "search_orders": {"visibility": ["app"]},
        "ship_order": {"visibility": ["app"]},
        "count_orders": None,
    }
    assert shown.content[0].text == "3 orders, €1840.00 in all."
    assert [order["id"] for order in shown.structured_content["orders"]] == [
        "A-1041", "A-1043", "A-1046",
    ]  # fmt: skip
    assert counted.structured_content == {"result": 3}
    assert read.contents[0].text.startswith("<!doctype html>")


async def test_its_helpers_say_no_in_words():
    async with clients.memory_client(orders.server, SHOWS_VIEWS) as client:
        for order, words in (("A-1041", "A-1041 is not paid yet."), ("X", "There is no order X.")):
            refused = await clients.call(client, "ship_order", {"order_id": order})
            assert refused.is_error
            assert refused.content[0].text == words
        shipped = await clients.call(client, "ship_order", {"order_id": "A-1042"})
        assert shipped.structured_content["status"] == "shipped"
        assert shipped.content[0].text == "A-1042 is on its way."


def test_the_checker_has_nothing_to_say():
    transom = str(Path(sys.executable).with_name("transom"))
    command = [transom, "check", "--call-all", "--heuristics"]
    done = subprocess.run(
        [*command, "--format", "json", "--fail-on", "info", str(EXAMPLE)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["findings"] == []


# --- the page --------------------------------------------------------------------------------


@asynccontextmanager
async def shown(client: Any, result: Any) -> AsyncIterator[Page]:
    """The example's page in a frame of a small host that forwards its calls to a client."""
    problems: list[str] = []

    async def call_server(params: dict[str, Any]) -> dict[str, Any]:
        answer = await clients.call(client, params["name"], params["arguments"])
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    chromium = shutil.which("chromium") or (KNOWN.read_text().strip() if KNOWN.exists() else None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        await page.expose_function("testServer", call_server)
        await page.set_content(HOST_PAGE.read_text())
        html = orders.page.read()
        meta = f'<meta http-equiv="content-security-policy" content="{STRICT}">'
        await page.evaluate("html => mount(html)", html.replace("<head>", f"<head>{meta}", 1))
        await page.wait_for_function("window.ready")
        await page.evaluate("result => tell('ui/notifications/tool-result', result)", result)
        yield page
        await browser.close()
    assert problems == []


async def test_its_page_shows_orders_offers_tools_and_uses_the_helpers():
    async with clients.memory_client(orders.server, SHOWS_VIEWS) as client:
        opened = await clients.call(client, "show_orders", {})
        result = opened.model_dump(by_alias=True, mode="json", exclude_none=True)
        async with shown(client, result) as page:

            async def ask(name: str, **arguments: Any) -> dict[str, Any]:
                return await page.evaluate("p => ask('tools/call', p)", {
                    "name": name, "arguments": arguments,
                })  # fmt: skip

            view = page.frame_locator("iframe")
            await view.locator("tbody tr").nth(6).wait_for()
            listed = await page.evaluate("ask('tools/list', {})")
            names = [tool["name"] for tool in listed["tools"]]
            assert names == ["get_selection", "select_orders", "filter_orders"]

            # The user selects, the model asks.
            await view.get_by_text("Oak desk").click()
            chosen = await ask("get_selection")
            assert chosen["content"][0]["text"] == "A-1041"

            # The model selects, the user sees.
            await ask("select_orders", ids=["A-1042", "A-1046"])
            assert await view.locator("tr[aria-selected=true]").count() == 2

            # The page asks the server through its host.
            filtered = await ask("filter_orders", query="bram", status="paid")
            assert filtered["content"][0]["text"] == "1 order is shown."
            await view.get_by_role("button", name="Ship").click()
            await view.locator("tbody:not(:has(tr))").wait_for(state="attached")
            shipped = await clients.call(client, "search_orders", {"query": "A-1042"})
            assert shipped.structured_content["orders"][0]["status"] == "shipped"

            # What cannot be done is said in words.
            for refused in (await ask("select_orders"), await ask("select_orders", ids=["X"])):
                assert refused["isError"]
            assert (await ask("nope"))["code"] == -32602
            assert await page.evaluate("ask('ui/resource-teardown', {})") == {}
