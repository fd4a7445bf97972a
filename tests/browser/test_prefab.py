"""A FastMCP server whose View is made of Prefab components and offers tools, in Chromium."""

import asyncio

import pytest

from tests.browser.hosting import inside
from transom import Host, Policy
from transom.web.headless import HeadlessRenderer
from transom.web.mounted_views import Violation

pytestmark = pytest.mark.processes


@pytest.mark.timeout(240)
async def test_a_prefab_view_is_shown_offers_its_tools_and_calls_its_server() -> None:
    from tests.servers.prefab import notes, server  # what it is made of loads slowly

    notes.clear()
    violations: list[Violation] = []
    renderer = HeadlessRenderer(on_violation=violations.append)
    async with Host(
        renderer=renderer, policy=Policy.trusting(), audit=None, open_timeout=120
    ) as host:
        await host.add_server("prefab", server)
        changed = asyncio.Event()
        host.on_tools_changed(changed.set)
        result = await host.call_tool("show_notes", {"title": "My notes"})
        assert (result.meta or {})["transom/view"] == {"id": "prefab-1", "state": "live"}
        view = host.views["prefab-1"]
        while not view.tools:  # it registers them when it has its result
            await changed.wait()
            changed.clear()
        assert [tool.name for tool in view.tools] == ["choose", "add_note"]
        names = {tool.name for tool in await host.list_tools()}
        assert {"show_notes", "prefab-1__choose", "prefab-1__add_note"} <= names
        chosen = await host.call_tool("prefab-1__choose", {"colour": "red"})
        assert chosen.structured_content == {"colour": "red"}
        refused = await host.call_tool("prefab-1__choose", {"colour": "blue"})
        assert refused.is_error
        assert '["red","green"]' in refused.text
        added = await host.call_tool("prefab-1__add_note", {"text": "by the model"})
        assert added.structured_content == {"count": 1}
        assert renderer.page is not None
        shown = inside(renderer.page, '[id="view-prefab-1"]')
        await shown.get_by_text("My notes").wait_for()
        await shown.get_by_text("The colour is red, the count is 1").wait_for()
        await shown.get_by_role("button", name="Add").click()
        async with asyncio.timeout(60):
            while len(notes) < 2:  # noqa: ASYNC110 - a button that is pressed answers nobody
                await asyncio.sleep(0.05)
        assert notes == ["by the model", "by a click"]
        assert violations == []
