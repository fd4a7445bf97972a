"""Examples, official servers, a FastMCP server with Prefab and a Vite project, with the plugin."""

import textwrap
from pathlib import Path

import pytest

import tests.servers.prefab  # noqa: F401 - it cannot be imported twice
from tests.examples.building import build
from tests.testing.test_plugin import INI, PLUGINS

pytestmark = [pytest.mark.processes, pytest.mark.nightly, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]

TESTS = """
from playwright.async_api import expect
import pytest

expect.set_options(timeout=60_000)

@pytest.fixture(autouse=True)
def patient(views):
    views.configure(open_timeout=120)

@pytest.mark.parametrize("example", ["budget", "editor", "music", "tictactoe", "lunch"])
async def test_an_example(views, example):
    view = await views.open(f"ROOT/examples/{example}.py")
    assert (await view.snapshot()).text
    for tool in view.tools.values():
        if tool.annotations and tool.annotations.read_only_hint and not required(tool):
            assert not (await view.call(tool.name)).is_error

def required(tool):
    return tool.input_schema.get("required")

@pytest.mark.parametrize(
    ("package", "tool"),
    [
        ("server-budget-allocator", "get-allocations"),
        ("server-shadertoy", "get-shader-info"),
        ("server-wiki-explorer", "get-current-article"),
    ],
)
async def test_an_official_server(views, package, tool):
    folder = f"ROOT/tests/servers/node_modules/@modelcontextprotocol/{package}"
    view = await views.open(f"node {folder}/dist/index.js --stdio")
    view.allow_problems()  # some load pictures from the internet
    assert not (await view.call(tool)).is_error

async def test_prefab_on_fastmcp(views):
    from tests.servers.prefab import server
    view = await views.open(server, "show_notes", title="My notes")
    await view.assert_tools("choose", "add_note", timeout=60)
    assert (await view.call("choose", colour="red")).structured_content == {"colour": "red"}
    await view.page.get_by_role("button", name="Add").click()
    await view.wait_for_sent("tools/call", timeout=60)
    assert view.sent_calls("add_note") == [{"text": "by a click"}]

async def test_vite_and_react(views):
    view = await views.open("BUILT/checklist.py", "show_checklist", name="Weekend")
    await expect(view.page.get_by_label("Tent")).to_be_visible()
    assert (await view.call("add_item", text="Rope")).text == 'Added "Rope".'
    await expect(view.page.get_by_label("Rope")).to_be_visible()
"""


def test_they_are_tested_with_nothing_but_the_plugin(pytester: pytest.Pytester):
    built = build("vite-react")
    tests = textwrap.dedent(TESTS).replace("ROOT", str(ROOT)).replace("BUILT", str(built))
    pytester.makepyfile(tests)
    pytester.makeini(INI)
    done = pytester.runpytest_inprocess(*PLUGINS)
    done.assert_outcomes(passed=10)
