"""A report for machines: JSON, SARIF 2.1.0 and JUnit XML."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

import msgspec

from transom.check.report import SEVERITIES, Report
from transom.check.rule import Finding, Rule
from transom.check.rules import RULES, SECTIONS
from transom.json_values import Json, JsonObject, clean
from transom.version import __version__

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warn": "warning", "info": "note"}


def as_json(report: Report) -> str:
    """`{target, findings, checked, skipped, summary}`."""
    fields = ("target", "findings", "checked", "skipped", "summary")
    return _pretty({name: msgspec.to_builtins(getattr(report, name)) for name in fields})


def as_sarif(report: Report) -> str:
    """A SARIF log with one run, for code scanning."""
    rules = [rule for rule in RULES if rule.id in _mentioned(report)]
    index = {rule.id: position for position, rule in enumerate(rules)}
    notifications: list[Json] = [
        {"level": "note", "message": {"text": f"{skip.rule} was not checked: {skip.reason}"}}
        for skip in report.skipped
    ]
    if report.failure is not None:
        notifications.insert(0, {"level": "error", "message": {"text": report.failure}})
    run: JsonObject = {
        "tool": {
            "driver": {
                "name": "transom check",
                "version": __version__,
                "rules": [_sarif_rule(rule) for rule in rules],
            }
        },
        "invocations": [
            {
                "executionSuccessful": report.failure is None,
                "toolExecutionNotifications": notifications,
            }
        ],
        "results": [_sarif_result(report, found, index[found.rule]) for found in report.findings],
    }
    return _pretty({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def as_junit(report: Report, fail_on: str = "error") -> str:
    """A test suite for each section, a test for each rule.

    A rule fails when it has a finding that reaches `fail_on`; milder ones are its output.
    """
    worst = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on in SEVERITIES else ()
    skipped = {skip.rule: skip.reason for skip in report.skipped}
    root = ET.Element("testsuites", name=f"transom check {clean(report.target, 200)}")
    for letter, (title, _) in SECTIONS.items():
        rules = [rule for rule in RULES if rule.section == letter]
        rules = [rule for rule in rules if rule.id in skipped or rule.id in report.checked]
        if not rules:
            continue
        suite = ET.SubElement(root, "testsuite", name=f"{letter}: {title}")
        counts = {"tests": len(rules), "failures": 0, "errors": 0, "skipped": 0}
        for rule in rules:
            found = [finding for finding in report.findings if finding.rule == rule.id]
            case = ET.SubElement(
                suite, "testcase", classname=f"transom.{letter}", name=f"{rule.id} {rule.title}"
            )
            if rule.id in skipped:
                counts["skipped"] += 1
                ET.SubElement(case, "skipped", message=skipped[rule.id])
                continue
            failing = [finding for finding in found if finding.severity in worst]
            if failing:
                counts["failures"] += 1
                failure = ET.SubElement(
                    case, "failure", type=failing[0].severity, message=failing[0].message
                )
                failure.text = _lines(failing)
            if milder := [finding for finding in found if finding not in failing]:
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
        "defaultConfiguration": {
            "level": _LEVELS[rule.severity],
            "enabled": rule.not_checked is None,
        },
        "properties": {"section": SECTIONS[rule.section][0], "heuristic": rule.heuristic},
    }


def _sarif_result(report: Report, finding: Finding, rule_index: int) -> JsonObject:
    kind, _, name = finding.subject.partition(" ")
    location: JsonObject = {
        "logicalLocations": [
            {"name": name or kind, "kind": kind, "fullyQualifiedName": finding.subject}
        ]
    }
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


def _mentioned(report: Report) -> set[str]:
    return {*report.checked, *(skip.rule for skip in report.skipped)}


def _lines(findings: Iterable[Finding]) -> str:
    return "\n".join(f"[{f.severity}] {f.message} ({f.clause})" for f in findings)


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
