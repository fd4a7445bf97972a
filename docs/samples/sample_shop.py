"""The server of the samples for hosts, and its View. As a script it is a server of its own."""

from mcp.server.mcpserver import MCPServer

from transom import App
from transom.server import Views

ORDERS = "ui://orders/list.html"

views = Views()
page = views.add(ORDERS, html="<!doctype html><title>Orders</title><p>Orders</p>")


@views.tool(opens=page, annotations={"readOnlyHint": True})
def show_orders(status: str = "open") -> str:
    """Show the shop's orders."""
    return f"The {status} orders are shown."


@views.helper
def refresh_orders() -> str:
    """Look again. Only the View calls this."""
    return "Nothing is new."


server = MCPServer("orders", extensions=[views])


def orders_view() -> App:
    """What runs in the View: one tool that reads, one that writes."""
    app = App("orders", "1.0.0")
    selected = ["A-1041"]
    shipped: list[str] = []

    @app.tool(annotations={"readOnlyHint": True})
    async def get_selection() -> list[str]:
        """The orders that the user has selected."""
        return selected

    @app.tool
    async def mark_shipped() -> str:
        """Mark the selected orders as shipped."""
        shipped.extend(selected)
        mark_shipped.disable("nothing is selected")
        await app.update_model_context(f"Shipped so far: {', '.join(shipped)}")
        return f"Shipped {', '.join(selected)}"

    return app


if __name__ == "__main__":
    server.run()
