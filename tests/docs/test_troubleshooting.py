"""docs/troubleshooting.md quotes messages as they are, and has every variable that is read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import transom.errors

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "transom"
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()

MESSAGES = [
    quote
    for table in re.findall(r"^\| message \|.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    for quote in re.findall(r"`([^`]+)`", cell)
]
OF_THE_SYSTEM = {"Address already in use"}


def strings(file: Path) -> Iterator[str]:
    """The texts of a module, with `…` for what is put into them."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield "".join(map(str, parts))


SCRIPTS = "\n".join(file.read_text() for file in (ROOT / "js" / "src").rglob("*.*s"))


def test_the_messages_on_the_page_are_those_that_people_can_meet() -> None:
    texts = [text for file in SOURCE.rglob("*.py") for text in strings(file)]

    def is_said(message: str) -> bool:
        parts = [re.escape(part.strip()) for part in message.split("…") if part.strip()]
        quoted = re.compile(".*".join(parts), re.DOTALL)
        return any(map(quoted.search, texts))

    assert len(MESSAGES) > 40
    assert {each for each in MESSAGES if not is_said(each)} == OF_THE_SYSTEM


def test_every_variable_that_is_read_is_in_the_table() -> None:
    table = PAGE.split("## Environment variables")[1]
    known = set(re.findall(r"`([A-Z][A-Z_]+)`", table))
    code = SCRIPTS + "\n".join(file.read_text() for file in SOURCE.rglob("*.py"))
    named = set(re.findall(r"\bTRANSOM_[A-Z_]+\b", code))
    read = set(re.findall(r"environ(?:\.get|\.pop)?[\[(]\s*\"([A-Z_]+)\"", code))
    assert named | read <= known | {"UV"}  # which uv sets for what it runs
    assert {name for name in known if name.startswith("TRANSOM_")} <= named


def test_the_errors_on_the_page_are_public() -> None:
    table = PAGE.split("| error | meaning |")[1].split("\n\n")[0]
    for name in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        for error in re.findall(r"`(\w+)`", name):
            assert hasattr(transom.errors, error)
