"""A shop's orders: one View, and the three kinds of tools that go with it.

transom open examples/orders.py show_orders      the orders, in your browser
transom check --call examples/orders.py          checks it against the contract
python examples/orders.py                        serves it over stdio

The server:
    show_orders(status)                   the model calls it, and the View opens
    count_orders(status)                  the model calls it, and the answer is all there is
    refresh-orders(query, status)         only the View: search, filter, look again
    ship_order(order_id)                  only the View: the user presses Ship

The View, for the model:
    get_selection()                       the orders that the user has selected
    select_orders(ids)                    `ids` are those of the orders in the table
    filter_orders(query, status)          what the table shows
"""

import datetime as dt
from pathlib import Path
from typing import Literal

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from transom import ToolError
from transom.server import Views

Status = Literal["open", "paid", "shipped"]


class Order(msgspec.Struct):
    """One order."""

    id: str
    customer: str
    item: str
    status: Status
    total: float
    placed: dt.date


class Orders(msgspec.Struct):
    """Some orders, and what they are worth."""

    orders: list[Order]
    total: float


ORDERS = [
    Order("A-1041", "Ines Moreau", "Oak desk", "open", 640.0, dt.date(2026, 1, 12)),
    Order("A-1042", "Bram Visser", "Reading lamp", "paid", 89.5, dt.date(2026, 1, 14)),
    Order("A-1043", "Chidi Okafor", "Wool rug, 2 by 3 m", "open", 420.0, dt.date(2026, 1, 15)),
    Order("A-1044", "Ines Moreau", "Desk drawer", "paid", 120.0, dt.date(2026, 1, 19)),
    Order("A-1045", "Yuki Tanaka", "Bookshelf", "shipped", 310.0, dt.date(2026, 1, 20)),
    Order("A-1046", "Lena Fischer", "Armchair", "open", 780.0, dt.date(2026, 1, 23)),
    Order("A-1047", "Bram Visser", "Wall clock", "shipped", 64.0, dt.date(2026, 1, 26)),
]


def worth(orders: list[Order]) -> Orders:
    return Orders(orders, sum(order.total for order in orders))


def summary(found: Orders) -> str:
    """Say in one line what the View shows: a model needs no table."""
    count = len(found.orders)
    return f"{count} order{'' if count == 1 else 's'}, €{found.total:.2f} in all."


views = Views()

page = views.add(
    "ui://orders/list.html",
    html=Path(__file__).with_name("orders.html"),
    prefers_border=True,
    title="Orders",
    description="A table of orders to search, select and ship.",
)


# The model calls it, and a View opens.
@views.tool(
    opens=page,
    title="Show orders",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    text=summary,
)
def show_orders(status: Status | None = None) -> Orders:
    """Show the shop's orders, all of them or those with one status."""
    return worth([order for order in ORDERS if status in (None, order.status)])


# Only the View calls these.
@views.helper(
    name="refresh-orders",
    title="Refresh the orders",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    text=summary,
)
def refresh_orders(query: str = "", status: Status | None = None) -> Orders:
    """Find orders by number, customer or item, as they are now."""
    words = query.casefold().split()
    return worth(
        [
            order
            for order in ORDERS
            if status in (None, order.status)
            and all(w in f"{order.id} {order.customer} {order.item}".casefold() for w in words)
        ]
    )


@views.helper(
    title="Ship an order",
    annotations={
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
    text=lambda order: f"{order.id} is on its way.",
)
def ship_order(order_id: str) -> Order:
    """Mark a paid order as shipped."""
    for order in ORDERS:
        if order.id == order_id:
            if order.status == "open":
                raise ToolError(f"{order_id} is not paid yet.")
            order.status = "shipped"
            return order
    raise ToolError(f"There is no order {order_id}.")


server = MCPServer("orders", version="1.0.0", extensions=[views])


# The model calls it, and the answer is all there is.
@server.tool(
    title="Count orders",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
def count_orders(status: Status) -> int:
    """Count the orders with a status."""
    return sum(order.status == status for order in ORDERS)


if __name__ == "__main__":
    server.run()
