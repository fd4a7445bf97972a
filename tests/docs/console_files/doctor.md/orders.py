from pathlib import Path

from mcp.server.mcpserver import MCPServer

from transom.server import Views

views = Views()
page = views.add("ui://orders/list.html", html=Path(__file__).with_name("orders.html"))


@views.tool(opens=page)
def show_orders() -> dict[str, int]:
    """Show the open orders."""
    return {"desks": 2, "chairs": 4}


server = MCPServer("orders", extensions=[views])
