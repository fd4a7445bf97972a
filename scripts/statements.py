"""Writes docs/from-the-documents.md: each statement of the documents, its place and its tests.

    .venv/bin/python -m scripts.statements [--check]

With --check the page is left alone, and it is an error if it is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.contract.statements import DOCUMENTS, STATEMENTS, Statement

PAGE = Path(__file__).parents[1] / "docs" / "from-the-documents.md"
HEAD = """\
# From the documents

Transom began with five documents about tools inside Views. Each of their {count} statements is
here, beside the place in the code where it lives and the tests that prove it. Tests of
[test_samples.py](../tests/contract/test_samples.py) run a document's sample four times: as it
stands with `transom.js` in Chromium and translated in Python, through a `Host` and through the
gateway. Where there is no test, or where Transom does something else, the reason follows the
statement.

Written by `make docs` from [statements.py](../tests/contract/statements.py); a test holds the list
complete, and every place and test that it names to exist.
"""


def _place(place: str) -> str:
    file, _, name = place.partition(":")
    shown = f"`{name}`" if file.endswith(".py") else f"`{name}` in {file.rpartition('/')[2]}"
    return f"[{shown}]({'..' if file.startswith('js/') else '../src/transom'}/{file})"


def _test(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../{file})"


def _row(statement: Statement) -> str:
    says = f"{statement.says} *{statement.why}*" if statement.why else statement.says
    places = "<br>".join(map(_place, statement.where.split()))
    tests = "<br>".join(map(_test, statement.tests)) or "-"
    return f"| {statement.id} | {says} | {places} | {tests} |\n"


def page() -> str:
    """The whole page."""
    parts = [HEAD.format(count=len(STATEMENTS))]
    for document in DOCUMENTS:
        parts.append(f"\n## {document.title}\n\n")
        parts.append("| id | statement | lives in | proved by |\n| --- | --- | --- | --- |\n")
        parts += [_row(each) for each in STATEMENTS if each.id.startswith(f"{document.id}-")]
    return "".join(parts)


def main() -> int:
    """Write the page, or say that it is out of date."""
    if PAGE.exists() and PAGE.read_text() == page():
        return 0
    if "--check" in sys.argv:
        print(f"docs/{PAGE.name} is out of date: make docs")
        return 1
    PAGE.write_text(page())
    print(f"docs/{PAGE.name} is up to date again")
    return 0


if __name__ == "__main__":
    sys.exit(main())
