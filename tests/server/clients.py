"""Clients of the shop, of both frameworks: what each can see, and what it should see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import mcp
import msgspec
import uvicorn
from fastmcp import Client as FastClient
from fastmcp import FastMCP
from mcp.server.mcpserver import MCPServer

from tests.server.shop import PAGE, URI
from transom.mcptypes import UI_EXTENSION, VIEW_MIME_TYPE

FRAMEWORKS = ("official", "fastmcp")
ERAS = ("2026-07-28", "legacy")

SHOWS_VIEWS = {UI_EXTENSION: {"mimeTypes": [VIEW_MIME_TYPE]}}
CLIENTS: dict[str, dict[str, Any]] = {
    "shows Views": SHOWS_VIEWS,
    "shows Views and more": {UI_EXTENSION: {"mimeTypes": ["text/html", VIEW_MIME_TYPE], "x": 1}},
    "no extensions": {},
    "no settings": {UI_EXTENSION: {}},
    "no types": {UI_EXTENSION: {"mimeTypes": []}},
    "another type": {UI_EXTENSION: {"mimeTypes": ["text/html"]}},
    "another extension": {"io.example/ui": {"mimeTypes": [VIEW_MIME_TYPE]}},
}


def http_app(server: MCPServer[Any] | FastMCP[Any], *, stateless: bool = False) -> Any:
    if isinstance(server, FastMCP):
        return server.http_app(stateless_http=stateless)
    return server.streamable_http_app(stateless_http=stateless)


class _Uvicorn(uvicorn.Server):
    def __init__(self, app: Any) -> None:
        super().__init__(uvicorn.Config(app, port=0, log_level="error", ws="none"))
        self.ready = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve an application on a free port of the loopback; yields the URL of its MCP endpoint."""
    server = _Uvicorn(app)
    running = asyncio.create_task(server.serve())
    await server.ready.wait()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await running


# --- what a client sees ----------------------------------------------------------------------


def advertised(extensions: dict[str, Any]) -> list[Any]:
    return [mcp.client.advertise(name, settings) for name, settings in extensions.items()]


def official_client(target: Any, extensions: dict[str, Any], era: str = ERAS[0]) -> mcp.Client:
    return mcp.Client(target, mode=era, extensions=advertised(extensions))


def fast_client(target: Any, extensions: dict[str, Any], era: str = ERAS[0]) -> FastClient[Any]:
    return FastClient(target, mode=era, extensions=advertised(extensions))


def memory_client(server: Any, extensions: dict[str, Any], era: str = ERAS[0]) -> Any:
    """The client of the same framework, in the same process."""
    make_client = fast_client if isinstance(server, FastMCP) else official_client
    return make_client(server, extensions, era)


@dataclass
class Seen:
    """Everything one client can see of the shop."""

    tools: dict[str, dict[str, Any]]
    resources: list[str]
    page: str
    result: Any
    helper: Any


async def look(client: Any) -> Seen:
    """Ask a connected client, of either kind, for all it can get."""
    tools = await tools_of(client)
    listed = await client.list_resources()
    read = await client.read_resource(URI)
    return Seen(
        tools=tools,
        resources=[str(each.uri) for each in getattr(listed, "resources", listed)],
        page=getattr(read, "contents", read)[0].text,
        result=await call(client, "show_orders", {"status": "open"}),
        helper=await call(client, "refresh_orders", {"query": "q"}),
    )


async def tools_of(client: Any) -> dict[str, dict[str, Any]]:
    """The tools as they came over the wire, by name."""
    found = await client.list_tools()
    return {
        tool.name: tool.model_dump(by_alias=True, mode="json", exclude_none=True)
        for tool in getattr(found, "tools", found)
    }


async def call(client: Any, name: str, arguments: dict[str, Any]) -> Any:
    """Call a tool; a JSON-RPC error is returned."""
    keywords = {"raise_on_error": False} if isinstance(client, FastClient) else {}
    try:
        return await client.call_tool(name, arguments, **keywords)
    except mcp.MCPError as error:
        return error


def is_unknown(outcome: Any) -> bool:
    """Whether a call was refused as one to a tool that does not exist."""
    if isinstance(outcome, mcp.MCPError):
        return outcome.code == -32602 and outcome.message.startswith("Unknown tool: ")
    return outcome.is_error and outcome.content[0].text.startswith("Unknown tool: ")


def check_sees_views(seen: Seen) -> None:
    assert set(seen.tools) == {"show_orders", "refresh_orders", "count_orders"}
    opener = seen.tools["show_orders"]["_meta"]
    assert opener["ui"] == {"resourceUri": URI}
    assert opener["ui/resourceUri"] == URI
    assert seen.tools["refresh_orders"]["_meta"]["ui"] == {"visibility": ["app"]}
    assert set(seen.resources) == {URI, "data://orders"}
    assert seen.helper.structured_content == {"orders": [{"id": "q", "total": 2.0}]}
    check_result(seen)


def check_sees_no_views(seen: Seen) -> None:
    assert set(seen.tools) == {"show_orders", "count_orders"}
    for tool in seen.tools.values():
        assert not {"ui", "ui/resourceUri"} & set(tool.get("_meta", {}))
    assert seen.resources == ["data://orders"]
    assert is_unknown(seen.helper)
    check_result(seen)


def check_result(seen: Seen) -> None:
    orders = [{"id": "open-0", "total": 1.5}, {"id": "open-1", "total": 1.5}]
    assert seen.result.structured_content == {"orders": orders}
    [block] = seen.result.content
    assert msgspec.json.decode(block.text) == {"orders": orders}
    assert not seen.result.is_error
    assert seen.page == PAGE
