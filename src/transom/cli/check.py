"""`transom check`: its options. What it does is in `checking`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

__all__ = ["Asked", "FailOn", "Format", "check"]


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
        str | None, _tell("--explain", "Tell what a rule wants and how to mend it.", "RULE")
    ] = None,
) -> None:
    """Check an MCP server against the contract of MCP Apps.

    The server is started (or reached) and asked for its tools, resources and Views, as a host with
    MCP Apps and as one without. Nothing is called unless you allow it.

    Exit codes: 0 nothing found that --fail-on minds, 1 something found, 2 the server could not be
    checked.
    """
    # Loaded here: the rules take longer to load than other commands have to start.
    from transom.cli.checking import run  # noqa: PLC0415

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
