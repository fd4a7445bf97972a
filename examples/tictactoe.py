"""Noughts and crosses: the model plays O, on the board that the user sees.

transom open examples/tictactoe.py show_board '{"opponent": "house"}' --call 'play={"square": 5}'
transom check --call examples/tictactoe.py
python examples/tictactoe.py                     serves it over stdio

The server:
    show_board(opponent, first)           the model calls it, and the View opens
    get_score()                           the model calls it, and the answer is all there is
    record_result(winner)                 only the View: a game has ended

The View, for the model:
    get_board()                           the board, whose turn it is, who has won
    play(square)                          `square` is an enum of the free squares, 1 to 9 row by
                                          row; disabled when it is not the model's turn
    new_game(first)                       clears the board

The user plays X by clicking. With `opponent` set to `house`, a small program plays X.
"""

from pathlib import Path
from typing import Literal

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from transom.server import Views

Mark = Literal["X", "O"]
Opponent = Literal["user", "house"]
Winner = Literal["X", "O", "draw"]


class Score(msgspec.Struct):
    """How many games ended how."""

    X: int = 0
    O: int = 0  # noqa: E741 - it is what it looks like
    draw: int = 0


class Game(msgspec.Struct):
    """What the View begins with."""

    opponent: Opponent
    first: Mark
    score: Score


score = Score()


def invitation(game: Game) -> str:
    begins = "You begin" if game.first == "O" else "X begins"
    return f"The board is open. You play O, the {game.opponent} plays X. {begins}."


views = Views()

page = views.add(
    "ui://tictactoe/board.html",
    html=Path(__file__).with_name("tictactoe.html"),
    prefers_border=True,
    title="Noughts and crosses",
    description="A board for the user, who plays X, and the model, which plays O.",
)


@views.tool(
    opens=page,
    title="Show the board",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    text=invitation,
)
def show_board(opponent: Opponent = "user", first: Mark = "X") -> Game:
    """Open a board to play noughts and crosses against the user, or against the house."""
    return Game(opponent, first, score)


@views.helper(
    title="Record a result",
    annotations={
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": False,
    },
    text=lambda now: f"X {now.X}, O {now.O}, draws {now.draw}.",
)
def record_result(winner: Winner) -> Score:
    """Count a game that has ended."""
    setattr(score, winner, getattr(score, winner) + 1)
    return score


server = MCPServer("tictactoe", version="1.0.0", extensions=[views])


@server.tool(
    title="Get the score",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
def get_score() -> dict[str, int]:
    """Tell how many games X and O have won so far, and how many were draws."""
    return {"X": score.X, "O": score.O, "draws": score.draw}


if __name__ == "__main__":
    server.run()
