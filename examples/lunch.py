"""Where the team has lunch: a View without tools of its own, which a model uses by its page.

transom open examples/lunch.py show_vote --headless --look --act 'c2 check' --act 'b5 click'
transom check --call examples/lunch.py
python examples/lunch.py                         serves it over stdio

The server:
    show_vote()                           the model calls it, and the View opens
    count_votes()                         the model calls it, and the answer is all there is
    cast_vote(place, note)                only the View: counts one vote

The View has no tools: its author has not heard of them, or did not want any. A model looks at the
page (`look_at_view`), chooses a place and presses the button (`act_on_view`).
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from transom.server import Views

Place = Literal["Noodle bar", "Pizzeria", "Salad counter"]


class Votes(msgspec.Struct):
    """How many votes each place has, and what was said about the last one."""

    places: dict[Place, int]
    note: str = ""


votes = Votes({"Noodle bar": 2, "Pizzeria": 3, "Salad counter": 1})


def summary(shown: Votes) -> str:
    return ", ".join(f"{place} {count}" for place, count in shown.places.items())


views = Views()

page = views.add(
    "ui://lunch/vote.html",
    html=Path(__file__).with_name("lunch.html"),
    prefers_border=True,
    title="Lunch",
    description="A vote on where to have lunch.",
)


@views.tool(
    opens=page,
    title="Show the vote",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    text=summary,
)
def show_vote() -> Votes:
    """Show the vote on where the team has lunch."""
    return votes


@views.helper(
    title="Cast a vote",
    annotations={
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": False,
    },
    text=summary,
)
def cast_vote(place: Place, note: Annotated[str, Field(max_length=200)] = "") -> Votes:
    """Count one vote."""
    votes.places[place] += 1
    votes.note = note
    return votes


server = MCPServer("lunch", version="1.0.0", extensions=[views])


@server.tool(
    title="Count votes",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
def count_votes() -> dict[Place, int]:
    """Tell how many votes each place has."""
    return votes.places


if __name__ == "__main__":
    server.run()
