"""Commands on the pages do what the pages say, and data on them can be read.

The commands of `console` blocks are run, unless the block says why not (`console.py` says how).
All of them, and those of workflows, are read by the command itself, which knows its own options.
"""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from examples.orders import server as orders_server
from tests.docs.console import SLOW, Block, Shell, blocks, fresh_copy, prints, read_block
from tests.host.test_servers import over_http
from transom.cli.options import COMMANDS, find_command
from transom.errors import UsageError

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(--[a-z][a-z-]*)\b[^`]*`")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
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
DATA = [block for block in BLOCKS if block.language in READERS]
CONSOLE = blocks()


def by_page(*, installs: bool) -> list[object]:
    """The blocks of each page that are run together."""
    pages: dict[Path, list[Block]] = {}
    for block in CONSOLE:
        if block.run and block.installs == installs:
            pages.setdefault(block.page, []).append(block)
    return [
        pytest.param(
            found,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.nightly] if installs or page.name in SLOW else [],
        )
        for page, found in pages.items()
    ]


@pytest.mark.processes
@pytest.mark.timeout(300)
@pytest.mark.parametrize("found", by_page(installs=False))
async def test_the_commands_of_a_page_do_what_it_says(found: list[Block], tmp_path: Path) -> None:
    async with over_http(orders_server) as (url, _):
        shell = Shell(tmp_path, found[0].page, url=url)
        for block in found:
            for command in block.run:
                await shell.type(command)


@pytest.mark.processes
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("found", by_page(installs=True))
async def test_what_a_page_says_about_a_fresh_clone_works(
    found: list[Block], tmp_path: Path
) -> None:
    shell = Shell(tmp_path, found[0].page, checkout=fresh_copy(tmp_path / "clone"))
    for block in found:
        for command in block.run:
            await shell.type(command)


def test_a_block_is_run_or_says_why_not() -> None:
    text = "$ transom open a.py b      # exit code 2\nOpened\n# Not run by a test: it bites.\n$ x\n"
    block = read_block(ROOT / "README.md", 3, text)
    assert [(each.place, each.exit_code, each.printed) for each in block.run] == [
        ("README.md:4", 2, "Opened\n")
    ]
    assert ([each.typed for each in block.left_out], block.reason) == (["x"], "it bites.")
    assert all(block.run or block.left_out for block in CONSOLE)
    assert sum(len(block.run) for block in CONSOLE) >= 35


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("Opened\n", "Opened  \n", True),
        ("Opened\n", "Opened x\n", False),
        ("Opened …\n", "Opened x\n", True),
        ("a …\nb\n", "a 1\n2\nb\n", False),
        ("a\n…\nb\n", "a\n1\n2\nb\n", True),
        ("http://a:8080 2 errors\n", "http://a:4711 2 errors\n", True),
        ("http://a:8080 2 errors\n", "http://a:4711 3 errors\n", False),
        ("used 2026-11-16 02:10\n", "used 2027-01-01 12:00\n", True),
    ],
)
def test_what_a_page_shows_is_compared_with_what_is_printed(
    shown: str, printed: str, same: bool
) -> None:
    assert prints(shown, printed) is same


def read(words: list[str]) -> str:
    """Let `transom` read its words, up to where it would begin to work; the command's name."""
    command, rest = find_command(words)
    command.read(rest)
    return command.name


TYPED = [
    *(command.typed for block in CONSOLE for command in [*block.run, *block.left_out]),
    *(
        line
        for block in BLOCKS
        if block.language == "yaml"
        for line in re.findall(r"^ *- run: (transom .*)$", block.text, re.MULTILINE)
    ),
]


@pytest.mark.parametrize("line", TYPED)
def test_a_command_can_be_typed_as_it_stands(line: str) -> None:
    words = shlex.split(line, comments=True)
    words = words[: words.index(">")] if ">" in words else words
    if words[0] == "make":
        assert set(words[1:2]) <= TARGETS | {"-C"}
    elif Path(words[0]).name == "transom":
        assert read(words[1:]) in COMMANDS


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
