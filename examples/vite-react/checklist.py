"""A checklist. Its page is made with Vite and React, see README.md.

transom open examples/vite-react/checklist.py show_checklist '{"name": "Weekend"}'

The server:
    show_checklist(name)            the model calls it, and the View opens
    count_open()                    the model calls it, and the answer is all there is
    keep_list(name, items)          only the View: keeps what is on the list

The View, for the model:
    get_list()                      what is on the list
    add_item(text)                  puts something on it
    check_item(item)                `item` is an enum of what is not ticked off yet
    clear_done()                    disabled while nothing is ticked off
"""

from pathlib import Path

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from transom.server import Views


class Item(msgspec.Struct):
    """Something to remember."""

    text: str
    done: bool = False


class Checklist(msgspec.Struct):
    """Items under a name."""

    name: str
    items: list[Item]


lists = {
    "Weekend": Checklist("Weekend", [Item("Tent"), Item("Torch"), Item("Matches", done=True)]),
}


def summary(shown: Checklist) -> str:
    left = [item.text for item in shown.items if not item.done]
    return f"{shown.name}: {', '.join(left) or 'nothing'} left."


views = Views()

page = views.add(
    "ui://checklist/list.html",
    html=Path(__file__).parent / "dist" / "index.html",
    prefers_border=True,
    title="Checklist",
    description="A list of things to tick off.",
)


@views.tool(
    opens=page,
    title="Show a checklist",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    text=summary,
)
def show_checklist(name: str = "Weekend") -> Checklist:
    """Show one of the user's checklists, to read, add to and tick off."""
    return lists.get(name) or Checklist(name, [])


@views.helper(
    title="Keep a checklist",
    annotations={
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
    text=summary,
)
def keep_list(name: str, items: list[Item]) -> Checklist:
    """Keep what is on a list."""
    lists[name] = Checklist(name, items)
    return lists[name]


server = MCPServer("checklist", version="1.0.0", extensions=[views])


@server.tool(
    title="Count what is open",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
def count_open() -> dict[str, int]:
    """Count what is not ticked off yet, for each of the user's checklists."""
    return {each.name: sum(not item.done for item in each.items) for each in lists.values()}


if __name__ == "__main__":
    server.run()
