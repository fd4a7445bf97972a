"""The servers Views can be put on."""

from __future__ import annotations

import sys
from typing import Any, Protocol, cast

from mcp.server.mcpserver import MCPServer

from transom.errors import UsageError
from transom.server.official import OfficialServer
from transom.server.page import ViewPage
from transom.server.tools import AppTool

__all__ = ["Target", "target"]


class Target(Protocol):
    """A server, of whichever framework, that takes tools and pages."""

    @property
    def server(self) -> object:
        """The framework's own object."""
        ...

    def add_tool(self, tool: AppTool) -> None:
        """Register a tool."""
        ...

    def add_page(self, page: ViewPage) -> None:
        """Register a View's page."""
        ...


def target(server: object, *, assume_views: bool = False) -> Target:
    """Make a server ready for Views.

    Raises:
        UsageError: it is not a server that Views can be put on.
    """
    if isinstance(server, MCPServer):
        return OfficialServer(cast("MCPServer[Any]", server), assume_views=assume_views)
    if "fastmcp" in sys.modules:
        # Here and not above: FastMCP takes long to load, and most servers are not made with it.
        from fastmcp import FastMCP  # noqa: PLC0415

        if isinstance(server, FastMCP):
            from transom.server.fastmcp import FastServer  # noqa: PLC0415

            return FastServer(cast("FastMCP[Any]", server), assume_views=assume_views)
    raise UsageError(
        f"Views can be put on an MCPServer or a FastMCP server, not on {type(server).__name__}."
    )
