"""The commands for tests: see `options.py`, where all commands are."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from transom.cli.command import Command, number

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

FILE is what `--record FILE` of `transom open` or `transom gateway`, or a test, has written. What is
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
