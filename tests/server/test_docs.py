"""The Python in docs/servers.md runs, from top to bottom, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.server import clients
from tests.server.clients import SHOWS_VIEWS
from transom.server import Views

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "servers.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


async def test_the_page_tells_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "orders.html").write_text("<!doctype html><p>Orders</p>")
    world = {"__name__": "servers", "__file__": str(tmp_path / "servers.py")}
    for block in blocks("python"):
        exec(compile(block, "docs/servers.md", "exec", dont_inherit=True), world)  # noqa: S102
    [said] = blocks("text")
    assert capsys.readouterr().out == said

    async with clients.memory_client(world["server"], SHOWS_VIEWS) as client:
        tools = await clients.tools_of(client)
        assert set(tools) == {
            "show_orders", "search_orders", "show_order", "show_big_orders", "show_clock",
            "where_to_look",
        }  # fmt: skip
        assert tools["show_order"]["_meta"]["transom/reuse"] == "always"
        big = await clients.call(client, "show_big_orders", {"above": 100})
        assert big.content[0].text == "1 orders are shown."
        where = await clients.call(client, "where_to_look", {})
        assert where.content[0].text == "In the View."
    async with clients.memory_client(world["server"], {}) as client:
        where = await clients.call(client, "where_to_look", {})
        assert where.content[0].text == "Nowhere, this client shows text only."


@pytest.mark.parametrize("scripts", blocks("html"))
def test_either_way_to_ask_for_the_library_puts_it_into_the_page(scripts: str):
    page = Views().add("ui://docs/page.html", html=f"<!doctype html>{scripts}").read()
    assert 'src="transom.js"' not in page
    assert 'from "transom"' not in page
    assert len(page) > 5000


def test_the_pictures_of_the_page_exist():
    for name in re.findall(r"!\[[^]]*\]\(([^)]*)\)", PAGE):
        assert (DOCS / name).is_file(), name
