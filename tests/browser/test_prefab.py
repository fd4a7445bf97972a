"""A FastMCP server whose View is made of Prefab components and offers tools, in Chromium."""

import asyncio

import pytest
from playwright.async_api import expect

from transom.testing import ViewsFixture

pytestmark = pytest.mark.processes


@pytest.mark.nightly
@pytest.mark.timeout(240)
async def test_a_prefab_view_is_shown_offers_its_tools_and_calls_its_server(
    views: ViewsFixture,
) -> None:
    from tests.servers.prefab import notes, server  # what it is made of loads slowly

    notes.clear()
    views.configure(open_timeout=120)
    view = await views.open(server, "show_notes", title="My notes")
    await view.assert_tools("choose", "add_note", timeout=60)  # when it has its result
    names = {tool.name for tool in await views.host.list_tools()}
    shown = {f"{view.view.id}__{tool}" for tool in ("choose", "add_note")}
    assert {"show_notes", *shown} <= names
    assert (await view.call("choose", colour="red")).structured_content == {"colour": "red"}
    refused = await view.call("choose", colour="blue")
    assert refused.is_error
    assert '["red","green"]' in refused.text
    added = await view.call("add_note", text="by the model")
    assert added.structured_content == {"count": 1}
    await expect(view.page.get_by_text("My notes")).to_be_visible(timeout=60_000)
    text = view.page.get_by_text("The colour is red, the count is 1")
    await expect(text).to_be_visible(timeout=60_000)
    await view.page.get_by_role("button", name="Add").click()
    async with asyncio.timeout(60):
        while len(notes) < 2:  # noqa: ASYNC110 - a button that is pressed answers nobody
            await asyncio.sleep(0.05)
    assert notes == ["by the model", "by a click"]
