"""Every example keeps the contract of an MCP App server, and has tools of all three shapes."""

import sys
from functools import partial

import mcp
import pytest
from mcp.server.mcpserver import MCPServer

from tests.examples.driving import EXAMPLES, fresh
from tests.server import clients
from tests.server.clients import SHOWS_VIEWS
from transom.check import Calling, Options, check
from transom.check.browser_checks import observe_views
from transom.check.report import NEEDS_BROWSER
from transom.check.rules import RULES
from transom.check.runner import ObservingOptions

ALL = [rule.id for rule in RULES]
NOT_CHECKED = {rule.id: rule.not_checked for rule in RULES if rule.not_checked}
SHAPES = {
    "budget": ("show_budget", "list_benchmarks", {"keep_budget"}),
    "editor": ("open_document", "list_documents", {"save_document"}),
    "lunch": ("show_vote", "count_votes", {"cast_vote"}),
    "music": ("show_player", "list_playlists", {"keep_track", "keep_in_playlist"}),
    "orders": ("show_orders", "count_orders", {"refresh-orders", "ship_order"}),
    "tictactoe": ("show_board", "get_score", {"record_result"}),
}


def test_every_example_with_a_page_is_here() -> None:
    assert {page.stem for page in EXAMPLES.glob("*.html")} == set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
async def test_it_has_a_tool_that_opens_one_that_answers_and_helpers(name: str) -> None:
    opens, answers, helpers = SHAPES[name]
    async with clients.memory_client(fresh(name).server, SHOWS_VIEWS) as client:
        tools = await clients.tools_of(client)
    shapes = {tool: listed.get("_meta", {}).get("ui") for tool, listed in tools.items()}
    uri = shapes.pop(opens)["resourceUri"]
    assert uri.startswith(f"ui://{name}/")
    assert shapes.pop(answers) == {"visibility": ["model"]}
    assert shapes == {helper: {"visibility": ["app"]} for helper in helpers}


@pytest.mark.parametrize("name", SHAPES)
async def test_the_checker_has_nothing_to_say(name: str) -> None:
    options = Options(calling=Calling(all=True))
    report = await check(name, fresh(name).server, heuristics=ALL, options=options)
    assert report.failure is None
    assert report.findings == ()
    reasons = {skip.reason for skip in report.skipped if skip.rule not in NOT_CHECKED}
    assert reasons == {NEEDS_BROWSER}


@pytest.mark.processes
@pytest.mark.nightly
async def test_the_checker_has_nothing_to_say_about_their_views_in_a_browser() -> None:
    together = MCPServer("examples", version="1.0.0")  # one browser for all of them
    for name in SHAPES:
        fresh(name).views.install(together)
    observer = partial(observe_views, settle=0.2)
    options = ObservingOptions(calling=Calling(), observer=observer)
    report = await check("examples", together, heuristics=ALL, options=options)
    assert report.failure is None
    assert report.findings == ()
    assert set(report.checked) == set(ALL) - set(NOT_CHECKED)


@pytest.mark.processes
async def test_one_runs_over_stdio_as_it_is() -> None:
    server = mcp.StdioServerParameters(command=sys.executable, args=[str(EXAMPLES / "orders.py")])
    async with clients.official_client(server, SHOWS_VIEWS) as client:
        shown = await clients.call(client, "show_orders", {"status": "open"})
        read = await client.read_resource("ui://orders/list.html")
    assert shown.content[0].text == "3 orders, €1840.00 in all."
    ids = [order["id"] for order in shown.structured_content["orders"]]
    assert ids == ["A-1041", "A-1043", "A-1046"]
    assert read.contents[0].text.startswith("<!doctype html>")
