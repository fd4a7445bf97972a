"""Official Views and hosts against each other, so that a failure elsewhere is ours to explain."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.interop.node_peer import NodeError, NodePeer, StartNode

pytestmark = pytest.mark.processes

QUERY = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["text"],
}
CONTEXT = {"theme": "dark", "displayMode": "inline", "availableDisplayModes": ["inline"]}


@dataclass
class Pair:
    view: NodePeer
    bridge: NodePeer

    async def shake_hands(self) -> None:
        await self.view.do("connect")
        await self.bridge.event("initialized")

    async def call(self, name: str, **arguments: Any) -> Any:
        return await self.bridge.do("callTool", params={"name": name, "arguments": arguments})


# The 1.x View gets the same orders from test_official_view.py, so a few tests are enough here.
both_versions = pytest.mark.parametrize("pair", ["2", "1"], indirect=True)


@pytest.fixture
async def pair(request: pytest.FixtureRequest, start_node: StartNode) -> Pair:
    """An official View (2.x unless the test says 1.x), wired to an official bridge, started."""
    version = getattr(request, "param", "2")
    view = await start_node("view", sdk=version, wired=False)
    bridge = await start_node("bridge", wired=False)
    await view.do("wireTo", peer=bridge.number)
    await bridge.event("wired")
    await bridge.do(
        "start",
        hostInfo={"name": "host", "version": "9"},
        hostCapabilities={"openLinks": {}, "serverTools": {}},
        hostContext=CONTEXT,
    )
    return Pair(view, bridge)


@both_versions
async def test_handshake_tells_each_side_about_the_other(pair: Pair) -> None:
    await pair.view.do("registerTool", name="echo")
    assert await pair.bridge.do("appInfo") == {"info": None, "capabilities": None}
    assert await pair.view.do("hostContext") is None

    await pair.shake_hands()

    assert await pair.bridge.do("appInfo") == {
        "info": {"name": "official-view", "version": "1.0.0"},
        "capabilities": {"tools": {"listChanged": True}},
    }
    assert await pair.view.do("hostInfo") == {"name": "host", "version": "9"}
    assert await pair.view.do("hostCapabilities") == {"openLinks": {}, "serverTools": {}}
    assert await pair.view.do("hostContext") == CONTEXT
    assert await pair.bridge.do("ping") == {}


@both_versions
async def test_listing_shows_what_was_registered_and_follows_changes(pair: Pair) -> None:
    await pair.view.do(
        "registerTool",
        name="search",
        title="Search",
        description="Find things",
        inputSchema=QUERY,
        annotations={"readOnlyHint": True},
        _meta={"ui": {"visibility": ["app"]}},
    )
    await pair.view.do("registerTool", name="plain")
    await pair.shake_hands()

    assert (await pair.bridge.do("listTools"))["tools"] == [
        {
            "name": "search",
            "title": "Search",
            "description": "Find things",
            "inputSchema": QUERY,
            "annotations": {"readOnlyHint": True},
            "_meta": {"ui": {"visibility": ["app"]}},
        },
        {"name": "plain", "inputSchema": {"type": "object", "properties": {}}},
    ]

    await pair.view.do("disable", name="search")
    await pair.bridge.event("toolListChanged")
    assert [tool["name"] for tool in await pair.bridge.do("listAllTools")] == ["plain"]
    with pytest.raises(NodeError, match="Tool search is disabled") as refused:
        await pair.call("search", text="x")
    assert refused.value.code == -32603

    await pair.view.do("enable", name="search")
    await pair.bridge.event("toolListChanged")
    await pair.view.do("update", name="search", fields={"description": "Seek", "title": None})
    await pair.bridge.event("toolListChanged")
    [search, _] = await pair.bridge.do("listAllTools")
    assert search["description"] == "Seek"
    assert "title" not in search

    await pair.view.do("remove", name="plain")
    await pair.bridge.event("toolListChanged")
    assert len(await pair.bridge.do("listAllTools")) == 1


async def test_static_lists_are_paged(pair: Pair) -> None:
    schema = {"type": "object"}
    pages = [[{"name": f"t{page}{n}", "inputSchema": schema} for n in "ab"] for page in range(3)]
    await pair.view.do("create", capabilities={"tools": {}})
    await pair.view.do("onlisttools", pages=pages)
    await pair.view.do("oncalltool", behaviour="echo")
    await pair.shake_hands()

    first = await pair.bridge.do("listTools")
    assert (len(first["tools"]), first["nextCursor"]) == (2, "1")
    last = await pair.bridge.do("listTools", params={"cursor": "2"})
    assert [tool["name"] for tool in last["tools"]] == ["t2a", "t2b"]
    assert "nextCursor" not in last
    assert len(await pair.bridge.do("listAllTools")) == 6
    assert (await pair.call("anything", a=1))["content"][0]["text"] == '{"a":1}'


BEHAVIOURS: dict[str, tuple[Any, dict[str, Any]]] = {
    "echo": (None, {"content": [{"type": "text", "text": '{"text":"hi"}'}]}),
    "text": ("hello", {"content": [{"type": "text", "text": "hello"}]}),
    "isError": ("no", {"content": [{"type": "text", "text": "no"}], "isError": True}),
    "result": ({"content": [], "extra": 1}, {"content": [], "extra": 1}),
    "structured": (
        {"n": 2},
        {"content": [{"type": "text", "text": '{"n":2}'}], "structuredContent": {"n": 2}},
    ),
}


async def test_call_comes_back_as_the_tool_behaves(pair: Pair) -> None:
    for name, (value, _) in BEHAVIOURS.items():
        tool = {"name": name, "inputSchema": QUERY, "behaviour": name, "value": value}
        await pair.view.do("registerTool", **tool)
    await pair.shake_hands()
    for name, (_, result) in BEHAVIOURS.items():
        assert await pair.call(name, text="hi") == result
        started = await pair.view.event("calltool", phase="start", name=name)
        assert started["arguments"] == {"text": "hi"}


@both_versions
async def test_calls_that_fail_carry_the_code_of_the_sdk(pair: Pair) -> None:
    refusal = {"code": -32050, "message": "not now", "data": {"why": "busy"}}
    output = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    await pair.view.do("registerTool", name="throws", behaviour="throw", value="boom")
    await pair.view.do("registerTool", name="refuses", behaviour="throwCode", value=refusal)
    await pair.view.do("registerTool", name="strict", inputSchema=QUERY)
    await pair.view.do(
        "registerTool", name="liar", behaviour="structured", value={"n": "x"}, outputSchema=output
    )
    await pair.view.do("registerTool", name="silent", behaviour="undefined")
    await pair.shake_hands()

    async def failure(name: str, **more: Any) -> Any:
        with pytest.raises(NodeError) as caught:
            await pair.bridge.do("callTool", params={"name": name, "arguments": {}}, **more)
        return caught.value

    assert "boom" in (await failure("throws")).message
    refused = await failure("refuses")
    assert (refused.code, refused.data) == (-32050, {"why": "busy"})
    assert "Invalid input for tool strict" in (await failure("strict")).message
    assert "Invalid output for tool liar" in (await failure("liar")).message
    assert "not found" in (await failure("nobody")).message
    assert (await failure("silent", timeout=50)).code in {"REQUEST_TIMEOUT", "INVALID_RESULT"}


async def test_slow_call_reports_progress_and_ends_when_released(pair: Pair) -> None:
    steps = [{"progress": 1, "total": 2}, {"progress": 2, "total": 2, "message": "done"}]
    await pair.view.do("registerTool", name="steps", behaviour="progress", value=steps)
    await pair.view.do("registerTool", name="slow", behaviour="slow")
    await pair.shake_hands()

    number, result = pair.bridge.order("callTool", params={"name": "steps"}, progress=True)
    await result
    for step in steps:
        assert await pair.bridge.event("progress", call=number) == {
            "event": "progress",
            "call": number,
            **step,
        }

    _, result = pair.bridge.order("callTool", params={"name": "slow"})
    await pair.view.event("calltool", phase="start", name="slow")
    assert not result.done()
    await pair.view.do("release", key="slow")
    assert (await result)["content"][0]["text"] == "{}"


async def test_cancelled_call_stops_in_the_view(pair: Pair) -> None:
    await pair.view.do("registerTool", name="slow", behaviour="slow")
    await pair.shake_hands()
    await pair.bridge.do("ping")  # takes id 0, whose cancellation a 1.x peer ignores
    number, result = pair.bridge.order("callTool", params={"name": "slow"})
    await pair.view.event("calltool", phase="start", name="slow")

    await pair.bridge.do("cancel", call=number, reason="changed my mind")

    stopped = await pair.view.event("calltool", phase="cancelled")
    assert stopped["reason"] == "changed my mind"
    with pytest.raises(NodeError, match="changed my mind"):
        await result
    with pytest.raises(NodeError, match="nothing is held"):
        await pair.view.do("release", key="slow")


async def test_view_requests_are_answered_as_ordered(pair: Pair) -> None:
    served = {"content": [{"type": "text", "text": "from the server"}]}
    await pair.bridge.do("answer", method="ui/open-link", result={})
    await pair.bridge.do("answer", method="ui/message", error={"code": -32000, "message": "no"})
    await pair.bridge.do(
        "answer", method="tools/call", result=served, hold=True, progress=[{"progress": 1}]
    )
    await pair.shake_hands()

    assert await pair.view.do("openLink", params={"url": "https://example.com"}) == {}
    asked = await pair.bridge.event("openlink")
    assert asked["params"] == {"url": "https://example.com"}
    with pytest.raises(NodeError, match="no") as refused:
        await pair.view.do("sendMessage", params={"role": "user", "content": []})
    assert refused.value.code == -32000
    with pytest.raises(NodeError, match="Method not found"):
        await pair.view.do("downloadFile", params={"contents": []})

    number, result = pair.view.order("callServerTool", params={"name": "x"}, progress=True)
    await pair.bridge.event("calltool")
    assert (await pair.view.event("progress", call=number))["progress"] == 1
    assert not result.done()
    await pair.bridge.do("release", key="tools/call")
    assert await result == served

    number, result = pair.view.order("callServerTool", params={"name": "x"})
    await pair.bridge.event("calltool")
    await pair.view.do("cancel", call=number)
    await pair.bridge.event("cancelled", method="tools/call")
    with pytest.raises(NodeError, match="cancelled by the test"):
        await result


async def test_tool_may_call_the_host_while_it_runs(pair: Pair) -> None:
    served = {"content": [{"type": "text", "text": "from the server"}]}
    await pair.bridge.do("answer", method="tools/call", result=served)
    await pair.view.do("registerTool", name="relay", behaviour="callback", value={"name": "deep"})
    await pair.shake_hands()
    assert await pair.call("relay") == served
    assert (await pair.bridge.event("calltool"))["params"]["name"] == "deep"


async def test_notifications_arrive_as_events_in_both_directions(pair: Pair) -> None:
    await pair.shake_hands()
    await pair.bridge.do("sendToolInputPartial", params={"arguments": {"a": 1}})
    await pair.bridge.do("sendToolInput", params={"arguments": {"a": 12}})
    await pair.bridge.do("sendToolResult", params={"content": []})
    await pair.bridge.do("sendToolCancelled", params={"reason": "user"})
    await pair.bridge.do("setHostContext", context=CONTEXT | {"theme": "light"})
    assert (await pair.view.event("hostcontextchanged"))["params"] == {"theme": "light"}
    assert (await pair.view.do("hostContext"))["theme"] == "light"
    assert (await pair.view.event("toolinputpartial"))["params"] == {"arguments": {"a": 1}}
    assert (await pair.view.event("toolinput"))["params"] == {"arguments": {"a": 12}}
    assert (await pair.view.event("toolresult"))["params"] == {"content": []}
    assert (await pair.view.event("toolcancelled"))["params"] == {"reason": "user"}

    await pair.view.do("sendSizeChanged", params={"width": 3, "height": 4})
    await pair.view.do("sendLog", params={"level": "info", "data": "hello"})
    await pair.view.do("requestTeardown")
    assert (await pair.bridge.event("sizechange"))["params"] == {"width": 3, "height": 4}
    assert (await pair.bridge.event("loggingmessage"))["params"]["data"] == "hello"
    await pair.bridge.event("requestteardown")


async def test_teardown_is_answered_by_the_handler_or_refused_without_one(pair: Pair) -> None:
    await pair.shake_hands()
    with pytest.raises(NodeError, match="Method not found") as refused:
        await pair.bridge.do("teardownResource")
    assert refused.value.code == -32601
    await pair.view.do("onteardown", result={"saved": True})
    assert await pair.bridge.do("teardownResource") == {"saved": True}
    await pair.view.event("teardown")


@pytest.mark.parametrize("same", [True, False])
async def test_view_reconnects_to_the_same_or_a_new_bridge(pair: Pair, same: bool) -> None:
    await pair.view.do("registerTool", name="echo")
    await pair.shake_hands()
    await pair.view.do("close")
    await pair.view.event("closed")
    await pair.bridge.do("reconnect", same=same)
    await pair.shake_hands()
    assert [tool["name"] for tool in await pair.bridge.do("listAllTools")] == ["echo"]
    assert bool(pair.bridge.untaken("warning")) is same


async def test_bridge_with_a_server_behind_it_forwards(pair: Pair) -> None:
    server = {
        "capabilities": {"tools": {"listChanged": True}, "resources": {}},
        "results": {
            "tools/call": {"content": [{"type": "text", "text": "deep"}]},
            "resources/read": {"contents": [{"uri": "ui://a", "text": "x"}]},
        },
    }
    await pair.bridge.do("reconnect", server=server)
    await pair.shake_hands()
    called = await pair.view.do("callServerTool", params={"name": "deep", "arguments": {"a": 1}})
    assert called["content"] == [{"type": "text", "text": "deep"}]
    assert (await pair.bridge.event("server", method="tools/call"))["params"]["name"] == "deep"
    read = await pair.view.do("readServerResource", params={"uri": "ui://a"})
    assert read["contents"] == [{"uri": "ui://a", "text": "x"}]
    await pair.view.do("trace", on=True)
    await pair.bridge.do("serverNotify", method="notifications/tools/list_changed")
    arrived = await pair.view.event("received")
    assert arrived["message"]["method"] == "notifications/tools/list_changed"


async def test_raw_messages_and_intercepted_requests_bypass_the_sdk(pair: Pair) -> None:
    await pair.shake_hands()
    await pair.view.do("intercept", methods=["tools/list"])
    _, result = pair.bridge.order("listTools")
    request = (await pair.view.event("intercepted"))["message"]
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"tools": []}}
    await pair.view.do("rawSend", message=answer, times=2)
    assert await result == {"tools": []}
    twice = await pair.bridge.event("error")
    assert "unknown message ID" in twice["message"]

    await pair.view.do("rawSend", text="not json")
    assert (await pair.bridge.event("garbage"))["line"] == "not json"
    await pair.view.do("rawSend", message={"jsonrpc": "2.0", "id": None, "method": "ping"})
    assert "Invalid JSON-RPC" in (await pair.bridge.event("error"))["message"]
    with pytest.raises(NodeError, match="Method not found"):
        await pair.bridge.do("rawRequest", method="tasks/get", params={"taskId": "1"})


async def test_hanging_up_fails_what_was_under_way(pair: Pair) -> None:
    await pair.view.do("registerTool", name="slow", behaviour="slow")
    await pair.shake_hands()
    _, result = pair.bridge.order("callTool", params={"name": "slow"})
    await pair.view.event("calltool", phase="start")
    await pair.view.do("hangUp")
    with pytest.raises(NodeError, match="Connection closed"):
        await result
    await pair.bridge.event("closed")


async def test_one_wire_takes_over_from_another(start_node: StartNode) -> None:
    bridge = await start_node("bridge")
    for attempt in range(2):
        await bridge.do("start" if attempt == 0 else "reconnect")
        reader, writer = await bridge.connect()
        writer.write(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n')
        assert json.loads(await reader.readline()) == {"jsonrpc": "2.0", "id": 7, "result": {}}
        writer.close()
        await writer.wait_closed()
        await bridge.event("hungUp")
        await bridge.event("closed")


async def test_a_peer_that_dies_ends_both_its_streams(start_node: StartNode) -> None:
    view, other = await start_node("view"), await start_node("view")
    view.order("die")
    assert await view.wire[0].read() == b""
    with pytest.raises(EOFError):
        await view.event("closed")
    assert await other.do("hostInfo") is None


async def test_unknown_orders_are_refused_by_name(start_node: StartNode) -> None:
    bridge = await start_node("bridge")
    with pytest.raises(NodeError, match="unknown order fly"):
        await bridge.do("fly")
    with pytest.raises(NodeError, match="start the bridge first"):
        await bridge.do("listTools")
    with pytest.raises(NodeError, match="cannot serve ui/fly"):
        await bridge.do("answer", method="ui/fly", result={})
