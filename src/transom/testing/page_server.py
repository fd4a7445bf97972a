"""A server made for a page that has none: one tool opens the page, others are there for it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

from transom.server.views import Views


def page_server(uri: str, html: str | Path, tools: Mapping[str, Any], result: Any) -> MCPServer:
    """Make it.

    Args:
        uri: the page's resource.
        html: the page, or its file.
        tools: by name, what the page may call: functions, or just what they return.
        result: what the tool `show` returns, which the page gets.
    """
    views = Views()
    page = views.add(uri, html=html)

    @views.tool(opens=page, input_schema={"type": "object"}, annotations={"readOnlyHint": True})
    def show(**_: Any) -> Any:
        """Show the page."""
        return result

    for name, tool in tools.items():
        if callable(tool):
            description = inspect.getdoc(tool) or name
            views.helper(name=name, description=description)(tool)
        else:
            views.helper(name=name, input_schema={"type": "object"})(_returning(tool))
    return MCPServer("page", extensions=[views])


def _returning(value: Any) -> Any:
    def answer(**_: Any) -> Any:
        """Return what the test said."""
        return value

    return answer
