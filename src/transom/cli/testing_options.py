"""The commands for tests: see `options.py`, where all commands are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from transom.cli.command import (
    TARGET,
    CommandOptions,
    argument,
    choice,
    count,
    flag,
    number,
    option,
    repeatable,
)

if TYPE_CHECKING:
    from transom.traffic import Leg


class ReplayOptions(CommandOptions):
    """Send a server, or a View, what it was sent when FILE was recorded, and show what differs.

    FILE is what `--record FILE` of `transom open`, `dev` or `gateway`, or a test, has written. What
    was sent to the server is sent again, as it was, and its answers are compared. With --view, the
    page that TARGET has now is opened in a browser without a window, gets what it got then, and
    what it sends is compared. Ids and times that only look alike are equal.

    Exit codes: 0 nothing differs, 1 something does, 2 it could not be replayed.
    """

    module = "transom.cli.replay"
    usage = "[OPTIONS] FILE TARGET"

    record: Path = argument("FILE", "The record.", type=Path)
    target: str = TARGET
    view: bool = flag("Replay what was sent to a View, instead of what a server was sent.")
    name: str | None = option("NAME", "Which server or View, if the record has several.")
    ignore: list[str] = repeatable(
        "PATH",
        "Do not compare this part of messages, such as `result.structuredContent.*.price`; "
        "repeatable.",
    )
    timeout: float = option(
        "SECONDS", "How long to wait for each message.", type=number(0.1), default=10
    )
    json: bool = flag("Print each difference as one line of JSON.")

    @property
    def leg(self) -> Leg:
        """Whose messages are replayed."""
        return "view" if self.view else "server"


class EvalCommandOptions(CommandOptions):
    """Count how often a model finds and uses the tools of a server and its Views.

    CASES.yaml names the server, and has instructions for the model with what is expected of each:
    calls, the answer, what the page shows then. Each case is run several times, with a browser
    without a window. `variants` in it describe a tool differently; the report compares them.

    Exit codes: 0 every case passed often enough, 1 one did not, 2 nothing could be run.
    """

    module = "transom.cli.eval"
    usage = "[OPTIONS] CASES.yaml"

    cases: Path = argument("CASES.yaml", "The file of cases.", type=Path)
    model: list[str] = repeatable(
        "NAME",
        "A model of Pydantic AI, such as `openai:gpt-5`; `script`, which does what the cases' "
        "scripts say; or `FILE.py:NAME`. Repeatable; the file's `model` otherwise.",
    )
    variant: list[str] = repeatable("NAME", "Only this variant; repeatable.")
    runs: int | None = option("COUNT", "How often each case is run; by default 5.", type=count)
    at_once: int = option("COUNT", "How many runs go on at the same time.", type=count, default=4)
    timeout: float | None = option(
        "SECONDS", "How long a run may take; by default 120.", type=number(0.1)
    )
    at_least: float = option(
        "RATE",
        "How many runs of each case have to pass, from 0 to 1.",
        type=number(0),
        default=1.0,
    )
    update: bool = flag("Write the files of `snapshot`, instead of comparing.")
    format: Literal["table", "json", "junit"] = choice(
        ("table", "json", "junit"), "How the report is printed."
    )
