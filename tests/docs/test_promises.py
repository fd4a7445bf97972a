"""Every promise of docs/security.md is numbered, and has tests that are there."""

import re
from itertools import groupby

from tests.contract.facts import functions_in
from tests.docs.promises import ROOT, promises

PAGE = (ROOT / "docs" / "security.md").read_text()


def test_every_promise_has_a_test_and_every_test_is_there():
    found = promises()
    assert {number: tests for number, tests in found.items() if not tests} == {}
    missing = [
        f"{number}: {file.name}::{name}"
        for number, tests in found.items()
        for file, name in tests
        if not file.exists() or name not in functions_in(file)
    ]
    assert missing == []


def test_promises_are_numbered_without_a_gap():
    numbers = list(promises())
    assert len(numbers) >= 34
    for letter, group in groupby(numbers, key=lambda number: number[0]):
        of_section = list(group)
        assert of_section == [f"{letter}{n + 1}" for n in range(len(of_section))]


def test_a_section_that_promises_something_has_only_promises_and_what_is_left():
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE):
        headings = re.findall(r"^### (.*)$", section, re.MULTILINE)
        if any(re.match(r"[A-Z]\d+\. ", heading) for heading in headings):
            others = [each for each in headings if not re.match(r"[A-Z]\d+\. ", each)]
            assert set(others) <= {"What it can do", "What is left"}


def test_every_link_to_a_test_belongs_to_a_promise():
    linked = len(re.findall(r"\]\(\.\./tests/", PAGE))
    assert linked == sum(map(len, promises().values()))
