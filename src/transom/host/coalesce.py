"""Many notices, one call: what a flood of `list_changed` comes down to."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

__all__ = ["Coalesced"]


class Coalesced:
    """Calls a handler soon after it was asked to, once for however many asked.

    While an async handler runs, one further call is kept for later.

    Args:
        call: the handler; may be async.
        report: told what it raises.
    """

    def __init__(
        self, call: Callable[[], object], report: Callable[[BaseException], object]
    ) -> None:
        self._call = call
        self._report = report
        self._wanted = False
        self._running: asyncio.Task[None] | None = None

    def want(self) -> None:
        """Ask for a call."""
        self._wanted = True
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Call no more, and stop the one that runs."""
        self._wanted = False
        if self._running is not None and self._running is not asyncio.current_task():
            self._running.cancel()

    async def _run(self) -> None:
        try:
            while self._wanted:
                self._wanted = False
                try:
                    waiting = self._call()
                    if inspect.isawaitable(waiting):
                        await waiting
                except Exception as error:  # noqa: BLE001 - whatever a handler raises is reported
                    self._report(error)
        finally:
            self._running = None
