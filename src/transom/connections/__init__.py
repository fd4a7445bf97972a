"""Connections to MCP servers: one way to reach them, for hosts, the gateway and the checker.

connection = await transom.connections.connect(["python", "orders.py"])
result = await connection.request("tools/call", {"name": "show_orders", "arguments": {}})
await connection.aclose()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transom.connections.connection import ConnectionState, ServerConnection, ServerListener
    from transom.connections.sdk_client import ListChangedHandler
    from transom.connections.targets import RemoteServer, connect
    from transom.connections.upstream import InputRequired, Server

__all__ = [
    "ConnectionState",
    "InputRequired",
    "ListChangedHandler",
    "RemoteServer",
    "Server",
    "ServerConnection",
    "ServerListener",
    "connect",
]

_HOMES = {
    "ConnectionState": "transom.connections.connection",
    "InputRequired": "transom.connections.upstream",
    "ListChangedHandler": "transom.connections.sdk_client",
    "RemoteServer": "transom.connections.targets",
    "Server": "transom.connections.upstream",
    "ServerConnection": "transom.connections.connection",
    "ServerListener": "transom.connections.connection",
    "connect": "transom.connections.targets",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: some of them load the SDK."""
    if name not in _HOMES:
        raise AttributeError(f"module 'transom.connections' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
