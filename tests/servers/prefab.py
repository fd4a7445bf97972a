"""A FastMCP server whose View is made of Prefab components: `python tests/servers/prefab.py`."""

import os

from fastmcp import FastMCP, FastMCPApp
from prefab_ui.actions import SetState
from prefab_ui.actions.mcp import CallTool
from prefab_ui.app import PrefabApp
from prefab_ui.app_tools import AppTool
from prefab_ui.components import Button, Column, Heading, Text
from prefab_ui.rx import EVENT, RESULT, STATE

os.environ["PREFAB_BUNDLED_RENDERER"] = "1"  # its page brings everything: no CDN is needed

notes: list[str] = []
app = FastMCPApp("Notes")


@app.ui()
def show_notes(title: str = "Notes") -> PrefabApp:
    """Show the notes."""
    choose = AppTool(
        "choose",
        description="Choose a colour for the notes.",
        input_schema={
            "type": "object",
            "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
            "required": ["colour"],
            "additionalProperties": False,
        },
        actions=SetState("colour", EVENT.colour),
        result={"colour": STATE.colour},
    )
    add = AppTool(
        add_note,
        name="add_note",
        description="Add a note.",
        input_schema={
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
        on_success=SetState("count", RESULT),
        result={"count": STATE.count},
    )
    with Column() as view:
        Heading(title)
        Text(f"The colour is {STATE.colour}, the count is {STATE.count}")
        Button("Add", on_click=CallTool(add_note, arguments={"text": "by a click"}))
    state = {"colour": "none", "count": len(notes)}
    return PrefabApp(view=view, title=title, state=state, app_tools=[choose, add])


@app.tool()
def add_note(text: str) -> int:
    """Add a note; the number of notes."""
    notes.append(text)
    return len(notes)


server = FastMCP("prefab")
server.add_provider(app)

if __name__ == "__main__":
    server.run(show_banner=False)
