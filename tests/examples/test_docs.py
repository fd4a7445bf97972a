"""docs/examples.md: its commands do what they say, its pictures and links are there."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.examples.conftest import Open

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "examples.md").read_text()
COMMANDS = re.findall(r"^\$ (transom open examples/(\w+)\.py .*)$", PAGE, re.MULTILINE)


def test_there_is_a_command_for_every_example() -> None:
    pages = {page.stem for page in (DOCS.parent / "examples").glob("*.html")}
    assert {name for _, name in COMMANDS} == pages


@pytest.mark.parametrize(("command", "name"), COMMANDS, ids=[name for _, name in COMMANDS])
async def test_every_call_of_the_command_works(open_view: Open, command: str, name: str) -> None:
    _, _, _, tool, *words = shlex.split(command)
    given = json.loads(words.pop(0)) if words[0].startswith("{") else {}
    assert words.pop(0) == "--headless"
    assert words[::2] == ["--call"] * (len(words) // 2)
    shown = await open_view(name, tool, **given)
    for call in words[1::2]:
        called, _, arguments = call.partition("=")
        await shown.tools_when(lambda tools, called=called: called in tools)
        await shown.call(called, **json.loads(arguments or "{}"))


def test_its_links_lead_somewhere_and_its_pictures_are_small() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert [link for link in links if not (DOCS / link).exists()] == []
    pictures = [DOCS / link for link in links if link.endswith(".png")]
    assert len(pictures) == len(COMMANDS)
    assert all(picture.stat().st_size < 100_000 for picture in pictures)
