"""MCP Apps for Python: Views that offer tools, and hosts that call them.

Here are the names that most programs need; docs/api.md says which modules have the others. Each is
loaded on first use, so that ``import transom`` is quick and a View never loads what only a host
needs (it may run in a browser, where `mcp` and the web packages do not exist).
"""

from transom.lazy import load_on_use
from transom.version import __version__

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.channel import Channel
    from transom.errors import ProtocolError, ToolError
    from transom.host.asking.policy import Allow, AllowAlways, Deny, Policy
    from transom.host.host import Host
    from transom.host.limits import Limits
    from transom.host.views.bridge import Bridge
    from transom.host.views.renderers import InProcessRenderer
    from transom.types import Tool, ToolResult
    from transom.view.app import App, CallContext
    from transom.view.tools import RegisteredTool

__all__ = [
    "Allow",
    "AllowAlways",
    "App",
    "Bridge",
    "CallContext",
    "Channel",
    "Deny",
    "Host",
    "InProcessRenderer",
    "Limits",
    "Policy",
    "ProtocolError",
    "RegisteredTool",
    "Tool",
    "ToolError",
    "ToolResult",
    "__version__",
]

if not TYPE_CHECKING:  # or every name would be one to them
    __getattr__, __dir__ = load_on_use(
        __name__,
        {
            ".channel": "Channel",
            ".errors": "ProtocolError ToolError",
            ".host.views.bridge": "Bridge",
            ".host.host": "Host",
            ".host.limits": "Limits",
            ".host.asking.policy": "Allow AllowAlways Deny Policy",
            ".host.views.renderers": "InProcessRenderer",
            ".types": "Tool ToolResult",
            ".view.app": "App CallContext",
            ".view.tools": "RegisteredTool",
        },
    )
