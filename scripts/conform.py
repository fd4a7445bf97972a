"""Writes docs/conformance.md's tables: `python -m scripts.conform`.

The tables of requirements come from host.toml and view.toml. Without `--tables`, our own hosts are
measured as well, and their results written; that takes three minutes, and Chromium.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.browser.hosting import chromium
from tests.conform.own_hosts import LEGS, differences
from tests.conform.test_view import make_view
from transom.cli import parse_target
from transom.conform.measuring import measure_app, measure_view, view_of_server
from transom.conform.report import ConformReport
from transom.conform.requirements import Subject, requirements

PAGE = Path(__file__).parents[1] / "docs" / "conformance.md"
OFFICIAL = PAGE.parents[1] / "tests" / "servers" / "node_modules" / "@modelcontextprotocol"
OFFICIAL_VIEWS = ("basic-vanillajs", "basic-react", "budget-allocator", "scenario-modeler")
TIMEOUT = 20.0


def requirement_rows(subject: Subject) -> Iterator[str]:
    """The table of all requirements."""
    yield "| id | level | requirement | specification |"
    yield "| --- | --- | --- | --- |"
    for each in requirements(subject).values():
        text = each.text.replace("|", "\\|")
        yield f"| `{each.id}` | {each.level} | {text} | [{each.clause}]({each.url}) |"


def result_rows(
    reports: Iterable[ConformReport], known: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """The table of results, and what does not hold, with the reasons that are known of each."""
    yield "| measured | hold | do not hold | optional, not offered | not measured |"
    yield "| --- | --- | --- | --- | --- |"
    listed = list(reports)
    for report in listed:
        numbers = " | ".join(str(each) for each in report.count().values())
        yield f"| {report.name} | {numbers} |"
    for report in listed:
        failed = [each for each in report.verdicts if report.word(each) == "fail"]
        if failed:
            yield ""
            yield f"What does not hold in {report.name}:"
            yield ""
            for each in failed:
                requirement = requirements(report.subject)[each.id]
                reason = known.get(report.name, {}).get(each.id, each.detail)
                yield f"- `{each.id}` ({requirement.level}): {requirement.text} Here, {reason}."


def with_part(page: str, name: str, rows: Iterable[str]) -> str:
    """The page with other lines between the marks of a part."""
    begin, end = f"<!-- {name}: written by scripts/conform.py -->\n", f"<!-- end of {name} -->"
    before, rest = page.split(begin)
    return "".join(
        [before, begin, "\n", *(f"{row}\n" for row in rows), "\n", end, rest.split(end)[1]]
    )


def with_tables(page: str) -> str:
    """The page with the requirements as they are now."""
    page = with_part(page, "requirements of hosts", requirement_rows("host"))
    return with_part(page, "requirements of Views", requirement_rows("view"))


async def _measure_hosts() -> Iterator[str]:
    async with chromium() as browser:
        reports = {leg: await measure(browser, TIMEOUT) for leg, measure in LEGS.items()}
    known = differences()
    reasons = {report.name: known[leg].get("fail", {}) for leg, report in reports.items()}
    return result_rows(reports.values(), reasons)


async def _measure_views() -> Iterator[str]:
    python = "a View in Python, with `transom.App`"
    reports = [await measure_app(make_view, python, timeout=TIMEOUT)]
    servers = {"examples/orders.py, with `transom.js`": parse_target("examples/orders.py")}
    for name in OFFICIAL_VIEWS:
        entry = OFFICIAL / f"server-{name}" / "dist" / "index.js"
        servers[f"official server-{name}, with ext-apps"] = ["node", str(entry), "--stdio"]
    for name, target in servers.items():
        async with view_of_server(target) as source:
            reports.append(await measure_view(source, name, timeout=TIMEOUT))
    return result_rows(reports, {})


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", action="store_true", help="only the tables of requirements")
    page = with_tables(PAGE.read_text("utf-8"))
    if not parser.parse_args().tables:
        page = with_part(page, "results of hosts", asyncio.run(_measure_hosts()))
        page = with_part(page, "results of Views", asyncio.run(_measure_views()))
    PAGE.write_text(page, "utf-8")
    sys.stdout.write(f"{PAGE} is written\n")


if __name__ == "__main__":
    main()
