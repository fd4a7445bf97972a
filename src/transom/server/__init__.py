"""Servers with Views: declare pages and the tools that go with them, on `MCPServer` or FastMCP."""

from transom.server.csp import Csp
from transom.server.functions import register_app_resource, register_app_tool, ui_capability
from transom.server.page import ViewPage
from transom.server.views import Views

__all__ = [
    "Csp",
    "ViewPage",
    "Views",
    "register_app_resource",
    "register_app_tool",
    "ui_capability",
]
