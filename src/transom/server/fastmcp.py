"""Views on a `FastMCP` server. Imported only when there is one, because FastMCP is optional."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import mcp.types as mcp
from fastmcp import FastMCP
from fastmcp.exceptions import FastMCPError, NotFoundError, ResourceError
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import Tool, ToolResult

from transom.protocol.messages import VIEW_MIME_TYPE
from transom.server.declare import (
    hidden,
    is_plain,
    is_ui_resource,
    model_only,
    unknown_tool,
    without_view,
)
from transom.server.resource import ViewResource
from transom.server.tools import AppTool

_log = logging.getLogger(__name__)


class FastGate(Middleware):
    """The middleware that makes the lists fit the client."""

    def __init__(self) -> None:
        self.assume_views = False
        self.declared: set[str] = set()
        """Tools that were declared for Views."""

    def _is_plain(self, context: MiddlewareContext[Any]) -> bool:
        """Whether the request is from a client without Views, and not from the server itself."""
        current = context.fastmcp_context
        if current is None or current.request_context is None:
            return False
        return is_plain(current.session.client_capabilities, self.assume_views)

    async def on_list_tools(
        self,
        context: MiddlewareContext[mcp.ListToolsRequest],
        call_next: CallNext[mcp.ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """Leave out links to Views and app-only tools, or add visibilities."""
        tools = await call_next(context)
        if not self._is_plain(context):
            return [
                tool
                if tool.name in self.declared
                else tool.model_copy(update={"meta": model_only(tool.meta)})
                for tool in tools
            ]
        return [
            tool.model_copy(update={"meta": without_view(tool.meta)})
            for tool in tools
            if not hidden(tool.meta)
        ]

    async def on_list_resources(
        self,
        context: MiddlewareContext[mcp.ListResourcesRequest],
        call_next: CallNext[mcp.ListResourcesRequest, Sequence[Resource]],
    ) -> Sequence[Resource]:
        """Leave out pages."""
        found = await call_next(context)
        return [r for r in found if not is_ui_resource(r.uri)] if self._is_plain(context) else found

    async def on_list_resource_templates(
        self,
        context: MiddlewareContext[mcp.ListResourceTemplatesRequest],
        call_next: CallNext[mcp.ListResourceTemplatesRequest, Sequence[ResourceTemplate]],
    ) -> Sequence[ResourceTemplate]:
        """Leave out templates of pages."""
        found = await call_next(context)
        return (
            [t for t in found if not is_ui_resource(t.uri_template)]
            if self._is_plain(context)
            else found
        )

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp.CallToolRequestParams],
        call_next: CallNext[mcp.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Refuse calls to tools that only Views may call."""
        if self._is_plain(context) and context.fastmcp_context is not None:
            tool = await context.fastmcp_context.fastmcp.get_tool(context.message.name)
            if tool is not None and hidden(tool.meta):
                raise NotFoundError(unknown_tool(context.message.name))
        return await call_next(context)


class FastServer:
    """A `FastMCP` server that Views are put on."""

    def __init__(self, server: FastMCP[Any], *, assume_views: bool = False) -> None:
        """Add the gate to the server's middleware, unless it is there already."""
        self.server = server
        found = next((entry for entry in server.middleware if isinstance(entry, FastGate)), None)
        if found is None:
            found = FastGate()
            # First, so that a cache of the user's stays inside and is filtered for each client.
            server.middleware.insert(0, found)
        found.assume_views |= assume_views
        self._gate = found

    def add_tool(self, tool: AppTool) -> None:
        """Register a tool."""
        made = Tool.from_function(
            # FastMCP would send the client the text of any other exception.
            tool.bound(mcp.CallToolResult, passed=(FastMCPError,)),
            output_schema=tool.output.schema,
            meta=tool.meta or None,
            **tool.keywords,
        )
        if tool.input is not None:
            made.parameters = tool.input.schema.json_schema
        self._gate.declared.add(tool.name)
        self.server.add_tool(made)

    def add_resource(self, resource: ViewResource) -> None:
        """Register a View's page."""
        self.server.add_resource(
            Resource.from_function(
                _reader(resource),
                resource.uri,
                name=resource.name,
                title=resource.title,
                description=resource.description,
                mime_type=VIEW_MIME_TYPE,
                meta=resource.meta,
            )
        )


def _reader(resource: ViewResource) -> Callable[[], str]:
    def read() -> str:
        try:
            return resource.read()
        except Exception as error:
            # FastMCP would send the client the text of what the page's function raised.
            _log.exception("%s cannot be read", resource.uri)
            raise ResourceError(f"Error reading resource {resource.uri}") from error

    return read
