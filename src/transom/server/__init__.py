"""Servers with Views: declare pages and the tools that go with them, on `MCPServer` or FastMCP."""

from transom.server.declare import Csp
from transom.server.resource import ViewResource
from transom.server.views import Views, register_app_resource, register_app_tool, ui_capability

__all__ = [
    "Csp",
    "ViewResource",
    "Views",
    "register_app_resource",
    "register_app_tool",
    "ui_capability",
]
