"""What a report looks like, for machines and for people."""

import io
import json
from xml.etree import ElementTree as ET

import jsonschema_rs
import msgspec
import pytest
from rich.console import Console

from tests.check.sarif import SARIF
from transom.check.facts import Facts, ListedTool, Visit
from transom.check.report import (
    Report,
    Summary,
    apply_rules,
    as_json,
    as_junit,
    as_sarif,
    nothing_checked,
)
from transom.check.rule import Finding, Skip
from transom.check.rules import RULES
from transom.check.terminal import explanation, print_report, rule_list


def finding(rule: str, severity: str, message: str = "Tool `show` is wrong.") -> Finding:
    clause = next(str(r.clause) for r in RULES if r.id == rule)
    return Finding(rule, severity, "tool show", message, clause)


REPORT = Report(
    target="orders.py",
    findings=(finding("B3", "error"), finding("A2", "warn"), finding("C11", "info")),
    checked=("A2", "A3", "B3", "C11"),
    skipped=(Skip("V1", "needs --browser"), Skip("D1", "needs --call")),
    summary=Summary(1, 1, 1),
    notes=("not called: save (not marked read-only; --call-all calls it)",),
    server="orders 1.0 (MCP 2025-11-25)",
    tools=2,
    views=1,
)
GONE = nothing_checked("orders.py", "the server exited with code 3")


def printed(report: Report, **options) -> str:
    out = io.StringIO()
    print_report(Console(file=out, width=100, force_terminal=False), report, **options)
    return out.getvalue()


def test_the_json_has_the_shape_that_was_promised():
    told = json.loads(as_json(REPORT))

    assert list(told) == ["target", "findings", "checked", "skipped", "summary"]
    assert told["target"] == "orders.py"
    assert list(told["findings"][0]) == ["rule", "severity", "subject", "message", "clause"]
    assert told["findings"][0]["rule"] == "B3"
    assert told["checked"] == ["A2", "A3", "B3", "C11"]
    assert told["skipped"][0] == {"rule": "V1", "reason": "needs --browser"}
    assert told["summary"] == {"error": 1, "warn": 1, "info": 1}


@pytest.mark.parametrize("report", [REPORT, GONE, Report(target="https://example.com/mcp")])
def test_the_sarif_is_valid(report):
    jsonschema_rs.validate(SARIF, json.loads(as_sarif(report)), validate_formats=True)


def test_the_sarif_points_at_rules_and_subjects():
    run = json.loads(as_sarif(REPORT))["runs"][0]

    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    place = run["results"][0]["locations"][0]
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "tool show"
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "orders.py"
    assert run["invocations"][0]["executionSuccessful"] is True


def test_the_sarif_says_when_a_server_could_not_be_checked():
    run = json.loads(as_sarif(GONE))["runs"][0]

    assert run["invocations"][0]["executionSuccessful"] is False
    told = run["invocations"][0]["toolExecutionNotifications"][0]
    assert told == {"level": "error", "message": {"text": "the server exited with code 3"}}


@pytest.mark.parametrize(
    ("fail_on", "failed"),
    [("error", {"B3"}), ("warn", {"B3", "A2"}), ("info", {"B3", "A2", "C11"}), ("never", set())],
)
def test_the_junit_fails_the_rules_that_matter(fail_on, failed):
    root = ET.fromstring(as_junit(REPORT, fail_on))  # noqa: S314 - our own output

    cases = {case.get("name", "").split()[0]: case for case in root.iter("testcase")}
    assert {name for name, case in cases.items() if case.find("failure") is not None} == failed
    assert set(cases) == {"A2", "A3", "B3", "C11", "V1", "D1"}
    assert sum(int(suite.get("skipped", 0)) for suite in root) == 2
    assert sum(int(suite.get("failures", 0)) for suite in root) == len(failed)
    assert sum(int(suite.get("tests", 0)) for suite in root) == 6


def test_milder_findings_are_the_output_of_a_junit_case():
    root = ET.fromstring(as_junit(REPORT, "error"))  # noqa: S314 - our own output
    texts = [element.text or "" for element in root.iter("system-out")]

    assert any(text.startswith("[warn] Tool `show` is wrong.") for text in texts)


