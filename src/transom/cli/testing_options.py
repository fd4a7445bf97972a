"""The commands for tests: see `options.py`, where all commands are."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from transom.cli.command import Command, count, number

if TYPE_CHECKING:
    from transom.traffic import Leg


class ReplayOptions(argparse.Namespace):
    """`transom replay --help` explains each."""

    record: Path
    target: str
    view: bool
    name: str | None
    ignore: list[str]
    timeout: float
    json: bool

    @property
    def leg(self) -> Leg:
        """Whose messages are replayed."""
        return "view" if self.view else "server"


def replay_command() -> Command:
    """`transom replay`."""
    command = Command(
        "replay",
        "transom.cli.replay",
        "[OPTIONS] FILE TARGET",
        """\
Send a server, or a View, what it was sent when FILE was recorded, and show what differs.

FILE is what `--record FILE` of `transom open`, `dev` or `gateway`, or a test, has written. What was
sent to the server is sent again, as it was, and its answers are compared. With --view, the page
that TARGET has now is opened in a browser without a window, gets what it got then, and what it
sends is compared. Ids and times that only look alike are equal.

Exit codes: 0 nothing differs, 1 something does, 2 it could not be replayed.""",
        ReplayOptions,
    )
    command.argument("record", "FILE", "The record.", type=Path)
    command.argument(
        "target", "TARGET", "A Python file, `module:server`, a URL, or one quoted command line."
    )
    command.flag("--view", "Replay what was sent to a View, instead of what a server was sent.")
    command.option("--name", "NAME", "Which server or View, if the record has several.")
    command.option(
        "--ignore",
        "PATH",
        "Do not compare this part of messages, such as `result.structuredContent.*.price`; "
        "repeatable.",
        action="append",
        default=[],
    )
    timeout = "How long to wait for each message."
    command.option("--timeout", "SECONDS", timeout, type=number(0.1), default=10)
    command.flag("--json", "Print each difference as one line of JSON.")
    return command


class EvalCommandOptions(argparse.Namespace):
    """`transom eval --help` explains each."""

    cases: Path
    model: list[str]
    variant: list[str]
    runs: int | None
    at_once: int
    timeout: float | None
    at_least: float
    update: bool
    format: Literal["table", "json", "junit"]


def eval_command() -> Command:
    """`transom eval`."""
    command = Command(
        "eval",
        "transom.cli.eval",
        "[OPTIONS] CASES.yaml",
        """\
Count how often a model finds and uses the tools of a server and its Views.

CASES.yaml names the server, and has instructions for the model with what is expected of each:
calls, the answer, what the page shows then. Each case is run several times, with a browser without
a window. `variants` in it describe a tool differently; the report compares them.

Exit codes: 0 every case passed often enough, 1 one did not, 2 nothing could be run.""",
        EvalCommandOptions,
    )
    command.argument("cases", "CASES.yaml", "The file of cases.", type=Path)
    command.option(
        "--model",
        "NAME",
        "A model of Pydantic AI, such as `openai:gpt-5`; `script`, which does what the cases' "
        "scripts say; or `FILE.py:NAME`. Repeatable; the file's `model` otherwise.",
        action="append",
        default=[],
    )
    command.option(
        "--variant", "NAME", "Only this variant; repeatable.", action="append", default=[]
    )
    command.option("--runs", "COUNT", "How often each case is run; by default 5.", type=count)
    command.option(
        "--at-once", "COUNT", "How many runs go on at the same time.", type=count, default=4
    )
    command.option(
        "--timeout", "SECONDS", "How long a run may take; by default 120.", type=number(0.1)
    )
    command.option(
        "--at-least",
        "RATE",
        "How many runs of each case have to pass, from 0 to 1.",
        type=number(0),
        default=1.0,
    )
    command.flag("--update", "Write the files of `snapshot`, instead of comparing.")
    command.choice("--format", ("table", "json", "junit"), "How the report is printed.")
    return command
