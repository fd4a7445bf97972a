"""Commands for authors of servers and their Views: see `options.py`, where all commands are."""

from __future__ import annotations

from typing import Any, Literal

from transom.check.host_profiles import PLAIN, host_profiles
from transom.cli.command import (
    HEADER,
    TARGET,
    TARGET_HELP,
    TOOL,
    CommandOptions,
    argument,
    choice,
    flag,
    number,
    option,
    repeatable,
)

Template = Literal["plain", "react", "fastmcp"]


def _rules(text: str) -> Any:
    def read(ids: str) -> list[str]:
        return [part.strip().upper() for part in ids.split(",") if part]

    return option("RULES", text, action="extend", type=read, default=[])


class _LookOptions(CommandOptions):
    panel = "What to look at"

    call: bool = flag("Call the tools marked read-only, with arguments made from their schema.")
    call_all: bool = flag("Call every tool, including those that may write.")
    args: list[str] = repeatable("TOOL=JSON", "Call this tool with these arguments; repeatable.")
    header: list[str] = HEADER
    browser: bool = flag("Render each View and check what it does.")
    heuristics: bool = flag("Also check the rules that judge by names and words.")
    dev: bool = flag("Allow localhost in CSPs.")
    select: list[str] = _rules("Check only these: ids or section letters, such as B2,C.")
    ignore: list[str] = _rules("Do not check these.")
    timeout: float = option(
        "SECONDS", "How long to wait for each answer.", type=number(0.1), default=10
    )


class _ReportOptions(CommandOptions):
    panel = "What to print"

    format: Literal["table", "json", "sarif", "junit"] = choice(
        ("table", "json", "sarif", "junit"), "The form of the report."
    )
    fail_on: Literal["error", "warn", "info", "never"] = choice(
        ("error", "warn", "info", "never"), "The least severe finding that makes the exit code 1."
    )
    all: bool = flag("Show every finding of a rule in the table.")
    rules: bool = flag("List all rules and stop.")
    explain: str | None = option("RULE", "Explain what a rule requires and how to fix a violation.")


class CheckOptions(_LookOptions, _ReportOptions):
    """Check an MCP server against the contract of MCP Apps.

    It starts the server (or connects to it) and asks for its tools, resources and Views, as a host
    with MCP Apps and as one without. It calls no tool unless you allow it.

    Exit codes: 0 no finding that --fail-on counts, 1 at least one, 2 the server could not be
    checked.
    """

    module = "transom.cli.check"
    usage = "[OPTIONS] [TARGET]"

    target: str = argument("TARGET", TARGET_HELP, nargs="?", default="")


class DoctorOptions(CommandOptions):
    """Say why a View stays blank, is blocked or cut off.

    It starts the server, calls the tool, opens its View in a browser without a window, and watches
    it for a few seconds. Then it names the causes in order of likelihood, each with what was seen
    and the change that fixes it.

    Exit codes: 0 nothing wrong was found, 1 at least one cause, 2 the server, the tool or the
    browser could not be started.
    """

    module = "transom.cli.doctor"
    usage = "[OPTIONS] TARGET [TOOL] [ARGS]"

    target: str = TARGET
    tool: str | None = TOOL
    arguments: str | None = argument(
        "ARGS",
        "Its arguments, as a JSON object; by default those that its schema requires are made up.",
        nargs="?",
    )
    host: str = option(
        "PROFILE",
        "Show the View as this host does, as far as that is known: "
        f"{', '.join(host_profiles())}. docs/doctor.md has the sources.",
        default=PLAIN,
    )
    header: list[str] = HEADER
    timeout: float = option(
        "SECONDS",
        "How long the server may take to start and for each answer, and the View to connect.",
        type=number(0.1),
        default=10,
    )
    json: bool = flag("Print the diagnosis as one line of JSON.")


class NewOptions(CommandOptions):
    """Write a new project: a server with a View, its page, a test, pyproject.toml and a README.

    The project is written into a folder NAME, which must be new or empty. It runs as it is:
    `transom dev server.py` shows it, `pytest` tests it.

    Exit codes: 0 it is written, 2 it is not.
    """

    module = "transom.cli.new"
    usage = "[OPTIONS] NAME"

    name: str = argument("NAME", "Small letters, digits and hyphens, such as my-view.")
    template: Template = choice(
        ("plain", "react", "fastmcp"),
        "`plain`: the official SDK, and a page without a build step. `react`: the same with a page "
        "that is built with Vite and React, which needs npm to change it. `fastmcp`: FastMCP "
        "instead of the official SDK.",
    )
