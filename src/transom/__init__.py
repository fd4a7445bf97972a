"""MCP Apps for Python: Views that offer tools, and hosts that call them.

Every public name can be imported from here. Each is loaded on first use, so that ``import transom``
is quick and a View never loads what only a host needs (it may run in a browser, where `mcp` and the
web packages do not exist).
"""

from importlib import import_module

from transom.version import __version__

TYPE_CHECKING = False  # type checkers take it for True; importing it would cost more than all else
if TYPE_CHECKING:
    from transom.channel import Channel
    from transom.errors import ProtocolError, ToolError
    from transom.host.bridge import Bridge
    from transom.host.host import Host
    from transom.host.limits import Limits
    from transom.host.policy import Allow, AllowAlways, Deny, Policy
    from transom.host.renderers import InProcessRenderer
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

_HOMES = {
    "Allow": "transom.host.policy",
    "AllowAlways": "transom.host.policy",
    "App": "transom.view.app",
    "Bridge": "transom.host.bridge",
    "CallContext": "transom.view.app",
    "Channel": "transom.channel",
    "Deny": "transom.host.policy",
    "Host": "transom.host.host",
    "InProcessRenderer": "transom.host.renderers",
    "Limits": "transom.host.limits",
    "Policy": "transom.host.policy",
    "ProtocolError": "transom.errors",
    "RegisteredTool": "transom.view.tools",
    "Tool": "transom.types",
    "ToolError": "transom.errors",
    "ToolResult": "transom.types",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
