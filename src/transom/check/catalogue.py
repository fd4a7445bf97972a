"""What a rule is, what it reports, and how rules are chosen and run."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from transom.check.facts import ListedTool, Page
from transom.check.snapshot import Snapshot
from transom.errors import UsageError
from transom.json_values import Json

__all__ = [
    "Check",
    "Clause",
    "Finding",
    "Hit",
    "Hits",
    "Rule",
    "Severity",
    "Skip",
    "Surface",
    "clean",
    "on_page",
    "on_tool",
    "order",
    "rule",
    "selected",
    "show",
]

Severity = Literal["error", "warn", "info"]
"""Breaks a MUST or keeps a View from showing; breaks a SHOULD; advice."""
Surface = Literal["init", "tools", "read", "html", "call", "text", "browser", "host"]


class Clause(msgspec.Struct, frozen=True):
    """Where a rule comes from."""

    title: str
    url: str

    def __str__(self) -> str:
        return f"{self.title}: {self.url}"


class Hit(msgspec.Struct, frozen=True):
    """What a rule function yields: who broke it and how. No severity means the rule's own."""

    subject: str
    message: str
    severity: Severity | None = None


Hits = Iterator[Hit]
Check = Callable[[Snapshot], Hits]


class Finding(msgspec.Struct, frozen=True):
    """One line of a report."""

    rule: str
    severity: Severity
    subject: str
    message: str
    clause: str


class Skip(msgspec.Struct, frozen=True):
    """A rule that was not checked, and why."""

    rule: str
    reason: str


class Rule(msgspec.Struct, frozen=True):
    """One rule of the contract. `severity` is the worst it reports."""

    id: str
    severity: Severity
    title: str
    clause: Clause
    surface: Surface
    check: Check
    heuristic: bool = False

    @property
    def explanation(self) -> str:
        """What the rule wants, why, and how to mend it."""
        return inspect.getdoc(self.check) or ""

    @property
    def section(self) -> str:
        """The letter of its section."""
        return self.id[0]

    def findings(self, seen: Snapshot) -> Iterator[Finding]:
        """Run it. What the server wrote is made safe to print; nothing is said twice."""
        for hit in dict.fromkeys(self.check(seen)):
            severity = hit.severity or self.severity
            yield Finding(
                self.id, severity, clean(hit.subject), clean(hit.message, 600), str(self.clause)
            )


def rule(
    id: str,
    severity: Severity,
    title: str,
    clause: Clause,
    surface: Surface,
    *,
    heuristic: bool = False,
) -> Callable[[Check], Rule]:
    """Make a rule of a function; its docstring is what `--explain` prints."""

    def decorate(check: Check) -> Rule:
        return Rule(id, severity, title, clause, surface, check, heuristic)

    return decorate


def on_tool(tool: ListedTool, message: str, severity: Severity | None = None) -> Hit:
    """A hit on a tool; the message starts with its name."""
    return Hit(f"tool {tool.name}", f"Tool `{tool.name}`{message}", severity)


def on_page(page: Page, message: str, severity: Severity | None = None) -> Hit:
    """A hit on a UI resource; the message starts with its URI."""
    return Hit(f"resource {page.uri}", f"`{page.uri}`{message}", severity)


def order(rule_id: str) -> tuple[int, int]:
    """Sort key that puts rules in the order of the contract: A1, A2, … V8."""
    sections = "ABCPDNV"
    return sections.index(rule_id[0]), int(rule_id[1:])


def selected(
    rules: Sequence[Rule], select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> list[Rule]:
    """The rules whose id is in `select` (all when empty) and not in `ignore`; prefixes count.

    A prefix is a section letter (`B`) or a whole id (`B1`, which does not mean `B10`).

    Raises:
        UsageError: an entry names no rule.
    """
    wanted, unwanted = _matching(rules, select), _matching(rules, ignore)
    return [rule for rule in rules if (not wanted or rule.id in wanted) and rule.id not in unwanted]


def _matching(rules: Sequence[Rule], entries: Iterable[str]) -> set[str]:
    matched: set[str] = set()
    for entry in entries:
        key = entry.strip().upper()
        found = {rule.id for rule in rules if key in (rule.id, rule.section)}
        if not found:
            raise UsageError(
                f"no rule is called {entry!r}: name a rule such as B2 or a section such as B "
                "(`transom check --rules` lists them)"
            )
        matched |= found
    return matched


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def clean(text: str, limit: int = 200) -> str:
    """Text from a server, safe for a terminal: no control or direction characters, not too long."""
    text = _CONTROL.sub(" ", text).encode("utf-8", "replace").decode()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def show(value: Json, limit: int = 80) -> str:
    """A JSON value for a message."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clean(text, limit)
