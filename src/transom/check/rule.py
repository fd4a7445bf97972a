"""What a rule is, what it reports, where it comes from, and how rules are selected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, get_type_hints

import msgspec

from transom.check.facts import Facts, ListedTool, ServedResource, ViewObservation
from transom.errors import UsageError
from transom.json_values import Json, clean

MAX_SUBJECT = 200
MAX_TEXT = 600
Severity = Literal["error", "warn", "info"]
"""Breaks a MUST or keeps a View from showing; breaks a SHOULD; advice."""
RuleSurface = Literal[
    "tools", "read", "html", "text", "no_mime", "call", "text_call", "browser", "lists",
    "lists_call", "client", "host", "permission",
]  # fmt: skip
"""What a rule looks at, and so what must have been collected before it can run."""
# The rules that no server can break document the contract and are always skipped.
_NOT_CHECKED = {
    "client": "about the client, not the server",
    "host": "about the host, not the server",
    "permission": "permits something, so nothing breaks it",
}


class Clause(msgspec.Struct, frozen=True):
    """Where a rule comes from."""

    title: str
    url: str

    def __str__(self) -> str:
        return f"{self.title}: {self.url}"


Subject = ListedTool | ServedResource | ViewObservation | str
Hit = tuple[Subject, str, Severity | None] | tuple[Subject, str]
Hits = Iterator[Hit]
"""Who broke a rule and how. No severity means the rule's own.

The message goes on after the name of a tool or the URI of a page; about others it says it all.
"""
Messages = Iterator[str | tuple[str, Severity | None]]
"""How the one subject that a function judges breaks the rule."""
Judge = (
    Callable[[Facts], Hits]
    | Callable[[ListedTool], Messages]
    | Callable[[ServedResource], Messages]
    | Callable[[ViewObservation], Messages]
)
"""The function of a rule: judges all facts, or one tool, page or View at a time."""
Check = Callable[[Facts], Hits]


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
    surface: RuleSurface
    heuristic: bool
    explanation: str
    """What the rule requires, why, and how to fix a violation."""
    name: str

    @property
    def section(self) -> str:
        """The letter of its section."""
        return self.id[0]

    @property
    def not_checked(self) -> str | None:
        """Why no server can break it."""
        return _NOT_CHECKED.get(self.surface)


def _described(hit: Hit) -> tuple[str, str, Severity | None]:
    subject, message, severity = hit if len(hit) == 3 else (*hit, None)
    match subject:
        case ListedTool(name):
            return f"tool {name}", f"Tool `{name}`{message}", severity
        case ServedResource(uri):
            return f"resource {uri}", f"`{uri}`{message}", severity
        case ViewObservation(uri):
            return f"view {uri}", message, severity
        case str():
            return subject, message, severity


CHECKS: dict[str, tuple[str, Check]] = {}
"""The name and the check of every rule that a server can break, by id."""


def findings_of(rule: Rule, seen: Facts) -> Iterator[Finding]:
    """Run a rule. What the server wrote is made safe to print; nothing is reported twice."""
    _, check = CHECKS[rule.id]
    for who, what, severity in dict.fromkeys(_described(hit) for hit in check(seen)):
        subject, message = clean(who, MAX_SUBJECT), clean(what, MAX_TEXT)
        yield Finding(rule.id, severity or rule.severity, subject, message, str(rule.clause))


def rule(id: str) -> Callable[[Judge], Judge]:
    """Make a function the check of the rule `id` in contract.md."""

    def decorate(judge: Judge) -> Judge:
        CHECKS[id] = judge.__name__, _check(judge)
        return judge

    return decorate


_SUBJECTS: dict[object, Callable[[Facts], Iterable[Any]]] = {
    ListedTool: lambda seen: seen.tools,
    ServedResource: lambda seen: (resource for resource in seen.resources if resource.contents),
    ViewObservation: lambda seen: seen.views or (),
}


def _check(judge: Any) -> Check:
    """A check that applies `judge` to each subject of the type of its parameter."""
    subjects = _SUBJECTS.get(next(iter(get_type_hints(judge).values())))
    if subjects is None:
        return judge

    def check(seen: Facts) -> Hits:
        for subject in subjects(seen):
            for message in judge(subject):
                yield (subject, message) if isinstance(message, str) else (subject, *message)

    return check


def show(value: Json, limit: int = 80) -> str:
    """A JSON value for a message."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clean(text, limit)


def selected(
    rules: Sequence[Rule], select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> list[Rule]:
    """The rules whose id is in `select` (all when empty) and not in `ignore`.

    An entry is a section letter (`B`) or a whole id (`B1`, which does not mean `B10`).
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
