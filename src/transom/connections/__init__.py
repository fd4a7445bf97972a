"""Connections to MCP servers: one way to reach them, for hosts, the gateway and the checker.

connection = await transom.connections.connect(["python", "orders.py"])
result = await connection.request("tools/call", {"name": "show_orders", "arguments": {}})
await connection.aclose()
"""

from typing import TYPE_CHECKING

from transom.lazy import load_on_use

if TYPE_CHECKING:
    from transom.connections.connection import (
        Connect,
        ConnectionState,
        ServerConnection,
        ServerListener,
    )
    from transom.connections.oauth_client import OAuthClient
    from transom.connections.sdk_client import ListChangedHandler
    from transom.connections.targets import RemoteServer, Target, connect
    from transom.connections.upstream import (
        InputRequired,
        Observer,
        Params,
        Server,
        ToolCache,
    )
    from transom.protocol.wire import Notification, Request
    from transom.queues import SentRequest

__all__ = [
    "Connect",
    "ConnectionState",
    "InputRequired",
    "ListChangedHandler",
    "Notification",
    "OAuthClient",
    "Observer",
    "Params",
    "RemoteServer",
    "Request",
    "SentRequest",
    "Server",
    "ServerConnection",
    "ServerListener",
    "Target",
    "ToolCache",
    "connect",
]

if not TYPE_CHECKING:  # or every name would be one to them
    __getattr__, __dir__ = load_on_use(
        __name__,
        {
            ".connection": "Connect ConnectionState ServerConnection ServerListener",
            ".oauth_client": "OAuthClient",
            ".sdk_client": "ListChangedHandler",
            ".targets": "RemoteServer Target connect",
            ".upstream": "InputRequired Observer Params Server ToolCache",
            "transom.protocol.wire": "Notification Request",
            "transom.queues": "SentRequest",
        },
    )
