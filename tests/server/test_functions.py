"""Plain functions for servers that exist already: the same contract, piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastmcp
import mcp.types as mcp
import pytest
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer

from tests.server import clients, shop
from tests.server.clients import CLIENTS, ERAS, FRAMEWORKS, SHOWS_VIEWS
from transom.errors import RegistrationError
from transom.mcptypes import UI_EXTENSION, VIEW_MIME_TYPE
from transom.server import Csp, register_app_resource, register_app_tool, ui_capability

URI = "ui://shop/orders.html"
every_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


def bare(framework: str) -> Any:
    return MCPServer("x", log_level="CRITICAL") if framework == "official" else fastmcp.FastMCP("x")


def show(status: str) -> dict[str, Any]:
    """Show orders."""
    return {"status": status}


@every_framework
@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        # C-001: each key is copied to the other, and what else is in `ui` stays.
        (
            {"ui": {"resourceUri": URI, "visibility": ["model"]}},
            {"ui": {"resourceUri": URI, "visibility": ["model"]}, "ui/resourceUri": URI},
        ),
        ({"ui/resourceUri": URI}, {"ui": {"resourceUri": URI}, "ui/resourceUri": URI}),
        (
            {"ui/resourceUri": URI, "ui": {"visibility": ["app"], "vendor": 1}},
            {
                "ui": {"visibility": ["app"], "vendor": 1, "resourceUri": URI},
                "ui/resourceUri": URI,
            },
        ),
        (
            {"ui": {"resourceUri": URI}, "ui/resourceUri": URI},
            {"ui": {"resourceUri": URI}, "ui/resourceUri": URI},
        ),
        ({"ui": {"resourceUri": ""}, "ui/resourceUri": None, "a": 1}, None),
        # C-002: without a link no key is added.
        ({"ui": {"visibility": ["app"]}}, {"ui": {"visibility": ["app"]}}),
        ({"ui": {"visibility": ["app", "model"]}}, {"ui": {"visibility": ["model", "app"]}}),
        ({"vendor": {"a": None}}, {"vendor": {"a": None}}),
        # C-003: no `_meta` is fine.
        ({}, {}),
        (None, {}),
    ],
)
async def test_both_links_are_written_and_nothing_else_changes(
    framework: str, meta: dict[str, Any] | None, expected: dict[str, Any] | None
):
    server = bare(framework)
    given = None if meta is None else dict(meta)
    register_app_tool(server, "show", show, meta=meta)
    assert meta == given
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        tool = (await clients.tools_of(client))["show"]
        result = await clients.call(client, "show", {"status": "open"})
    listed = {key: value for key, value in tool.get("_meta", {}).items() if key != "fastmcp"}
    if expected is not None:
        assert listed == expected
    assert result.structured_content == {"status": "open"}


@every_framework
async def test_everything_about_a_tool_can_be_said(framework: str):
    server = bare(framework)
    register_app_tool(
        server,
        "show",
        lambda status: {"status": status},
        title="Show",
        description="Show orders.",
        annotations={"readOnlyHint": True},
        text=lambda data: f"status {data['status']}",
    )
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        tool = (await clients.tools_of(client))["show"]
        result = await clients.call(client, "show", {"status": "open"})
    assert (tool["title"], tool["description"]) == ("Show", "Show orders.")
    assert tool["annotations"] == {"readOnlyHint": True}
    assert [block.text for block in result.content] == ["status open"]


@every_framework
@pytest.mark.parametrize("era", ERAS)
async def test_clients_without_views_are_spared_tool_page_and_helper(framework: str, era: str):
    server = bare(framework)
    register_app_tool(server, "show", show, meta={"ui": {"resourceUri": URI}})
    register_app_tool(server, "refresh", show, meta={"ui": {"visibility": ["app"]}})
    register_app_resource(server, URI, html=shop.PAGE)
    async with clients.memory_client(server, {}, era) as client:
        tools = await clients.tools_of(client)
        assert set(tools) == {"show"}
        assert "ui" not in tools["show"].get("_meta", {})
        assert clients.is_unknown(await clients.call(client, "refresh", {"status": "x"}))
        listed = await client.list_resources()
        assert not getattr(listed, "resources", listed)
        assert not (await clients.call(client, "show", {"status": "x"})).is_error
    async with clients.memory_client(server, SHOWS_VIEWS, era) as client:
        assert set(await clients.tools_of(client)) == {"show", "refresh"}
        assert not (await clients.call(client, "refresh", {"status": "x"})).is_error


@every_framework
async def test_a_page_from_a_file_is_served_with_its_metadata(framework: str, tmp_path: Path):
    server = bare(framework)
    file = tmp_path / "orders.html"
    file.write_text(shop.PAGE)
    page = register_app_resource(
        server,
        URI,
        html=file,
        csp=Csp(resource=["https://cdn.example.com"]),
        permissions={"camera"},
        domain="abc.example.com",
        prefers_border=False,
        name="orders",
    )
    assert (page.uri, page.name) == (URI, "orders")
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        read = await client.read_resource(URI)
    [content] = getattr(read, "contents", read)
    assert (content.text, content.mime_type) == (shop.PAGE, VIEW_MIME_TYPE)
    assert content.meta == {
        "ui": {
            "csp": {"resourceDomains": ["https://cdn.example.com"]},
            "permissions": {"camera": {}},
            "domain": "abc.example.com",
            "prefersBorder": False,
        }
    }


@every_framework
async def test_a_refused_page_is_not_registered(framework: str):
    server = bare(framework)
    with pytest.raises(RegistrationError):
        register_app_resource(server, "https://x", html=shop.PAGE)
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        listed = await client.list_resources()
    assert not getattr(listed, "resources", listed)


# --- ui_capability ---------------------------------------------------------------------------


@every_framework
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_handler_can_ask_what_its_client_shows(framework: str, era: str, client: str):
    server = bare(framework)

    if framework == "official":

        async def asked(ctx: Context[Any]) -> dict[str, Any]:
            return {"says": ui_capability(ctx), "raw": ui_capability(ctx.request_context)}

        server.tool()(asked)
    else:

        async def asked_fast(ctx: fastmcp.Context) -> dict[str, Any]:
            return {"says": ui_capability(ctx), "raw": ui_capability(ctx.request_context)}

        server.tool(name="asked")(asked_fast)

    extensions = CLIENTS[client]
    async with clients.memory_client(server, extensions, era) as connected:
        said = (await clients.call(connected, "asked", {})).structured_content
    expected = extensions[UI_EXTENSION] if client.startswith("shows Views") else None
    assert said == {"says": expected, "raw": expected}


@pytest.mark.parametrize(
    "ctx",
    [None, {}, {"extensions": None}, object(), Context(), mcp.ClientCapabilities()],
    ids=lambda each: type(each).__name__,
)
def test_without_a_client_there_is_no_capability(ctx: object):
    assert ui_capability(ctx) is None


def test_capabilities_themselves_can_be_asked():
    wire = {"extensions": SHOWS_VIEWS}
    assert ui_capability(wire) == SHOWS_VIEWS[UI_EXTENSION]
    typed = mcp.ClientCapabilities(extensions=SHOWS_VIEWS)
    assert ui_capability(typed) == SHOWS_VIEWS[UI_EXTENSION]


# --- beside other things on the same server --------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
async def test_the_official_gate_stays_outside_the_users_middleware(era: str):
    seen: list[int] = []

    async def count(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "tools/list":
            assert isinstance(result, dict)
            seen.append(len(result["tools"]))
        return result

    server: MCPServer[Any] = MCPServer("x", middleware=[count])
    register_app_tool(server, "show", show, meta={"ui": {"resourceUri": URI}})
    register_app_tool(server, "refresh", show, meta={"ui": {"visibility": ["app"]}})
    async with clients.memory_client(server, {}, era) as client:
        assert set(await clients.tools_of(client)) == {"show"}
    assert set(seen) == {2}


async def test_the_official_gate_reads_models_as_well_as_wire_objects():
    async def modelled(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "tools/list":
            return mcp.ListToolsResult.model_validate(result)
        return result

    server: MCPServer[Any] = MCPServer("x", middleware=[modelled])
    register_app_tool(server, "refresh", show, meta={"ui": {"visibility": ["app"]}})
    async with clients.memory_client(server, {}) as client:
        assert not await clients.tools_of(client)


async def test_a_list_that_depends_on_the_client_is_not_for_shared_caches():
    from mcp.server.caching import CacheHint

    hints: Any = {
        "tools/list": CacheHint(ttl_ms=60_000, scope="public"),
        "resources/read": CacheHint(ttl_ms=60_000, scope="public"),
    }
    server: MCPServer[Any] = MCPServer("x", cache_hints=hints)
    register_app_tool(server, "show", show, meta={"ui": {"resourceUri": URI}})
    register_app_resource(server, URI, html=shop.PAGE)
    for extensions in (SHOWS_VIEWS, {}):
        async with clients.memory_client(server, extensions) as client:
            tools = await client.list_tools()
            assert (tools.cache_scope, tools.ttl_ms) == ("private", 60_000)
            assert (await client.read_resource(URI)).cache_scope == "public"


@every_framework
async def test_templates_of_pages_are_spared_too(framework: str):
    server = bare(framework)

    def page(n: str) -> str:
        return n

    server.resource("ui://shop/{n}")(page)
    server.resource("data://shop/{n}")(page)
    register_app_tool(server, "show", show)
    for extensions, expected in ((SHOWS_VIEWS, 2), ({}, 1)):
        async with clients.memory_client(server, extensions) as client:
            listed = await client.list_resource_templates()
            assert len(getattr(listed, "resource_templates", listed)) == expected


async def test_fastmcp_caches_cannot_mix_clients_up():
    from fastmcp.server.middleware.caching import ResponseCachingMiddleware

    server: fastmcp.FastMCP[Any] = fastmcp.FastMCP("x")
    server.add_middleware(ResponseCachingMiddleware())
    register_app_tool(server, "show", show, meta={"ui": {"resourceUri": URI}})
    register_app_tool(server, "refresh", show, meta={"ui": {"visibility": ["app"]}})
    for extensions, names in ((SHOWS_VIEWS, 2), ({}, 1)) * 2:
        async with clients.memory_client(server, extensions) as client:
            assert len(await clients.tools_of(client)) == names


async def test_a_fastmcp_server_asks_itself_without_being_spared():
    server: fastmcp.FastMCP[Any] = fastmcp.FastMCP("x")
    register_app_tool(server, "refresh", show, meta={"ui": {"visibility": ["app"]}})
    register_app_resource(server, URI, html=shop.PAGE)
    assert [tool.name for tool in await server.list_tools()] == ["refresh"]
    assert len(await server.list_resources()) == 1
    result = await server.call_tool("refresh", {"status": "x"})
    assert result.structured_content == {"status": "x"}


@pytest.mark.parametrize("namespace", [None, "inner"])
async def test_a_mounted_fastmcp_server_keeps_its_helpers_to_itself(namespace: str | None):
    child: fastmcp.FastMCP[Any] = fastmcp.FastMCP("child")
    register_app_tool(child, "show", show, meta={"ui": {"resourceUri": URI}})
    register_app_tool(child, "refresh", show, meta={"ui": {"visibility": ["app"]}})
    register_app_resource(child, URI, html=shop.PAGE)
    parent: fastmcp.FastMCP[Any] = fastmcp.FastMCP("parent")
    parent.mount(child, namespace=namespace)
    prefix = "" if namespace is None else f"{namespace}_"
    async with clients.memory_client(parent, {}) as client:
        tools = await clients.tools_of(client)
        assert set(tools) == {f"{prefix}show"}
        assert "ui" not in tools[f"{prefix}show"]["_meta"]
        refused = await clients.call(client, f"{prefix}refresh", {"status": "x"})
        assert refused.is_error
        assert "Unknown tool: refresh" in refused.content[0].text
        assert not await client.list_resources()
    async with clients.memory_client(parent, SHOWS_VIEWS) as client:
        assert set(await clients.tools_of(client)) == {f"{prefix}show", f"{prefix}refresh"}
        result = await clients.call(client, f"{prefix}refresh", {"status": "x"})
        assert not result.is_error


@every_framework
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("client", ["shows Views", "no extensions"])
async def test_plain_tools_are_the_models_alone_on_a_server_with_views(
    framework: str, era: str, client: str
) -> None:
    server = bare(framework)
    both = {"ui": {"visibility": ["model", "app"]}, "mine": 1}
    server.tool(name="before")(show)
    register_app_resource(server, URI, html=shop.PAGE)
    register_app_tool(server, "opener", show, meta={"ui": {"resourceUri": URI}})
    register_app_tool(server, "silent", show)
    server.tool(name="after")(show)
    server.tool(name="open_to_views", meta=both)(show)
    server.tool(name="linked", meta={"ui/resourceUri": URI})(show)
    async with clients.memory_client(server, CLIENTS[client], era) as connected:
        found = await clients.tools_of(connected)
    shown = {name: tool.get("_meta", {}).get("ui") for name, tool in found.items()}
    if client == "no extensions":
        assert set(shown.values()) == {None}
        assert found["open_to_views"]["_meta"]["mine"] == 1
        return
    assert shown == {
        "before": {"visibility": ["model"]},
        "opener": {"resourceUri": URI},
        "silent": None,
        "after": {"visibility": ["model"]},
        "open_to_views": {"visibility": ["model", "app"]},
        "linked": None,
    }


@every_framework
@pytest.mark.parametrize("visibility", [["app"], ("app",)], ids=["list", "tuple"])
async def test_a_plain_tool_for_views_alone_is_kept_from_clients_without_them(
    framework: str, visibility: Sequence[str]
) -> None:
    server = bare(framework)
    register_app_resource(server, URI, html=shop.PAGE)
    server.tool(name="refresh", meta={"ui": {"visibility": visibility}})(show)
    async with clients.memory_client(server, SHOWS_VIEWS) as connected:
        assert set(await clients.tools_of(connected)) == {"refresh"}
    async with clients.memory_client(server, {}) as connected:
        assert not await clients.tools_of(connected)


@every_framework
async def test_a_server_without_views_is_listed_as_it_was(framework: str) -> None:
    server = bare(framework)
    server.tool(name="plain")(show)
    async with clients.memory_client(server, SHOWS_VIEWS) as connected:
        assert "ui" not in (await clients.tools_of(connected))["plain"].get("_meta", {})
