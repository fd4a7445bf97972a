"""A server with mistakes: the link of its tool is not the URI of its page, and more."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("orders")


@server.resource("ui://orders/list.html", mime_type="text/html;profile=mcp-app")
def page() -> str:
    return "<!doctype html><title>Orders</title><h1>Orders</h1>"


@server.tool(title="Orders", meta={"ui": {"resourceUri": "ui://orders/List.html"}})
def show_orders() -> str:
    """Show the orders."""
    return "No orders."
