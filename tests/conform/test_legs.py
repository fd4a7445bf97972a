"""Hosts that show Views in Chromium: each keeps every requirement but those in differences.toml."""

import pytest

from tests.browser.hosting import chromium
from tests.conform.own_hosts import LEGS, differences
from transom.conform.requirements import requirements


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.timeout(600)
@pytest.mark.parametrize("leg", LEGS)
async def test_a_host_in_a_browser_differs_only_where_that_is_known(leg: str):
    async with chromium() as browser:
        report = await LEGS[leg](browser, 20.0)
    found: dict[str, set[str]] = {"fail": set(), "skip": set()}
    for each in report.verdicts:
        if (word := report.word(each)) in found:
            found[word].add(each.id)
    known = differences()[leg]
    assert found == {word: set(known.get(word, {})) for word in found}


def test_known_differences_are_of_legs_and_requirements_that_exist_and_say_why():
    assert differences().keys() == LEGS.keys()
    for leg in differences().values():
        for reasons in leg.values():
            assert reasons.keys() <= requirements("host").keys()
            assert all(reasons.values())
