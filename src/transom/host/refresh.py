"""Listing again what may have changed: one listing at a time, and not all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

__all__ = ["Relist", "settle"]

_BURST = 5  # listings that may follow each other at once


class Relist:
    """Keeps one owner's list up to date.

    Args:
        work: lists, and passes on what it found. It must not raise.
        interval: the number of seconds between two listings, on average. A few in a row may go
            at once, so that a list is fresh right after a change that is no flood.
        stale: all those that are not up to date; this one adds and removes itself.
    """

    __slots__ = (
        "_again",
        "_interval",
        "_next",
        "_stale",
        "_task",
        "_timer",
        "_work",
        "done",
        "slow",
    )

    def __init__(
        self, work: Callable[[], Awaitable[None]], interval: float, stale: set[Relist]
    ) -> None:
        self.done: asyncio.Future[None] | None = None
        """Comes when the next listing is through; None when there is nothing to wait for."""
        self.slow = False
        """Whether somebody has waited for the listing in vain. Nobody does so twice."""
        self._work = work
        self._interval = interval
        self._stale = stale
        self._next = 0.0
        self._again = False
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def changed(self) -> None:
        """The list may have changed: list it, now or as soon as it may be."""
        if self._task is not None:
            self._again = True
            return
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        self.done = loop.create_future()
        self._stale.add(self)
        delay = self._next - loop.time() - (_BURST - 1) * self._interval
        if delay <= 0:
            self._start()
        else:
            self._timer = loop.call_later(delay, self._start)

    def within(self, seconds: float) -> bool:
        """Whether a listing can begin that soon."""
        if self._timer is None:
            return True
        return self._timer.when() - asyncio.get_running_loop().time() <= seconds

    def stop(self) -> None:
        """List no more. Whoever waits goes on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._again = False
        self._finish()

    def _start(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._list())

    async def _list(self) -> None:
        self._next = max(self._next, asyncio.get_running_loop().time()) + self._interval
        try:
            await self._work()
        finally:
            self._task = None
            self.slow = False
            self._finish()
            if self._again:
                self._again = False
                self.changed()

    def _finish(self) -> None:
        self._stale.discard(self)
        done, self.done = self.done, None
        if done is not None and not done.done():
            done.set_result(None)


async def settle(relists: Iterable[Relist], seconds: float, *, slow: bool = False) -> None:
    """Wait until these are up to date, but no longer than that.

    Args:
        relists: whom to wait for.
        seconds: how long.
        slow: wait also for those that somebody has waited for in vain.
    """
    waiting = {
        relist: relist.done
        for relist in relists
        if relist.done is not None and (slow or not relist.slow) and relist.within(seconds)
    }
    if not waiting:
        return
    await asyncio.wait(waiting.values(), timeout=seconds)
    for relist, done in waiting.items():
        if not done.done():
            relist.slow = True
