"""The outcome of a check: which rules were checked, which were not and why, what was found.

For machines it is written as JSON, SARIF 2.1.0 or JUnit XML; for people see `terminal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

import msgspec

from transom.check.facts import Facts
from transom.check.rule import Finding, Rule, Severity, Skip, findings_of
from transom.check.rules import RULES, SECTIONS
from transom.json_values import Json, JsonObject, as_object, clean
from transom.version import __version__

SEVERITIES: tuple[Severity, ...] = ("error", "warn", "info")
NEEDS_BROWSER = "needs --browser"
NEEDS_CALL = "needs --call"
HEURISTIC = "a heuristic: needs --heuristics"
IN_DEVELOPMENT = "not while developing (--dev)"
SHOWN_UNCALLED = 8
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warn": "warning", "info": "note"}


class Summary(msgspec.Struct, frozen=True):
    """How many findings there are of each severity."""

    error: int = 0
    warn: int = 0
    info: int = 0


class Report(msgspec.Struct, frozen=True):
    """The outcome of `transom check`. Its JSON is this struct, without what is about the run."""

    target: str
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    skipped: tuple[Skip, ...] = ()
    summary: Summary = Summary()
    notes: tuple[str, ...] = ()
    """Remarks about the run."""
    failure: str | None = None
    """Why the server, or its Views where `--browser` was given, could not be checked."""
    server: str = ""
    tools: int = 0
    views: int = 0

    def fails_on(self, level: str) -> bool:
        """Whether there is a finding of severity `level` or worse; `never` is never reached."""
        return any(finding.severity in _up_to(level) for finding in self.findings)


def apply_rules(
    target: str, seen: Facts, rules: Sequence[Rule] = RULES, *, heuristics: Iterable[str] = ()
) -> Report:
    """Run `rules` on what was seen. Heuristic rules run only when `heuristics` names them."""
    findings: list[Finding] = []
    skipped: dict[str, str] = {}
    enabled = set(heuristics)
    for rule in rules:
        off = rule.heuristic and rule.id not in enabled
        if reason := HEURISTIC if off else _missing(rule, seen):
            skipped[rule.id] = reason
            continue
        try:
            findings += list(findings_of(rule, seen))
        except Exception as error:  # noqa: BLE001 - one rule must not take the report with it
            skipped[rule.id] = f"the rule itself failed: {type(error).__name__}: {error}"
    findings.sort(key=lambda f: SEVERITIES.index(f.severity))
    return Report(
        target=target,
        findings=tuple(findings),
        checked=tuple(rule.id for rule in rules if rule.id not in skipped),
        skipped=tuple(Skip(rule, reason) for rule, reason in skipped.items()),
        summary=Summary(**{s: sum(f.severity == s for f in findings) for s in SEVERITIES}),
        notes=(*seen.notes, *_uncalled(seen)),
        failure=_unlisted(seen) or seen.views_failure,
        server=_server_name(seen.apps.handshake or {}),
        tools=len(seen.tools),
        views=len({tool.link for tool in seen.tools if tool.link}),
    )


def nothing_checked(target: str, why: str, rules: Sequence[Rule] = RULES) -> Report:
    """The report on a server that could not be reached."""
    skipped = tuple(Skip(rule.id, rule.not_checked or why) for rule in rules)
    return Report(target=target, skipped=skipped, failure=why)


def _missing(rule: Rule, seen: Facts) -> str | None:
    """Why a rule cannot be checked: there is nothing it could find, or nothing to look at."""
    match rule.surface:
        case "text":
            return seen.text.failure
        case "no_mime":
            return seen.text.failure or seen.no_mime.failure
        case "call" | "text_call" if seen.calls is None:
            return NEEDS_CALL
        case "call" | "text_call":
            client = "text" if rule.surface == "text_call" else "apps"
            answered = any(c.client == client and c.failure is None for c in seen.calls or ())
            return None if answered else "no tool was called, or none answered"
        case "lists" | "lists_call" if seen.lists.failure is not None:
            return seen.lists.failure
        case "lists_call" if not any(each.after_calls for each in seen.lists.listings):
            return NEEDS_CALL if seen.calls is None else "no tool was called, or none answered"
        case "browser" if seen.views is None:
            return seen.views_failure or NEEDS_BROWSER
        case "read" if rule.id == "P11" and seen.dev:
            return IN_DEVELOPMENT
        case "tools":
            return _unlisted(seen)
        case _:
            return rule.not_checked


def _unlisted(seen: Facts) -> str | None:
    return None if seen.tools else seen.apps.failure


def _uncalled(seen: Facts) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for tool, reason in seen.uncalled:
        by_reason.setdefault(reason, []).append(tool)
    for reason, tools in by_reason.items():
        more = f" and {len(tools) - SHOWN_UNCALLED} more" if len(tools) > SHOWN_UNCALLED else ""
        names = ", ".join(clean(tool, 64) for tool in tools[:SHOWN_UNCALLED])
        yield f"not called: {names}{more} ({reason})"


def _up_to(level: str) -> Sequence[Severity]:
    return SEVERITIES[: SEVERITIES.index(level) + 1] if level in SEVERITIES else ()


def _server_name(handshake: JsonObject) -> str:
    stamp = as_object(handshake.get("_meta")).get("io.modelcontextprotocol/serverInfo")
    info = as_object(handshake.get("serverInfo") or stamp)
    protocol = handshake.get("protocolVersion")
    named = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
    return clean(f"{named} (MCP {protocol})" if protocol else named, 200)


# --- for machines ----------------------------------------------------------------------------


def as_json(report: Report) -> str:
    """`{target, findings, checked, skipped, summary}`."""
    fields = ("target", "findings", "checked", "skipped", "summary")
    return _pretty({name: msgspec.to_builtins(getattr(report, name)) for name in fields})


def as_sarif(report: Report) -> str:
    """A SARIF log with one run, for code scanning."""
    rules = _mentioned(report)
    index = {rule.id: position for position, rule in enumerate(rules)}
    notifications: list[Json] = [
        {"level": "note", "message": {"text": f"{skip.rule} was not checked: {skip.reason}"}}
        for skip in report.skipped
    ]
    if report.failure is not None:
        notifications.insert(0, {"level": "error", "message": {"text": report.failure}})
    described: list[Json] = [_sarif_rule(rule) for rule in rules]
    succeeded = report.failure is None
    run: JsonObject = {
        "tool": {"driver": {"name": "transom check", "version": __version__, "rules": described}},
        "invocations": [
            {"executionSuccessful": succeeded, "toolExecutionNotifications": notifications}
        ],
        "results": [_sarif_result(report, found, index[found.rule]) for found in report.findings],
    }
    return _pretty({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def as_junit(report: Report, fail_on: str = "error") -> str:
    """A test suite for each section, a test for each rule.

    A rule fails when it has a finding that reaches `fail_on`; milder ones are its output.
    """
    skipped = {skip.rule: skip.reason for skip in report.skipped}
    root = ET.Element("testsuites", name=f"transom check {clean(report.target, 200)}")
    for letter, title in SECTIONS.items():
        rules = [rule for rule in _mentioned(report) if rule.section == letter]
        if not rules:
            continue
        suite = ET.SubElement(root, "testsuite", name=f"{letter}: {title}")
        counts = {"tests": len(rules), "failures": 0, "errors": 0, "skipped": 0}
        for rule in rules:
            found = [finding for finding in report.findings if finding.rule == rule.id]
            name = f"{rule.id} {rule.title}"
            case = ET.SubElement(suite, "testcase", classname=f"transom.{letter}", name=name)
            if rule.id in skipped:
                counts["skipped"] += 1
                ET.SubElement(case, "skipped", message=skipped[rule.id])
                continue
            if failing := [f for f in found if f.severity in _up_to(fail_on)]:
                counts["failures"] += 1
                first = {"type": failing[0].severity, "message": failing[0].message}
                ET.SubElement(case, "failure", first).text = _lines(failing)
            if milder := [f for f in found if f.severity not in _up_to(fail_on)]:
                ET.SubElement(case, "system-out").text = _lines(milder)
        for name, count in counts.items():
            suite.set(name, str(count))
    if report.failure is not None:
        suite = ET.SubElement(root, "testsuite", name="server", tests="1", errors="1")
        case = ET.SubElement(suite, "testcase", classname="transom", name="can be checked")
        ET.SubElement(case, "error", message=clean(report.failure, 600))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


def _sarif_rule(rule: Rule) -> JsonObject:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": f"{rule.explanation}\n\n{rule.clause}"},
        "helpUri": rule.clause.url,
        "defaultConfiguration": {"level": _LEVELS[rule.severity], "enabled": not rule.not_checked},
        "properties": {"section": SECTIONS[rule.section], "heuristic": rule.heuristic},
    }


def _sarif_result(report: Report, finding: Finding, rule_index: int) -> JsonObject:
    kind, _, name = finding.subject.partition(" ")
    named: JsonObject = {"name": name or kind, "kind": kind, "fullyQualifiedName": finding.subject}
    location: JsonObject = {"logicalLocations": [named]}
    if report.target.endswith(".py"):
        # Code scanning wants a place in a file; the file is all that is known.
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(Path(report.target).as_posix())},
            "region": {"startLine": 1},
        }
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [location],
    }


def _mentioned(report: Report) -> list[Rule]:
    ids = {*report.checked, *(skip.rule for skip in report.skipped)}
    return [rule for rule in RULES if rule.id in ids]


def _lines(findings: Iterable[Finding]) -> str:
    return "\n".join(f"[{f.severity}] {f.message} ({f.clause})" for f in findings)


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
