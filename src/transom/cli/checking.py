"""What `transom check` does: connect, check, print."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import cast
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from transom import __version__
from transom.check import Options, Report
from transom.check import check as run_check
from transom.check.calling import Calling
from transom.check.catalogue import clean, selected
from transom.check.connect import Connect, process
from transom.check.formats import as_json, as_junit, as_sarif
from transom.check.jsonvalue import JsonObject
from transom.check.rules import RULES
from transom.check.runner import Progress as Progressing
from transom.check.runner import ViewObserver
from transom.check.terminal import explanation, print_report, rule_list
from transom.cli.check import Asked, FailOn, Format
from transom.cli.target import Command, parse_target
from transom.errors import UsageError
from transom.web.csp import build_csp

__all__ = ["run"]


def run(asked: Asked) -> int:
    """Do what was asked and return the exit code."""
    out = Console()
    try:
        if asked.rules:
            out.print(rule_list())
            return 0
        if asked.explain is not None:
            for rule in selected(RULES, asked.explain.split(",")):
                out.print(explanation(rule))
            return 0
        report = _report(asked)
    except UsageError as error:
        typer.echo(f"transom check: {error}", err=True)
        return 2
    _print(out, report, asked.written, asked.fail_on, show_all=asked.show_all)
    if report.failure is not None:
        return 2
    return 1 if report.fails_on(asked.fail_on.value) else 0


def _report(asked: Asked) -> Report:
    """Check the server.

    Raises:
        UsageError: the command line makes no sense; nothing was started.
    """
    rules = selected(RULES, asked.select, asked.ignore)
    heuristics = {r.id for r in rules if r.heuristic and (asked.heuristics or r.id in asked.select)}
    connect, host = _connection(asked.target, asked.timeout)
    options = Options(
        timeout=asked.timeout,
        calling=_calling(asked),
        dev=asked.dev,
        server_host=host,
        observer=_observer() if asked.browser else None,
        build_csp=build_csp,
    )
    with _progress() as progress:
        checking = run_check(
            asked.target,
            connect,
            rules=rules,
            heuristics=heuristics,
            options=options,
            progress=progress,
        )
        return asyncio.run(checking)


def _print(
    out: Console, report: Report, written: Format, fail_on: FailOn, *, show_all: bool
) -> None:
    match written:
        case Format.TABLE:
            print_report(out, report, show_all=show_all)
            return
        case Format.JSON:
            text = as_json(report)
        case Format.SARIF:
            text = as_sarif(report, __version__)
        case Format.JUNIT:
            text = as_junit(report, fail_on.value)
    typer.echo(text)
    for note in [report.failure, *report.notes]:
        if note is not None:
            typer.echo(f"transom check: {note}", err=True)


def _connection(target: str, timeout: float) -> tuple[Connect, str | None]:
    """How to connect, and the server's host name if it has one."""
    found = parse_target(target)
    if isinstance(found, Command):
        return process(found.argv), None
    # The SDK writes what goes wrong to its log as well; the report is the place for it.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    # Loading the SDK takes longer than checking a small server; only a URL needs it.
    streams = import_module("transom.check.streams")
    return cast("Connect", streams.url(found.url, timeout=timeout)), urlsplit(found.url).hostname


def _calling(asked: Asked) -> Calling | None:
    arguments: dict[str, JsonObject] = {}
    for text in asked.args:
        name, equals, value = text.partition("=")
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = None
        if not equals or not isinstance(parsed, dict):
            raise UsageError(f"--args {text!r} is not TOOL=JSON, such as 'show={{\"id\": 1}}'")
        arguments[name] = cast("JsonObject", parsed)
    if not asked.call and not asked.call_all and not arguments:
        return None
    return Calling(all=asked.call_all, arguments=arguments)


def _observer() -> ViewObserver:
    """The part that renders Views; loaded here because nothing else needs a browser."""
    return cast("ViewObserver", import_module("transom.cli.observer").observer())


@contextmanager
def _progress() -> Generator[Progressing, None, None]:
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
