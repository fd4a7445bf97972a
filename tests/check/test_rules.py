"""Every rule reports the server that breaks it, and leaves alone the one that keeps it."""

from pathlib import Path

import msgspec
import pytest

from tests.check.cases import CASES, NOT_CHECKED, Case, Seen
from tests.check.fake import URI, Server, page
from transom.check.facts import Facts, ViewObservation
from transom.check.report import Report, apply_rules
from transom.check.rule import CHECKS, Hits, Skip, selected
from transom.check.rules import RULES
from transom.check.runner import Calling, Options, collect
from transom.errors import UsageError

EVERY_ID = [
    *(f"A{n}" for n in range(1, 6)),
    *(f"B{n}" for n in range(1, 19)),
    *(f"C{n}" for n in range(1, 16)),
    *(f"P{n}" for n in range(1, 18)),
    *(f"D{n}" for n in range(1, 12)),
    *(f"N{n}" for n in range(1, 11)),
    *(f"V{n}" for n in range(1, 9)),
]
LISTS = [f"L{n}" for n in range(1, 6)]  # from MCP 2026-07-28; the 84 before are about MCP Apps
HEURISTICS = {"B11", "B16", "C15", "P10", "P14", "D7", "D8", "N4", "N5", "N6"}


async def report_on(subject: Server | Seen) -> Report:
    """Check with everything allowed: every tool called, every heuristic on."""
    seen = subject if isinstance(subject, Seen) else Seen(server=subject)
    options = Options(calling=Calling(all=True), read_twice=True)
    snapshot = await collect(seen.server.connect, options)
    if seen.views is not None:
        snapshot = msgspec.structs.replace(snapshot, views=seen.views)
    return apply_rules("orders", snapshot, heuristics=[rule.id for rule in RULES])


def test_the_catalogue_holds_the_84_rules_of_the_contract_in_order():
    assert [rule.id for rule in RULES] == [*EVERY_ID, *LISTS]
    assert len(EVERY_ID) == 84


def test_every_rule_has_a_check_and_a_case_but_those_that_no_server_can_break():
    checked = {*EVERY_ID, *LISTS} - NOT_CHECKED
    assert CHECKS.keys() == checked
    assert {case.rule for case in CASES} == checked
    assert {rule.id for rule in RULES if rule.not_checked} == NOT_CHECKED


def test_the_heuristic_rules_are_those_of_the_contract():
    assert {rule.id for rule in RULES if rule.heuristic} == HEURISTICS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_explains_itself_and_links_its_clause(rule):
    assert len(rule.explanation.split()) > 10
    assert rule.clause.url.startswith("https://")
    assert rule.title
    assert not rule.title.endswith(".")


async def test_the_perfect_server_has_nothing_to_be_told():
    report = await report_on(Server())

    assert report.findings == ()
    reasons = {skip.rule: skip.reason for skip in report.skipped}
    documented = {rule.id: rule.not_checked for rule in RULES if rule.not_checked}
    assert {rule: reasons.pop(rule) for rule in documented} == documented
    assert set(reasons.values()) == {"needs --browser"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.severity}")
async def test_a_server_that_breaks_a_rule_is_told_so_and_told_nothing_else(case: Case):
    report = await report_on(case.breaks)

    told = [finding for finding in report.findings if finding.rule == case.rule]
    assert told, report.findings
    assert case.says in told[0].message
    assert told[0].severity == case.severity
    assert told[0].clause == next(str(r.clause) for r in RULES if r.id == case.rule)
    assert {finding.rule for finding in report.findings} - {case.rule} == case.also


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.severity}")
async def test_a_server_that_keeps_a_rule_is_not_told_of_it(case: Case):
    report = await report_on(case.keeps)

    assert case.rule in report.checked
    assert case.rule not in {finding.rule for finding in report.findings}


async def test_a_ui_resource_that_is_not_listed_is_never_reported():
    report = await report_on(Server(resources=[]))

    assert Skip("C7", "permits something, so nothing breaks it") in report.skipped
    assert report.findings == ()


def test_no_rule_reports_worse_than_its_own_severity():
    """The catalogue's severity is what `--explain` calls the worst."""
    rank = {"info": 0, "warn": 1, "error": 2}
    worst = {rule.id: rule.severity for rule in RULES}
    assert all(rank[case.severity] <= rank[worst[case.rule]] for case in CASES)


def test_rules_are_chosen_by_id_and_by_section():
    assert [rule.id for rule in selected(RULES, ["B1"])] == ["B1"]
    assert {rule.id[0] for rule in selected(RULES, ["b", "V8"])} == {"B", "V"}
    assert "B1" not in {rule.id for rule in selected(RULES, [], ["B"])}
    assert [rule.id for rule in selected(RULES, ["C"], ["C1"])][:2] == ["C2", "C3"]


@pytest.mark.parametrize("name", ["X1", "B99", "", "B1,B2"])
def test_a_rule_that_does_not_exist_cannot_be_chosen(name):
    with pytest.raises(UsageError, match="no rule is called"):
        selected(RULES, [name])


def test_the_documentation_counts_the_rules():
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text()
    assert f"The contract has {len(RULES)} rules" in page
    assert f"{len(RULES) - len(NOT_CHECKED)} of them" in page


async def test_localhost_is_left_alone_while_developing():
    server = Server(pages={URI: page(ui={"csp": {"connectDomains": ["http://localhost:3000"]}})})
    seen = await collect(server.connect, Options(dev=True))
    report = apply_rules("orders", seen)

    assert report.findings == ()
    assert Skip("P11", "not while developing (--dev)") in report.skipped


async def test_heuristic_rules_are_off_unless_they_are_named():
    seen = await collect(Server().connect, Options())

    assert HEURISTICS & set(apply_rules("orders", seen).checked) == set()
    assert "B16" in apply_rules("orders", seen, heuristics=["B16"]).checked


async def test_a_rule_that_fails_is_skipped_and_takes_nothing_with_it(
    monkeypatch: pytest.MonkeyPatch,
):
    def broken(_: Facts) -> Hits:
        raise ValueError("oops")
        yield

    seen = await collect(Server().connect, Options())
    monkeypatch.setitem(CHECKS, "B1", ("broken", broken))
    report = apply_rules("orders", seen, RULES[5:7])

    assert report.skipped == (Skip("B1", "the rule itself failed: ValueError: oops"),)
    assert report.checked == ("B2",)


async def test_what_is_true_in_every_theme_is_said_once():
    silent = tuple(
        ViewObservation(URI, 10, theme=theme, initialized=False) for theme in ("light", "dark")
    )
    report = await report_on(Seen(views=silent))

    assert [finding.rule for finding in report.findings] == ["V1"]


async def test_the_domain_of_the_server_itself_is_no_sandbox_domain():
    server = Server(pages={URI: page(ui={"domain": "app.example.com"})})
    options = Options(server_host="example.com")
    seen = await collect(server.connect, options)

    assert "C13" in {finding.rule for finding in apply_rules("orders", seen).findings}
