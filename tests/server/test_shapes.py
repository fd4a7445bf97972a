"""The contract of each shape, as it goes over the wire, with either framework."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import fastmcp
import mcp
import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError as SdkToolError

from tests.server import clients, shop
from tests.server.clients import FRAMEWORKS, SHOWS_VIEWS
from transom.errors import ProtocolError, ToolError
from transom.server import Views
from transom.types import TextContent, ToolResult

every_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


def server_with(views: Views, framework: str) -> Any:
    if framework == "official":
        return MCPServer("x", extensions=[views], log_level="CRITICAL")
    server: fastmcp.FastMCP[Any] = fastmcp.FastMCP("x")
    views.install(server)
    return server


def views_with(*helpers: Any) -> Views:
    views = Views()
    for helper in helpers:
        views.helper(description="A helper.")(helper)
    return views


@every_framework
async def test_the_tool_that_opens_a_view(framework: str):
    async with clients.memory_client(shop.make(framework), SHOWS_VIEWS) as client:
        tool = (await clients.tools_of(client))["show_orders"]
    assert tool["title"] == "Show orders"
    assert tool["description"] == "Show the orders with this status."
    assert tool["annotations"] == {"readOnlyHint": True}
    assert tool["inputSchema"]["type"] == "object"
    assert tool["inputSchema"]["required"] == ["status"]
    assert tool["inputSchema"]["properties"]["limit"]["default"] == 10
    order = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "total": {"type": "number"}},
        "required": ["id", "total"],
    }
    assert tool["outputSchema"] == {
        "type": "object",
        "properties": {"orders": {"type": "array", "items": order}},
        "required": ["orders"],
    }
    meta = {key: value for key, value in tool["_meta"].items() if key != "fastmcp"}
    assert meta == {"ui": {"resourceUri": shop.URI}, "ui/resourceUri": shop.URI}


@every_framework
async def test_the_tool_for_the_view_alone(framework: str):
    async with clients.memory_client(shop.make(framework), SHOWS_VIEWS) as client:
        tool = (await clients.tools_of(client))["refresh_orders"]
    meta = {key: value for key, value in tool["_meta"].items() if key != "fastmcp"}
    assert meta == {"ui": {"visibility": ["app"]}}
    assert tool["outputSchema"]["required"] == ["orders"]


@every_framework
async def test_a_client_gets_an_error_in_place_of_a_result_that_breaks_the_output_schema(
    framework: str,
):
    def totals() -> list[int]:
        return ["not a number"]  # type: ignore[list-item]

    server = server_with(views_with(totals), framework)
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        tool = (await clients.tools_of(client))["totals"]
        result = await clients.call(client, "totals", {})
    assert tool["outputSchema"]["properties"]["result"]["items"] == {"type": "integer"}
    assert result.is_error
    assert result.structured_content is None
    assert "not a number" not in str(result.content)


@every_framework
@pytest.mark.parametrize("client", ["shows Views", "no extensions"])
async def test_a_plain_tool_is_only_marked_as_the_models_alone(framework: str, client: str):
    bare: Any = MCPServer("x") if framework == "official" else fastmcp.FastMCP("x")
    (bare.tool() if framework == "official" else bare.tool)(shop.count_orders)
    async with clients.memory_client(bare, {}) as expected:
        want = (await clients.tools_of(expected))["count_orders"]
    extensions = clients.CLIENTS[client]
    async with clients.memory_client(shop.make(framework), extensions) as connected:
        found = (await clients.tools_of(connected))["count_orders"]
        if client == "shows Views":
            assert found["_meta"].pop("ui") == {"visibility": ["model"]}
        assert {"_meta": {}} | found == {"_meta": {}} | want
        result = await clients.call(connected, "count_orders", {"status": "open"})
    assert result.structured_content == {"result": 4}


@every_framework
async def test_the_page_and_what_it_asks_for(framework: str):
    async with clients.memory_client(shop.make(framework), SHOWS_VIEWS) as client:
        listed = await client.list_resources()
        [entry] = [r for r in getattr(listed, "resources", listed) if str(r.uri) == shop.URI]
        read = await client.read_resource(shop.URI)
    [content] = getattr(read, "contents", read)
    ui = {
        "csp": {"connectDomains": ["https://api.example.com"]},
        "permissions": {"clipboardWrite": {}},
        "prefersBorder": True,
    }
    assert content.meta == {"ui": ui}
    assert entry.meta is not None
    assert entry.meta["ui"] == ui
    assert content.uri == shop.URI
    assert content.mime_type == entry.mime_type == "text/html;profile=mcp-app"
    assert content.text == shop.PAGE
    assert (entry.title, entry.description) == ("Orders", "A list of orders")
    assert entry.name == "shop/orders.html"


@every_framework
async def test_a_page_that_asks_for_nothing_has_no_ui_meta(framework: str):
    views = Views()
    views.add("ui://a/b", html=shop.PAGE)
    async with clients.memory_client(server_with(views, framework), SHOWS_VIEWS) as client:
        read = await client.read_resource("ui://a/b")
    [content] = getattr(read, "contents", read)
    assert not content.meta


@every_framework
async def test_a_view_may_be_opened_by_its_uri_and_hidden_from_the_view(framework: str):
    views = Views()
    views.add("ui://a/b", html=shop.PAGE)

    @views.tool(opens="ui://a/b", visibility=("model",), meta={"vendor": {"x": None}})
    def opener() -> str:
        """Open it."""
        return "open"

    @views.helper(opens="ui://a/b")
    def reopener() -> str:
        """Open it from the View."""
        return "open"

    async with clients.memory_client(server_with(views, framework), SHOWS_VIEWS) as client:
        tools = await clients.tools_of(client)
    assert tools["opener"]["_meta"]["ui"] == {"resourceUri": "ui://a/b", "visibility": ["model"]}
    assert tools["opener"]["_meta"]["vendor"] == {"x": None}
    assert tools["reopener"]["_meta"]["ui"] == {"resourceUri": "ui://a/b", "visibility": ["app"]}
    assert tools["reopener"]["_meta"]["ui/resourceUri"] == "ui://a/b"


@every_framework
async def test_other_meta_reaches_a_client_without_views(framework: str):
    views = Views()
    views.add("ui://a/b", html=shop.PAGE)

    @views.tool(opens="ui://a/b", meta={"vendor": 1})
    def opener() -> str:
        """Open it."""
        return "open"

    async with clients.memory_client(server_with(views, framework), {}) as client:
        meta = (await clients.tools_of(client))["opener"]["_meta"]
    assert {key: value for key, value in meta.items() if key != "fastmcp"} == {"vendor": 1}


@every_framework
async def test_the_decorated_function_stays_what_it_was(framework: str):
    views = Views()

    def double(n: int) -> int:
        """Double it."""
        return 2 * n

    assert views.helper(double) is double
    assert double(4) == 8
    async with clients.memory_client(server_with(views, framework), SHOWS_VIEWS) as client:
        result = await clients.call(client, "double", {"n": 4})
    assert result.structured_content == {"result": 8}


@every_framework
async def test_plain_functions_run_beside_the_loop_and_async_ones_on_it(framework: str):
    def plain() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def cooperative() -> bool:
        return threading.current_thread() is threading.main_thread()

    class Instance:
        async def __call__(self) -> bool:
            return threading.current_thread() is threading.main_thread()

    views = views_with(plain, cooperative)
    views.helper(name="instance", description="A helper.")(Instance())
    async with clients.memory_client(server_with(views, framework), SHOWS_VIEWS) as client:
        for name, on_the_loop in (("plain", False), ("cooperative", True), ("instance", True)):
            result = await clients.call(client, name, {})
            assert result.structured_content == {"result": on_the_loop}, name


async def test_a_handler_may_ask_for_the_official_context():
    async def who(ctx: Context[Any], n: int) -> str:
        return f"{ctx.mcp_server.name} {n}"

    server = server_with(views_with(who), "official")
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        tool = (await clients.tools_of(client))["who"]
        assert set(tool["inputSchema"]["properties"]) == {"n"}
        assert (await clients.call(client, "who", {"n": 1})).content[0].text == "x 1"


async def test_a_handler_may_ask_for_the_fastmcp_context():
    async def who(ctx: fastmcp.Context, n: int) -> str:
        return f"{ctx.fastmcp.name} {n}"

    server = server_with(views_with(who), "fastmcp")
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        tool = (await clients.tools_of(client))["who"]
        assert set(tool["inputSchema"]["properties"]) == {"n"}
        assert (await clients.call(client, "who", {"n": 1})).content[0].text == "x 1"


@dataclass
class Item:
    id: str


@every_framework
@pytest.mark.parametrize("spread", ["sync", "async"])
async def test_how_a_tool_fails(framework: str, spread: str):
    def broken(how: str) -> Item:
        match how:
            case "no":
                raise ToolError("The shop is closed")
            case "silent no":
                raise ToolError
            case "crash":
                raise RuntimeError("s3cret")
            case "promise":
                return Item(id=object())  # type: ignore[arg-type]
            case "whole":
                return ToolResult(content=[TextContent("sold out")], is_error=True)  # type: ignore[return-value]
            case _:
                return Item(how)

    async def broken_later(how: str) -> Item:
        return broken(how)

    views = views_with()
    handler = broken if spread == "sync" else broken_later
    views.helper(name="broken", description="A helper.")(handler)
    async with clients.memory_client(server_with(views, framework), SHOWS_VIEWS) as client:

        async def told(how: str) -> tuple[bool, str]:
            result = await clients.call(client, "broken", {"how": how})
            [block] = result.content
            return result.is_error, block.text

        assert await told("no") == (True, "The shop is closed")
        assert await told("silent no") == (True, "Tool broken failed")
        assert await told("whole") == (True, "sold out")
        for how in ("crash", "promise"):
            failed, text = await told(how)
            assert failed
            assert "broken" in text
            assert "s3cret" not in text
        failed, text = await told(3)  # type: ignore[arg-type]
        assert failed
        assert "how" in text
        assert await told("fine") == (False, '{\n  "id": "fine"\n}')


@pytest.mark.parametrize("era", clients.ERAS)
async def test_a_protocol_error_is_the_answer_itself(era: str):
    def refuse() -> None:
        raise ProtocolError(-32042, "Not here", {"where": "elsewhere"})

    server = server_with(views_with(refuse), "official")
    async with clients.memory_client(server, SHOWS_VIEWS, era) as client:
        error = await clients.call(client, "refuse", {})
    assert isinstance(error, mcp.MCPError)
    assert (error.code, error.message) == (-32042, "Not here")
    assert error.data == {"where": "elsewhere"}


async def test_the_frameworks_own_errors_keep_their_meaning():
    def official_no() -> None:
        raise SdkToolError("closed today")

    def fast_no() -> None:
        raise fastmcp.exceptions.ToolError("closed today")

    for handler, framework in ((official_no, "official"), (fast_no, "fastmcp")):
        server = server_with(views_with(handler), framework)
        async with clients.memory_client(server, SHOWS_VIEWS) as client:
            result = await clients.call(client, handler.__name__, {})
        assert result.is_error
        assert "closed today" in result.content[0].text


@every_framework
async def test_a_page_that_cannot_be_made_is_an_error_for_the_reader_alone(framework: str):
    views = Views()
    views.add("ui://a/good", html=shop.PAGE)
    views.add("ui://a/bad", html=lambda: "<p>")

    def crash() -> str:
        raise RuntimeError("s3cret")

    views.add("ui://a/crash", html=crash)
    async with clients.memory_client(server_with(views, framework), SHOWS_VIEWS) as client:
        for uri in ("ui://a/bad", "ui://a/crash"):
            with pytest.raises(mcp.MCPError, match=uri) as failed:
                await client.read_resource(uri)
            assert "s3cret" not in str(failed.value)
        read = await client.read_resource("ui://a/good")
    assert getattr(read, "contents", read)[0].text == shop.PAGE
