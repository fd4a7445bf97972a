"""The `transom` command: parsing, and each command in a module of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on uvloop's event loop where that is installed (`transom[fast]`)."""
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - it may not be there
    except ImportError:
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)
