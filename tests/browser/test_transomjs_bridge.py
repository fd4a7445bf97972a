"""A page with `transom.js` in Chromium, and `transom.Bridge` as its host in Python."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page

from tests.browser.transomjs_host import PAGES, VIEW_URL, View, host_page, page_with
from transom import Bridge, ProtocolError
from transom.errors import ChannelClosed

VIEW = page_with(
    """
    globalThis.log = [];
    globalThis.app = new App({ name: "notes", version: "2.0" });
    app.onerror = (error) => { log.push(error.message); };
    app.ontoolinput = (params) => { log.push(params); };
    app.ontoolresult = (params) => { log.push(params); };
    app.onhostcontextchanged = (params) => { log.push(params); };
    app.onteardown = (params) => { document.title = params.reason; return {}; };
    globalThis.notes = ["one"];
    globalThis.read = app.registerTool("read", {
      description: "Read a note", annotations: { readOnlyHint: true },
      inputSchema: () => ({ type: "object", properties: { note: { enum: notes } },
        required: ["note"] }),
      outputSchema: { type: "string" },
    }, ({ note }) => `the text of ${note}`);
    app.registerTool("slow", {}, async (extra) => {
      await extra.sendProgress(1, 2);
      await new Promise((resolve) => extra.signal.addEventListener("abort", resolve));
      log.push("aborted");
    });
    app.registerTool("fails", {}, () => { throw new Error("secret"); });
    app.registerTool("asks", {}, async () => {
      const { content } = await app.callServerTool({ name: "save", arguments: { a: 1 } });
      return content[0].text;
    });
    await app.connect();
    """,
    body="<p>Notes</p>",
)


class PageChannel:
    """The pipe to a View in a page."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def open(self) -> None:
        await self._page.expose_function("fromView", self._take)
        await self._page.evaluate("url => mount(url)", VIEW_URL)

    def _take(self, text: str) -> None:
        self._arrived.put_nowait(text.encode())

    async def send(self, data: bytes) -> None:
        await self._page.evaluate("text => toView(text)", data.decode())

    async def receive(self) -> bytes:
        data = await self._arrived.get()
        if data is None:
            raise ChannelClosed("The page was closed")
        return data

    async def aclose(self) -> None:
        self._arrived.put_nowait(None)


@pytest_asyncio.fixture(loop_scope="session")
async def view(context: BrowserContext) -> AsyncIterator[View]:
    async with host_page(context, host=(PAGES / "relay.html").read_text(), view=VIEW) as shown:
        yield shown


@pytest_asyncio.fixture(loop_scope="session")
async def bridge(view: View) -> AsyncIterator[Bridge]:
    channel = PageChannel(view.page)
    info = {"name": "python-host", "version": "1"}
    async with Bridge(channel, host_info=info, context={"theme": "dark"}) as made:
        made.on_call_tool = lambda name, arguments: f"{name} saved {arguments['a']}"
        await channel.open()
        await made.initialized(timeout=30)
        yield made


async def test_it_lists_and_calls_tools(view: View, bridge: Bridge):
    assert bridge.app_info is not None
    assert (bridge.app_info.name, bridge.app_info.version) == ("notes", "2.0")
    tools = await bridge.list_tools()
    assert [tool.name for tool in tools] == ["read", "slow", "fails", "asks"]
    assert tools[0].input_schema["properties"]["note"]["enum"] == ["one"]
    result = await bridge.call_tool("read", {"note": "one"})
    assert (result.text, result.structured_content) == (
        "the text of one",
        {"result": "the text of one"},
    )
    wrong = await bridge.call_tool("read", {"note": "two"})
    assert wrong.is_error
    assert wrong.text == 'Invalid arguments for tool read:\n- note: must be one of ["one"]'
    assert (await bridge.call_tool("asks")).text == "save saved 1"


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [("nope", -32602, "Tool nope not found"), ("fails", -32603, "Tool fails failed")],
)
async def test_errors_have_their_codes(bridge: Bridge, name: str, code: int, message: str):
    with pytest.raises(ProtocolError) as raised:
        await bridge.call_tool(name)
    assert (raised.value.code, raised.value.message) == (code, message)


async def test_the_list_follows_the_state_of_the_page(view: View, bridge: Bridge):
    changed = asyncio.Event()
    bridge.on_tools_changed = lambda: changed.set()
    await view.run("() => { notes.push('two'); read.update({ title: 'Read' }); }")
    await changed.wait()
    read = (await bridge.list_tools())[0]
    assert (read.title, read.input_schema["properties"]["note"]["enum"]) == ("Read", ["one", "two"])
    changed.clear()
    await view.run("read.disable('busy')")
    await changed.wait()
    assert [tool.name for tool in await bridge.list_tools()] == ["slow", "fails", "asks"]
    refused = await bridge.call_tool("read", {"note": "one"})
    assert refused.text == "Tool read is disabled: busy"


async def test_progress_arrives_and_cancelling_stops_the_tool(view: View, bridge: Bridge):
    steps: list[Any] = []
    begun = asyncio.Event()

    def note(step: Any) -> None:
        steps.append((step.progress, step.total))
        begun.set()

    call = asyncio.ensure_future(bridge.call_tool("slow", on_progress=note))
    await begun.wait()
    call.cancel()
    await asyncio.wait([call])
    await view.until("log.includes('aborted')")
    assert steps == [(1, 2)]


async def test_data_context_and_teardown_arrive(view: View, bridge: Bridge):
    await bridge.send_tool_input({"q": 1})
    await bridge.send_tool_result({"content": [], "structuredContent": {"n": 1}})
    await bridge.set_context(theme=None, locale="de")
    await view.until("log.length === 4")
    assert await view.run("log") == [
        {"arguments": {"q": 1}},
        {"content": [], "structuredContent": {"n": 1}},
        {"locale": "de"},
        {"theme": None},  # what is gone is told apart
    ]
    assert await view.run("app.getHostContext()") == {"locale": "de"}
    assert await bridge.teardown("time to go")
    assert await view.run("document.title") == "time to go"