def test_the_junit_holds_no_character_that_xml_forbids():
    nasty = {"name": "a\x00\ud800<b>&\u202e", "_meta": {"ui": {"resourceUri": "\x1b[31m"}}}
    visit = Visit(tools=(ListedTool.from_entry(1, nasty),))
    report = apply_rules("a\x00b", Facts(apps=visit))

    root = ET.fromstring(as_junit(report))  # noqa: S314 - our own output
    failure = root.find(".//failure")
    assert failure is not None
    assert "is not a `ui://` URI" in failure.get("message", "")
    assert "\u202e" not in as_junit(report)


def test_a_server_that_could_not_be_checked_is_an_error_in_junit():
    root = ET.fromstring(as_junit(GONE))  # noqa: S314 - our own output
    error = root.find(".//error")
    assert error is not None
    assert error.get("message") == "the server exited with code 3"


def test_the_table_shows_findings_remarks_and_a_summary():
    text = printed(REPORT)

    assert "orders 1.0 (MCP 2025-11-25) · 2 tools · 1 View" in text
    assert "error      B3     Tool `show` is wrong." in text
    assert "Remark: not called: save" in text
    assert "1 error · 1 warning · 1 note" in text
    assert "4 rules checked, 2 skipped:" in text
    assert "1  needs --browser" in text
    assert "transom check --explain B3" in text


def test_many_findings_of_one_rule_are_shortened():
    many = Report(target="x", findings=(finding("N1", "warn"),) * 1000, checked=("N1",))

    text = printed(many)
    assert text.count("Tool `show` is wrong.") == 5
    assert "… and 995 more like this (--all shows them)" in text
    assert printed(many, show_all=True).count("Tool `show` is wrong.") == 1000


def test_a_perfect_report_says_so():
    text = printed(Report(target="x", checked=("A2",)))
    assert "No findings." in text
    assert "--explain" not in text


def test_a_failure_is_said_first():
    text = printed(GONE)
    assert "Not checked: the server exited with code 3" in text
    assert "rules checked" not in text


def test_what_looks_like_markup_is_printed_as_it_is():
    text = printed(Report(target="[red]x[/red]", findings=(finding("B2", "error", "[bold]`a`"),)))
    assert "[red]x[/red]" in text
    assert "[bold]`a`" in text


def test_a_command_is_printed_on_one_line_however_long_it_is():
    command = f"python {'/long folder' * 20}/orders.py"
    report = msgspec.structs.replace(REPORT, target=command, notes=(f"not called: {command}",))
    for text in (printed(report), printed(nothing_checked(command, f"{command} is gone"))):
        assert f"transom check {command}\n" in text
    assert f"Remark: not called: {command}\n" in printed(report)
    assert f"Not checked: {command} is gone\n" in text


def test_every_rule_is_listed_and_can_be_explained():
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as capture:
        console.print(rule_list())
        for rule in RULES:
            console.print(explanation(rule))
    text = capture.get()
    for rule in RULES:
        assert rule.title in text
        assert rule.clause.title in text


def test_a_rule_that_no_server_can_break_says_so():
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as capture:
        console.print(explanation(next(rule for rule in RULES if rule.id == "B17")))
    assert "not checked on a server (about the host, not the server)" in capture.get()
    assert "at worst" not in capture.get()


@pytest.mark.parametrize(
    ("id", "when"),
    [
        ("B3", "always on"),
        ("D1", "with --call"),
        ("V1", "with --browser"),
        ("D7", "with --heuristics and --call"),
    ],
)
def test_an_explanation_says_when_the_rule_is_checked(id, when):
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as capture:
        console.print(explanation(next(rule for rule in RULES if rule.id == id)))
    assert when in capture.get()


def test_a_report_without_a_checked_rule_does_not_praise_the_server():
    text = printed(Report(target="x", skipped=(Skip("B17", "about the host, not the server"),)))
    assert "No findings." not in text
    assert "0 rules checked, 1 skipped:" in text
