"""The commands that measure conformance: see `options.py`, where all commands are."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from transom.cli.command import (
    HEADER,
    TARGET_HELP,
    CommandOptions,
    argument,
    choice,
    flag,
    number,
    option,
    port_number,
    repeatable,
)


class _ConformReportOptions(CommandOptions):
    panel = "What to print"

    format: Literal["table", "json", "junit", "html"] = choice(
        ("table", "json", "junit", "html"), "The form of the report."
    )
    report: list[Path] = repeatable(
        "FILE",
        "Also write the report here, while it grows: .json, .xml (JUnit) or .html; repeatable.",
        type=Path,
    )
    fail_on: Literal["MUST", "SHOULD", "never"] = choice(
        ("MUST", "SHOULD", "never"),
        "The weakest requirement whose failure makes the exit code 1.",
    )
    all: bool = flag("Show what holds, too, in the table.")
    requirements: bool = flag("List all requirements and stop.")


class ConformOptions(_ConformReportOptions):
    """What both commands have."""

    module = "transom.cli.conform"

    timeout: float = option(
        "SECONDS", "After how long an answer counts as missing.", type=number(0.5), default=5
    )


class ConformHostOptions(ConformOptions):
    """Measure a host of MCP Apps against the specification.

    This is an MCP server, on stdio or with --http. Connect the host to it and have its model call
    conform_start: a View opens that measures the host, and the other tools say what to do next. The
    report is printed when the host disconnects; until then it is on a page whose address is printed
    first.

    Exit codes: 0 nothing failed that --fail-on counts, 1 something did, 2 nothing was measured.
    """

    usage = "[OPTIONS]"
    panel = "The host"

    http: int | None = option(
        "PORT",
        "Serve MCP at http://127.0.0.1:PORT/mcp until Ctrl-C, instead of on stdio.",
        type=port_number,
    )
    has_second: bool = flag("The host is also connected to `transom conform host --second`.")
    second: bool = flag("Be the second server, whose tool no View of the first may call.")


class ConformViewOptions(ConformOptions):
    """Measure a View of MCP Apps against the specification.

    TARGET is a page (PAGE.html), or a server whose tool opens the View: the tool is called once,
    for real. The View is opened in a browser without a window, by a host that offers everything,
    and by one that offers nothing. With --app, TARGET is a function that returns a `transom.App`.

    Exit codes: 0 nothing failed that --fail-on counts, 1 something did, 2 nothing was measured.
    """

    usage = "[OPTIONS] TARGET [TOOL] [ARGS]"

    target: str = argument("TARGET", f"A page, or a server. {TARGET_HELP}", nargs="?", default="")
    tool: str | None = argument("TOOL", "Not needed if only one tool opens a View.", nargs="?")
    arguments: str | None = argument(
        "ARGS",
        "Its arguments, as a JSON object; by default those that its schema requires are made up.",
        nargs="?",
    )
    app: bool = flag("TARGET is `FILE.py:function` or `module:function`, a View in Python.")
    header: list[str] = HEADER
