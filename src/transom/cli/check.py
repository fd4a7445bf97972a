"""`transom check`: connect to a server, check it, print the report."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast
from urllib.parse import urlsplit

from msgspec import structs
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from transom.check import Calling, Options, Report
from transom.check import check as run_check
from transom.check.report import as_json, as_junit, as_sarif
from transom.check.rule import selected
from transom.check.rules import RULES
from transom.check.runner import CheckProgress, ObservingOptions
from transom.check.terminal import explanation, print_report, rule_list
from transom.cli import parse_target, print_failure, run_async
from transom.cli.author_options import CheckOptions
from transom.cli.login import remote_server
from transom.errors import UsageError
from transom.json_values import JsonObject, clean


def run(options: CheckOptions) -> int:
    """Do what the command line says; the exit code."""
    out = Console()
    if options.rules:
        out.print(rule_list())
        return 0
    if options.explain is not None:
        for rule in selected(RULES, options.explain.split(",")):
            out.print(explanation(rule))
        return 0
    report = _report(options)
    _print(out, report, options)
    if report.failure is not None:
        return 2
    return 1 if report.fails_on(options.fail_on) else 0


def _report(options: CheckOptions) -> Report:
    """Check the server; UsageError if the command line is not valid."""
    rules = selected(RULES, options.select, options.ignore)
    found = parse_target(options.target)
    server = remote_server(found, options.header, "transom check")
    # The SDK writes what goes wrong to its log as well; the report is the place for it.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    looking = Options(
        timeout=options.timeout,
        calling=_calling(options),
        dev=options.dev,
        server_host=urlsplit(found).hostname if isinstance(found, str) else None,
    )
    if options.browser:
        from transom.check.browser_checks import observe_views  # noqa: PLC0415 - heavy

        looking = ObservingOptions(**structs.asdict(looking), observer=observe_views)
    with _progress() as progress:
        checking = run_check(
            options.target,
            server,
            rules=rules,
            heuristics={
                rule.id
                for rule in rules
                if rule.heuristic and (options.heuristics or rule.id in options.select)
            },
            options=looking,
            progress=progress,
        )
        return run_async(checking)


def _print(out: Console, report: Report, options: CheckOptions) -> None:
    match options.format:
        case "table":
            print_report(out, report, show_all=options.all)
            return
        case "json":
            text = as_json(report)
        case "sarif":
            text = as_sarif(report)
        case "junit":
            text = as_junit(report, options.fail_on)
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    for note in [report.failure, *report.notes]:
        if note is not None:
            print_failure("check", note)


def _calling(options: CheckOptions) -> Calling | None:
    arguments: dict[str, JsonObject] = {}
    for text in options.args:
        name, equals, value = text.partition("=")
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = None
        if not equals or not isinstance(parsed, dict):
            raise UsageError(f"--args {text!r} is not TOOL=JSON, such as 'show={{\"id\": 1}}'")
        arguments[name] = cast("JsonObject", parsed)
    if not options.call and not options.call_all and not arguments:
        return None
    return Calling(all=options.call_all, arguments=arguments)


@contextmanager
def _progress() -> Generator[CheckProgress, None, None]:
    """A bar on stderr while it works, when a person is watching."""
    bar = Progress(
        SpinnerColumn(),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("starting")

        def advance(text: str, done: int, total: int) -> None:
            bar.update(task, description=clean(text, 60), completed=done, total=total)

        yield advance
