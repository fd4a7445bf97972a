"""A user's connected SDK client as a server."""

import asyncio
import contextlib
from typing import Any

import fastmcp
import pytest
from mcp import Client, ClientSession
from mcp.server.mcpserver import MCPServer
from mcp.types import ElicitRequestParams, ElicitResult
from mcp_types import HEADER_MISMATCH

from tests.connections.scripted_server import ScriptedServer
from tests.gateway.chatty import streams
from tests.host.bare_view import ready, text, tool, until
from tests.host.test_view_server import listing, modern
from transom.connections import Server, sdk_client
from transom.connections.relisting import RELIST_AFTER
from transom.connections.sdk_client import sdk_server
from transom.errors import ConnectionClosed, NotConnected, ProtocolError, UsageError

TOOLS_CHANGED = "notifications/tools/list_changed"


async def test_a_client_that_is_not_connected_is_refused():
    client = Client(MCPServer("s"))
    with pytest.raises(NotConnected, match="not connected"):
        sdk_server(client)


async def test_a_session_that_has_not_shaken_hands_is_refused():
    async with (
        streams(await ScriptedServer().connect()) as (reader, writer),
        ClientSession(reader, writer) as s,
    ):
        with pytest.raises(NotConnected, match="server capabilities are not available"):
            sdk_server(s)


@pytest.mark.parametrize("thing", [object(), "http://localhost", MCPServer("s")])
async def test_what_is_no_client_is_refused(thing: Any):
    with pytest.raises(UsageError, match="Expected a connected MCP client, not"):
        sdk_server(thing)


async def test_bridges_of_one_client_share_one_upstream():
    async with ScriptedServer().client() as one, ScriptedServer().client() as two:
        first = sdk_server(one)
        assert sdk_server(one.session) is first
        assert sdk_server(two) is not first
        assert isinstance(first, Server)


async def test_a_fastmcp_client_will_do():
    server = fastmcp.FastMCP("s")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    async with fastmcp.Client(server) as client, ready(upstream=client) as (_, view, _):  # type: ignore[arg-type]
        answer = await view.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert answer["structuredContent"] == {"result": 3}


async def test_a_modern_servers_changes_reach_every_bridge():
    async with (
        Client(modern()) as client,
        ready(upstream=client) as (_, one, _),
        ready(upstream=client.session) as (_, two, _),
    ):
        changes = sdk_server(client)
        await until(lambda: changes._watching)
        await one.ask("tools/call", {"name": "change"})
        await one.told(TOOLS_CHANGED)
        await two.told(TOOLS_CHANGED)


async def test_the_subscription_ends_with_the_last_bridge():
    async with Client(modern()) as client:
        async with ready(upstream=client):
            changes = sdk_server(client)
            listener = changes._listener
            assert listener is not None
        with contextlib.suppress(asyncio.CancelledError):
            await listener
        assert listener.done()
        assert not client.session._listen_routes
        async with ready(upstream=client) as (_, view, _):
            changes = sdk_server(client)
            await until(lambda: changes._watching)
            await view.ask("tools/call", {"name": "change"})
            await view.told(TOOLS_CHANGED)


HOP = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def wants_input(state: str | None, **requests: str) -> dict[str, Any]:
    """A server's wish to know something first; `requests` are the questions by key."""
    questions = {
        key: {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": message,
                "requestedSchema": {"type": "object", "properties": {}},
            },
        }
        for key, message in requests.items()
    }
    wish: dict[str, Any] = {"resultType": "input_required"}
    if state is not None:
        wish["requestState"] = state
    return {**wish, "inputRequests": questions} if questions else wish


