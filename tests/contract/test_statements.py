"""Every statement of the documents has its place and its test, or a reason."""

import re
import subprocess
import sys
from importlib import import_module

import pytest

from tests.contract.facts import ROOT, numbering, without_test
from tests.contract.statements import DOCUMENTS, STATEMENTS, Statement

SOURCE = ROOT / "src" / "transom"


def is_there(place: str) -> bool:
    """Whether `FILE:NAME` names something: what Python defines, or a word of a script."""
    file, _, name = place.partition(":")
    path = (ROOT if file.startswith("js/") else SOURCE) / file
    if not path.is_file():
        return False
    if path.suffix != ".py":
        return re.search(rf"\b{name}\b", path.read_text()) is not None
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    found: object = import_module(f"transom.{module}")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None


def problems(statement: Statement) -> list[str]:
    """What a statement names and is not there."""
    found = [f"no test {test}" for test in statement.tests if without_test(test)]
    found += [f"nothing at {place}" for place in statement.where.split() if not is_there(place)]
    if not statement.where or not (statement.tests or statement.why):
        found.append("neither proved nor explained")
    return found


def test_the_list_has_every_statement_of_the_documents_once() -> None:
    wanted = [f"{each.id}-{n}" for each in DOCUMENTS for n in range(1, each.count + 1)]
    assert len(wanted) == 172
    assert numbering([statement.id for statement in STATEMENTS], wanted) == []


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.id)
def test_a_statement_has_a_place_and_tests_or_a_reason(statement: Statement) -> None:
    assert problems(statement) == []


def test_a_statement_that_names_what_is_not_there_is_found_out() -> None:
    bad = Statement("x", "", "view/app.py:App.fly nowhere.py:x", ("tests/nowhere.py::test_x",))
    assert len(problems(bad)) == 3
    assert problems(Statement("x", "", "view/app.py:App")) == ["neither proved nor explained"]


def test_few_statements_are_explained_only() -> None:
    assert [each.id for each in STATEMENTS if not each.tests] == ["000-45", "003-55"]


@pytest.mark.processes
def test_the_page_is_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "scripts.statements", "--check"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (run.stdout, run.returncode) == ("", 0), run.stderr
