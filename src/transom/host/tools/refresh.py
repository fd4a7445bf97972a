"""Listing again what may have changed: one listing at a time, at a limited rate.

1. After an announced change (`trigger`), the list is fetched as soon as the rate allows.
2. For a model that lists now (`pull`), it is fetched now, by a listing that begins after the pull.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from transom.background import Debounced

LATE = "it did not list its tools in time: its last list was used"
"""The audit's text for that."""

_BURST = 5  # listings that may follow each other without a pause


class Refresh:
    """Keeps one list of tools up to date, that of a server or a View.

    On average there are `interval` seconds between two listings; the first few may follow each
    other without a pause, so a list is fresh right after a change. `stale` has all outdated lists.
    `on_late` is called when the previous list is used because a listing took too long.
    """

    def __init__(
        self,
        list_tools: Callable[[], Awaitable[None]],
        interval: float,
        stale: set[Refresh],
        on_error: Callable[[BaseException], object],
        on_late: Callable[[], object],
    ) -> None:
        self.slow = False
        """Whether a caller waited for this listing in vain. Others then do not wait for it."""
        self.pulling = False
        """Whether the running listing is only for a pull, not for an announced change."""
        self.on_late = on_late
        self._list_tools = list_tools
        self._interval = interval
        self._stale = stale
        self._next = 0.0
        self._announced = self._pulled = False  # why a listing is pending
        self._pause: asyncio.Future[None] | None = None
        # Resolved with the pending listing, and with the running one.
        self._due: asyncio.Future[None] | None = None
        self._listing: asyncio.Future[None] | None = None
        self._run = Debounced(self._list, on_error)

    def trigger(self) -> None:
        """The list may have changed: list it again, now or as soon as the rate allows."""
        self._announced = True
        self._request()

    def pull(self) -> None:
        """List it again now. The rate limit is only for announced changes, which are untrusted."""
        self._pulled = True
        self._request()
        _finish(self._pause)

    def _request(self) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().create_future()
            self._stale.add(self)
        self._run.trigger()
        self._run.flush()  # without waiting for the next turn of the event loop

    def listing(self, seconds: float) -> asyncio.Future[None] | None:
        """The pending listing, if it begins soon enough, or else the running one."""
        soon = self._pulled or self._seconds_to_start() <= seconds
        return self._due if self._due is not None and soon else self._listing

    def stop(self) -> None:
        """Stop listing, and wake all waiters."""
        self._run.close()
        self._stale.discard(self)
        _finish(self._due)
        _finish(self._listing)

    def _seconds_to_start(self) -> float:
        now = asyncio.get_running_loop().time()
        return self._next - (_BURST - 1) * self._interval - now

    async def _list(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._pulled and (pause := self._seconds_to_start()) > 0:
            self._pause = loop.create_future()
            await asyncio.wait([self._pause], timeout=pause)
            self._pause = None
        self._run.drop()  # the listing that begins now serves every trigger so far
        if not self._pulled:
            self._next = max(self._next, loop.time()) + self._interval
        self.pulling = not self._announced
        self._announced = self._pulled = False
        self._listing, self._due = self._due, None
        try:
            await self._list_tools()
        finally:
            self.slow = False
            _finish(self._listing)
            self._listing = None
            if self._due is None:
                self._stale.discard(self)


def _finish(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)


async def wait_refreshed(
    refreshes: Iterable[Refresh], seconds: float, *, slow_ones: bool = False
) -> None:
    """Wait until these lists are up to date, for a limited time.

    With `slow_ones`, also for those that a caller has already waited for in vain.
    """
    listings = {refresh: refresh.listing(seconds) for refresh in refreshes}
    awaited = [
        listing
        for refresh, listing in listings.items()
        if listing is not None and (slow_ones or not refresh.slow)
    ]
    if awaited:
        await asyncio.wait(awaited, timeout=seconds)
    for refresh, listing in listings.items():
        if listing is not None and not listing.done():
            refresh.slow = True
            refresh.on_late()
