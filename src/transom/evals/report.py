"""What runs of cases came to: as text on a terminal, as JSON, and as JUnit's XML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from transom.evals.checks import RunRecord, described
from transom.evals.figures import Counts, best_chance, chance, wilson
from transom.json_values import clean

_SHOWN = 5  # things that are wrong with runs of a case


class RunResult(msgspec.Struct, kw_only=True):
    """One run, and what is wrong with it by check; nothing, if it passed."""

    record: RunRecord
    wrong: dict[str, str] = {}


class CaseResult(msgspec.Struct, kw_only=True):
    """The runs of one case."""

    name: str
    runs: list[RunResult] = []

    @property
    def counts(self) -> Counts:
        """How many passed, of how many."""
        return sum(not run.wrong for run in self.runs), len(self.runs)

    @property
    def rate(self) -> float:
        """How many passed, as a part of all."""
        passed, runs = self.counts
        return passed / runs if runs else 0.0


class Experiment(msgspec.Struct, kw_only=True):
    """All cases with one model and one variant."""

    model: str
    variant: str
    cases: list[CaseResult]
    unused: list[str] = []
    """Tools that the variant describes, and that no model was offered."""

    @property
    def name(self) -> str:
        """Which it is."""
        return f"{self.model}, {self.variant}" if self.variant else self.model


class Comparison(msgspec.Struct, kw_only=True):
    """Two experiments, which differ in the model or in the variant."""

    of: str
    """The model or the variant that both have."""
    before: str
    after: str
    rates: tuple[float, float]
    chance: float
    """How likely a difference at least this large is, if there is none in truth."""
    verdict: str


class EvalReport(msgspec.Struct, kw_only=True):
    """All experiments of a file."""

    file: str
    experiments: list[Experiment]

    def fails(self, at_least: float) -> bool:
        """Whether a case passed less often than it should."""
        return any(case.rate < at_least for each in self.experiments for case in each.cases)

    @property
    def failure(self) -> str | None:
        """Why no run came to an end, if none did."""
        records = [
            run.record for each in self.experiments for case in each.cases for run in case.runs
        ]
        return None if any(run.error is None for run in records) else records[0].error

    def comparisons(self) -> Iterator[Comparison]:
        """Each experiment beside the first that has the same model, or the same variant."""
        for index, after in enumerate(self.experiments):
            for attribute in ("model", "variant"):
                alike = [
                    each
                    for each in self.experiments[:index]
                    if getattr(each, attribute) == getattr(after, attribute)
                ]
                if alike:
                    yield _compare(alike[0], after, attribute)


def _total(counts: list[Counts]) -> Counts:
    return sum(passed for passed, _ in counts), sum(runs for _, runs in counts)


def _compare(before: Experiment, after: Experiment, alike: str) -> Comparison:
    counts = [case.counts for case in before.cases], [case.counts for case in after.cases]
    p = chance(*counts)
    rates = [passed / runs for passed, runs in map(_total, counts)]
    if best_chance(*counts) > 0.05:
        verdict = "so few runs cannot show a difference"
    elif p > 0.05:
        verdict = "the difference may be chance"
    else:
        verdict = "the difference is hardly chance"
    differs = "variant" if alike == "model" else "model"
    return Comparison(
        of=getattr(after, alike),
        before=getattr(before, differs),
        after=getattr(after, differs),
        rates=(rates[0], rates[1]),
        chance=p,
        verdict=verdict,
    )


def print_report(out: Console, report: EvalReport) -> None:
    """Print a table for each experiment, what failed, and how they compare."""
    for experiment in report.experiments:
        out.print(Text(clean(experiment.name, 200), style="bold"))
        table = Table(box=None, pad_edge=False)
        table.add_column("case", overflow="fold")
        for title in ("passed", "rate", "95 % interval", "tokens in", "out", "seconds"):
            table.add_column(title, justify="right")
        for case in experiment.cases:
            table.add_row(*_row(clean(case.name, 200), case.counts, case.runs))
        if len(experiment.cases) > 1:
            runs = [run for case in experiment.cases for run in case.runs]
            counts = _total([case.counts for case in experiment.cases])
            table.add_row(*_row("all cases", counts, runs))
        out.print(table)
        for line in _failures(experiment):
            out.print(Text(line), soft_wrap=True)
        out.print()
    for each in report.comparisons():
        of = f"{clean(each.of, 200)}: " if each.of else ""
        rates = [
            f"{rate:.0%} with {name!r}"
            for rate, name in zip(each.rates, (each.before, each.after), strict=True)
        ]
        line = f"{of}{rates[0]}, {rates[1]}; p = {each.chance:.2g}: {each.verdict}"
        out.print(Text(line), soft_wrap=True)


def _row(name: str, counts: Counts, runs: list[RunResult]) -> list[str]:
    passed, total = counts
    low, high = wilson(passed, total)
    records = [run.record for run in runs]
    seconds = sum(record.seconds for record in records) / max(total, 1)
    return [
        name,
        f"{passed}/{total}",
        f"{passed / max(total, 1):.0%}",
        f"{low:.0%} to {high:.0%}",
        f"{sum(record.input_tokens for record in records):,}",
        f"{sum(record.output_tokens for record in records):,}",
        f"{seconds:.1f}",
    ]


def _failures(experiment: Experiment) -> Iterator[str]:
    for case in experiment.cases:
        runs: dict[str, list[int]] = {}  # by what is wrong with them
        for number, run in enumerate(case.runs, 1):
            for name, reason in run.wrong.items():
                runs.setdefault(f"{name}: {clean(reason, 1000)}", []).append(number)
        for text, numbers in list(runs.items())[:_SHOWN]:
            which = f"run{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
            yield f"✗ {clean(case.name, 200)}, {which}: {text}"
        if len(runs) > _SHOWN:
            yield f"✗ {clean(case.name, 200)}: {len(runs) - _SHOWN} more are in --format json"
    for tool in experiment.unused:
        yield f"! the variant describes {clean(tool, 200)}, which no model was offered"


def as_json(report: EvalReport) -> str:
    """Everything that is known, for a program."""

    def case(each: CaseResult) -> dict[str, Any]:
        passed, runs = each.counts
        records = [
            {"passed": not run.wrong, "wrong": run.wrong, **msgspec.to_builtins(run.record)}
            for run in each.runs
        ]
        interval = wilson(passed, runs)
        counts = {"passed": passed, "of": runs, "rate": each.rate, "interval": interval}
        return {"name": each.name, **counts, "runs": records}

    value = {
        "file": report.file,
        "experiments": [
            {
                "model": each.model,
                "variant": each.variant,
                "cases": list(map(case, each.cases)),
                "unused": each.unused,
            }
            for each in report.experiments
        ],
        "comparisons": list(report.comparisons()),
    }
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def as_junit(report: EvalReport, at_least: float) -> str:
    """A test suite for each experiment, a test for each case."""
    root = ET.Element("testsuites", name=f"transom eval {clean(report.file, 200)}")
    for experiment in report.experiments:
        failing = [case for case in experiment.cases if case.rate < at_least]
        suite = ET.SubElement(root, "testsuite", name=clean(experiment.name, 200))
        suite.set("tests", str(len(experiment.cases)))
        suite.set("failures", str(len(failing)))
        for case in experiment.cases:
            passed, runs = case.counts
            seconds = sum(run.record.seconds for run in case.runs)
            name = {"classname": "transom.eval", "name": clean(case.name, 200)}
            test = ET.SubElement(suite, "testcase", name, time=f"{seconds:.3f}")
            if case in failing:
                wrong = [
                    f"{k}: {clean(v, 1000)}" for run in case.runs for k, v in run.wrong.items()
                ]
                message = f"{passed} of {runs} runs passed"
                ET.SubElement(test, "failure", message=message).text = "\n".join(wrong)
            elif case.runs:
                ET.SubElement(test, "system-out").text = described(case.runs[0].record.calls)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)
