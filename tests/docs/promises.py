"""The promises of docs/security.md, and the tests that attack each."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PROMISE = re.compile(r"^### ([A-Z]\d+)\. .*?(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"^- \[([^\]]+)\]\(\.\./(tests/[^)]+\.py)\)$", re.MULTILINE)


def promises() -> dict[str, set[tuple[Path, str]]]:
    """By number: the file and the name of each test."""
    page = (ROOT / "docs" / "security.md").read_text()
    return {
        promise[1]: {
            (ROOT / file, f"test_{name.replace(' ', '_')}")
            for name, file in _LINK.findall(promise[0])
        }
        for promise in _PROMISE.finditer(page)
    }
