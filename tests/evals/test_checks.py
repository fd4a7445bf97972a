"""Whether a run did what is expected of it, and what can be said after a few runs."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from transom.evals.cases import After, Expected
from transom.evals.checks import MadeCall, RunRecord, check_run
from transom.evals.figures import best_chance, chance, wilson
from transom.testing.model import Call

RUN = RunRecord(
    calls=[
        MadeCall(tool="show_orders", arguments={"status": "open"}, result="3 orders"),
        MadeCall(tool="orders-1__select", arguments={"id": "A-0"}, result="none", failed=True),
        MadeCall(tool="orders-1__select", arguments={"id": "A-1", "n": 1}, result="Selected A-1"),
    ],
    answer="I selected A-1.",
    pages=['heading "Orders"\n"1 selected"\n'],
)
SHOW, SELECT = Call("show_orders", {"status": "open"}), Call("select", {"id": "A-1"})


@pytest.mark.parametrize(
    ("expected", "wrong"),
    [
        ({"calls": [SHOW, SELECT]}, None),
        ({"calls": [Call("select"), Call("show_orders")], "any_order": True}, None),
        ({"calls": [Call("orders-1__select", {"id": "A-1"})]}, None),
        ({"calls": [SELECT, SHOW]}, 'show_orders {"status":"open"} was not called at that place'),
        ({"calls": [SELECT, SELECT]}, 'select {"id":"A-1"} was not called; called: show_orders'),
        ({"calls": [Call("select", {"id": "A-0"})]}, 'select {"id":"A-0"} was not called'),
        ({"calls": [Call("select", {"n": True})]}, "was not called"),
        ({"calls": [Call("lect")]}, "was not called"),
        ({"calls": [SHOW, SELECT], "only": True}, 'also called: orders-1__select {"id":"A-0"} (f'),
        ({"only": True}, "also called: show_orders"),
        ({"never": ["delete"]}, None),
        ({"never": ["select"]}, "it was called: orders-1__select"),
        ({"answer": ["a-1", "selected"]}, None),
        ({"answer": "A-2"}, "it is 'I selected A-1.'"),
        ({"results": {"select": "A-1"}}, None),
        ({"results": {"select": "A-9"}}, "it is 'Selected A-1'"),
        ({"results": {"get": "A-1"}}, "it was not called"),
        ({"page": "1 selected"}, None),
        ({"page": "2 selected"}, 'heading "Orders" "1 selected"'),
        ({"after": [After(tool="get", contains="A-1")]}, None),
        ({"after": [After(tool="get", contains="A-2")]}, "it is 'A-1'"),
    ],
)
def test_what_is_expected_of_a_run(expected: dict[str, Any], wrong: str | None, tmp_path: Path):
    after = ["A-1"] if "after" in expected else []
    run = msgspec.structs.replace(RUN, after=after, missing=["2 selected"])
    checks = list(check_run(Expected(**expected), run, tmp_path, update=False))
    assert [check.name for check in checks if not check.passed] == [
        check.name for check in checks[1:] if wrong is not None
    ]
    assert wrong is None or wrong in (checks[-1].reason or "")


def test_of_a_run_that_did_not_end_only_that_is_said(tmp_path: Path):
    run = RunRecord(error="it took longer than 5 s")
    checks = list(check_run(Expected(calls=[SHOW], answer="3"), run, tmp_path, update=False))
    assert checks == [("finished", "it took longer than 5 s")]


def test_a_snapshot_is_written_when_told_and_compared_otherwise(tmp_path: Path):
    expected = Expected(snapshot="seen/orders.txt")

    def wrong(run: RunRecord, *, update: bool = False) -> str | None:
        return list(check_run(expected, run, tmp_path, update=update))[-1].reason

    assert "there is no" in (wrong(RUN) or "")
    assert wrong(RUN, update=True) is None
    assert wrong(RUN) is None
    newest_first = RunRecord(pages=['"2 selected"\n', RUN.pages[0]])
    assert '-"1 selected"\n+"2 selected"' in (wrong(newest_first) or "")


@pytest.mark.parametrize(
    ("passed", "runs", "low", "high"),
    # As statsmodels' proportion_confint(passed, runs, method="wilson") has them.
    [(5, 5, 0.566, 1.0), (0, 5, 0.0, 0.434), (8, 10, 0.490, 0.943), (1, 1, 0.207, 1.0)],
)
def test_the_interval_of_a_rate(passed: int, runs: int, low: float, high: float):
    assert wilson(passed, runs) == pytest.approx((low, high), abs=0.001)


@pytest.mark.parametrize(
    ("before", "after", "p"),
    [
        # One case: as scipy.stats.fisher_exact has it.
        ([(0, 5)], [(5, 5)], 0.0079),
        ([(3, 10)], [(8, 10)], 0.0698),
        ([(5, 5)], [(5, 5)], 1.0),
        # What differs between cases is no difference between the groups.
        ([(0, 5), (5, 5)], [(0, 5), (5, 5)], 1.0),
        # Three cases of two runs each: 1 in 6 for each, both ways.
        ([(0, 2)] * 3, [(2, 2)] * 3, 2 / 6**3),
    ],
)
def test_how_likely_a_difference_is_by_chance(
    before: list[tuple[int, int]], after: list[tuple[int, int]], p: float
):
    assert chance(before, after) == pytest.approx(p, abs=0.0001)
    assert chance(after, before) == pytest.approx(p, abs=0.0001)


def test_a_few_runs_cannot_show_anything():
    assert best_chance([(0, 3)], [(1, 3)]) == pytest.approx(0.1)
    assert best_chance([(0, 4)], [(1, 4)]) < 0.05
