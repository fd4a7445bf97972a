"""What `transom check` does: connect, check, print.

`transom check`: its options. What it does is in `checking`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from transom.check import Calling, Options, Report
from transom.check import check as run_check
from transom.check.connect import Connect, process
from transom.check.formats import as_json, as_junit, as_sarif
from transom.check.rule import selected
from transom.check.rules import RULES
from transom.check.runner import Progress as Progressing
from transom.check.runner import ViewObserver
from transom.check.terminal import explanation, print_report, rule_list
from transom.cli.target import Command, parse_target
from transom.errors import UsageError
from transom.json_values import JsonObject, clean

__all__ = ["Asked", "FailOn", "Format", "check", "run"]


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
            text = as_sarif(report)
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
    return cast("ViewObserver", import_module("transom.cli.browser_checks").observer())


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


class Format(StrEnum):
    """How the report is written."""

    TABLE = "table"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"


class FailOn(StrEnum):
    """The mildest finding that makes the command fail."""

    ERROR = "error"
    WARN = "warn"
    INFO = "info"
    NEVER = "never"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asked for."""

    target: str
    call: bool
    call_all: bool
    args: list[str]
    browser: bool
    heuristics: bool
    dev: bool
    select: list[str]
    ignore: list[str]
    timeout: float
    written: Format
    fail_on: FailOn
    show_all: bool
    rules: bool
    explain: str | None


def _look(flag: str, help: str, metavar: str = "", **more: Any) -> Any:  # noqa: A002 - typer's word
    """An option about what is looked at."""
    return typer.Option(flag, help=help, metavar=metavar, rich_help_panel="What to look at", **more)


def _tell(flag: str, help: str, metavar: str = "", **more: Any) -> Any:  # noqa: A002 - typer's word
    """An option about what is printed."""
    return typer.Option(flag, help=help, metavar=metavar, rich_help_panel="What to print", **more)


def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A Python file, `module:server`, a URL, or one quoted command line.",
            show_default=False,
        ),
    ] = "",
    call: Annotated[
        bool,
        _look("--call", "Call the tools marked read-only, with arguments made from their schema."),
    ] = False,
    call_all: Annotated[
        bool, _look("--call-all", "Call every tool, also those that may write.")
    ] = False,
    args: Annotated[
        list[str] | None,
        _look("--args", "Call this tool with these arguments; repeatable.", "TOOL=JSON"),
    ] = None,
    browser: Annotated[
        bool, _look("--browser", "Render each View and check what it does.")
    ] = False,
    heuristics: Annotated[
        bool, _look("--heuristics", "Also check the rules that judge by names and words.")
    ] = False,
    dev: Annotated[bool, _look("--dev", "Allow localhost in CSPs.")] = False,
    select: Annotated[
        list[str] | None,
        _look("--select", "Check only these: ids or section letters, such as B2,C.", "RULES"),
    ] = None,
    ignore: Annotated[list[str] | None, _look("--ignore", "Do not check these.", "RULES")] = None,
    timeout: Annotated[
        float, _look("--timeout", "How long to wait for each answer.", "SECONDS", min=0.1)
    ] = 10,
    written: Annotated[
        Format, _tell("--format", "How to write it.", "table|json|sarif|junit")
    ] = Format.TABLE,
    fail_on: Annotated[
        FailOn,
        _tell(
            "--fail-on", "The mildest finding that makes the exit code 1.", "error|warn|info|never"
        ),
    ] = FailOn.ERROR,
    show_all: Annotated[bool, _tell("--all", "Show every finding of a rule in the table.")] = False,
    rules: Annotated[bool, _tell("--rules", "List all rules and stop.")] = False,
    explain: Annotated[
        str | None, _tell("--explain", "Explain what a rule wants and how to fix it.", "RULE")
    ] = None,
) -> None:
    """Check an MCP server against the contract of MCP Apps.

    The server is started (or reached) and asked for its tools, resources and Views, as a host with
    MCP Apps and as one without. Nothing is called unless you allow it.

    Exit codes: 0 no finding that --fail-on counts, 1 there is one, 2 the server could not be
    checked.
    """
    # Loaded here: the rules take longer to load than other commands have to start.
    from transom.cli.check import run  # noqa: PLC0415

    asked = Asked(
        target=target,
        call=call,
        call_all=call_all,
        args=args or [],
        browser=browser,
        heuristics=heuristics,
        dev=dev,
        select=_split(select),
        ignore=_split(ignore),
        timeout=timeout,
        written=written,
        fail_on=fail_on,
        show_all=show_all,
        rules=rules,
        explain=explain,
    )
    raise typer.Exit(run(asked))


def _split(entries: list[str] | None) -> list[str]:
    return [part.strip().upper() for entry in entries or [] for part in entry.split(",") if part]
