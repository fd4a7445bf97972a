"""Noughts and crosses: the model sees the board and moves on it when it is its turn."""

import pytest
from playwright.async_api import expect

from tests.examples.conftest import Open
from tests.examples.driving import enum, tools_when
from transom import ToolResult
from transom.testing import OpenedView

pytestmark = pytest.mark.processes


async def click(shown: OpenedView, square: int) -> None:
    await shown.page.get_by_label(f"Square {square}, free").click()
    await expect(shown.page.get_by_label(f"Square {square}, X")).to_be_visible()


async def play(shown: OpenedView, square: int) -> ToolResult:
    """The model's move, as soon as its host has heard that it is its turn."""
    await tools_when(shown, lambda tools: "play" in tools)
    return await shown.call("play", square=square)


async def test_the_model_moves_when_the_user_has_moved(open_view: Open) -> None:
    shown = await open_view("tictactoe", "show_board")
    assert shown.result.text == "The board is open. You play O, the user plays X. X begins."
    assert "play" not in await tools_when(shown, bool)
    assert await shown.refusal("play", square=1) == ("Tool play is disabled: it is the user's turn")

    await click(shown, 5)
    tools = await tools_when(shown, lambda tools: "play" in tools)
    assert enum(tools, "play", "square") == [1, 2, 3, 4, 6, 7, 8, 9]
    assert "square: must be one of" in await shown.refusal("play", square=5)

    moved = await play(shown, 1)
    assert moved.text == "O 2 3\n4 X 6\n7 8 9\nIt is the user's turn."
    assert moved.structured_content == {
        "board": ["O", "", "", "", "X", "", "", "", ""],
        "turn": "X",
        "winner": None,
        "free": [2, 3, 4, 6, 7, 8, 9],
    }
    await expect(shown.page.get_by_label("Square 1, O")).to_be_visible()
    await expect(shown.page.get_by_text("Your turn.")).to_be_visible()
    await tools_when(shown, lambda tools: "play" not in tools)


@pytest.mark.nightly
async def test_a_game_that_is_won_is_counted_and_offers_no_move(open_view: Open) -> None:
    shown = await open_view("tictactoe", "show_board", first="O")
    for nought, cross in ((1, 4), (2, 5)):
        await play(shown, nought)
        await click(shown, cross)
    tools = await tools_when(shown, lambda tools: "play" in tools)
    assert set(tools["play"].output_schema["properties"]) == {"board", "turn", "winner", "free"}
    last = await play(shown, 3)
    assert last.structured_content["winner"] == "O"
    assert last.text.endswith("The game is over: you have won.")
    await expect(shown.page.get_by_text("The model won.")).to_be_visible()
    assert await shown.page.locator("#board .won").count() == 3
    assert await shown.refusal("play", square=9) == (
        "Tool play is disabled: the game is over: you have won"
    )
    score = await shown.host.call_tool("get_score")
    assert score.structured_content == {"X": 0, "O": 1, "draws": 0}
    await expect(shown.page.locator("#score-O")).to_have_text("1")

    fresh = await shown.call("new_game")
    assert fresh.structured_content["board"] == [""] * 9
    assert fresh.structured_content["turn"] == "X"


async def test_the_house_answers_at_once_blocks_and_wins(open_view: Open) -> None:
    shown = await open_view("tictactoe", "show_board", opponent="house", first="O")
    assert (await play(shown, 5)).text == "X 2 3\n4 O 6\n7 8 9\nIt is your turn."
    blocked = await play(shown, 3)
    assert blocked.structured_content["board"][6] == "X"
    lost = await play(shown, 2)  # does not stop 1, 4, 7
    assert lost.structured_content["winner"] == "X"
    assert lost.text.endswith("The game is over: the house has won.")
    await expect(shown.page.locator("#score-X")).to_have_text("1")
    begun = await shown.call("new_game", first="X")
    assert begun.structured_content["board"][4] == "X"


async def test_the_user_moves_with_the_keyboard_and_the_conversation_hears_of_it(
    open_view: Open,
) -> None:
    shown = await open_view("tictactoe", "show_board")
    await shown.page.get_by_label("Square 1, free").press("ArrowRight")
    await shown.page.get_by_label("Square 2, free").press("ArrowDown")
    await expect(shown.page.get_by_label("Square 5, free")).to_be_focused()
    await shown.page.get_by_label("Square 5, free").press("Enter")
    sent = await shown.wait_for_sent("ui/message", timeout=60)
    assert sent.params["content"][0]["text"] == "I took square 5. Your turn."
    told = await shown.wait_for_sent("ui/update-model-context", 2, timeout=60)
    assert told.params["structuredContent"]["board"][4] == "X"

    # It is not the user's turn, so another key does nothing.
    await shown.page.get_by_label("Square 1, free").press("Enter")
    assert (await shown.call("get_board")).structured_content["board"][0] == ""


@pytest.mark.nightly
async def test_a_board_that_is_full_is_a_draw(open_view: Open) -> None:
    shown = await open_view("tictactoe", "show_board")
    for cross, nought in ((5, 1), (2, 8), (3, 7), (4, 6)):
        await click(shown, cross)
        await play(shown, nought)
    await click(shown, 9)
    board = await shown.call("get_board")
    assert board.structured_content["winner"] == "draw"
    assert board.structured_content["free"] == []
    await expect(shown.page.locator("#score-draw")).to_have_text("1")
    await shown.page.get_by_role("button", name="New game").press("Enter")
    await expect(shown.page.get_by_text("Your turn.")).to_be_visible()


@pytest.mark.nightly
async def test_the_house_can_be_beaten(open_view: Open) -> None:
    shown = await open_view("tictactoe", "show_board", opponent="house", first="O")
    for square in (1, 9, 7):
        assert (await play(shown, square)).structured_content["winner"] is None
    assert (await play(shown, 4)).structured_content["winner"] == "O"
