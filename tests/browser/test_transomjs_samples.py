"""Code written for the official SDK runs with `transom.js` in its place, as it stands.

The samples import `@modelcontextprotocol/ext-apps` and `zod`. The first becomes `transom.js`; zod
is the real one, of every version that has Standard Schemas.
"""

import re

import pytest
from playwright.async_api import BrowserContext

from tests.browser.bundling import EXT_APPS, bundled_page
from tests.browser.transomjs_host import PAGES, mounted

# What the samples take for granted.
EDITOR = """
<p id="text">Some words to select.</p>
<script>
  const inserted = [], listeners = {}, log = [];
  const insertAtCursor = (text) => inserted.push(text);
  const editor = { on: (name, listener) => { listeners[name] = listener; } };
  const saveHandler = (extra) => { log.push(Object.keys(extra).sort()); return { content: [] }; };
  const refreshHandler = () => ({ content: [{ type: "text", text: "refreshed" }] });
  const formIsValid = () => false;
  const getSelectedText = () => "selected";
  const formatText = (given) => JSON.stringify(given);
  const select = () => getSelection().selectAllChildren(document.getElementById("text"));
  const deselect = () => getSelection().removeAllRanges();
  const written = () => inserted;
  const dirty = () => listeners.dirty();
</script>
"""


ZODS = [
    "zod",
    "zod-3",
    *(pytest.param(name, marks=pytest.mark.nightly) for name in ("zod-3/v4", "zod-4.0", "zod-4.1")),
]


def page_of(sample: str, zod: str = "zod") -> str:
    """A page that runs a sample, bundled as the author of a View would."""
    alias = (EXT_APPS,) if zod == "zod" else (EXT_APPS, f"zod={zod}")
    return bundled_page(PAGES / "samples" / sample, alias=alias, body=EDITOR)


def page_with_valibot(sample: str) -> str:
    """The same, with its schema written for Valibot."""
    code = (PAGES / "samples" / sample).read_text()
    code = code.replace('import { z } from "zod"', 'import * as z from "valibot"')
    assert "valibot" in code
    return bundled_page(code, alias=(EXT_APPS,), body=EDITOR)


def page_with_names_alone() -> str:
    """The same, of a list that has names in the place of definitions."""
    code = (PAGES / "samples" / "names_only.ts").read_text()
    code, count = re.subn(
        r'\{ (?:name): ("[a-z-]+"), inputSchema: \{ type: "object" \} \}', r"\1", code
    )
    assert count == 2
    return bundled_page(code, alias=(EXT_APPS,), body=EDITOR)


def page_that_lists_its_form() -> str:
    """The sample of errors, which calls its tool by name only, with the tool in a list."""
    listed = 'app.onlisttools = () => ({ tools: ["submit-form"] });'
    code = (PAGES / "samples" / "errors.ts").read_text()
    code = code.replace("await app.connect();", f"{listed}\nawait app.connect();")
    return bundled_page(code, alias=(EXT_APPS,), body=EDITOR)


@pytest.mark.parametrize("zod", ZODS)
async def test_the_example_from_end_to_end(context: BrowserContext, zod: str):
    async with mounted(context, page_of("end_to_end.ts", zod)) as view:
        [hello] = await view.seen("ui/initialize")
        assert hello["params"]["appInfo"] == {"name": "DocEditor", "version": "1.0.0"}
        assert hello["params"]["appCapabilities"] == {"tools": {"listChanged": True}}
        assert len(await view.heard("notifications/tools/list_changed")) == 1

        insert, selection = await view.tools()
        assert insert["name"] == "insert-text"
        assert insert["inputSchema"]["properties"] == {"text": {"type": "string"}}
        assert insert["inputSchema"]["required"] == ["text"]
        assert selection == {
            "name": "get-selection",
            "description": "Read the user's current selection",
            "inputSchema": {"type": "object"},
        }
        assert await view.text("insert-text", {"text": "Hello"}) == "Inserted"
        assert await view.run("inserted") == ["Hello"]
        refused = await view.text("insert-text", {"text": 5})
        assert refused.startswith("Invalid arguments for tool insert-text:\n- text: ")
        await view.run("select()")
        assert await view.text("get-selection") == "Some words to select."
        answer = await view.ask("tools/call", {"name": "nope"})
        assert answer["error"] == {"code": -32603, "message": "Tool nope failed"}


@pytest.mark.parametrize("sample", ["end_to_end.ts", "dynamic.ts"])
async def test_the_examples_with_valibot_whose_schemas_are_not_listed(
    context: BrowserContext, sample: str
):
    async with mounted(context, page_with_valibot(sample)) as view:
        insert = (await view.tools())[0]
        assert insert["name"] == "insert-text"
        assert insert["inputSchema"] == {"type": "object", "properties": {}}
        assert "Its parameters are not listed" in insert["description"]
        assert await view.text("insert-text", {"text": "Hello"}) == "Inserted"
        assert await view.run("inserted") == ["Hello"]
        refused = await view.text("insert-text", {"text": 5})
        assert refused.startswith("Invalid arguments for tool insert-text:\n- text: ")


async def test_a_static_list(context: BrowserContext):
    async with mounted(context, page_of("static_list.ts")) as view:
        assert await view.names() == ["get-selection", "insert-text"]
        assert await view.text("insert-text", {"text": "x"}) == "Inserted"
        assert await view.run("inserted") == ["x"]
        await view.run("select()")
        assert await view.text("get-selection") == "Some words to select."


async def test_errors_are_returned(context: BrowserContext):
    async with mounted(context, page_of("errors.ts")) as view:
        assert await view.tools() == []
        assert await view.call("submit-form") == {
            "isError": True,
            "content": [{"type": "text", "text": "Form has validation errors"}],
        }
        assert await view.text("anything else") == "Done."


@pytest.mark.parametrize("zod", ZODS)
async def test_a_registry_that_changes(context: BrowserContext, zod: str):
    async with mounted(context, page_of("dynamic.ts", zod)) as view:
        assert await view.names() == ["insert-text", "refresh"]
        assert (await view.tools())[1]["_meta"]["ui"] == {"visibility": ["app"]}
        refused = await view.call("save")
        assert refused["content"][0]["text"] == "Tool save is disabled"
        await view.run("listeners.dirty()")
        assert len(await view.seen("notifications/tools/list_changed")) == 1
        assert await view.names() == ["insert-text", "save", "refresh"]
        assert await view.call("save") == {"content": []}
        assert await view.run("log") == [["arguments", "mcpReq", "sendProgress", "signal"]]
        assert await view.text("refresh") == "refreshed"
        assert await view.text("insert-text", {"text": "y"}) == "Inserted"


async def test_names_alone(context: BrowserContext):
    async with mounted(context, page_of("names_only.ts")) as view:
        assert await view.names() == ["get-selection", "format-text"]
        assert await view.text("get-selection") == "selected"
        assert await view.text("format-text", {"bold": True}) == '{"bold":true}'


async def test_a_list_that_follows_the_state_of_the_page(context: BrowserContext):
    async with mounted(context, page_of("selection.ts")) as view:
        assert await view.names() == ["format-text"]
        await view.run("select()")
        await view.heard("notifications/tools/list_changed")
        assert await view.names() == ["format-text", "get-selection"]
        await view.run("getSelection().removeAllRanges()")
        await view.heard("notifications/tools/list_changed", 2)
        assert await view.names() == ["format-text"]
