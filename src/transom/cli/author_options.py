"""Commands for authors of servers and their Views, and their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Literal

from transom.check.host_profiles import PLAIN, host_profiles
from transom.cli.command import TARGET_HELP, Command, add_header, add_opening_tool, number

Template = Literal["plain", "react", "fastmcp"]


def _rule_ids(text: str) -> list[str]:
    return [part.strip().upper() for part in text.split(",") if part]


class CheckOptions(argparse.Namespace):
    """`transom check --help` explains each."""

    target: str
    header: list[str]
    call: bool
    call_all: bool
    args: list[str]
    browser: bool
    heuristics: bool
    dev: bool
    select: list[str]
    ignore: list[str]
    timeout: float
    format: Literal["table", "json", "sarif", "junit"]
    fail_on: Literal["error", "warn", "info", "never"]
    all: bool
    rules: bool
    explain: str | None


def _check() -> Command:
    command = Command(
        "check",
        "transom.cli.check",
        "[OPTIONS] [TARGET]",
        """\
Check an MCP server against the contract of MCP Apps.

It starts the server (or connects to it) and asks for its tools, resources and Views, as a host with
MCP Apps and as one without. It calls no tool unless you allow it.

Exit codes: 0 no finding that --fail-on counts, 1 at least one, 2 the server could not be
checked.""",
        CheckOptions,
    )
    command.argument("target", "TARGET", TARGET_HELP, nargs="?", default="")
    look: dict[str, Any] = {"panel": "What to look at"}
    command.flag(
        "--call", "Call the tools marked read-only, with arguments made from their schema.", **look
    )
    command.flag("--call-all", "Call every tool, including those that may write.", **look)
    args = "Call this tool with these arguments; repeatable."
    command.option("--args", "TOOL=JSON", args, action="append", default=[], **look)
    add_header(command, **look)
    command.flag("--browser", "Render each View and check what it does.", **look)
    command.flag("--heuristics", "Also check the rules that judge by names and words.", **look)
    command.flag("--dev", "Allow localhost in CSPs.", **look)
    select = "Check only these: ids or section letters, such as B2,C."
    rules: dict[str, Any] = {"action": "extend", "type": _rule_ids, "default": [], **look}
    command.option("--select", "RULES", select, **rules)
    command.option("--ignore", "RULES", "Do not check these.", **rules)
    timeout = "How long to wait for each answer."
    command.option("--timeout", "SECONDS", timeout, type=number(0.1), default=10, **look)
    show: dict[str, Any] = {"panel": "What to print"}
    report = "The form of the report."
    command.choice("--format", ("table", "json", "sarif", "junit"), report, **show)
    command.choice(
        "--fail-on",
        ("error", "warn", "info", "never"),
        "The least severe finding that makes the exit code 1.",
        **show,
    )
    command.flag("--all", "Show every finding of a rule in the table.", **show)
    command.flag("--rules", "List all rules and stop.", **show)
    explain = "Explain what a rule requires and how to fix a violation."
    command.option("--explain", "RULE", explain, **show)
    return command


class DoctorOptions(argparse.Namespace):
    """`transom doctor --help` explains each."""

    target: str
    tool: str | None
    arguments: str | None
    host: str
    header: list[str]
    timeout: float
    json: bool


def _doctor() -> Command:
    command = Command(
        "doctor",
        "transom.cli.doctor",
        "[OPTIONS] TARGET [TOOL] [ARGS]",
        """\
Say why a View stays blank, is blocked or cut off.

It starts the server, calls the tool, opens its View in a browser without a window, and watches it
for a few seconds. Then it names the causes in order of likelihood, each with what was seen and the
change that fixes it.

Exit codes: 0 nothing wrong was found, 1 at least one cause, 2 the server, the tool or the browser
could not be started.""",
        DoctorOptions,
    )
    add_opening_tool(command)
    command.argument(
        "arguments",
        "ARGS",
        "Its arguments, as a JSON object; by default those that its schema requires are made up.",
        nargs="?",
    )
    command.option(
        "--host",
        "PROFILE",
        "Show the View as this host does, as far as that is known: "
        f"{', '.join(host_profiles())}. docs/doctor.md has the sources.",
        default=PLAIN,
    )
    add_header(command)
    timeout = "How long the server may take to start and for each answer, and the View to connect."
    command.option("--timeout", "SECONDS", timeout, type=number(0.1), default=10)
    command.flag("--json", "Print the diagnosis as one line of JSON.")
    return command


class NewOptions(argparse.Namespace):
    """`transom new --help` explains each."""

    name: str
    template: Template


def _new() -> Command:
    command = Command(
        "new",
        "transom.cli.new",
        "[OPTIONS] NAME",
        """\
Write a new project: a server with a View, its page, a test, pyproject.toml and a README.

The project is written into a folder NAME, which must be new or empty. It runs as it is: `transom
dev server.py` shows it, `pytest` tests it.

Exit codes: 0 it is written, 2 it is not.""",
        NewOptions,
    )
    command.argument("name", "NAME", "Small letters, digits and hyphens, such as my-view.")
    command.choice(
        "--template",
        ("plain", "react", "fastmcp"),
        "`plain`: the official SDK, and a page without a build step. `react`: the same with a page "
        "that is built with Vite and React, which needs npm to change it. `fastmcp`: FastMCP "
        "instead of the official SDK.",
    )
    return command


COMMANDS: Mapping[str, Callable[[], Command]] = {
    "check": _check,
    "doctor": _doctor,
    "new": _new,
}
