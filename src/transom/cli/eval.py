"""`transom eval`: how often a model does what cases ask, with the tools of a server's Views."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console

from transom.cli import print_failure, run_async
from transom.cli.command import did_you_mean
from transom.cli.testing_options import EvalCommandOptions
from transom.errors import UsageError
from transom.evals.cases import EvalFile, Variant, as_list, read_cases
from transom.evals.report import EvalReport, as_json, as_junit, print_report
from transom.web.local.headless import HeadlessRenderer


def run(options: EvalCommandOptions) -> int:
    """Do what the command line says; the exit code."""
    report = run_async(_evaluate(options))
    match options.format:
        case "table":
            print_report(Console(highlight=False), report)
        case "json":
            sys.stdout.write(f"{as_json(report)}\n")
        case "junit":
            sys.stdout.write(f"{as_junit(report, options.at_least)}\n")
    if report.failure is not None:
        print_failure("eval", f"no run came to an end: {report.failure}")
        return 2
    return 1 if report.fails(options.at_least) else 0


async def _evaluate(options: EvalCommandOptions) -> EvalReport:
    cases = read_cases(options.cases)
    try:
        from transom.evals import runs  # noqa: PLC0415 - the packages for it may be missing
    except ImportError as error:
        raise UsageError(
            f"transom eval needs Pydantic AI and pydantic-evals: pip install 'transom[eval]' "
            f"({error})"
        ) from None
    names = options.model or as_list(cases.model)
    if not names and all(case.script for case in cases.cases):
        names = [runs.SCRIPT]
    if not names:
        raise UsageError("no model is named: give --model, such as --model openai:gpt-5")
    chosen = runs.EvalOptions(
        models={name: runs.find_model(name, options.cases, cases) for name in names},
        variants=_variants(options, cases),
        runs=options.runs or cases.runs,
        timeout=options.timeout or cases.timeout,
        at_once=options.at_once,
        update=options.update,
        progress=options.format == "table" and sys.stdout.isatty(),
    )
    async with HeadlessRenderer() as renderer:
        return await runs.run_cases(options.cases, cases, chosen, renderer.seat)


def _variants(options: EvalCommandOptions, cases: EvalFile) -> dict[str, Variant]:
    known: Any = cases.variants or {"": Variant()}
    for name in options.variant:
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise UsageError(f"{options.cases} has no variant {name}{hint}")
    return {name: each for name, each in known.items() if name in (options.variant or known)}
