"""Telling a host's handlers what happened, without letting one of them stop anything."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from transom.errors import PeerError, Refused
from transom.events import Slot

__all__ = ["News"]

_log = logging.getLogger("transom.host")


class News:
    """Runs handlers, and what has to be done aside.

    Args:
        on_error: the handlers that want to know what went wrong; nobody listening, it is logged.
        tools_changed: the handlers of changes to the surface, told once a turn of the event loop.
    """

    def __init__(self, on_error: Callable[[], Slot], tools_changed: Callable[[], Slot]) -> None:
        self._on_error = on_error
        self._tools_changed = tools_changed
        self._soon: asyncio.Handle | None = None
        self._aside: set[asyncio.Future[Any]] = set()

    def fire(self, slot: Slot, *arguments: object) -> None:
        """Tell everyone who listens."""
        if slot:
            waiting = slot.fire(*arguments, on_problem=self.report)
            if inspect.isawaitable(waiting):
                self.aside(waiting)

    def tools_changed(self) -> None:
        """The surface changed."""
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self._announce)

    def _announce(self) -> None:
        self._soon = None
        self.fire(self._tools_changed())

    def aside(self, waiting: Awaitable[object]) -> None:
        """Let it come about while everything else goes on."""
        task = asyncio.ensure_future(waiting)
        self._aside.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._aside.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.report(error)

    def report(self, error: BaseException) -> None:
        """Something went wrong that no caller can be told."""
        slot = self._on_error()
        if slot:
            waiting = slot.fire(error, on_problem=_log_failure)
            if inspect.isawaitable(waiting):
                self.aside(waiting)
        elif isinstance(error, PeerError | Refused):
            _log.debug("%s", error)  # a View's doing, as often as it likes
        else:
            _log_failure(error)

    async def aclose(self) -> None:
        """Give what runs a moment to end."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._aside:
            _, late = await asyncio.wait(list(self._aside), timeout=1)
            for task in late:
                task.cancel()


def _log_failure(error: BaseException) -> None:
    _log.error("%s: %s", type(error).__name__, error, exc_info=error)
