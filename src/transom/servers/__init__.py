"""Connections to MCP servers: one way to reach them, for hosts, the gateway and the checker.

connection = await transom.servers.connect(["python", "orders.py"])
result = await connection.request("tools/call", {"name": "show_orders", "arguments": {}})
await connection.aclose()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transom.servers.connection import ServerConnection
    from transom.servers.sdk_client import ListChangedHandler
    from transom.servers.server import InputRequired, Server
    from transom.servers.targets import RemoteServer, connect

__all__ = [
    "InputRequired",
    "ListChangedHandler",
    "RemoteServer",
    "Server",
    "ServerConnection",
    "connect",
]

_HOMES = {
    "InputRequired": "transom.servers.server",
    "ListChangedHandler": "transom.servers.sdk_client",
    "RemoteServer": "transom.servers.targets",
    "Server": "transom.servers.server",
    "ServerConnection": "transom.servers.connection",
    "connect": "transom.servers.targets",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: some of them load the SDK."""
    if name not in _HOMES:
        raise AttributeError(f"module 'transom.servers' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
