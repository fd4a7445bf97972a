"""Handlers that are told something and that nobody waits for."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from transom.events import Slot

__all__ = ["Reports"]


class Reports:
    """Calls such handlers. What they raise is dropped: there is nobody left to tell.

    Args:
        most: how many async ones may run at a time; while they do, nothing more is told.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._running: set[asyncio.Future[Any]] = set()

    def tell(self, handlers: Slot, about: object) -> None:
        """Call `handlers` with `about`."""
        if len(self._running) >= self._most:
            return
        waiting = handlers.fire(about, on_problem=_drop)
        if inspect.isawaitable(waiting):
            task = asyncio.ensure_future(waiting)
            self._running.add(task)
            task.add_done_callback(self._running.discard)


def _drop(_: BaseException) -> None:
    pass
