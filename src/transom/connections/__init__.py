"""Connections to MCP servers: one way to reach them, for hosts, the gateway and the checker.

connection = await transom.connections.connect(["python", "orders.py"])
result = await connection.request("tools/call", {"name": "show_orders", "arguments": {}})
await connection.aclose()
"""

from typing import TYPE_CHECKING

from transom.lazy import load_on_use

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

__getattr__, __dir__ = load_on_use(
    __name__,
    {
        "transom.connections.connection": "ConnectionState ServerConnection ServerListener",
        "transom.connections.sdk_client": "ListChangedHandler",
        "transom.connections.targets": "RemoteServer connect",
        "transom.connections.upstream": "InputRequired Server",
    },
)
