"""Our Bridge and the official View: `App` of ext-apps 2.x and 1.x, in Node, behind `lines(...)`."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer

from tests.interop.node_peer import NodeError, NodePeer
from transom import Bridge, Limits
from transom.channel import lines
from transom.errors import (
    CapabilityMissing,
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    ProtocolError,
    Refused,
    RequestTimeout,
)
from transom.protocol.lifecycle import LifecycleState
from transom.types import Implementation, ListChanged, Tool, ToolResult

pytestmark = pytest.mark.processes

QUERY = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["text"],
}
CONTEXT = {"theme": "dark", "displayMode": "inline", "availableDisplayModes": ["inline", "pip"]}
CAPABILITIES = {
    "openLinks": {},
    "downloadFile": {},
    "serverTools": {},
    "serverResources": {},
    "logging": {},
    "updateModelContext": {},
    "message": {},
    "sampling": {},
    "tools": {"listChanged": True},
}


@dataclass
class Joined:
    """An official View and the Bridge at the other end of its wire."""

    view: NodePeer
    bridge: Bridge
    errors: list[str]

    async def shake_hands(self) -> None:
        await self.view.do("connect")
        await self.bridge.initialized()


@pytest.fixture(params=["2", "1"])
async def view(request: pytest.FixtureRequest, start_node: Any) -> NodePeer:
    return await start_node("view", sdk=request.param)


def bridge_to(view: NodePeer, **options: Any) -> tuple[Bridge, list[str]]:
    errors: list[str] = []
    given = {
        "host_info": {"name": "our-host", "version": "9"},
        "capabilities": CAPABILITIES,
        "context": CONTEXT,
        **options,
    }
    bridge = Bridge(lines(*view.wire), **given)
    bridge.on_error = lambda error: errors.append(f"{type(error).__name__}: {error}")
    return bridge, errors


@pytest.fixture
async def joined(view: NodePeer) -> AsyncIterator[Joined]:
    bridge, errors = bridge_to(view)
    async with bridge:
        yield Joined(view, bridge, errors)


def names(tools: list[Tool]) -> list[str]:
    return [tool.name for tool in tools]


# --- handshake -------------------------------------------------------------------------------


async def test_the_handshake_tells_each_side_about_the_other(joined: Joined):
    await joined.view.do("registerTool", name="echo")
    await joined.shake_hands()
    bridge = joined.bridge
    assert bridge.app_info == Implementation("official-view", "1.0.0")
    assert bridge.app_capabilities is not None
    assert bridge.app_capabilities.tools == ListChanged(list_changed=True)
    assert await joined.view.do("hostInfo") == {"name": "our-host", "version": "9"}
    assert await joined.view.do("hostContext") == CONTEXT
    offered = await joined.view.do("hostCapabilities")
    assert offered == {key: value for key, value in CAPABILITIES.items() if key in offered}
    await bridge.ping()
    assert joined.errors == []


async def test_nothing_reaches_the_view_before_it_says_initialized(joined: Joined):
    await joined.view.do("registerTool", name="echo")
    await joined.view.do("trace", on=True)
    await joined.bridge.send_tool_input({"early": True})
    listing = asyncio.create_task(joined.bridge.list_tools())
    await joined.shake_hands()
    assert names(await listing) == ["echo"]
    first = await joined.view.event("received")
    assert "result" in first["message"]
    assert (await joined.view.event("toolinput"))["params"] == {"arguments": {"early": True}}


async def test_a_view_without_tools_is_not_asked_for_them(joined: Joined):
    await joined.view.do("create", capabilities={})
    await joined.shake_hands()
    with pytest.raises(CapabilityMissing, match="official-view did not declare the tools"):
        await joined.bridge.call_tool("x")


# --- tools -----------------------------------------------------------------------------------


async def test_listing_shows_what_was_registered_and_follows_changes(joined: Joined):
    changes: asyncio.Queue[None] = asyncio.Queue()
    joined.bridge.on_tools_changed = lambda: changes.put_nowait(None)
    await joined.view.do(
        "registerTool",
        name="search",
        title="Search",
        description="Find things",
        inputSchema=QUERY,
        annotations={"readOnlyHint": True},
        _meta={"ui": {"visibility": ["app"]}},
    )
    await joined.view.do("registerTool", name="plain")
    await joined.shake_hands()

    [search, plain] = await joined.bridge.list_tools()
    assert (search.name, search.title, search.description) == ("search", "Search", "Find things")
    assert search.input_schema == QUERY
    assert search.visibility == ("app",)
    assert search.annotations is not None
    assert search.annotations.read_only_hint is True
    assert plain.input_schema == {"type": "object", "properties": {}}

    await joined.view.do("disable", name="search")
    await changes.get()
    assert names(await joined.bridge.list_tools()) == ["plain"]
    with pytest.raises(ProtocolError, match="Tool search is disabled") as refused:
        await joined.bridge.call_tool("search", {"text": "x"})
    assert refused.value.code == -32603

    await joined.view.do("enable", name="search")
    await joined.view.do("update", name="search", fields={"description": "Seek"})
    await changes.get()
    tools = {tool.name: tool for tool in await joined.bridge.list_tools()}
    assert tools["search"].description == "Seek"
    await joined.view.do("remove", name="plain")
    await joined.view.do("sendToolListChanged")
    while names(await joined.bridge.list_tools()) != ["search"]:
        await changes.get()
    assert joined.errors == []


async def test_lists_in_pages_are_read_to_the_end(joined: Joined):
    pages = [
        [{"name": f"t{page}{n}", "inputSchema": {"type": "object"}} for n in "ab"]
        for page in range(3)
    ]
    await joined.view.do("create", capabilities={"tools": {}})
    await joined.view.do("onlisttools", pages=pages)
    await joined.view.do("oncalltool", behaviour="echo")
    await joined.shake_hands()
    assert names(await joined.bridge.list_tools()) == ["t0a", "t0b", "t1a", "t1b", "t2a", "t2b"]
    assert (await joined.bridge.call_tool("anything", {"a": 1})).text == '{"a":1}'


async def test_calls_come_back_as_the_tool_behaves(joined: Joined):
    behaviours: dict[str, Any] = {
        "echo": None,
        "text": "hello",
        "isError": "no",
        "structured": {"n": 2},
        "result": {"content": [], "extra": 1, "_meta": {"k": 1}},
    }
    for name, value in behaviours.items():
        tool = {"name": name, "inputSchema": QUERY, "behaviour": name, "value": value}
        await joined.view.do("registerTool", **tool)
    await joined.shake_hands()
    results: dict[str, ToolResult] = {}
    for name in behaviours:
        results[name] = await joined.bridge.call_tool(name, {"text": "hi"})
        started = await joined.view.event("calltool", phase="start", name=name)
        assert started["arguments"] == {"text": "hi"}
    assert results["echo"].text == '{"text":"hi"}'
    assert results["text"].text == "hello"
    assert (results["isError"].text, results["isError"].is_error) == ("no", True)
    assert results["structured"].structured_content == {"n": 2}
    assert (results["result"].extra, results["result"].meta) == ({"extra": 1}, {"k": 1})


async def test_calls_that_fail_carry_the_code_of_the_sdk(joined: Joined):
    refusal = {"code": -32050, "message": "not now", "data": {"why": "busy"}}
    await joined.view.do("registerTool", name="throws", behaviour="throw", value="boom")
    await joined.view.do("registerTool", name="refuses", behaviour="throwCode", value=refusal)
    await joined.view.do("registerTool", name="strict", inputSchema=QUERY)
    await joined.view.do("registerTool", name="silent", behaviour="undefined")
    await joined.shake_hands()

    async def failure(name: str) -> ProtocolError:
        with pytest.raises(ProtocolError) as caught:
            await joined.bridge.call_tool(name, {})
        return caught.value

    assert "boom" in (await failure("throws")).message
    refused = await failure("refuses")
    assert (refused.code, refused.data) == (-32050, {"why": "busy"})
    assert "Invalid input for tool strict" in (await failure("strict")).message
    assert "not found" in (await failure("nobody")).message
    # What a tool that returns nothing answers differs: no result at all, which is no message.
    with pytest.raises((RequestTimeout, ProtocolError, InvalidResult)):
        await joined.bridge.call_tool("silent", timeout=0.2)


async def test_progress_reaches_the_caller(joined: Joined):
    steps = [{"progress": 1, "total": 2}, {"progress": 2, "total": 2, "message": "done"}]
    await joined.view.do("registerTool", name="steps", behaviour="progress", value=steps)
    await joined.shake_hands()
    heard: list[Any] = []
    result = await joined.bridge.call_tool(
        "steps", on_progress=lambda p: heard.append((p.progress, p.total, p.message))
    )
    assert result.text == "{}"
    assert heard == [(1, 2, None), (2, 2, "done")]


async def test_a_cancelled_call_stops_in_the_view_even_when_it_is_the_first(joined: Joined):
    await joined.view.do("registerTool", name="slow", behaviour="slow")
    await joined.shake_hands()
    call = asyncio.create_task(joined.bridge.call_tool("slow"))
    await joined.view.event("calltool", phase="start", name="slow")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    stopped = await joined.view.event("calltool", phase="cancelled")
    assert stopped["reason"] == "The caller cancelled the request"


async def test_a_call_that_takes_too_long_stops_in_the_view(joined: Joined):
    await joined.view.do("registerTool", name="slow", behaviour="slow")
    await joined.shake_hands()
    with pytest.raises(RequestTimeout):
        await joined.bridge.call_tool("slow", timeout=0.05)
    await joined.view.event("calltool", phase="cancelled")
    await joined.bridge.ping()


async def test_calls_run_side_by_side(joined: Joined):
    await joined.view.do("registerTool", name="slow", behaviour="slow")
    await joined.view.do("registerTool", name="echo", inputSchema=QUERY)
    await joined.shake_hands()
    slow = asyncio.create_task(joined.bridge.call_tool("slow"))
    await joined.view.event("calltool", phase="start", name="slow")
    texts = [f"n{n}" for n in range(50)]
    calls = [joined.bridge.call_tool("echo", {"text": each}) for each in texts]
    assert [r.text for r in await asyncio.gather(*calls)] == [f'{{"text":"{t}"}}' for t in texts]
    await joined.view.do("release", key="slow")
    assert (await slow).text == "{}"


async def test_a_view_that_knows_no_tasks_answers_with_the_result_or_refuses(joined: Joined):
    await joined.view.do("registerTool", name="echo")
    await joined.shake_hands()
    try:
        result = await joined.bridge.start_task("echo", ttl=1000)
    except ProtocolError as refusal:  # what 1.x does
        assert refusal.message == "Task handlers are not supported in MCP Apps"
    else:
        assert isinstance(result, ToolResult)
    with pytest.raises(ProtocolError, match="Method not found"):
        await joined.bridge.get_task("x")


# --- what the host tells ---------------------------------------------------------------------


async def test_tool_data_arrives_in_order(joined: Joined):
    await joined.shake_hands()
    await joined.bridge.send_tool_input_partial({"a": 1})
    await joined.bridge.send_tool_input({"a": 12})
    await joined.bridge.send_tool_result("done")
    assert (await joined.view.event("toolinputpartial"))["params"] == {"arguments": {"a": 1}}
    assert (await joined.view.event("toolinput"))["params"] == {"arguments": {"a": 12}}
    done = {"content": [{"type": "text", "text": "done"}]}
    assert (await joined.view.event("toolresult"))["params"] == done


async def test_a_cancelled_tool_is_told(joined: Joined):
    await joined.shake_hands()
    await joined.bridge.send_tool_input({})
    await joined.bridge.send_tool_cancelled("user")
    assert (await joined.view.event("toolcancelled"))["params"] == {"reason": "user"}


async def test_the_context_follows_changes_and_a_key_taken_away_harms_nothing(joined: Joined):
    await joined.shake_hands()
    await joined.bridge.set_context(theme="light", locale="de")
    changed = await joined.view.event("hostcontextchanged")
    assert changed["params"] == {"theme": "light", "locale": "de"}
    await joined.bridge.set_context(theme=None, time_zone="UTC")
    changed = await joined.view.event("hostcontextchanged")
    assert changed["params"] == {"timeZone": "UTC"}
    await joined.bridge.set_context(theme="dark")
    changed = await joined.view.event("hostcontextchanged")
    assert changed["params"] == {"theme": "dark"}
    assert await joined.view.do("hostContext") == {**CONTEXT, "locale": "de", "timeZone": "UTC"}


# --- what the View asks ----------------------------------------------------------------------


async def test_requests_of_the_view_are_answered(joined: Joined):
    bridge, do = joined.bridge, joined.view.do
    heard: dict[str, Any] = {}
    bridge.on_open_link = lambda url: heard.update(link=url)
    bridge.on_message = lambda blocks: heard.update(message=blocks[0].text)
    bridge.on_update_model_context = lambda update: heard.update(context=update.structured_content)
    bridge.on_download_file = lambda files: heard.update(files=[file.name for file in files])
    bridge.on_request_display_mode = lambda mode: None
    bridge.on_create_message = lambda params: {
        "role": "assistant",
        "content": {"type": "text", "text": "sampled"},
        "model": "m",
    }
    await joined.shake_hands()

    assert await do("openLink", params={"url": "https://example.com"}) == {}
    message = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert await do("sendMessage", params=message) == {}
    assert await do("updateModelContext", params={"structuredContent": {"n": 1}}) == {}
    file = {"type": "resource", "resource": {"uri": "file:///../a/b%2Fc.txt", "text": "x"}}
    assert await do("downloadFile", params={"contents": [file]}) == {}
    assert await do("requestDisplayMode", params={"mode": "pip"}) == {"mode": "pip"}
    assert await do("requestDisplayMode", params={"mode": "fullscreen"}) == {"mode": "pip"}
    assert (await joined.view.event("hostcontextchanged"))["params"] == {"displayMode": "pip"}
    asked = {"messages": [], "maxTokens": 5}
    assert (await do("createSamplingMessage", params=asked))["model"] == "m"
    assert heard == {
        "link": "https://example.com",
        "message": "hi",
        "context": {"n": 1},
        "files": ["b_c.txt"],
    }


async def test_refusals_are_results_and_errors_are_errors(joined: Joined):
    def refuse(_: Any) -> None:
        raise Refused("no")

    def fail(_: Any) -> None:
        raise ProtocolError(-32000, "Link opening denied by user")

    joined.bridge.on_message = refuse
    joined.bridge.on_open_link = fail
    await joined.shake_hands()
    message = {"role": "user", "content": []}
    assert await joined.view.do("sendMessage", params=message) == {"isError": True}
    with pytest.raises(NodeError, match="denied by user") as refused:
        await joined.view.do("openLink", params={"url": "https://example.com"})
    assert refused.value.code == -32000
    with pytest.raises(NodeError, match="Method not found"):
        await joined.view.do("downloadFile", params={"contents": []})
    bad = {"method": "ui/open-link", "params": {"url": 5}}
    with pytest.raises(NodeError, match="Invalid params for ui/open-link: url") as invalid:
        await joined.view.do("rawRequest", **bad)
    assert invalid.value.code == -32602


async def test_a_dangerous_link_is_refused_without_asking(joined: Joined):
    opened: list[str] = []
    joined.bridge.on_open_link = opened.append
    await joined.shake_hands()
    refused = await joined.view.do("openLink", params={"url": "javascript:alert(1)"})
    assert refused == {"isError": True}
    assert opened == []


async def test_events_of_the_view_arrive(joined: Joined):
    heard: list[Any] = []
    wish = asyncio.Event()
    joined.bridge.on_size_changed = lambda width, height: heard.append((width, height))
    joined.bridge.on_log = lambda entry: heard.append((entry.level, entry.data))
    joined.bridge.on_request_teardown = wish.set
    await joined.shake_hands()
    await joined.view.do("sendSizeChanged", params={"width": 3, "height": 4})
    await joined.view.do("sendLog", params={"level": "info", "data": "hello"})
    await joined.view.do("requestTeardown")
    await wish.wait()
    assert heard == [(3, 4), ("info", "hello")]


# --- the server behind -----------------------------------------------------------------------


def shop() -> MCPServer:
    server = MCPServer("shop")

    @server.tool()
    async def order(item: str, ctx: Context) -> str:
        await ctx.report_progress(1, 2, "packing")
        return f"ordered {item}"

    @server.tool()
    async def wait(ctx: Context) -> str:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    @server.tool(meta={"ui": {"visibility": ["model"]}})
    def refund() -> str:
        return "refunded"

    @server.tool()
    async def change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        return "changed"

    @server.resource("data://stock")
    def stock() -> str:
        return "plenty"

    waiting, stopped = asyncio.Event(), asyncio.Event()
    server.waiting, server.stopped = waiting, stopped  # type: ignore[attr-defined]
    return server


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_view_reaches_its_server_through_the_bridge(view: NodePeer, mode: str):
    server: Any = shop()
    async with Client(server, mode=mode) as client:
        bridge, errors = bridge_to(view, upstream=client)
        async with bridge:
            await view.do("connect")
            await bridge.initialized()
            number, ordered = view.order(
                "callServerTool",
                params={"name": "order", "arguments": {"item": "tea"}},
                progress=True,
            )
            result = await ordered
            assert result["structuredContent"] == {"result": "ordered tea"}
            step = await view.event("progress", call=number)
            assert (step["progress"], step["total"], step["message"]) == (1, 2, "packing")
            read = await view.do("readServerResource", params={"uri": "data://stock"})
            assert read["contents"][0]["text"] == "plenty"
            with pytest.raises(NodeError, match="refund may not be called by a View"):
                await view.do("callServerTool", params={"name": "refund"})
            with pytest.raises(NodeError, match="Tool nothing not found"):
                await view.do("callServerTool", params={"name": "nothing"})

            number, waiting = view.order("callServerTool", params={"name": "wait"})
            await server.waiting.wait()
            await view.do("cancel", call=number)
            await server.stopped.wait()
            with pytest.raises(NodeError, match="cancelled by the test"):
                await waiting
        assert errors == []


async def test_a_tool_of_the_view_may_call_the_server_while_it_runs(view: NodePeer):
    async with Client(shop()) as client:
        bridge, _ = bridge_to(view, upstream=client)
        async with bridge:
            deep = {"name": "order", "arguments": {"item": "tea"}}
            await view.do("registerTool", name="relay", behaviour="callback", value=deep)
            await view.do("connect")
            assert (await bridge.call_tool("relay")).structured_content == {"result": "ordered tea"}


# --- the end ---------------------------------------------------------------------------------


async def test_teardown_waits_for_the_views_handler(joined: Joined):
    await joined.view.do("onteardown", result={"saved": True})
    await joined.shake_hands()
    assert await joined.bridge.teardown("closing time") is True
    await joined.view.event("teardown")
    assert joined.bridge.state is LifecycleState.CLOSED


async def test_teardown_completes_when_the_view_has_no_handler_or_a_bad_one(joined: Joined):
    await joined.view.do("onteardown", error={"code": -32603, "message": "no"})
    await joined.shake_hands()
    assert await joined.bridge.teardown() is False
    assert joined.bridge.state is LifecycleState.CLOSED


async def test_teardown_completes_when_the_view_is_silent(view: NodePeer):
    bridge, _ = bridge_to(view, limits=Limits(teardown_timeout=0.05))
    async with bridge:
        await view.do("onteardown", hold=True)
        await view.do("connect")
        await bridge.initialized()
        assert await bridge.teardown() is False


async def test_a_view_that_is_gone_ends_its_calls(joined: Joined):
    await joined.view.do("registerTool", name="slow", behaviour="slow")
    await joined.shake_hands()
    call = asyncio.create_task(joined.bridge.call_tool("slow"))
    await joined.view.event("calltool", phase="start", name="slow")
    await joined.view.do("hangUp")
    with pytest.raises(ConnectionClosed):
        await call
    with pytest.raises(NotConnected):
        await joined.bridge.call_tool("slow")


# --- Views that misbehave --------------------------------------------------------------------


async def test_doubled_and_strange_answers_are_reported_and_ignored(joined: Joined):
    await joined.view.do("create", capabilities={"tools": {}})
    await joined.view.do("intercept", methods=["tools/call"])
    await joined.shake_hands()
    call = asyncio.create_task(joined.bridge.call_tool("x"))
    asked = (await joined.view.event("intercepted"))["message"]
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"content": []}}
    await joined.view.do("rawSend", message={**answer, "id": 999})
    await joined.view.do("rawSend", text="this is not JSON")
    await joined.view.do("rawSend", message=answer, times=2)
    assert (await call).content == []
    await joined.bridge.ping()
    assert len(joined.errors) == 3


async def test_a_flood_of_list_changed_is_few_calls(joined: Joined):
    calls: list[None] = []
    joined.bridge.on_tools_changed = lambda: calls.append(None)
    await joined.view.do("create", capabilities={"tools": {"listChanged": True}})
    await joined.shake_hands()
    flood = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    await joined.view.do("rawSend", message=flood, times=2000)
    await joined.bridge.ping()
    assert 1 <= len(calls) < 2000
    assert joined.errors == []
