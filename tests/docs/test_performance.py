"""docs/performance.md: what the benchmark writes, and that the README quotes it."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks import page
from benchmarks.__main__ import Measured, Rate, compared
from benchmarks.peers import PY, TS, TS_BEST

ROOT = Path(__file__).parents[2]
LINES = [
    Measured("validated tool call", 50_000, "/s", TS_BEST, 20_000, 2.5, ">= 2.5x", True, 2.6, 0.04),
    Measured("start", 31.25, "ms", "bare", None, None, "<= 30 ms", False),
]
GROWTH = {"a call, so many Views": {1: 20.0, 10: 21.0, 1000: 25.0}}


def test_a_page_says_what_was_met_and_missed_and_with_what_it_was_measured() -> None:
    text = page.text(LINES, GROWTH, {"Python": "3.11", "cores": "2"})
    assert "| validated tool call | 50,000 /s | TypeScript SDK, best | 20,000 | 2.50x |" in text
    assert ">= 2.5x, met" in text
    assert "| start | 31.2 ms | bare |" in text
    assert "<= 30 ms, **missed**" in text
    assert "Python 3.11, cores 2" in text
    assert "| a call, so many Views | 20 | 21 | 25 |" in text


def test_rows_that_are_measured_again_take_the_place_of_the_old_and_new_ones_come_last() -> None:
    before = page.text(LINES, GROWTH, {"Python": "3.11"})
    assert page.replace_rows(before, []) == before
    again = LINES[1]._replace(ours=20.0, ok=True)
    new = LINES[1]._replace(name="end")
    after = page.replace_rows(before, [again, new]).splitlines()
    assert "| start | 20 ms | bare |  |  |  |  | <= 30 ms, met |" in after
    changed = [line for line in after if line not in before.splitlines()]
    assert [line.split(" | ")[0] for line in changed] == ["| start", "| end"]
    assert "| validated tool call | 50,000 /s |" in page.readme_table(before)


def test_the_growth_is_a_picture_with_a_line_for_each_thing() -> None:
    picture = ET.fromstring(page.plot(GROWTH))  # noqa: S314 - it is our own
    lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == len(GROWTH)
    assert len(lines[0].attrib["points"].split()) == 3


def test_ratios_are_the_median_of_the_rounds_and_a_missed_budget_is_told() -> None:
    rates = {
        "Transom": [Rate(100.0, 110.0), Rate(80.0, 115.0), Rate(90.0, 115.0)],
        TS_BEST: [Rate(50.0, 50.0), Rate(10.0, 46.0), Rate(60.0, 50.0)],
        TS: [Rate(25.0, 25.0)] * 3,
        PY: [Rate(10.0, 10.0)] * 3,
        "bare asyncio and msgspec": [Rate(200.0, 200.0)] * 3,
    }
    samples = {
        (who, "call", callers): found for who, found in rates.items() for callers in (1, 100)
    }
    lines = {
        line.against: line for line in compared(samples, {"call"}) if "flight" not in line.name
    }
    best = lines[TS_BEST]
    assert (best.ratio, best.ok, best.spread) == (2.0, False, pytest.approx(0.2))
    assert best.processor == pytest.approx(2.3)
    assert lines[TS].ok
    assert lines["bare asyncio and msgspec"].ok is False


def test_the_readme_quotes_the_page() -> None:
    readme = (ROOT / "README.md").read_text()
    quoted = readme.partition(page.BEGIN)[2].partition(page.END)[0]
    rows = [re.split(r" *\| *", line)[1:-1] for line in quoted.splitlines() if "|" in line][2:]
    written = page.PAGE.read_text()
    assert len(rows) > 5
    for name, figure, _, ratio, budget in rows:
        same = [line for line in written.splitlines() if f"| {name} | {figure} |" in line]
        assert any(ratio in line and line.endswith(f"{budget} |") for line in same), name
