"""The outcome of `transom conform`, on a terminal, as JSON, JUnit XML and HTML."""

from __future__ import annotations

import html
import json
from collections import Counter
from importlib.resources import files
from xml.etree import ElementTree as ET

import msgspec
from rich.table import Table
from rich.text import Text

from transom.conform.requirements import LEVELS, Measurement, Subject, requirements
from transom.json_values import clean
from transom.version import __version__

_STYLES = {"pass": "green", "fail": "bold red", "no": "yellow", "skip": "dim"}


class ConformReport(msgspec.Struct, frozen=True):
    """What was measured of a host or a View."""

    subject: Subject
    name: str
    verdicts: tuple[Measurement, ...]

    def count(self) -> dict[str, int]:
        """How many requirements passed, failed, were not measured (`skip`), or are not offered.

        What a host MAY do and does not is `no`, not a failure.
        """
        found = Counter(self.word(verdict) for verdict in self.verdicts)
        return {word: found[word] for word in ("pass", "fail", "no", "skip")}

    def word(self, verdict: Measurement) -> str:
        """The outcome of one requirement in a report."""
        optional = requirements(self.subject)[verdict.id].level == "MAY"
        return "no" if optional and verdict.outcome == "fail" else verdict.outcome

    def fails_on(self, level: str) -> bool:
        """Whether a requirement of this level or a stronger one failed; `never`: no."""
        known = requirements(self.subject)
        counted = LEVELS[: LEVELS.index(level) + 1] if level in LEVELS else ()
        failed = (v for v in self.verdicts if v.outcome == "fail")
        return any(known[verdict.id].level in counted for verdict in failed)

    @property
    def measured(self) -> bool:
        """Whether anything was."""
        return any(verdict.outcome != "skip" for verdict in self.verdicts)

    def summary(self) -> str:
        """In a line."""
        found = self.count()
        offered = f", {found['no']} optional not offered" * (found["no"] > 0)
        return (
            f"{clean(self.name, 200)}: {found['pass']} of {len(self.verdicts)} requirements hold; "
            f"{found['fail']} failed, {found['skip']} not measured{offered}"
        )


def as_table(report: ConformReport, *, every: bool = False) -> Table:
    """What does not hold or was not measured; with `every`, all requirements."""
    known = requirements(report.subject)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("", "level", "requirement", "observed"):
        table.add_column(heading, overflow="fold")
    for verdict in report.verdicts:
        word, requirement = report.word(verdict), known[verdict.id]
        if word == "pass" and not every:
            continue
        text = Text(f"{verdict.id}\n", "bold" if word == "fail" else "").append(requirement.text)
        table.add_row(Text(word, _STYLES[word]), requirement.level, text, Text(verdict.detail))
    return table


def requirements_table(subject: Subject) -> Table:
    """All requirements."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("level", "requirement", "specification"):
        table.add_column(heading, overflow="fold")
    for each in requirements(subject).values():
        table.add_row(each.level, f"{each.id}\n{each.text}", each.clause)
    return table


def as_json(report: ConformReport) -> str:
    """`{subject, name, version, summary, verdicts}`; a verdict also has what it is about."""
    known = requirements(report.subject)
    verdicts = [
        {
            "id": verdict.id,
            "level": known[verdict.id].level,
            "outcome": report.word(verdict),
            "detail": verdict.detail,
            "text": known[verdict.id].text,
            "clause": known[verdict.id].url,
        }
        for verdict in report.verdicts
    ]
    made = {
        "subject": report.subject,
        "name": clean(report.name, 200),
        "version": __version__,
        "summary": report.count(),
        "verdicts": verdicts,
    }
    return json.dumps(made, indent=2, ensure_ascii=False)


def as_junit(report: ConformReport) -> str:
    """One test for each requirement; those that the host or View need not keep cannot fail."""
    known, found = requirements(report.subject), report.count()
    suite = ET.Element(
        "testsuite",
        name=f"transom conform {report.subject} {clean(report.name, 200)}",
        tests=str(len(report.verdicts)),
        failures=str(found["fail"]),
        skipped=str(found["skip"] + found["no"]),
    )
    for verdict in report.verdicts:
        name = f"{verdict.id} ({known[verdict.id].level})"
        classname = f"transom.conform.{report.subject}"
        case = ET.SubElement(suite, "testcase", classname=classname, name=name)
        match report.word(verdict):
            case "fail":
                text = f"{known[verdict.id].text}\n{verdict.detail}\n{known[verdict.id].url}"
                ET.SubElement(case, "failure", message=verdict.detail or name).text = text
            case "skip" | "no":
                ET.SubElement(case, "skipped", message=verdict.detail)
            case _:
                pass
    return ET.tostring(suite, encoding="unicode")


def as_html(report: ConformReport) -> str:
    """A page of its own."""
    known = requirements(report.subject)
    rows: list[str] = []
    for verdict in report.verdicts:
        requirement, word = known[verdict.id], report.word(verdict)
        cells = [word, requirement.level, verdict.id, requirement.text, verdict.detail]
        shown = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        clause = f'<a href="{html.escape(requirement.url)}">{html.escape(requirement.clause)}</a>'
        rows.append(f'<tr class="{word}">{shown}<td>{clause}</td></tr>')
    page = files("transom.conform").joinpath("results.html").read_text("utf-8")
    title = html.escape(f"Conformance of {clean(report.name, 200)}")
    page = page.replace("<!--title-->", title).replace("<!--rows-->", "\n".join(rows))
    return page.replace("<!--summary-->", html.escape(report.summary()))
