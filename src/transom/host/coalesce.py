"""Many notices, one call: what a flood of `list_changed` comes down to."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

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
        self._soon: asyncio.Handle | None = None
        self._running: asyncio.Task[None] | None = None

    def want(self) -> None:
        """Ask for a call."""
        self._wanted = True
        if self._soon is None and self._running is None:
            self._soon = asyncio.get_running_loop().call_soon(self._begin)

    def close(self) -> None:
        """Call no more, and stop the one that runs."""
        self._wanted = False
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._running is not None and self._running is not asyncio.current_task():
            self._running.cancel()

    def _begin(self) -> None:
        self._soon = None
        self._wanted = False
        try:
            waiting = self._call()
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is reported
            self._report(error)
            return
        if inspect.isawaitable(waiting):
            self._running = asyncio.ensure_future(self._run(waiting))

    async def _run(self, waiting: Awaitable[object]) -> None:
        try:
            await waiting
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is reported
            self._report(error)
        finally:
            self._running = None
        if self._wanted:
            self.want()
