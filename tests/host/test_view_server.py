"""Views whose requests go on to a server."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer

from tests.connections.scripted_server import ScriptedServer
from tests.host.bare_view import begun, joined, ready, text, tool, until
from transom.connections import ListChangedHandler
from transom.connections.relisting import RELIST_AFTER
from transom.errors import ProtocolError
from transom.types import Tool

TOOLS_CHANGED = "notifications/tools/list_changed"
HIDDEN = {"ui": {"visibility": ["model"]}}


def listing(*tools: dict[str, Any]) -> dict[str, Any]:
    return {"tools": list(tools)}


Served = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture(params=["connection", "client"])
def served(request: pytest.FixtureRequest) -> Served:
    """Makes a ready View whose host forwards to a server, by each way to reach one."""

    @asynccontextmanager
    async def serve(server: ScriptedServer, **options: Any) -> AsyncIterator[Any]:
        way: Any = server.negotiated()
        if request.param == "client":
            way = server.client(message_handler=ListChangedHandler())
        async with way as upstream, ready(upstream=upstream, **options) as joined:
            yield joined

    return serve


# --- what goes on, and how -------------------------------------------------------------------


async def test_a_call_goes_on_as_it_is_and_so_does_its_result(served: Served):
    result = {
        "content": [{"type": "text", "text": "3", "unheardOf": 1}],
        "structuredContent": {"sum": 3},
        "_meta": {"server": True},
        "topLevel": [None],
    }
    server = ScriptedServer({"tools/list": listing(tool("add")), "tools/call": result})
    async with served(server) as (_, view, errors):
        params = {
            "name": "add",
            "arguments": {"a": 1, "none": None},
            "task": {"ttl": 5},
            "surprise": {"x": None},
            "_meta": {"trace": "t-1"},
        }
        assert await view.ask("tools/call", params) == result
        assert server.asked("tools/call") == [params]
        assert errors == []


async def test_a_servers_error_keeps_its_code_message_and_data(served: Served):
    error = {"code": -32042, "message": "try the other door", "data": {"door": 2}}
    server = ScriptedServer({"tools/list": listing(tool("a")), "tools/call": {"error": error}})
    async with served(server) as (_, view, errors):
        with pytest.raises(ProtocolError) as answered:
            await view.ask("tools/call", {"name": "a"})
        answer = answered.value
        assert (answer.code, answer.message, answer.data) == (
            -32042,
            "try the other door",
            {"door": 2},
        )
        assert errors == []


async def test_a_servers_nonsense_is_an_internal_error_and_reported(served: Served):
    nonsense = {"content": "secret of the server"}
    server = ScriptedServer({"tools/list": listing(tool("a")), "tools/call": nonsense})
    async with served(server) as (_, view, errors):
        with pytest.raises(ProtocolError, match="Internal error"):
            await view.ask("tools/call", {"name": "a"})
        assert len(errors) == 1
        assert errors[0].startswith("InvalidResult: Invalid result for tools/call")
        assert "secret" not in errors[0]


FORWARDED = [
    ("resources/list", {"cursor": "c"}, {"resources": [], "nextCursor": "d", "x": 1}),
    ("resources/templates/list", {}, {"resourceTemplates": [{"name": "t", "uriTemplate": "u{x}"}]}),
    ("resources/read", {"uri": "ui://x"}, {"contents": [{"uri": "ui://x", "text": "t", "y": 2}]}),
    ("prompts/list", {"_meta": {"k": 1}}, {"prompts": []}),
]


@pytest.mark.parametrize(("method", "params", "result"), FORWARDED)
async def test_resources_and_prompts_go_on_too(
    served: Served, method: str, params: dict[str, Any], result: dict[str, Any]
):
    server = ScriptedServer({method: result})
    async with served(server) as (_, view, _):
        assert await view.ask(method, params) == result
        assert server.asked(method) == [params]


@pytest.mark.parametrize("method", ["tools/call", "tools/list", *(row[0] for row in FORWARDED)])
async def test_what_the_server_cannot_do_is_not_found(served: Served, method: str):
    server = ScriptedServer(capabilities={})
    async with served(server) as (_, view, _):
        with pytest.raises(ProtocolError, match="Method not found") as answered:
            await view.ask(method, {"name": "x", "uri": "x"})
        assert answered.value.code == -32601
        assert server.asked(method) == []


@pytest.mark.parametrize(
    "method",
    ["prompts/get", "resources/subscribe", "completion/complete", "logging/setLevel", "tasks/get"],
)
async def test_other_methods_are_never_forwarded(served: Served, method: str):
    server = ScriptedServer({method: {}})
    async with served(server) as (_, view, _):
        with pytest.raises(ProtocolError, match="Method not found"):
            await view.ask(method, {"name": "x", "uri": "x", "taskId": "x"})
        assert server.asked(method) == []


async def test_the_hosts_capabilities_follow_from_the_servers():
    async with ScriptedServer().client() as client, joined(upstream=client) as (_, view, _):
        assert (await view.initialize())["hostCapabilities"] == {
            "tools": {"listChanged": True},
            "appTools": {"listChanged": True},
            "serverTools": {"listChanged": True},
            "serverResources": {"listChanged": True},
        }


async def test_a_handler_of_the_host_goes_before_the_server(served: Served):
    server = ScriptedServer({"tools/list": listing(tool("a")), "resources/list": {"resources": []}})
    async with served(server) as (bridge, view, _):
        bridge.on_call_tool = lambda name, arguments: f"host's own {name}"
        bridge.on_list_resources = lambda cursor: {"resources": [], "by": "host"}
        assert await view.ask("tools/call", {"name": "a"}) == text("host's own a")
        assert await view.ask("tools/call", {"name": "not on the server"}) == text(
            "host's own not on the server"
        )
        assert await view.ask("resources/list") == {"resources": [], "by": "host"}
        assert server.asked("tools/call") == server.asked("resources/list") == []
        bridge.on_list_resources = None
        assert await view.ask("resources/list") == {"resources": []}


# --- visibility ------------------------------------------------------------------------------


@pytest.mark.parametrize("visibility", [["model"], [], ["model", "internal"], ["nobody"]])
async def test_a_tool_that_views_may_not_call_is_refused(served: Served, visibility: list[str]):
    hidden = tool("hidden", _meta={"ui": {"visibility": visibility}})
    server = ScriptedServer({"tools/list": listing(hidden), "tools/call": text("ran")})
    async with served(server) as (bridge, view, _):
        with pytest.raises(ProtocolError, match="hidden may not be called by a View") as answered:
            await view.ask("tools/call", {"name": "hidden"})
        assert answered.value.code == -32000
        bridge.on_call_tool = lambda name, arguments: "ran"
        with pytest.raises(ProtocolError, match="may not be called by a View"):
            await view.ask("tools/call", {"name": "hidden"})
        assert server.asked("tools/call") == []


@pytest.mark.parametrize("visibility", [None, ["app"], ["model", "app"], ["app", "other"]])
async def test_a_tool_that_views_may_call_runs(served: Served, visibility: list[str] | None):
    meta = {} if visibility is None else {"_meta": {"ui": {"visibility": visibility}}}
    server = ScriptedServer(
        {"tools/list": listing(tool("open", **meta)), "tools/call": text("ran")}
    )
    async with served(server) as (_, view, _):
        assert await view.ask("tools/call", {"name": "open"}) == text("ran")


async def test_a_tool_that_the_server_does_not_list_is_refused(served: Served):
    server = ScriptedServer({"tools/list": listing(tool("a")), "tools/call": text("ran")})
    async with served(server) as (_, view, _):
        with pytest.raises(ProtocolError, match="Tool other not found") as answered:
            await view.ask("tools/call", {"name": "other"})
        assert answered.value.code == -32602
        assert server.asked("tools/call") == []


async def test_a_view_hammering_unknown_tools_does_not_hammer_the_server(served: Served):
    server = ScriptedServer({"tools/list": listing(tool("a"))})
    async with served(server) as (_, view, _):
        for number in range(50):
            with pytest.raises(ProtocolError, match="not found"):
                await view.ask("tools/call", {"name": f"x{number}"})
        assert len(server.asked("tools/list")) <= 2


async def test_a_tool_that_came_without_notice_is_found_before_long():
    server = ScriptedServer({"tools/list": listing(), "tools/call": text("ran")})
    async with server.negotiated() as upstream, ready(upstream=upstream) as (_, view, _):
        with pytest.raises(ProtocolError, match="Tool new not found"):
            await view.ask("tools/call", {"name": "new"})
        server.answers["tools/list"] = listing(tool("new"))
        upstream.tool_cache._relisting._listed_at -= RELIST_AFTER
        assert await view.ask("tools/call", {"name": "new"}) == text("ran")


async def test_a_view_sees_the_tools_it_may_call_page_by_page(served: Served):
    pages = {
        "": {"tools": [tool("a", extra=1), tool("b", _meta=HIDDEN)], "nextCursor": "p2", "x": 1},
        "p2": {"tools": [tool("c", _meta={"ui": {"visibility": ["app"]}})]},
    }
    server = ScriptedServer({"tools/list": lambda params: pages[params.get("cursor", "")]})
    async with served(server) as (_, view, _):
        assert await view.ask("tools/list") == {
            "tools": [tool("a", extra=1)],
            "nextCursor": "p2",
            "x": 1,
        }
        assert await view.ask("tools/list", {"cursor": "p2"}) == pages["p2"]


async def test_the_list_is_fetched_once_for_many_calls_and_bridges():
    server = ScriptedServer({"tools/list": listing(tool("a")), "tools/call": text("ran")})
    async with (
        server.client() as client,
        ready(upstream=client) as (_, one, _),
        ready(upstream=client) as (_, two, _),
    ):
        views = [one, two] * 10
        await asyncio.gather(*(view.ask("tools/call", {"name": "a"}) for view in views))
        assert len(server.asked("tools/list")) == 1
        assert len(server.asked("tools/call")) == 20


async def test_visibility_follows_the_servers_changes(served: Served):
    server = ScriptedServer({"tools/list": listing(tool("a")), "tools/call": text("ran")})
    async with served(server) as (_, view, _):
        await view.ask("tools/call", {"name": "a"})
        server.answers["tools/list"] = listing(tool("a", _meta=HIDDEN), tool("b"))
        await server.notify(TOOLS_CHANGED)
        await view.told(TOOLS_CHANGED)
        with pytest.raises(ProtocolError, match="may not be called by a View"):
            await view.ask("tools/call", {"name": "a"})
        assert await view.ask("tools/call", {"name": "b"}) == text("ran")
        assert len(server.asked("tools/list")) == 2


async def test_a_list_that_goes_round_in_circles_ends(served: Served):
    server = ScriptedServer(
        {"tools/list": {"tools": [tool("a")], "nextCursor": "x"}, "tools/call": text("ran")}
    )
    async with served(server) as (_, view, _):
        assert await view.ask("tools/call", {"name": "a"}) == text("ran")
        assert len(server.asked("tools/list")) == 2


async def test_one_who_stops_waiting_for_the_list_does_not_stop_the_others(served: Served):
    release = asyncio.Event()

    async def slowly(_: Any) -> dict[str, Any]:
        await release.wait()
        return listing(tool("a"))

    server = ScriptedServer({"tools/list": slowly, "tools/call": text("ran")})
    async with served(server) as (_, view, _):
        calls = [await begun(view.ask("tools/call", {"name": "a"})) for _ in range(2)]
        await until(lambda: server.asked("tools/list"))
        calls[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[0]
        release.set()
        assert await calls[1] == text("ran")
        assert len(server.asked("tools/list")) == 1


async def test_a_server_that_cannot_list_its_tools_lets_no_call_through(served: Served):
    error = {"error": {"code": -32603, "message": "database down"}}
    server = ScriptedServer({"tools/list": error, "tools/call": text("ran")})
    async with served(server) as (_, view, _):
        with pytest.raises(ProtocolError, match="database down"):
            await view.ask("tools/call", {"name": "a"})
        server.answers["tools/list"] = listing(tool("a"))
        assert await view.ask("tools/call", {"name": "a"}) == text("ran")


async def test_a_server_whose_list_is_nonsense_lets_no_call_through(served: Served):
    server = ScriptedServer({"tools/list": {"tools": "secret"}, "tools/call": text("ran")})
    async with served(server) as (_, view, errors):
        with pytest.raises(ProtocolError, match="Internal error"):
            await view.ask("tools/call", {"name": "a"})
        assert errors == ["InvalidResult: Invalid result for tools/list from the server"]
        assert server.asked("tools/call") == []


# --- progress and cancellation ---------------------------------------------------------------


@pytest.mark.parametrize("token", ["mine", 12345, 0])
async def test_progress_comes_back_under_the_views_own_token(served: Served, token: Any):
    server = ScriptedServer({"tools/list": listing(tool("slow"))})
    release = asyncio.Event()

    async def work(params: dict[str, Any]) -> dict[str, Any]:
        ours = params["_meta"]["progressToken"]
        notice = {"progressToken": ours, "progress": 0.5, "total": 1, "message": "half"}
        await server.notify("notifications/progress", notice)
        await release.wait()
        return text("done")

    server.answers["tools/call"] = work
    async with served(server) as (_, view, _):
        heard: list[Any] = []
        seen = asyncio.Event()
        dispatch = view.session.peer.feed

        def feed(data: bytes) -> Any:
            if b"notifications/progress" in data:
                heard.append(json.loads(data)["params"])
                seen.set()
            return dispatch(data)

        view.session.peer.feed = feed
        params = {"name": "slow", "_meta": {"progressToken": token, "other": 1}}
        call = await begun(view.ask("tools/call", params))
        await seen.wait()
        release.set()
        assert await call == text("done")
        assert heard == [{"progressToken": token, "progress": 0.5, "total": 1, "message": "half"}]
        [sent] = server.asked("tools/call")
        assert sent["_meta"]["other"] == 1


async def test_without_a_token_no_progress_is_asked_for(served: Served):
    server = ScriptedServer({"tools/list": listing(tool("a")), "tools/call": text("ran")})
    async with served(server) as (_, view, _):
        await view.ask("tools/call", {"name": "a"})
        await view.ask("tools/call", {"name": "a", "_meta": {"progressToken": {"no": "token"}}})
        assert server.asked("tools/call") == [{"name": "a"}, {"name": "a"}]


async def test_a_view_that_gives_up_stops_the_server_and_gets_no_answer(served: Served):
    stopped = asyncio.Event()
    began = asyncio.Event()

    async def work(_: Any) -> dict[str, Any]:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    server = ScriptedServer({"tools/list": listing(tool("slow")), "tools/call": work})
    async with served(server) as (_, view, errors):
        call = await begun(view.ask("tools/call", {"name": "slow"}))
        await began.wait()
        call.cancel()
        await stopped.wait()
        await server.has("notifications/cancelled")
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await view.ask("ping") == {}
        assert view.problems == []
        assert errors == []


async def test_a_view_that_goes_away_stops_the_server(served: Served):
    stopped = asyncio.Event()
    began = asyncio.Event()

    async def work(_: Any) -> dict[str, Any]:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    server = ScriptedServer({"tools/list": listing(tool("slow")), "tools/call": work})
    async with served(server) as (bridge, view, _):
        call = await begun(view.ask("tools/call", {"name": "slow"}))
        await began.wait()
        await bridge.aclose()
        await stopped.wait()
        with pytest.raises(ProtocolError, match="cancelled"):
            await call


# --- the server's news -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
async def test_list_changed_reaches_every_bridge(kind: str):
    server = ScriptedServer()
    method = f"notifications/{kind}/list_changed"
    async with (
        server.negotiated() as upstream,
        ready(upstream=upstream) as (_, one, _),
        ready(upstream=upstream) as (_, two, _),
    ):
        await server.notify(method)
        assert await one.told(method) == {}
        assert await two.told(method) == {}
        await two.session.aclose()
        await server.notify(method)
        await one.told(method, times=2)


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
async def test_list_changed_reaches_the_bridges_of_a_client_and_its_own_handler(kind: str):
    server = ScriptedServer()
    seen: list[str] = []

    async def own(message: Any) -> None:
        seen.append(message.method)

    method = f"notifications/{kind}/list_changed"
    async with (
        server.client(message_handler=ListChangedHandler(own)) as client,
        ready(upstream=client) as (_, one, _),
        ready(upstream=client.session) as (_, two, _),
    ):
        await server.notify(method)
        assert await one.told(method) == {}
        assert await two.told(method) == {}
        assert seen == [method]


async def test_one_list_changed_handler_does_for_two_clients():
    first, second, handler = ScriptedServer(), ScriptedServer(), ListChangedHandler()
    async with (
        first.client(message_handler=handler) as client,
        second.client(message_handler=handler) as other,
        ready(upstream=client) as (_, one, _),
        ready(upstream=other) as (_, two, _),
    ):
        await first.notify(TOOLS_CHANGED)
        await one.told(TOOLS_CHANGED)
        await second.notify(TOOLS_CHANGED)
        await two.told(TOOLS_CHANGED)


async def test_list_changed_waits_until_the_view_is_initialised_and_comes_once():
    server = ScriptedServer()
    async with server.negotiated() as upstream, joined(upstream=upstream) as (_, view, _):
        heard = asyncio.Event()
        stop = upstream.subscribe(lambda method: heard.set())
        for _ in range(3):
            heard.clear()
            await server.notify(TOOLS_CHANGED)
            await heard.wait()
        stop()
        await view.initialize()
        assert view.notices == []
        await view.tell("ui/notifications/initialized")
        await view.told(TOOLS_CHANGED)
        await view.ask("ping")
        assert view.notices == [(TOOLS_CHANGED, {})]


async def test_list_changed_is_not_forwarded_when_the_server_did_not_announce_it(served: Served):
    capabilities = {"tools": {}, "resources": {"listChanged": True}}
    server = ScriptedServer(capabilities=capabilities)
    resources = "notifications/resources/list_changed"
    async with served(server) as (_, view, _):
        await server.notify(TOOLS_CHANGED)
        await server.notify(resources)
        await view.told(resources)
        assert view.notices == [(resources, {})]


async def test_a_flood_from_the_server_is_one_notice_a_turn(served: Served):
    server = ScriptedServer()
    async with served(server) as (_, view, _):
        upstream_heard = 0
        for _ in range(90):
            await server.notify(TOOLS_CHANGED)
            upstream_heard += 1
        await view.told(TOOLS_CHANGED)
        await view.ask("ping")
        assert 1 <= len(view.notices) < upstream_heard


async def test_nothing_is_forwarded_to_a_view_that_is_being_torn_down():
    server = ScriptedServer()
    async with server.negotiated() as upstream, ready(upstream=upstream) as (bridge, view, _):
        seen = asyncio.Event()
        stop = upstream.subscribe(lambda _: seen.set())

        async def leave_slowly(_: Any) -> dict[str, Any]:
            await server.notify(TOOLS_CHANGED)
            await seen.wait()
            return {}

        view.answers["ui/resource-teardown"] = leave_slowly
        assert await bridge.teardown() is True
        assert view.notices == []
        stop()


# --- servers of one's own --------------------------------------------------------------------


async def test_any_server_will_do():
    class Shelf:
        """A server that is just a dictionary."""

        capabilities: Mapping[str, Any] = {"tools": {}}
        current = True

        async def tools(self) -> Mapping[str, Tool]:
            return {"get": Tool("get")}

        async def tool(self, name: str) -> Tool | None:
            return (await self.tools()).get(name)

        async def request(self, method: str, params: Mapping[str, Any], **_: Any) -> bytes:
            return b'{"content":[],"structuredContent":{"book":1}}'

        def subscribe(self, observer: Callable[[str], object]) -> Callable[[], None]:
            return lambda: None

    async with ready(upstream=Shelf()) as (_, view, _):
        answer = await view.ask("tools/call", {"name": "get"})
        assert answer["structuredContent"] == {"book": 1}


# --- tasks of the server ---------------------------------------------------------------------

WORKING = {"taskId": "t1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "ttl": 1}


class TaskShelf:
    """A server whose tools run as tasks."""

    capabilities: Mapping[str, Any] = {"tools": {}, "tasks": {}}
    current = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def tools(self) -> Mapping[str, Tool]:
        return {"long": Tool("long")}

    async def tool(self, name: str) -> Tool | None:
        return (await self.tools()).get(name)

    async def request(self, method: str, params: Mapping[str, Any], **_: Any) -> bytes:
        self.asked.append(method)
        match method:
            case "tools/call" if "task" in params:
                return b'{"task":{"taskId":"t1","status":"working"}}'
            case "tasks/get" | "tasks/cancel":
                return b'{"taskId":"t1","status":"completed"}'
            case _:
                return b'{"content":[]}'

    def subscribe(self, observer: Callable[[str], object]) -> Callable[[], None]:
        return lambda: None


async def test_a_view_can_ask_after_the_tasks_the_server_gave_it():
    shelf = TaskShelf()
    async with ready(upstream=shelf) as (_, view, _):
        handle = await view.ask("tools/call", {"name": "long", "task": {"ttl": 5}})
        assert handle == {"task": {"taskId": "t1", "status": "working"}}
        assert (await view.ask("tasks/get", {"taskId": "t1"}))["status"] == "completed"
        assert await view.ask("tasks/result", {"taskId": "t1"}) == {"content": []}
        assert (await view.ask("tasks/cancel", {"taskId": "t1"}))["taskId"] == "t1"


async def test_a_view_cannot_ask_after_tasks_of_others():
    shelf = TaskShelf()
    async with ready(upstream=shelf) as (_, owner, _), ready(upstream=shelf) as (_, thief, _):
        await owner.ask("tools/call", {"name": "long", "task": {}})
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            with pytest.raises(ProtocolError, match="Task t1 not found"):
                await thief.ask(method, {"taskId": "t1"})
        assert shelf.asked == ["tools/call"]


# --- 2026-07-28 ------------------------------------------------------------------------------


def modern() -> MCPServer:
    server = MCPServer("modern")

    @server.tool()
    async def add(a: int, b: int, ctx: Context) -> int:
        await ctx.report_progress(1, 2, "half")
        return a + b

    @server.tool(meta=HIDDEN)
    def hidden() -> str:
        return "ran"

    @server.tool()
    async def change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        return "changed"

    @server.resource("data://x")
    def data() -> str:
        return "x"

    return server


async def test_a_modern_server_is_called_with_progress_and_without_hop_keys():
    async with Client(modern()) as client, ready(upstream=client) as (_, view, errors):
        assert client.protocol_version == "2026-07-28"
        steps: list[tuple[float, float | None, str | None]] = []
        answer = await view.ask(
            "tools/call",
            {"name": "add", "arguments": {"a": 1, "b": 2}},
            on_progress=lambda p: steps.append((p.progress, p.total, p.message)),
        )
        assert answer["structuredContent"] == {"result": 3}
        assert not {"resultType", "ttlMs", "cacheScope"} & set(answer)
        assert steps == [(1, 2, "half")]
        listed = await view.ask("tools/list")
        assert [entry["name"] for entry in listed["tools"]] == ["add", "change"]
        assert not {"resultType", "ttlMs", "cacheScope"} & set(listed)
        with pytest.raises(ProtocolError, match="may not be called by a View"):
            await view.ask("tools/call", {"name": "hidden"})
        read = await view.ask("resources/read", {"uri": "data://x"})
        assert read["contents"][0]["text"] == "x"
        assert errors == []
