"""Commands on the pages can be typed as they stand, and data on them can be read.

Nothing is run here: a command line is read by the command itself, which knows its own options.
"""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from transom.cli.options import COMMANDS, find_command
from transom.errors import UsageError

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^(?:\$| *- run:) (.*)$", re.MULTILINE)
INLINE = re.compile(r"`(--[a-z][a-z-]*)\b[^`]*`")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
EXTRAS = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
)
READERS = {"json": json.loads, "toml": tomllib.loads}


class Quoted(NamedTuple):
    page: str
    language: str
    text: str


BLOCKS = [
    Quoted(page.name, language, text)
    for page in PAGES
    for language, text in BLOCK.findall(page.read_text())
]
ON_PAGES = [
    Quoted(block.page, block.language, line)
    for block in BLOCKS
    if block.language in {"console", "yaml"}
    for line in TYPED.findall(block.text)
]
DATA = [block for block in BLOCKS if block.language in READERS]


def read(words: list[str]) -> str:
    """Let `transom` read its words, up to where it would begin to work; the command's name."""
    command, rest = find_command(words)
    command.read(rest)
    return command.name


def typed(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    return words[: words.index(">")] if ">" in words else words


@pytest.mark.parametrize("command", ON_PAGES, ids=lambda command: f"{command.page}: {command.text}")
def test_a_command_can_be_typed_as_it_stands(command: Quoted) -> None:
    words = typed(command.text)
    program = Path(words[0]).name
    if program == "make":
        assert words[1:] == [] or words[1] in TARGETS
        return
    if words[:2] == ["pip", "install"]:
        extras = re.fullmatch(r"transom(?:\[([a-z,]+)\])?", words[2])
        assert extras is not None
        assert set((extras[1] or "headless").split(",")) <= EXTRAS
        return
    assert program == "transom", "a page shows commands of Transom, make and pip"
    assert read(words[1:]) in COMMANDS


@pytest.mark.parametrize("command", ON_PAGES, ids=lambda command: f"{command.page}: {command.text}")
def test_files_of_ours_that_a_command_names_are_there(command: Quoted) -> None:
    ours = [word for word in typed(command.text) if word.startswith(("examples/", "docs/"))]
    assert [word for word in ours if not (ROOT / word).exists()] == []


def test_a_command_that_cannot_be_typed_is_found_out() -> None:
    with pytest.raises(UsageError, match="--nonsense"):
        read(["open", "examples/orders.py", "show_orders", "--nonsense"])
    with pytest.raises(UsageError, match="nobody"):
        read(["gateway", "install", "--client", "nobody", "--", "python", "x.py"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_option_that_a_page_mentions_is_one(page: Path) -> None:
    known = {option for make in COMMANDS.values() for option in make().option_names}
    known |= {"--help", "--version"}
    prose = BLOCK.sub("", page.read_text())
    assert {option for option in INLINE.findall(prose) if option not in known} == set()


@pytest.mark.parametrize("block", DATA, ids=lambda block: f"{block.page}-{block.language}")
def test_data_on_a_page_can_be_read(block: Quoted) -> None:
    assert READERS[block.language](block.text)


def test_every_language_on_the_pages_is_looked_at_by_some_test() -> None:
    looked_at = {
        "console", "yaml", "json", "toml", "python", "html", "js", "ts", "tsx", "text",
    }  # fmt: skip
    assert {block.language for block in BLOCKS} <= looked_at
    assert len(ON_PAGES) >= 25
