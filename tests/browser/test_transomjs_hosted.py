"""The samples of the documents, as they stand, as Views of a `Host` in Chromium.

Between page and host are all the parts there are: the Stage, the sandbox, the WebSocket, the
bridge, and the surface that a model sees.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from mcp.server.mcpserver import MCPServer

from tests.browser.test_transomjs_samples import page_of, page_with_names_alone
from tests.browser.test_transomjs_webmcp import APP, MUSIC, STRAWMAN
from tests.browser.transomjs_host import page_with
from transom import Host, Limits, Policy, ToolResult
from transom.errors import ProtocolError
from transom.host.view import View
from transom.server import Views
from transom.web.headless import HeadlessRenderer

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host() -> AsyncIterator[Host]:
    async with Host(
        renderer=HeadlessRenderer(),
        policy=Policy.trusting(),
        limits=Limits(relist_interval=0),
        audit=None,
        open_timeout=40,
    ) as made:
        yield made


class Shown:
    """A sample as its model has it."""

    def __init__(self, host: Host, view: View) -> None:
        self.host = host
        self.view = view
        self._changed = asyncio.Event()
        host.on_tools_changed = lambda *_: self._changed.set()

    async def tools(self) -> dict[str, Any]:
        """Its tools on the surface, by their own names."""
        mine = f"{self.view.id}__"
        listed = await self.host.list_tools()
        return {t.name.removeprefix(mine): t for t in listed if t.name.startswith(mine)}

    async def until(self, *names: str) -> dict[str, Any]:
        """Its tools, as soon as they are these."""
        async with asyncio.timeout(20):
            while True:
                self._changed.clear()
                tools = await self.tools()
                if [*tools] == [*names]:
                    return tools
                await self._changed.wait()

    async def call(self, name: str, arguments: Any = None) -> ToolResult:
        return await self.host.call_tool(f"{self.view.id}__{name}", arguments)

    async def run(self, script: str) -> Any:
        """Run something inside the page."""
        renderer = self.host.renderer
        assert isinstance(renderer, HeadlessRenderer)
        assert renderer.page is not None
        outer = renderer.page.frame_locator(f'[id="view-{self.view.id}"] iframe')
        return await outer.frame_locator("iframe").locator("html").evaluate(f"() => {script}")


Show = Callable[[str], Awaitable[Shown]]


@pytest_asyncio.fixture(loop_scope="module")
async def show(host: Host) -> AsyncIterator[Show]:
    """`await show(page)`: a page as the View of a server."""

    async def opened(page: str) -> Shown:
        views = Views()

        @views.tool(opens=views.add("ui://samples/page.html", html=page))
        def open_sample() -> str:
            """Open the sample."""
            return "open"

        await host.add_server("samples", MCPServer("samples", extensions=[views]))
        result = await host.call_tool("open_sample")
        note = (result.meta or {})["transom/view"]
        assert note["state"] == "live", note
        return Shown(host, host.views[note["id"]])

    yield opened
    await host.remove_server("samples")


async def test_the_example_from_end_to_end(show: Show):
    sample = await show(page_of("end_to_end.ts"))
    tools = await sample.until("insert-text", "get-selection")
    assert tools["insert-text"].input_schema["required"] == ["text"]
    assert "Read the user's current selection" in tools["get-selection"].description
    assert (await sample.call("insert-text", {"text": "Hello"})).text == "Inserted"
    assert await sample.run("inserted") == ["Hello"]
    refused = await sample.call("insert-text", {"text": 5})
    assert refused.is_error
    await sample.run("select()")
    assert (await sample.call("get-selection")).text == "Some words to select."


async def test_a_static_list(show: Show):
    sample = await show(page_of("static_list.ts"))
    await sample.until("get-selection", "insert-text")
    assert (await sample.call("insert-text", {"text": "x"})).text == "Inserted"


async def test_tools_that_are_handled_by_name(show: Show):
    sample = await show(page_of("names_only.ts"))
    await sample.until("get-selection", "format-text")
    assert (await sample.call("get-selection")).text == "selected"
    assert (await sample.call("format-text", {"bold": True})).text == '{"bold":true}'


async def test_bare_names_are_tools(show: Show):
    sample = await show(page_with_names_alone())
    await sample.until("get-selection", "format-text")
    assert (await sample.call("get-selection")).text == "selected"


async def test_errors_are_returned(show: Show):
    sample = await show(page_of("errors.ts"))
    refused = await sample.view.call_tool("submit-form")
    assert refused.is_error
    assert refused.text == "Form has validation errors"


async def test_a_list_that_follows_the_state_of_the_page(show: Show):
    sample = await show(page_of("selection.ts"))
    await sample.until("format-text")
    await sample.run("select()")
    await sample.until("format-text", "get-selection")
    await sample.run("getSelection().removeAllRanges()")
    await sample.until("format-text")


async def test_a_registry_that_changes(show: Show):
    sample = await show(page_of("dynamic.ts"))
    await sample.until("insert-text")  # refresh is for the user interface only
    with pytest.raises(ProtocolError):
        await sample.call("refresh")
    refused = await sample.call("save")
    assert refused.text == "Tool save is disabled"
    await sample.run("listeners.dirty()")
    await sample.until("insert-text", "save")
    assert not (await sample.call("save")).is_error


@pytest.mark.parametrize(
    "page",
    [
        page_with(f"{MUSIC}{APP}{STRAWMAN}\nawait app.connect();"),
        page_with(f"{MUSIC}{STRAWMAN}", kind="text/javascript"),
    ],
    ids=["with an App", "without one"],
)
async def test_the_strawman_of_webmcp(show: Show, page: str):
    sample = await show(page)
    tools = await sample.until("play_track")
    assert tools["play_track"].input_schema["properties"]["id"]["enum"] == ["one", "two"]
    assert not (await sample.call("play_track", {"id": "two"})).is_error
    assert await sample.run("player.played") == ["two"]
    assert (await sample.call("remove_from_queue", {"position": 0})).text == (
        "Tool remove_from_queue is disabled"
    )
    await sample.run("queue.set(['a'])")
    await sample.until("play_track", "remove_from_queue")
    await sample.run("queue.set([])")
    await sample.until("play_track")
    await sample.run("{ library.tracks = ['three']; }")
    refused = await sample.call("play_track", {"id": "two"})
    assert refused.text == 'Invalid arguments for tool play_track:\n- id: must be one of ["three"]'
