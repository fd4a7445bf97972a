"""Servers with Views: declare pages and the tools that go with them, on `MCPServer` or FastMCP."""

from transom.server.declare import Csp, ResourceOptions
from transom.server.resource import HtmlSource, ViewResource
from transom.server.tools import AppToolOptions
from transom.server.views import (
    HelperOptions,
    Views,
    ViewToolOptions,
    register_app_resource,
    register_app_tool,
    ui_capability,
)

__all__ = [
    "AppToolOptions",
    "Csp",
    "HelperOptions",
    "HtmlSource",
    "ResourceOptions",
    "ViewResource",
    "ViewToolOptions",
    "Views",
    "register_app_resource",
    "register_app_tool",
    "ui_capability",
]
