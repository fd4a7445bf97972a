"""The tiers of tests, tried with small test files."""

import os
import subprocess
from itertools import product
from pathlib import Path

import pytest

from tests.tiers import grid

NIGHTLY = Path(__file__).parents[1] / "scripts" / "nightly"
TESTS = """
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-S", "-c", ""]

def test_plain():
    pass

def test_starts():
    subprocess.run(COMMAND)

def test_starts_and_hides_it():
    try:
        subprocess.run(COMMAND)
    except RuntimeError:
        pass

@pytest.mark.processes
def test_starts_and_says_so():
    assert subprocess.run(COMMAND).returncode == 0

@pytest.mark.nightly
def test_long():
    pass
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("tier", "passed", "failed"), [("quick", 1, 2), ("test", 2, 2), ("nightly", 3, 2)]
)
def test_a_test_that_starts_a_process_fails_unless_it_is_marked(
    pytester: pytest.Pytester, tier: str, passed: int, failed: int
) -> None:
    pytester.makepyfile(TESTS)
    ran = pytester.runpytest_inprocess("-p", "tests.tiers", "-p", "no:asyncio", "--tier", tier)
    ran.assert_outcomes(passed=passed, failed=failed, deselected=5 - passed - failed)
    ran.stdout.fnmatch_lines(["*test_starts_and_hides_it starts a process (subprocess.Popen*"])


@pytest.mark.processes
def test_the_parts_of_the_nightly_run_are_not_given_their_own_names_as_arguments(
    tmp_path: Path,
) -> None:
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "ran $*, ARGS: $ARGS, MAKEFLAGS: $MAKEFLAGS"\n')
    make.chmod(0o755)
    given = {"ARGS": "docs dist", "MAKEFLAGS": " -- ARGS=docs\\ dist"}  # as make passes them on
    ran = subprocess.run(
        [NIGHTLY, "docs", "dist"],
        env=os.environ | given | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    made = [line for line in ran.stdout.splitlines() if line.startswith("ran ")]
    assert made == ["ran docs-site, ARGS: , MAKEFLAGS: ", "ran dist, ARGS: , MAKEFLAGS: "]


def test_a_grid_has_every_combination_and_runs_every_pair_of_values() -> None:
    axes = ("ab", (1, 2, 3), "xy", (True, False))
    params = grid(*axes)
    assert sorted(map(repr, (p.values for p in params))) == sorted(map(repr, product(*axes)))
    run = [param.values for param in params if not param.marks]
    assert len(run) < len(params) / 2
    for first, second in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
        pairs = {(values[first], values[second]) for values in run}
        assert pairs == set(product(axes[first], axes[second]))
