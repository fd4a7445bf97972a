"""The rules of the server contract, in its order: contract.md, with the checks in these modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transom.check.rule import CHECKS, Clause, Rule
from transom.check.rules import csp, results, tools, views

__all__ = ["RULES", "SECTIONS", "csp", "results", "tools", "views"]

_CONTRACT = (Path(__file__).parents[1] / "contract.md").read_text("utf-8")
_RULE = re.compile(
    r"^### (\w+): (.+)\n\n(\w+) · (\w+)( · heuristic)? · \[(.+)\]\((.+)\)\n\n((?:(?!#).*\n)+)",
    re.MULTILINE,
)


def _rules() -> Iterator[Rule]:
    entries: list[Any] = _RULE.findall(_CONTRACT)
    for id, title, severity, surface, heuristic, clause, url, text in entries:
        # What no server can break has no check.
        name = CHECKS[id][0] if id in CHECKS else re.sub(r"\W+", "_", title.lower())
        source, off = Clause(clause, url), bool(heuristic)
        yield Rule(id, severity, title, source, surface, off, text.strip(), name)


SECTIONS = dict(re.findall(r"^## ([A-Z]): (.+)$", _CONTRACT, re.MULTILINE))
RULES = tuple(_rules())
"""All rules of the contract, by section."""
