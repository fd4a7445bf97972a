"""The `transom` command, and what its commands share: the event loop, targets, what failed."""

# ruff: noqa: PLC0415 - a gateway loads this before it starts its server, so it is quick to load

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from transom.connections.target_names import parse_target

__all__ = ["parse_target", "print_failure", "run_async"]

T = TypeVar("T")

_MAX_LINE, _MAX_LINES = 1000, 50  # of what is said of a failure


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on uvloop's event loop where that is installed (`transom[fast]`)."""
    try:
        import asyncio

        try:
            from uvloop import new_event_loop
        except ImportError:
            new_event_loop = None
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(work)
    finally:
        work.close()  # should a signal have come before it began


def print_failure(command: str, error: object) -> None:
    """Say on standard error why a command failed: `transom COMMAND: …`; "" for none.

    Servers and files have a part in what is said. Whatever a terminal would obey is left out.
    """
    import sys

    from transom.json_values import clean

    lines = str(error).splitlines()[:_MAX_LINES]
    shown = [f"{_indent(line)}{clean(line.strip(), _MAX_LINE)}" for line in lines]
    program = f"transom {command}".rstrip()
    sys.stderr.write(f"{program}: {chr(10).join(shown)}\n")


def _indent(line: str) -> str:
    return " " * (len(line) - len(line.lstrip(" ")))
