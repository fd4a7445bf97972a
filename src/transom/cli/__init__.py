"""The `transom` command, and what its commands share: the event loop, and how a server is named."""

# ruff: noqa: PLC0415 - a gateway loads this before it starts its server, so it is quick to load

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from transom.connections.target_names import parse_target

__all__ = ["parse_target", "run_async"]

T = TypeVar("T")


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
