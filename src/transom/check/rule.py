"""What a rule is, what it reports, where it comes from, and how rules are selected."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from transom.check.snapshot import ListedTool, ServedPage, Snapshot, ViewObservation
from transom.errors import UsageError
from transom.json_values import Json, clean

MAX_SUBJECT = 200
MAX_TEXT = 600
# Why no server can break some rules.
ABOUT_CLIENT = "about the client, not the server"
ABOUT_HOST = "about the host, not the server"
PERMITS = "permits something, so nothing breaks it"

Severity = Literal["error", "warn", "info"]
"""Breaks a MUST or keeps a View from showing; breaks a SHOULD; advice."""
Surface = Literal["tools", "read", "html", "text", "no_mime", "call", "text_call", "browser", ""]
"""What a rule looks at, and so what must have been collected before it can run. Empty: nothing."""


class Clause(msgspec.Struct, frozen=True):
    """Where a rule comes from."""

    title: str
    url: str

    def __str__(self) -> str:
        return f"{self.title}: {self.url}"


Subject = ListedTool | ServedPage | ViewObservation | str
"""Who broke a rule."""
Hit = tuple[Subject, str] | tuple[Subject, str, Severity | None]
"""What a rule function yields: who broke it and how. No severity means the rule's own.

The message goes on after the name of a tool or the URI of a page; about others it says it all.
"""
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
    name: str
    explanation: str
    """What the rule wants, why, and how to fix what breaks it."""
    check: Check | None
    heuristic: bool = False
    not_checked: str | None = None
    """Why no server can break it. Such a rule documents the contract and is always skipped."""

    @property
    def section(self) -> str:
        """The letter of its section."""
        return self.id[0]

    def findings(self, seen: Snapshot) -> Iterator[Finding]:
        """Run it. What the server wrote is made safe to print; nothing is reported twice."""
        hits = (_described(hit) for hit in (self.check(seen) if self.check else ()))
        for who, what, severity in dict.fromkeys(hits):
            subject, message = clean(who, MAX_SUBJECT), clean(what, MAX_TEXT)
            yield Finding(self.id, severity or self.severity, subject, message, str(self.clause))


def _described(hit: Hit) -> tuple[str, str, Severity | None]:
    subject, message, severity = hit if len(hit) == 3 else (*hit, None)
    match subject:
        case ListedTool(name):
            return f"tool {name}", f"Tool `{name}`{message}", severity
        case ServedPage(uri):
            return f"resource {uri}", f"`{uri}`{message}", severity
        case ViewObservation(uri):
            return f"view {uri}", message, severity
        case str():
            return subject, message, severity


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
        text = inspect.getdoc(check) or ""
        return Rule(id, severity, title, clause, surface, check.__name__, text, check, heuristic)

    return decorate


def documented(
    id: str, severity: Severity, title: str, clause: Clause, reason: str
) -> Callable[[Callable[[], None]], Rule]:
    """Make a rule that the contract has but that no server can break; `reason` says why not."""

    def decorate(described: Callable[[], None]) -> Rule:
        name, text = described.__name__, inspect.getdoc(described) or ""
        return Rule(id, severity, title, clause, "", name, text, None, not_checked=reason)

    return decorate


def show(value: Json, limit: int = 80) -> str:
    """A JSON value for a message."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clean(text, limit)


def order(rule_id: str) -> tuple[int, int]:
    """Sort key that puts rules in the order of the contract: A1, A2, … V8."""
    return "ABCPDNV".index(rule_id[0]), int(rule_id[1:])


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


# --- the clauses that rules come from --------------------------------------------------------

_APPS = "https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/draft/apps.mdx"
_CORE = "https://modelcontextprotocol.io/specification/2025-11-25"


def _apps(section: str, anchor: str) -> Clause:
    return Clause(f"MCP Apps, {section}", f"{_APPS}#{anchor}")


CLIENT_CAPABILITIES = _apps("Client (Host) Capabilities", "client-host-capabilities")
SERVER_BEHAVIOR = _apps("Server Behavior", "server-behavior")
RESOURCE_FORMAT = _apps("UI Resource Format", "ui-resource-format")
METADATA_LOCATION = _apps("Metadata Location", "metadata-location")
CONTENT_REQUIREMENTS = _apps("Content Requirements", "content-requirements")
HOST_BEHAVIOR = _apps("Host Behavior", "host-behavior")
RESOURCE_DISCOVERY = _apps("Resource Discovery", "resource-discovery")
VISIBILITY = _apps("Visibility", "visibility")
LIFECYCLE = _apps("Lifecycle", "lifecycle")
APP_TOOLS = _apps("App-Provided Tools", "app-provided-tools")
SECURITY = _apps("Security Implications", "security-implications")
TOOL = Clause("MCP, Tools", f"{_CORE}/server/tools#tool")
TOOL_RESULT = Clause("MCP, Tool Result", f"{_CORE}/server/tools#tool-result")
STRUCTURED = Clause("MCP, Structured Content", f"{_CORE}/server/tools#structured-content")
OUTPUT_SCHEMA = Clause("MCP, Output Schema", f"{_CORE}/server/tools#output-schema")
ERRORS = Clause("MCP, Error Handling", f"{_CORE}/server/tools#error-handling")
ANNOTATIONS = Clause("MCP, ToolAnnotations", f"{_CORE}/schema#toolannotations")
