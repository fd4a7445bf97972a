"""A list that the user and the model edit together.

transom dev server.py             while you write it
transom check --call server.py    before others use it
python server.py                  serves it over stdio

The server:
    show_list()           the model calls it, and the View opens
    keep_list(items)      only the View: keeps what is on the list

The View (page.html), for the model:
    get_list()            what is on the list
    add_item(text)        puts something on it
"""

from pathlib import Path

import msgspec
from mcp.server.mcpserver import MCPServer

from transom.server import Views


class Shown(msgspec.Struct):
    """What the View gets."""

    items: list[str]


shown = Shown(["Bread", "Apples"])


def summary(now: Shown) -> str:
    """What the model reads of a result."""
    return f"On the list: {', '.join(now.items) or 'nothing'}."


views = Views()

page = views.add(
    "ui://my-view/page.html",
    html=Path(__file__).with_name("page.html"),
    prefers_border=True,
    title="My view",
    description="A list, to read and to add to.",
)


@views.tool(
    opens=page,
    title="Show the list",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    text=summary,
)
def show_list() -> Shown:
    """Show the user's list, to read and to add to."""
    return shown


@views.helper(
    title="Keep the list",
    annotations={
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
    text=summary,
)
def keep_list(items: list[str]) -> Shown:
    """Keep what is on the list."""
    shown.items = items
    return shown


server = MCPServer("my-view", version="0.1.0", extensions=[views])

if __name__ == "__main__":
    server.run()
