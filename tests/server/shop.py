"""A server with all three shapes of tools, made with either framework; over stdio when run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec
from mcp.server.mcpserver import MCPServer

from transom.server import Csp, Views

if TYPE_CHECKING:
    from fastmcp import FastMCP

URI = "ui://shop/orders.html"
PAGE = "<!doctype html><title>Orders</title><p>hi</p>"


class Order(msgspec.Struct):
    id: str
    total: float


class Orders(msgspec.Struct):
    orders: list[Order]


def make_views() -> Views:
    views = Views()
    page = views.add(
        URI,
        html=PAGE,
        csp=Csp(connect=["https://api.example.com"]),
        permissions=["clipboardWrite"],
        prefers_border=True,
        title="Orders",
        description="A list of orders",
    )

    @views.tool(opens=page, title="Show orders", annotations={"readOnlyHint": True})
    def show_orders(status: str, limit: int = 10) -> Orders:
        """Show the orders with this status."""
        return Orders([Order(f"{status}-{n}", 1.5) for n in range(min(limit, 2))])

    @views.helper(annotations={"readOnlyHint": True})
    async def refresh_orders(query: str) -> Orders:
        """Search again."""
        return Orders([Order(query, 2.0)])

    return views


def count_orders(status: str) -> int:
    """Count the orders with this status."""
    return len(status)


def plain_orders() -> str:
    return "plain"


def official() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("shop", extensions=[make_views()], log_level="ERROR")
    server.tool()(count_orders)
    server.resource("data://orders")(plain_orders)
    return server


def fast() -> FastMCP[Any]:
    from fastmcp import FastMCP

    server: FastMCP[Any] = FastMCP("shop")
    make_views().install(server)
    server.tool(count_orders)
    server.resource("data://orders")(plain_orders)
    return server


def make(framework: str) -> Any:
    return official() if framework == "official" else fast()


if __name__ == "__main__":
    if sys.argv[1] == "official":
        official().run()
    else:
        fast().run(show_banner=False, log_level="ERROR")