async def test_a_server_that_wants_input_first_gets_it_from_the_clients_callbacks():
    def book(params: dict[str, Any]) -> dict[str, Any]:
        match params.get("requestState"):
            case None:
                return wants_input("one", when="When?", where="Where?")
            case "one":
                assert set(params["inputResponses"]) == {"when", "where"}
                return wants_input("two")
            case state:
                assert "inputResponses" not in params
                return {**text(f"{state} {params['arguments']}"), "resultType": "complete"}

    asked: list[str] = []

    async def elicit(context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    tools = {**listing(tool("book")), **HOP}
    server = ScriptedServer({"tools/list": tools, "tools/call": book}, capabilities={"tools": {}})
    async with (
        server.modern_client(elicitation_callback=elicit) as client,
        ready(upstream=client) as (_, view, _),
    ):
        params = {"name": "book", "arguments": {"n": 1}}
        assert await view.ask("tools/call", params) == text("two {'n': 1}")
        assert asked == ["When?", "Where?"]


async def test_a_server_that_asks_for_what_the_client_cannot_give_is_an_error():
    tools = {**listing(tool("book")), **HOP}
    answers = {"tools/list": tools, "tools/call": wants_input("s", when="When?")}
    server = ScriptedServer(answers, capabilities={"tools": {}})
    async with server.modern_client() as client, ready(upstream=client) as (_, view, _):
        with pytest.raises(ProtocolError, match="not supported"):
            await view.ask("tools/call", {"name": "book"})


async def test_a_server_that_asks_for_input_for_ever_is_given_up_on():
    async def elicit(context: Any, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="decline")

    tools = {**listing(tool("book")), **HOP}
    answers = {"tools/list": tools, "tools/call": wants_input("s", when="When?")}
    server = ScriptedServer(answers, capabilities={"tools": {}})
    async with (
        server.modern_client(elicitation_callback=elicit) as client,
        ready(upstream=client) as (_, view, errors),
    ):
        with pytest.raises(ProtocolError, match="Internal error"):
            await view.ask("tools/call", {"name": "book"})
        assert errors == ["InvalidResult: tools/call: the server asked for input 10 times"]


async def test_structured_content_that_is_no_object_is_wrapped():
    tools = {**listing(tool("list")), **HOP}
    result = {**text("[1]"), "structuredContent": [1], "resultType": "complete"}
    server = ScriptedServer({"tools/list": tools, "tools/call": result}, capabilities={"tools": {}})
    async with server.modern_client() as client, ready(upstream=client) as (_, view, _):
        answer = await view.ask("tools/call", {"name": "list"})
        assert answer == {**text("[1]"), "structuredContent": {"result": [1]}}


async def test_a_call_whose_headers_do_not_fit_is_sent_again_after_listing():
    refused = {"error": {"code": HEADER_MISMATCH, "message": "header mismatch"}}
    calls: list[dict[str, Any]] = []

    def call(params: dict[str, Any]) -> dict[str, Any]:
        calls.append(params)
        return refused if len(calls) == 1 else {**text("ran"), "resultType": "complete"}

    tools = {**listing(tool("a")), **HOP}
    server = ScriptedServer({"tools/list": tools, "tools/call": call}, capabilities={"tools": {}})
    async with server.modern_client() as client, ready(upstream=client) as (_, view, _):
        assert await view.ask("tools/call", {"name": "a"}) == text("ran")
        assert len(server.asked("tools/list")) == 2
        server.answers["tools/call"] = refused
        with pytest.raises(ProtocolError, match="header mismatch"):
            await view.ask("tools/call", {"name": "a"})


async def test_a_subscription_that_is_lost_is_opened_again_and_everything_may_have_changed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(sdk_client, "_FIRST_PAUSE", 0.0)
    tools = {**listing(tool("a")), **HOP}
    ran = {**text("ran"), "resultType": "complete"}
    server = ScriptedServer({"tools/list": tools, "tools/call": ran})
    lose = asyncio.Event()
    opened: list[str] = []

    async def listen(params: dict[str, Any]) -> dict[str, Any]:
        opened.append(server.last_id)
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": server.last_id}}
        granted = {"notifications": params["notifications"], **meta}
        await server.notify("notifications/subscriptions/acknowledged", granted)
        if len(opened) > 1:
            await server.notify(TOOLS_CHANGED, meta)
            await asyncio.Event().wait()
        await lose.wait()
        return {"error": {"code": -32000, "message": "stream broke"}}

    server.answers["subscriptions/listen"] = listen
    async with server.modern_client() as client, ready(upstream=client) as (_, view, _):
        changes = sdk_server(client)
        await until(lambda: changes._watching)
        await view.ask("tools/call", {"name": "a"})
        lose.set()
        for kind in ("tools", "resources", "prompts"):
            await view.told(f"notifications/{kind}/list_changed")
        await view.ask("tools/call", {"name": "a"})
        assert len(opened) == 2
        assert len(server.asked("tools/list")) >= 2


async def test_a_subscription_that_the_server_ends_stays_ended():
    server = ScriptedServer({"tools/list": {**listing(), **HOP}})

    async def listen(params: dict[str, Any]) -> dict[str, Any]:
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": server.last_id}}
        granted = {"notifications": params["notifications"], **meta}
        await server.notify("notifications/subscriptions/acknowledged", granted)
        return {"resultType": "complete"}

    server.answers["subscriptions/listen"] = listen
    async with server.modern_client() as client, ready(upstream=client.session) as (_, view, _):
        changes = sdk_server(client)
        assert changes._listener is not None
        await changes._listener
        assert not changes._watching
        assert len(server.asked("subscriptions/listen")) == 1
        assert await view.ask("ping") == {}


async def test_a_server_that_will_not_be_listened_to_is_asked_for_its_list_again():
    tools = {**listing(tool("a")), **HOP}
    ran = {**text("ran"), "resultType": "complete"}
    server = ScriptedServer({"tools/list": tools, "tools/call": ran})
    async with server.modern_client() as client, ready(upstream=client) as (_, view, _):
        upstream = sdk_server(client)
        listener = upstream._listener
        assert listener is not None
        await listener
        await view.ask("tools/call", {"name": "a"})
        upstream.tool_cache._relisting._listed_at -= RELIST_AFTER
        await view.ask("tools/call", {"name": "a"})
        assert len(server.asked("tools/list")) == 2


async def test_without_a_handler_an_older_servers_changes_are_found_when_asked():
    server = ScriptedServer({"tools/list": listing(tool("a"))})
    async with server.client() as client:
        upstream = sdk_server(client)
        assert list(await upstream.tools()) == ["a"]
        assert upstream.current
        server.answers["tools/list"] = listing(tool("b"))
        upstream.tool_cache._relisting._listed_at -= RELIST_AFTER
        assert not upstream.current
        assert list(await upstream.tools()) == ["b"]
        assert list(await upstream.tools()) == ["b"]
        assert len(server.asked("tools/list")) == 2


async def test_a_closed_client_is_a_closed_connection():
    async with ScriptedServer({"tools/call": text("ran")}).client() as client:
        upstream = sdk_server(client)
    with pytest.raises(ConnectionClosed, match="tools/call: the client is closed"):
        await upstream.request("tools/call", {"name": "a"})
