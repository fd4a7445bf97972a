"""The commands that measure conformance: see `options.py`, where all commands are."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from transom.cli.command import TARGET_HELP, Command, add_header, number, port_number


class ConformOptions(argparse.Namespace):
    """What both commands have; their `--help` explains each."""

    report: list[Path]
    fail_on: Literal["MUST", "SHOULD", "never"]
    timeout: float
    format: Literal["table", "json", "junit", "html"]
    all: bool
    requirements: bool


class ConformHostOptions(ConformOptions):
    """`transom conform host --help` explains each."""

    http: int | None
    second: bool
    has_second: bool


def _host() -> Command:
    command = Command(
        "conform host",
        "transom.cli.conform",
        "[OPTIONS]",
        """\
Measure a host of MCP Apps against the specification.

This is an MCP server, on stdio or with --http. Connect the host to it and have its model call
conform_start: a View opens that measures the host, and the other tools say what to do next. The
report is printed when the host disconnects; until then it is on a page whose address is printed
first.

Exit codes: 0 nothing failed that --fail-on counts, 1 something did, 2 nothing was measured.""",
        ConformHostOptions,
    )
    panel: dict[str, Any] = {"panel": "The host"}
    command.option(
        "--http",
        "PORT",
        "Serve MCP at http://127.0.0.1:PORT/mcp until Ctrl-C, instead of on stdio.",
        type=port_number,
        **panel,
    )
    command.flag(
        "--has-second", "The host is also connected to `transom conform host --second`.", **panel
    )
    command.flag(
        "--second", "Be the second server, whose tool no View of the first may call.", **panel
    )
    _add_common(command)
    return command


class ConformViewOptions(ConformOptions):
    """`transom conform view --help` explains each."""

    target: str
    tool: str | None
    arguments: str | None
    app: bool
    header: list[str]


def _view() -> Command:
    command = Command(
        "conform view",
        "transom.cli.conform",
        "[OPTIONS] TARGET [TOOL] [ARGS]",
        """\
Measure a View of MCP Apps against the specification.

TARGET is a page (PAGE.html), or a server whose tool opens the View: the tool is called once, for
real. The View is opened in a browser without a window, by a host that offers everything, and by one
that offers nothing. With --app, TARGET is a function that returns a `transom.App`.

Exit codes: 0 nothing failed that --fail-on counts, 1 something did, 2 nothing was measured.""",
        ConformViewOptions,
    )
    command.argument(
        "target", "TARGET", f"A page, or a server. {TARGET_HELP}", nargs="?", default=""
    )
    command.argument("tool", "TOOL", "Not needed if only one tool opens a View.", nargs="?")
    made_up = (
        "Its arguments, as a JSON object; by default those that its schema requires are made up."
    )
    command.argument("arguments", "ARGS", made_up, nargs="?")
    command.flag("--app", "TARGET is `FILE.py:function` or `module:function`, a View in Python.")
    add_header(command)
    _add_common(command)
    return command


def _add_common(command: Command) -> None:
    command.option(
        "--timeout",
        "SECONDS",
        "After how long an answer counts as missing.",
        type=number(0.5),
        default=5,
    )
    show: dict[str, Any] = {"panel": "What to print"}
    command.choice(
        "--format", ("table", "json", "junit", "html"), "The form of the report.", **show
    )
    command.option(
        "--report",
        "FILE",
        "Also write the report here, while it grows: .json, .xml (JUnit) or .html; repeatable.",
        type=Path,
        action="append",
        default=[],
        **show,
    )
    command.choice(
        "--fail-on",
        ("MUST", "SHOULD", "never"),
        "The weakest requirement whose failure makes the exit code 1.",
        **show,
    )
    command.flag("--all", "Show what holds, too, in the table.", **show)
    command.flag("--requirements", "List all requirements and stop.", **show)


COMMANDS: Mapping[str, Callable[[], Command]] = {"conform host": _host, "conform view": _view}
