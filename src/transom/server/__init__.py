"""Servers with Views: declare pages and the tools that go with them, on `MCPServer` or FastMCP."""

from transom.server.declare import Csp
from transom.server.resource import HtmlSource, ViewResource
from transom.server.views import Views, register_app_resource, register_app_tool, ui_capability

__all__ = [
    "Csp",
    "HtmlSource",
    "ViewResource",
    "Views",
    "register_app_resource",
    "register_app_tool",
    "ui_capability",
]
