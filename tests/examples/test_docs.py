"""docs/examples.md: it has a command for every example; its pictures and links are there."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "examples.md").read_text()
COMMANDS = re.findall(r"^\$ transom open examples/(\w+)\.py ", PAGE, re.MULTILINE)


def test_there_is_a_command_for_every_example() -> None:
    pages = {page.stem for page in (DOCS.parent / "examples").glob("*.html")}
    assert set(COMMANDS) == pages


def test_its_links_lead_somewhere_and_its_pictures_are_small() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert [link for link in links if not (DOCS / link).exists()] == []
    pictures = [DOCS / name for name in re.findall(r'"(images/[^"]+)"', PAGE)]
    assert len(pictures) == 2 * len(COMMANDS)
    assert all(picture.stat().st_size < 100_000 for picture in pictures)
