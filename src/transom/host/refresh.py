"""Listing again what may have changed: one listing at a time, at a limited rate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from transom.background import Debounced

_BURST = 5  # listings that may follow each other without a pause


class Refresh:
    """Keeps one list of tools up to date, that of a server or a View.

    Args:
        list_tools: lists, and passes the result on.
        interval: seconds between two listings, on average. The first few may follow each other
            without a pause, so a list is fresh right after a change.
        stale: all lists that are out of date; this one adds and removes itself.
        on_error: called with whatever `list_tools` raises.
    """

    __slots__ = ("_interval", "_list_tools", "_next", "_run", "_stale", "_starts", "done", "slow")

    def __init__(
        self,
        list_tools: Callable[[], Awaitable[None]],
        interval: float,
        stale: set[Refresh],
        on_error: Callable[[BaseException], object],
    ) -> None:
        self.done: asyncio.Future[None] | None = None
        """Set when the listing that is due is done; None when the list is up to date."""
        self.slow = False
        """Whether somebody waited for this listing in vain. Others do not wait for it then."""
        self._list_tools = list_tools
        self._interval = interval
        self._stale = stale
        self._next = 0.0
        self._starts = 0.0
        self._run = Debounced(self._list, on_error)

    def trigger(self) -> None:
        """The list may have changed: list it again, now or as soon as the rate allows."""
        if self.done is None:
            self._mark_stale()
        self._run.trigger()
        self._run.flush()  # it need not wait for the next turn of the event loop

    def starts_within(self, seconds: float) -> bool:
        """Whether the listing that is due begins that soon."""
        return self._starts - asyncio.get_running_loop().time() <= seconds

    def stop(self) -> None:
        """List no more. Whoever waits goes on."""
        self._run.close()
        self._mark_fresh()

    async def _list(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            self._starts = self._next - (_BURST - 1) * self._interval
            if (pause := self._starts - clock()) > 0:
                await asyncio.sleep(pause)
            self._run.drop()  # the listing that begins now serves every trigger up to here
            self._next = max(self._next, clock()) + self._interval
            await self._list_tools()
        finally:
            self.slow = False
            self._mark_fresh()
            if self._run.pending:
                self._mark_stale()

    def _mark_stale(self) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self._stale.add(self)

    def _mark_fresh(self) -> None:
        self._stale.discard(self)
        done, self.done = self.done, None
        if done is not None and not done.done():
            done.set_result(None)


async def wait_refreshed(
    refreshes: Iterable[Refresh], seconds: float, *, slow_ones: bool = False
) -> None:
    """Wait until these lists are up to date, but no longer than that.

    Args:
        refreshes: the lists.
        seconds: how long to wait.
        slow_ones: wait also for those that somebody has waited for in vain.
    """
    waiting = {
        refresh: refresh.done
        for refresh in refreshes
        if refresh.done is not None
        and (slow_ones or not refresh.slow)
        and refresh.starts_within(seconds)
    }
    if not waiting:
        return
    await asyncio.wait(waiting.values(), timeout=seconds)
    for refresh, done in waiting.items():
        if not done.done():
            refresh.slow = True
