"""An MCP server in front of MCP servers: `Gateway`, and what configures it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transom.gateway.client_host import Display
    from transom.gateway.config import ServerConfig, read_config
    from transom.gateway.gateway import Gateway
    from transom.gateway.http import HttpGateway
    from transom.gateway.inputs import Approval

__all__ = ["Approval", "Display", "Gateway", "HttpGateway", "ServerConfig", "read_config"]

_HOMES = {
    "Approval": "inputs",
    "Display": "client_host",
    "Gateway": "gateway",
    "HttpGateway": "http",
    "ServerConfig": "config",
    "read_config": "config",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: the command starts a server before that."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
