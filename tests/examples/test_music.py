"""The music player: tools that follow the library, the queue and the playlists."""

import pytest
from playwright.async_api import expect

from tests.examples.conftest import Open
from tests.examples.driving import enum, fresh, tools_when
from transom import ToolError

pytestmark = pytest.mark.processes

LIBRARY = ["ode-to-joy", "greensleeves", "fur-elise", "frere-jacques"]
SHOP = ["canon-in-d", "morning-mood", "when-the-saints"]


@pytest.mark.nightly
async def test_a_track_that_joins_the_library_joins_the_schemas(open_view: Open) -> None:
    shown = await open_view("music", "show_player")
    before = await tools_when(shown, lambda tools: "play_track" in tools)
    assert enum(before, "play_track", "id") == LIBRARY
    assert enum(before, "add_to_library", "id") == SHOP
    refused = await shown.refusal("play_track", id="canon-in-d")
    assert "id: must be one of" in refused

    done = await shown.call("add_to_library", id="canon-in-d")
    assert done.text == "Canon in D is in the library."
    after = await tools_when(shown, lambda tools: len(enum(tools, "play_track", "id")) == 5)
    assert enum(after, "play_track", "id") == [*LIBRARY, "canon-in-d"]
    assert enum(after, "add_to_queue", "id") == [*LIBRARY, "canon-in-d"]
    assert enum(after, "add_to_library", "id") == SHOP[1:]
    assert open_view.module.library == [*LIBRARY, "canon-in-d"]

    playing = await shown.call("play_track", id="canon-in-d")
    assert playing.structured_content["playing"] == "canon-in-d"
    await expect(shown.page.get_by_role("heading", level=1)).to_have_text("Canon in D")
    current = shown.page.locator("#library li[aria-current=true] .title")
    await expect(current).to_have_text("Canon in D")


@pytest.mark.nightly
async def test_a_shop_that_is_sold_out_offers_no_tool(open_view: Open) -> None:
    shown = await open_view("music", "show_player")
    for id in SHOP:
        await shown.call("add_to_library", id=id)
    tools = await tools_when(shown, lambda tools: "add_to_library" not in tools)
    assert enum(tools, "play_track", "id") == LIBRARY + SHOP
    assert await shown.refusal("add_to_library", id="canon-in-d") == (
        "Tool add_to_library is disabled: everything in the shop is in the library already"
    )
    await expect(shown.page.get_by_text("In the shop")).to_be_hidden()


async def test_removing_from_the_queue_is_offered_while_there_is_a_queue(open_view: Open) -> None:
    shown = await open_view("music", "show_player")
    tools = await tools_when(shown, lambda tools: "play_track" in tools)
    assert "remove_from_queue" not in tools
    assert await shown.refusal("remove_from_queue", position=1) == (
        "Tool remove_from_queue is disabled: the queue is empty"
    )

    await shown.call("add_to_queue", id="ode-to-joy")
    await shown.call("add_to_queue", id="greensleeves")
    await tools_when(
        shown,
        lambda tools: (
            "remove_from_queue" in tools
            and tools["remove_from_queue"].input_schema["properties"]["position"]["maximum"] == 2
        ),
    )
    await expect(shown.page.locator("#queue .title")).to_have_text(["Ode to Joy", "Greensleeves"])
    assert "position: must have maximum 2" in await shown.refusal("remove_from_queue", position=3)

    removed = await shown.call("remove_from_queue", position=1)
    assert removed.text == "Removed Ode to Joy."
    assert removed.structured_content["queue"] == ["greensleeves"]
    await shown.call("remove_from_queue", position=1)
    await tools_when(shown, lambda tools: "remove_from_queue" not in tools)
    await expect(shown.page.locator("#queue")).to_have_text("The queue is empty.")


async def test_a_playlist_is_kept_by_the_server(open_view: Open) -> None:
    shown = await open_view("music", "show_player")
    tools = await tools_when(shown, lambda tools: "add_to_playlist" in tools)
    assert enum(tools, "add_to_playlist", "playlist_id") == ["focus", "sunday"]
    done = await shown.call("add_to_playlist", playlist_id="focus", id="greensleeves")
    assert done.text == "Greensleeves is in Focus."
    assert done.structured_content["playlists"]["focus"] == ["fur-elise", "greensleeves"]
    listed = await shown.host.call_tool("list_playlists")
    assert listed.structured_content["Focus"] == ["Für Elise", "Greensleeves"]
    await expect(shown.page.locator("#playlists li").first).to_contain_text("Greensleeves")


async def test_what_the_user_does_with_the_keyboard_is_what_the_model_sees(open_view: Open) -> None:
    shown = await open_view("music", "show_player")
    await shown.page.get_by_label("Play Greensleeves").press("Enter")
    await shown.page.get_by_label("Queue Ode to Joy").press("Space")
    await expect(shown.page.get_by_label("Queue Ode to Joy")).to_be_focused()
    heard = await shown.call("get_player")
    assert heard.text == "Greensleeves is playing. Up next: Ode to Joy."

    await shown.page.get_by_label("Pause").press("Enter")
    assert (await shown.call("get_player")).structured_content["playing"] is None
    await shown.page.get_by_label("Play", exact=True).press("Enter")

    # The end of a track is the beginning of the next one.
    await shown.page.get_by_label("Position").press("End")
    heard = await shown.call("get_player")
    assert heard.text == "Ode to Joy is playing. Up next: nothing."
    await tools_when(shown, lambda tools: "remove_from_queue" not in tools)

    await shown.page.get_by_label("Get Morning Mood").press("Enter")
    await tools_when(shown, lambda tools: "morning-mood" in enum(tools, "play_track", "id"))
    await shown.page.get_by_label("Add Morning Mood to a playlist").select_option("sunday")
    await expect(shown.page.locator("#playlists li").last).to_contain_text("Morning Mood")


def test_the_helpers_say_no_in_words() -> None:
    music = fresh("music")
    with pytest.raises(ToolError, match="There is no playlist jazz."):
        music.keep_in_playlist("jazz", "ode-to-joy")
    with pytest.raises(ToolError, match="There is no canon-in-d in the library."):
        music.keep_in_playlist("focus", "canon-in-d")
    with pytest.raises(ToolError, match="The shop has no track x."):
        music.keep_track("x")
