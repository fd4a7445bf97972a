"""A Python App driven by the official `AppBridge`, which runs in Node."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.interop.node_peer import NodeError, NodePeer, StartNode
from transom.channel import lines
from transom.errors import (
    CapabilityMissing,
    ConnectionClosed,
    ProtocolError,
    RequestTimeout,
    ToolError,
)
from transom.types import EmbeddedResource, ResourceContents, ToolResult
from transom.view.app import App, CallContext

pytestmark = pytest.mark.processes

CONTEXT = {
    "theme": "dark",
    "displayMode": "inline",
    "availableDisplayModes": ["inline", "fullscreen"],
    "locale": "nl-NL",
}


class Table:
    """A Python App and an official bridge at one table."""

    def __init__(self, bridge: NodePeer, app: App) -> None:
        self.bridge = bridge
        self.app = app

    async def sit_down(self, **start: Any) -> None:
        """Start the bridge, shake hands."""
        await self.bridge.do("start", **start)
        await self.app.connect(lines(*self.bridge.wire))
        await self.bridge.event("initialized")

    async def call(self, name: str, arguments: Any = None, **options: Any) -> Any:
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return await self.bridge.do("callTool", params=params, **options)

    async def refusal(self, name: str, arguments: Any = None, **options: Any) -> NodeError:
        with pytest.raises(NodeError) as caught:
            await self.call(name, arguments, **options)
        return caught.value

    async def names(self) -> list[str]:
        return [tool["name"] for tool in await self.bridge.do("listAllTools")]

    async def changed(self) -> None:
        """Wait for one `list_changed`, and see that there was only one."""
        await self.bridge.event("toolListChanged")
        await self.bridge.do("ping")
        assert self.bridge.untaken("toolListChanged") == []


Lay = Callable[..., Awaitable[Table]]


@pytest.fixture
async def lay(start_node: StartNode) -> AsyncIterator[Lay]:
    """`table = await lay(app)`: a bridge that is not started yet, and the App."""
    apps: list[App] = []

    async def lay(app: App) -> Table:
        apps.append(app)
        return Table(await start_node("bridge"), app)

    yield lay
    for app in apps:
        await app.close()


def text(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


# --- handshake, context, teardown ------------------------------------------------------------


async def test_the_handshake_tells_each_side_about_the_other(lay: Lay) -> None:
    app = App("notes", "2.1", title="Notes", capabilities={"availableDisplayModes": ["inline"]})
    app.register_tool("save", lambda: "saved")
    table = await lay(app)
    assert app.host_info is None

    await table.sit_down(
        hostInfo={"name": "host", "version": "9"},
        hostCapabilities={"openLinks": {}, "serverTools": {"listChanged": True}, "logging": {}},
        hostContext=CONTEXT,
    )

    assert await table.bridge.do("appInfo") == {
        "info": {"name": "notes", "version": "2.1", "title": "Notes"},
        "capabilities": {"availableDisplayModes": ["inline"], "tools": {"listChanged": True}},
    }
    assert app.host_info is not None
    assert (app.host_info.name, app.host_info.version) == ("host", "9")
    assert app.host_capabilities is not None
    assert app.host_capabilities.open_links == {}
    assert app.host_capabilities.server_tools is not None
    assert app.host_capabilities.server_tools.list_changed is True
    assert app.host_capabilities.sampling is None
    assert app.protocol_version == "2026-01-26"
    assert await table.bridge.do("ping") == {}
    await app.ping()
    await table.bridge.event("ping")


async def test_the_context_is_there_from_the_start_and_follows_changes(lay: Lay) -> None:
    app = App("a", "1")
    changes: asyncio.Queue[Any] = asyncio.Queue()
    app.on_host_context_changed = changes.put_nowait
    table = await lay(app)
    await table.sit_down(hostContext={**CONTEXT, "brandNew": {"x": 1}})
    assert app.host_context is not None
    assert (app.host_context.theme, app.host_context.locale) == ("dark", "nl-NL")
    assert app.host_context.available_display_modes == ["inline", "fullscreen"]
    assert app.host_context.extra == {"brandNew": {"x": 1}}

    await table.bridge.do("setHostContext", context={**CONTEXT, "theme": "light"})
    change = await changes.get()
    assert (change.theme, change.locale) == ("light", None)
    assert app.host_context.theme == "light"
    assert app.host_context.locale == "nl-NL"

    await table.bridge.do("sendHostContextChange", params={"locale": None, "timeZone": "UTC"})
    assert (await changes.get()).time_zone == "UTC"
    assert (app.host_context.locale, app.host_context.time_zone) == (None, "UTC")
    assert app.host_context.theme == "light"


async def test_the_tools_data_arrives_in_order(lay: Lay) -> None:
    app = App("a", "1")
    seen: asyncio.Queue[Any] = asyncio.Queue()
    app.on_tool_input_partial = lambda arguments: seen.put_nowait(("partial", arguments))
    app.on_tool_input = lambda arguments: seen.put_nowait(("input", arguments))
    app.on_tool_result = lambda result: seen.put_nowait(("result", result))
    app.on_tool_cancelled = lambda reason: seen.put_nowait(("cancelled", reason))
    table = await lay(app)
    await table.sit_down()
    half = "cut \ud83d"  # JavaScript cuts texts between the two halves of an emoji
    await table.bridge.do("sendToolInputPartial", params={"arguments": {"a": half}})
    await table.bridge.do("sendToolInput", params={"arguments": {"a": "whole \U0001f600"}})
    result = {"content": [{"type": "text", "text": "t"}], "structuredContent": {"n": 1}}
    await table.bridge.do("sendToolResult", params=result)
    await table.bridge.do("sendToolCancelled", params={"reason": "the user"})
    assert await seen.get() == ("partial", {"a": "cut \ufffd"})
    assert await seen.get() == ("input", {"a": "whole \U0001f600"})
    assert await seen.get() == ("result", ToolResult.from_wire(result))
    assert await seen.get() == ("cancelled", "the user")


async def test_teardown_is_answered_without_a_handler_and_with_what_one_returns(lay: Lay) -> None:
    app = App("a", "1")
    table = await lay(app)
    await table.sit_down()
    assert await table.bridge.do("teardownResource") == {}

    reasons: list[str | None] = []

    @app.on_teardown
    async def _(reason: str | None) -> dict[str, bool]:
        await asyncio.sleep(0)
        reasons.append(reason)
        return {"saved": True}

    torn = await table.bridge.do("teardownResource", params={"reason": "the user closed it"})
    assert torn == {"saved": True}
    assert reasons == ["the user closed it"]
    assert app.connected


async def test_a_failing_teardown_handler_does_not_fail_the_teardown(lay: Lay) -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append
    app.on_teardown = lambda: 1 / 0
    table = await lay(app)
    await table.sit_down()
    assert await table.bridge.do("teardownResource") == {}
    assert isinstance(errors[0], ZeroDivisionError)


@pytest.mark.parametrize("same", [True, False])
async def test_an_app_closes_and_connects_again(lay: Lay, same: bool) -> None:
    app = App("a", "1")
    calls: list[int] = []
    app.register_tool("count", lambda: calls.append(1) or len(calls))
    app.on_tool_input = lambda arguments: inputs.put_nowait(arguments)
    inputs: asyncio.Queue[Any] = asyncio.Queue()
    table = await lay(app)
    await table.bridge.do("start", hostContext={"theme": "dark"})
    for attempt in range(1, 4):
        await app.connect(lines(*await table.bridge.connect()))
        await table.bridge.event("initialized")
        assert await table.names() == ["count"]
        assert (await table.call("count"))["structuredContent"] == {"result": attempt}
        await table.bridge.do("sendToolInput", params={"arguments": {"attempt": attempt}})
        assert await inputs.get() == {"attempt": attempt}
        assert app.host_context is not None
        assert app.host_context.theme == "dark"

        await app.close()

        assert not app.connected
        assert app.host_context is None
        await table.bridge.event("hungUp")
        await table.bridge.event("closed")
        await table.bridge.do("reconnect", same=same)


async def test_the_end_of_the_host_ends_the_connection_and_the_calls_that_run(lay: Lay) -> None:
    app = App("a", "1")
    started, stopped = asyncio.Event(), asyncio.Event()

    @app.tool
    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    table = await lay(app)
    await table.sit_down()
    _, call = table.bridge.order("callTool", params={"name": "endless"})
    await started.wait()
    await table.bridge.do("intercept", methods=["ui/open-link"])
    asking = asyncio.ensure_future(app.open_link("https://example.com"))
    await table.bridge.event("intercepted")
    await table.bridge.do("hangUp")
    await stopped.wait()
    with pytest.raises(ConnectionClosed):
        await asking
    assert "closed" in await app.wait_closed()
    call.cancel()


# --- tools -----------------------------------------------------------------------------------


async def test_tools_are_listed_whole(lay: Lay) -> None:
    app = App("a", "1")

    @app.tool(
        title="Find",
        annotations={"readOnlyHint": True, "openWorldHint": False},
        visibility=("app",),
        meta={"vendor": {"x": 1}},
        task="optional",
    )
    def find(words: list[str], limit: int = 10) -> dict[str, int]:
        """Find things."""
        return dict.fromkeys(words, limit)

    table = await lay(app)
    await table.sit_down()
    (tool,) = (await table.bridge.do("listTools"))["tools"]
    assert (tool["name"], tool["title"], tool["description"]) == ("find", "Find", "Find things.")
    assert tool["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
    assert tool["_meta"] == {
        "vendor": {"x": 1},
        "ui": {"visibility": ["app"]},
        "transom/registration": 1,
    }
    assert tool["execution"] == {"taskSupport": "optional"}
    schema = tool["inputSchema"]
    assert (schema["type"], schema["required"]) == ("object", ["words"])
    assert schema["properties"]["words"] == {"type": "array", "items": {"type": "string"}}
    assert schema["properties"]["limit"]["default"] == 10
    assert tool["outputSchema"]["type"] == "object"


async def test_a_long_list_is_paged(lay: Lay) -> None:
    app = App("a", "1", page_size=3)
    for n in range(8):
        app.register_tool(f"t{n}", lambda: "x")
    table = await lay(app)
    await table.sit_down()
    first = await table.bridge.do("listTools")
    assert [tool["name"] for tool in first["tools"]] == ["t0", "t1", "t2"]
    second = await table.bridge.do("listTools", params={"cursor": first["nextCursor"]})
    assert [tool["name"] for tool in second["tools"]] == ["t3", "t4", "t5"]
    last = await table.bridge.do("listTools", params={"cursor": second["nextCursor"]})
    assert [tool["name"] for tool in last["tools"]] == ["t6", "t7"]
    assert "nextCursor" not in last
    assert await table.names() == [f"t{n}" for n in range(8)]
    with pytest.raises(NodeError, match="Invalid cursor") as refused:
        await table.bridge.do("listTools", params={"cursor": "7"})
    assert refused.value.code == -32602


async def test_a_view_with_tools_declared_and_none_there_lists_none(lay: Lay) -> None:
    table = await lay(App("a", "1", capabilities={"tools": {}}))
    await table.sit_down()
    assert await table.bridge.do("listTools") == {"tools": []}
    assert (await table.refusal("x")).code == -32602


async def test_a_view_without_tools_knows_no_tools(lay: Lay) -> None:
    table = await lay(App("a", "1"))
    await table.sit_down()
    with pytest.raises(NodeError) as refused:
        await table.bridge.do("listTools")
    assert refused.value.code == -32601


async def test_good_calls_are_answered_whatever_the_handler_is(lay: Lay) -> None:
    app = App("a", "1")

    @app.tool
    def add(a: int, b: int = 1) -> int:
        return a + b

    @app.tool
    async def later(name: str) -> str:
        await asyncio.sleep(0)
        return f"hello {name}"

    app.register_tool("thread", lambda n: {"n": n}, input_schema={"type": "object"}, thread=True)
    app.register_tool("nothing", lambda: None)
    app.register_tool("image", lambda: b"\x89PNG\r\n\x1a\n")
    table = await lay(app)
    await table.sit_down()
    assert (await table.call("add", {"a": 2}))["structuredContent"] == {"result": 3}
    result = await table.call("later", {"name": "\U0001f600"})
    assert text(result) == "hello \U0001f600"
    assert (await table.call("thread", {"n": [1, None]}))["structuredContent"] == {"n": [1, None]}
    assert text(await table.call("nothing")) == "Done."
    assert (await table.call("image"))["content"][0]["mimeType"] == "image/png"
    both = await asyncio.gather(*(table.call("add", {"a": n}) for n in range(50)))
    assert [result["structuredContent"]["result"] for result in both] == list(range(1, 51))


async def test_calls_that_cannot_be_done_say_why(lay: Lay) -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append

    @app.tool
    def order(item: str, count: int) -> str:
        return f"{count} {item}"

    @app.tool
    def pay() -> str:
        raise ToolError("The card was declined")

    @app.tool
    def guarded() -> str:
        raise ProtocolError(-32042, "Not today", {"until": "noon"})

    @app.tool
    async def broken() -> str:
        raise ValueError("secret")

    app.register_tool("save", lambda: "saved", enabled=False).disable(reason="nothing to save")
    app.register_tool("lazy", lambda: "x", input_schema=lambda: 1 / 0)
    app.register_tool(
        "liar",
        lambda: {"n": "x"},
        output_schema={
            "type": "object",
            "properties": {"n": {"type": "number"}},
            "required": ["n"],
        },
    )
    table = await lay(app)
    await table.sit_down()

    bad = await table.call("order", {"count": "three"})
    assert bad["isError"] is True
    assert "- item: " in text(bad)
    assert "- count: expected integer, got string" in text(bad)
    assert await table.call("pay") == {
        "content": [{"type": "text", "text": "The card was declined"}],
        "isError": True,
    }
    disabled = await table.call("save")
    assert (disabled["isError"], text(disabled)) == (
        True,
        "Tool save is disabled: nothing to save",
    )
    assert text(await table.call("lazy")) == "Tool lazy is unavailable right now"
    guarded_by = await table.refusal("guarded")
    assert (guarded_by.code, guarded_by.data) == (-32042, {"until": "noon"})
    unknown = await table.refusal("nope")
    assert unknown.code == -32602
    assert "Tool nope not found" in unknown.message
    failed = await table.refusal("broken")
    assert failed.code == -32603
    assert "Tool broken failed" in failed.message
    assert "secret" not in failed.message
    assert (await table.refusal("liar")).code == -32603
    assert [type(error).__name__ for error in errors] == [
        "ZeroDivisionError",
        "ValueError",
        "ValidationError",
    ]
    assert "lazy" not in await table.names()


async def test_a_slow_call_tells_how_far_it_is(lay: Lay) -> None:
    app = App("a", "1")
    gate = asyncio.Event()

    @app.tool
    async def slow(ctx: CallContext) -> str:
        await ctx.progress(1, 2, "half")
        ctx.log("info", {"at": "half"})
        await gate.wait()
        ctx.progress(2, 2)
        return "done"

    table = await lay(app)
    await table.sit_down()
    number, result = table.bridge.order("callTool", params={"name": "slow"}, progress=True)
    step = await table.bridge.event("progress", call=number)
    assert (step["progress"], step["total"], step["message"]) == (1, 2, "half")
    logged = await table.bridge.event("loggingmessage")
    assert logged["params"] == {"level": "info", "data": {"at": "half"}, "logger": "slow"}
    assert not result.done()
    gate.set()
    assert (await table.bridge.event("progress", call=number))["progress"] == 2
    assert text(await result) == "done"


async def test_progress_keeps_a_call_from_timing_out(lay: Lay) -> None:
    app = App("a", "1")
    steps = 6

    @app.tool
    async def slow(ctx: CallContext) -> str:
        for n in range(steps):
            ctx.progress(n, steps)
            await table.bridge.event("progress", progress=n)
        return "done"

    table = await lay(app)
    await table.sit_down()
    result = await table.call("slow", progress=True, timeout=5000, resetTimeoutOnProgress=True)
    assert text(result) == "done"


async def test_a_cancelled_call_stops_the_coroutine_and_no_answer_is_sent(lay: Lay) -> None:
    app = App("a", "1")
    started, stopped = asyncio.Event(), asyncio.Event()

    @app.tool
    async def endless(ctx: CallContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    table = await lay(app)
    await table.sit_down()
    number, result = table.bridge.order("callTool", params={"name": "endless"})
    await started.wait()
    await table.bridge.do("cancel", call=number, reason="changed my mind")
    await stopped.wait()
    with pytest.raises(NodeError, match="changed my mind"):
        await result
    started.clear()
    stopped.clear()
    with pytest.raises(NodeError) as late:
        await table.call("endless", timeout=20)
    assert late.value.code == "REQUEST_TIMEOUT"
    assert await table.names() == ["endless"]
    assert started.is_set() == stopped.is_set()  # it may have been given up before it began
    assert table.bridge.untaken("error") == []


async def test_changes_are_told_once_and_listed(lay: Lay) -> None:
    app = App("a", "1")
    save = app.register_tool("save", lambda: "saved", description="Save", enabled=False)
    app.register_tool("other", lambda: "x")
    table = await lay(app)
    await table.sit_down()
    assert await table.names() == ["other"]

    save.enable()
    await table.changed()
    assert await table.names() == ["save", "other"]

    save.update(description="Save it all", name="save_all")
    app.register_tool("third", lambda: "third")
    await table.changed()
    assert await table.names() == ["save_all", "other", "third"]
    assert (await table.bridge.do("listAllTools"))[0]["description"] == "Save it all"
    assert text(await table.call("save_all")) == "saved"
    assert (await table.refusal("save")).code == -32602

    save.disable(reason="all saved")
    await table.changed()
    assert "all saved" in text(await table.call("save_all"))
    app.update_tool("save_all", disabled=False, description="Again")
    await table.changed()
    save.remove()
    await table.changed()
    assert await table.names() == ["other", "third"]
    assert (await table.refusal("save_all")).code == -32602

    await app.send_tool_list_changed()
    await table.changed()


async def test_a_lazy_schema_follows_the_state(lay: Lay) -> None:
    app = App("a", "1")
    tracks = ["one"]
    app.register_tool(
        "play",
        lambda id: f"playing {id}",
        input_schema=lambda: {
            "type": "object",
            "properties": {"id": {"type": "string", "enum": tracks}},
            "required": ["id"],
        },
    )
    table = await lay(app)
    await table.sit_down()

    async def listed() -> Any:
        (tool,) = await table.bridge.do("listAllTools")
        return tool["inputSchema"]["properties"]["id"]["enum"]

    assert await listed() == ["one"]
    assert (await table.call("play", {"id": "two"}))["isError"] is True
    tracks.append("two")
    assert text(await table.call("play", {"id": "two"})) == "playing two"
    assert await listed() == ["one", "two"]


async def test_registered_and_static_tools_live_side_by_side(lay: Lay) -> None:
    app = App("a", "1", page_size=2)
    app.register_tool("mine", lambda: "registered")

    @app.on_list_tools
    async def _(cursor: str | None) -> Any:
        names = ["mine", "s1", "s2", "s3"]
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}

    @app.on_call_tool
    async def _(name: str, arguments: dict[str, Any], ctx: CallContext) -> Any:
        return f"{name} {arguments}"

    table = await lay(app)
    await table.sit_down()
    assert await table.names() == ["mine", "s1", "s2", "s3"]
    assert text(await table.call("mine")) == "registered"
    assert text(await table.call("s3", {"a": 1})) == "s3 {'a': 1}"


async def test_a_call_may_become_a_task(lay: Lay) -> None:
    app = App("a", "1")
    gate = asyncio.Event()

    @app.tool(task="optional")
    async def work() -> str:
        await gate.wait()
        return "done"

    table = await lay(app)
    await table.sit_down()

    async def raw(method: str, **params: Any) -> Any:
        return await table.bridge.do("rawRequest", method=method, params=params)

    task = (await raw("tools/call", name="work", arguments={}, task={"ttl": 60000}))["task"]
    assert (task["status"], task["ttl"]) == ("working", 60000)
    assert (await raw("tasks/get", taskId=task["taskId"]))["status"] == "working"
    _, result = table.bridge.order(
        "rawRequest", method="tasks/result", params={"taskId": task["taskId"]}
    )
    gate.set()
    assert text(await result) == "done"
    assert [entry["status"] for entry in (await raw("tasks/list"))["tasks"]] == ["completed"]
    other = (await raw("tools/call", name="work", task={}))["task"]
    with pytest.raises(NodeError) as ended:
        await raw("tasks/cancel", taskId=task["taskId"])
    assert ended.value.code == -32602
    assert (await raw("tasks/get", taskId=other["taskId"]))["taskId"] == other["taskId"]


# --- what the App asks -----------------------------------------------------------------------


async def test_what_the_app_asks_reaches_the_host_and_comes_back(lay: Lay) -> None:
    app = App("a", "1")
    table = await lay(app)
    answers = {
        "ui/open-link": {},
        "ui/message": {},
        "ui/update-model-context": {},
        "ui/download-file": {},
        "ui/request-display-mode": {"mode": "fullscreen"},
        "sampling/createMessage": {
            "model": "m",
            "role": "assistant",
            "content": {"type": "text", "text": "hi"},
        },
    }
    for method, result in answers.items():
        await table.bridge.do("answer", method=method, result=result)
    await table.sit_down(hostContext=CONTEXT, hostCapabilities={"sampling": {}, "openLinks": {}})

    async def asked(event: str) -> Any:
        return (await table.bridge.event(event))["params"]

    assert not (await app.open_link("https://example.com")).is_error
    assert await asked("openlink") == {"url": "https://example.com"}
    assert not (await app.send_message("hello")).is_error
    assert await asked("message") == {
        "role": "user",
        "content": [{"type": "text", "text": "hello"}],
    }
    await app.update_model_context("the text", {"n": 1})
    assert await asked("updatemodelcontext") == {
        "content": [{"type": "text", "text": "the text"}],
        "structuredContent": {"n": 1},
    }
    file = EmbeddedResource(ResourceContents("file:///a.txt", mime_type="text/plain", text="x"))
    await app.download_file([file])
    assert await asked("downloadfile") == {
        "contents": [
            {
                "type": "resource",
                "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "x"},
            }
        ]
    }
    assert await app.request_display_mode("fullscreen") == "fullscreen"
    assert await asked("requestdisplaymode") == {"mode": "fullscreen"}
    with pytest.raises(CapabilityMissing, match="pip"):
        await app.request_display_mode("pip")
    answer = await app.create_message("say hi", max_tokens=10)
    assert answer["content"] == {"type": "text", "text": "hi"}
    sampled = await asked("createsamplingmessage")
    assert (sampled["maxTokens"], sampled["messages"][0]["role"]) == (10, "user")
    with pytest.raises(CapabilityMissing, match="tools"):
        await app.create_message("say hi", max_tokens=10, tools=[])


async def test_a_host_that_will_not_says_so_in_either_way(lay: Lay) -> None:
    app = App("a", "1")
    table = await lay(app)
    await table.bridge.do("answer", method="ui/open-link", result={"isError": True})
    await table.bridge.do(
        "answer", method="ui/message", error={"code": -32000, "message": "not now"}
    )
    await table.sit_down()
    assert (await app.open_link("https://example.com")).is_error
    refused = await app.send_message("hello")
    assert (refused.is_error, refused.extra["message"]) == (True, "not now")
    with pytest.raises(ProtocolError) as unknown:
        await app.download_file([])
    assert unknown.value.code == -32601
    with pytest.raises(CapabilityMissing):
        await app.create_message("x", max_tokens=1)


async def test_sizes_logs_and_the_wish_to_close_reach_the_host(lay: Lay) -> None:
    app = App("a", "1")
    table = await lay(app)
    await table.sit_down()
    await app.send_size_changed(width=300, height=200.5)
    assert (await table.bridge.event("sizechange"))["params"] == {"width": 300, "height": 200.5}
    await app.send_size_changed(height=10)
    assert (await table.bridge.event("sizechange"))["params"] == {"height": 10}
    await app.send_log("warning", {"n": [1]}, logger="mine")
    assert (await table.bridge.event("loggingmessage"))["params"] == {
        "level": "warning",
        "data": {"n": [1]},
        "logger": "mine",
    }
    await app.request_teardown()
    await table.bridge.event("requestteardown")


SERVER = {
    "capabilities": {"tools": {"listChanged": True}, "resources": {"listChanged": True}},
    "results": {
        "tools/call": {
            "content": [{"type": "text", "text": "from the server"}],
            "structuredContent": {"n": 42},
        },
        "resources/list": {"resources": [{"uri": "data://a", "name": "a"}], "nextCursor": "2"},
        "resources/read": {"contents": [{"uri": "data://a", "text": "x"}]},
    },
}


async def test_the_servers_tools_and_resources_are_there_through_the_host(lay: Lay) -> None:
    app = App("a", "1")
    news: asyncio.Queue[str] = asyncio.Queue()
    app.on_notification = lambda method: news.put_nowait(method)
    table = await lay(app)
    await table.sit_down(server=SERVER, hostCapabilities={"serverTools": {}, "serverResources": {}})

    result = await app.call_server_tool("lookup", {"q": "x"})
    assert (result.text, result.structured_content) == ("from the server", {"n": 42})
    asked = await table.bridge.event("server", method="tools/call")
    assert asked["params"]["name"] == "lookup"
    assert asked["params"]["arguments"] == {"q": "x"}
    page = await app.list_resources()
    assert ([entry.uri for entry in page.resources], page.next_cursor) == (["data://a"], "2")
    await app.list_resources("2")
    await table.bridge.event("server", method="resources/list")
    assert (await table.bridge.event("server", method="resources/list"))["params"]["cursor"] == "2"
    read = await app.read_resource("data://a")
    assert read.contents[0].text == "x"
    await table.bridge.do("serverNotify", method="notifications/tools/list_changed")
    assert await news.get() == "notifications/tools/list_changed"


async def test_the_servers_tools_are_listed_page_by_page(lay: Lay) -> None:
    app = App("a", "1")
    table = await lay(app)
    tools = [{"name": "a", "inputSchema": {"type": "object"}}]
    await table.bridge.do("answer", method="tools/list", result={"tools": tools})
    await table.sit_down(hostCapabilities={"serverTools": {}})
    assert [tool.name for tool in await app.list_server_tools()] == ["a"]


async def test_a_server_tool_tells_how_far_it_is_and_can_be_given_up(lay: Lay) -> None:
    app = App("a", "1")
    steps: list[float] = []
    table = await lay(app)
    served = {"content": [{"type": "text", "text": "done"}]}
    await table.bridge.do(
        "answer", method="tools/call", result=served, progress=[{"progress": 1}, {"progress": 2}]
    )
    await table.sit_down()
    result = await app.call_server_tool(
        "slow", on_progress=lambda step: steps.append(step.progress)
    )
    assert (result.text, steps) == ("done", [1, 2])

    await table.bridge.do("answer", method="tools/call", result=served, hold=True)
    with pytest.raises(RequestTimeout):
        await app.call_server_tool("slow", timeout=0.05)
    given_up = await table.bridge.event("cancelled", method="tools/call")
    assert "timed out" in given_up["reason"]
    asking = asyncio.ensure_future(app.call_server_tool("slow"))
    for _ in range(3):
        await table.bridge.event("calltool")
    asking.cancel()
    await table.bridge.event("cancelled", method="tools/call")


async def test_a_tool_may_ask_the_host_while_it_runs(lay: Lay) -> None:
    app = App("a", "1")

    @app.tool
    async def relay(q: str, ctx: CallContext) -> str:
        result = await ctx.app.call_server_tool("lookup", {"q": q})
        await ctx.app.update_model_context(f"asked for {q}")
        return f"{q}: {result.text}"

    table = await lay(app)
    served = {"content": [{"type": "text", "text": "42"}]}
    await table.bridge.do("answer", method="tools/call", result=served)
    await table.bridge.do("answer", method="ui/update-model-context", result={})
    await table.sit_down()
    assert text(await table.call("relay", {"q": "x"})) == "x: 42"


async def test_messages_of_megabytes_pass_both_ways(lay: Lay) -> None:
    app = App("a", "1")
    app.register_tool("echo", lambda text: text, input_schema={"type": "object"})
    table = await lay(app)
    await table.sit_down()
    big = "\u20ac" * 1_000_000
    assert text(await table.call("echo", {"text": big})) == big
