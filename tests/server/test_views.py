"""Views on a server: as an extension, installed, and declared before or after."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import fastmcp
import mcp.types as mcp
import msgspec
import pytest
from mcp.server.apps import Apps
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer

from tests.server import clients, shop
from tests.server.clients import ERAS, FRAMEWORKS, SHOWS_VIEWS
from transom.errors import RegistrationError
from transom.mcptypes import UI_EXTENSION
from transom.server import ViewResource, Views


def declare(views: Views) -> ViewResource:
    page = views.add("ui://late/page.html", html=shop.PAGE)

    @views.tool(opens=page)
    def show_late() -> str:
        """Show it."""
        return "late"

    @views.helper
    def help_late() -> str:
        """Help it."""
        return "late"

    return page


async def check_late(server: Any) -> None:
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        tools = await clients.tools_of(client)
        assert set(tools) == {"show_late", "help_late"}
        assert tools["show_late"]["_meta"]["ui"] == {"resourceUri": "ui://late/page.html"}
        read = await client.read_resource("ui://late/page.html")
        assert getattr(read, "contents", read)[0].text == shop.PAGE
    async with clients.memory_client(server, {}) as client:
        assert set(await clients.tools_of(client)) == {"show_late"}
        assert clients.is_unknown(await clients.call(client, "help_late", {}))


async def test_an_extension_takes_what_was_declared_before():
    views = Views()
    declare(views)
    await check_late(MCPServer("x", extensions=[views]))


async def test_an_extension_takes_what_is_declared_afterwards():
    views = Views()
    server: MCPServer[Any] = MCPServer("x", extensions=[views])
    declare(views)
    await check_late(server)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_installed_server_takes_what_is_declared(framework: str, when: str):
    server: Any = MCPServer("x") if framework == "official" else fastmcp.FastMCP("x")
    views = Views()
    if when == "before":
        declare(views)
    views.install(server)
    if when == "after":
        declare(views)
    await check_late(server)


def test_the_sdk_gives_an_extension_no_way_to_its_server():
    # If this fails, `consuming_server` may not need to look at the stack any more.
    for hook in (Extension.tools, Extension.resources, Extension.methods, Extension.settings):
        assert list(inspect.signature(hook).parameters) == ["self"]
    with pytest.raises(ValueError, match="cannot bind spec method"):
        MethodBinding("tools/list", mcp.PaginatedRequestParams, Extension().intercept_tool_call)


async def test_a_subclass_of_the_official_server_is_found_too():
    class Shop(MCPServer[Any]):
        def __init__(self, views: Views) -> None:
            super().__init__("shop", extensions=[views])

        def _apply_extension(self, extension: Extension) -> None:
            super()._apply_extension(extension)

    views = Views()
    declare(views)
    await check_late(Shop(views))


async def test_each_server_finds_itself_even_inside_a_method_of_another():
    class Outer(MCPServer[Any]):
        def make(self) -> MCPServer[Any]:
            views = Views()
            declare(views)
            return MCPServer("inner", extensions=[views])

    outer = Outer("outer")
    await check_late(outer.make())
    async with clients.memory_client(outer, SHOWS_VIEWS) as client:
        assert not await clients.tools_of(client)


async def test_the_same_views_can_be_on_several_servers():
    views = Views()
    servers: list[Any] = [MCPServer("a", extensions=[views]), MCPServer("b"), fastmcp.FastMCP("c")]
    for server in servers[1:]:
        views.install(server)
    declare(views)
    for server in servers:
        await check_late(server)


async def test_two_views_of_different_makers_live_on_one_server():
    one, two = Views(), Views()
    server: MCPServer[Any] = MCPServer("x", extensions=[one])
    two.install(server)
    declare(one)

    @two.helper
    def other() -> str:
        """Another helper."""
        return "other"

    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        assert set(await clients.tools_of(client)) == {"show_late", "help_late", "other"}
    async with clients.memory_client(server, {}) as client:
        assert clients.is_unknown(await clients.call(client, "other", {}))
        assert clients.is_unknown(await clients.call(client, "help_late", {}))


async def test_the_sdks_own_apps_are_gated_along():
    apps = Apps()
    apps.add_html_resource("ui://clock/app.html", shop.PAGE)

    @apps.tool(resource_uri="ui://clock/app.html", description="The time")
    def get_time() -> str:
        return "now"

    server: MCPServer[Any] = MCPServer("x", extensions=[apps])
    views = Views()
    declare(views)
    views.install(server)
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        assert "ui" in (await clients.tools_of(client))["get_time"]["_meta"]
    async with clients.memory_client(server, {}) as client:
        assert "_meta" not in (await clients.tools_of(client))["get_time"]
        assert not (await client.list_resources()).resources


@pytest.mark.parametrize("how", ["extension", "installed", "fastmcp"])
async def test_the_server_says_that_it_has_views(how: str):
    views = Views()
    if how == "extension":
        server: Any = MCPServer("x", extensions=[views])
    else:
        server = fastmcp.FastMCP("x") if how == "fastmcp" else MCPServer("x")
        views.install(server)
    async with clients.memory_client(server, SHOWS_VIEWS, "auto") as client:
        assert UI_EXTENSION in client.server_capabilities.extensions


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_whose_type_holds_itself_can_be_listed_and_called(era: str):
    views = Views()
    views.helper(grow)
    for server in (MCPServer("x", extensions=[views]), fastmcp.FastMCP("x")):
        if isinstance(server, fastmcp.FastMCP):
            views.install(server)
        async with clients.memory_client(server, SHOWS_VIEWS, era) as client:
            schema = (await clients.tools_of(client))["grow"]["outputSchema"]
            assert schema["properties"]["name"] == {"type": "string"}
            result = await clients.call(client, "grow", {"depth": 2})
            assert result.structured_content["below"][0]["below"][0]["name"] == "0"


@pytest.mark.parametrize("era", ERAS)
async def test_structs_are_fine_as_parameters_too(era: str):
    views = Views()
    views.helper(measure)
    for server in (MCPServer("x", extensions=[views], log_level="CRITICAL"), fastmcp.FastMCP("x")):
        if isinstance(server, fastmcp.FastMCP):
            views.install(server)
        async with clients.memory_client(server, SHOWS_VIEWS, era) as client:
            schema = (await clients.tools_of(client))["measure"]["inputSchema"]
            assert schema["properties"]["tree"]["properties"]["name"] == {"type": "string"}
            assert schema["required"] == ["tree", "factor"]
            tree = {"name": "a", "below": [{"name": "b", "below": []}]}
            arguments = {"tree": tree, "factor": 2, "more": [tree]}
            result = await clients.call(client, "measure", arguments)
            assert result.structured_content == {"result": 8}
            wrong = await clients.call(client, "measure", {"tree": {"name": 1}, "factor": 2})
            assert wrong.is_error
            assert "tree" in wrong.content[0].text


def test_a_struct_that_has_no_json_form_is_refused():
    def broken(thing: Odd) -> None:
        """Take something odd."""

    with pytest.raises(RegistrationError, match="parameter 'thing'"):
        Views().helper(broken)


class Branch(msgspec.Struct):
    name: str
    below: list[Branch]


class Odd(msgspec.Struct):
    what: threading.Lock


def measure(tree: Branch, factor: int, more: list[Branch] | None = None) -> int:
    """Count the branches."""

    def size(branch: Branch) -> int:
        return 1 + sum(size(each) for each in branch.below)

    return factor * (size(tree) + sum(size(each) for each in more or []))


def grow(depth: int) -> Branch:
    """Grow a tree."""
    return Branch(str(depth), [grow(depth - 1)] if depth else [])


async def test_a_tool_says_when_its_open_view_is_used_again_to_clients_that_show_views():
    views = Views()
    page = views.add("ui://late/page.html", html=shop.PAGE)

    @views.tool(opens=page, reuse="arguments")
    def show() -> str:
        """Show it."""
        return "shown"

    server: MCPServer[Any] = MCPServer("x", extensions=[views])
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        meta = (await clients.tools_of(client))["show"]["_meta"]
        assert meta["transom/reuse"] == "arguments"
    async with clients.memory_client(server, {}) as client:
        assert "_meta" not in (await clients.tools_of(client))["show"]
