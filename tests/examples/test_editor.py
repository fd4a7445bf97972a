"""The editor: the model reads the user's selection, writes at the cursor, and saves changes."""

import pytest
from playwright.async_api import expect

from tests.examples.conftest import Open
from tests.examples.driving import fresh, tools_when
from transom import ToolError
from transom.testing import OpenedView

pytestmark = pytest.mark.processes

RECIPE = (
    "Pancakes\n\n250 g flour\n500 ml milk\n3 eggs\n\n"
    "Whisk, let rest for half an hour, fry in butter.\n"
)


async def opened(open_view: Open, name: str = "Recipe") -> OpenedView:
    shown = await open_view("editor", "open_document", name=name)
    await expect(shown.page.get_by_role("heading", level=1)).to_have_text(name)
    return shown


async def test_the_model_reads_what_the_user_selects_with_the_keyboard(open_view: Open) -> None:
    shown = await opened(open_view)
    assert (await shown.call("get-text")).text == RECIPE
    nothing = await shown.call("get-selection")
    assert nothing.text == f"Nothing is selected. The cursor is at {len(RECIPE)}."

    text = shown.page.get_by_label("Text")
    await text.press("Control+Home")
    await text.press("Shift+End")
    chosen = await shown.call("get-selection")
    assert chosen.text == "Pancakes"
    assert chosen.structured_content == {"text": "Pancakes", "start": 0, "end": 8}
    await expect(shown.page.get_by_text("8 characters selected")).to_be_visible()
    (context,) = shown.host.model_context()
    assert context.content[0].text == "The user has selected: Pancakes"


async def test_the_model_writes_in_place_of_the_selection_and_at_the_cursor(
    open_view: Open,
) -> None:
    shown = await opened(open_view)
    await shown.call("select-text", text="butter")
    done = await shown.call("insert-text", text="oil")
    assert done.text == "Inserted"
    await shown.call("insert-text", text=" and salt")  # the cursor is behind what was inserted
    text = shown.page.get_by_label("Text")
    await expect(text).to_have_value(RECIPE.replace("butter", "oil and salt"))
    await text.press("!")  # where the user goes on to write
    assert (await shown.call("get-text")).text.endswith("fry in oil and salt!.\n")

    assert await shown.refusal("select-text", text="caviar") == 'There is no "caviar" in the text.'
    assert "text: is required" in await shown.refusal("insert-text")


@pytest.mark.nightly
async def test_saving_is_offered_while_there_is_something_to_save(open_view: Open) -> None:
    shown = await opened(open_view)
    save = shown.page.get_by_role("button", name="Save")
    assert "save" not in await tools_when(shown, bool)
    assert await shown.refusal("save") == "Tool save is disabled: there is nothing to save"
    await expect(save).to_be_disabled()

    await shown.call("insert-text", text="Enjoy.")
    await tools_when(shown, lambda tools: "save" in tools)
    await expect(save).to_be_enabled()
    assert open_view.module.DOCUMENTS["Recipe"].text == RECIPE
    assert (await shown.call("save")).text == "Saved Recipe as version 2."
    assert open_view.module.DOCUMENTS["Recipe"].text == f"{RECIPE}Enjoy."
    await tools_when(shown, lambda tools: "save" not in tools)
    await expect(save).to_be_disabled()

    # A change that is taken back is none.
    text = shown.page.get_by_label("Text")
    await text.press("?")
    await tools_when(shown, lambda tools: "save" in tools)
    await text.press("Backspace")
    await tools_when(shown, lambda tools: "save" not in tools)

    # The user saves as well.
    await text.press("?")
    await text.press("Control+s")
    await expect(shown.page.get_by_text("Saved, version 3")).to_be_visible()
    assert open_view.module.DOCUMENTS["Recipe"].text == f"{RECIPE}Enjoy.?"


async def test_what_was_saved_elsewhere_is_not_overwritten(open_view: Open) -> None:
    shown = await opened(open_view)
    open_view.module.save_document("Recipe", "Waffles", 1)
    await shown.call("insert-text", text="Enjoy.")
    words = "Recipe was saved elsewhere as version 2. Open it again."
    assert await shown.refusal("save") == words
    await shown.page.get_by_role("button", name="Save").press("Enter")
    await expect(shown.page.get_by_role("status")).to_have_text(words)
    assert open_view.module.DOCUMENTS["Recipe"].text == "Waffles"
    await tools_when(shown, lambda tools: "save" in tools)  # there still is something to save


def test_an_old_version_is_refused_in_words() -> None:
    editor = fresh("editor")
    editor.save_document("Recipe", "Waffles", 1)
    with pytest.raises(ToolError, match="saved elsewhere as version 2"):
        editor.save_document("Recipe", "Crêpes", 1)
