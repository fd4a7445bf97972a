"""How much of a process's time one of many may take: here, the messages of one user's pages.

1. The messages of a page are handled in slices, and after each all other tasks have a turn.
2. Slices that were used up are charged to the user, and so is the turn of the others if it took
   long: a message may start work that is done then.
3. The pages of a user who is in debt are read again when `share` of the time that has passed covers
   it. No message is lost: the sockets fill up, and the browser waits.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Coroutine
from time import perf_counter, thread_time
from typing import Any

from transom.errors import UsageError
from transom.recent import Recent

_log = logging.getLogger("transom.web")

_SLICE = 0.00025  # seconds
_LATE = 0.001
_ALLOWANCE = 0.2  # seconds of saving up: a burst that takes `share` of them is free
_LONGEST_PAUSE = 1.0
_WARN_EVERY = 60.0
_MAX_USERS = 10_000  # that are remembered


class FairShare:
    """What the pages of one user may take: `share` of the time, 1.0 for all of it."""

    def __init__(self, share: float = 1.0, user: str = "") -> None:
        self._share = share
        self._user = user
        self._paid_at = 0.0  # when all charges are covered
        self._warned_at = -math.inf

    @property
    def debt(self) -> float:
        """For how many seconds to pause now."""
        return max(self._paid_at - perf_counter(), 0.0)

    def charge(self, seconds: float) -> float:
        """Charge the user, and return for how many seconds to pause."""
        now = perf_counter()
        due = max(self._paid_at, now - _ALLOWANCE) + seconds / self._share
        self._paid_at = min(due, now + _LONGEST_PAUSE)
        pause = max(self._paid_at - now, 0.0)
        if pause and self._user and now > self._warned_at + _WARN_EVERY:
            self._warned_at = now
            text = (
                "The pages of user %r send more than %g %% of this worker's time covers: they wait"
            )
            _log.warning(text, self._user, self._share * 100)
        return pause


class FairShares:
    """The shares of all users, each `share` of the time.

    Raises:
        UsageError: that is no share.
    """

    def __init__(self, share: float) -> None:
        if not 0 < share <= 1:
            raise UsageError(f"UserLimits(max_share={share:g}): it is above 0, and 1 at most")
        self._share = share
        self._users: Recent[str, FairShare] = Recent(_MAX_USERS)

    def of(self, user: str) -> FairShare:
        """The share of a user, which all their pages have in common."""
        share = self._users[user] = self._users.get(user) or FairShare(self._share, user)
        return share


class PageTurns:
    """The turns of one page at the worker's time, out of its user's share."""

    def __init__(self, share: FairShare) -> None:
        self._share = share
        self._began = 0.0
        self._over = True

    def next(self) -> Coroutine[Any, Any, None] | None:
        """To be called before each message is read: what to wait for first, if anything."""
        now = thread_time()  # not the clock: this process may not be running all the time
        if self._over:
            self._over, self._began = False, now
            asyncio.get_running_loop().call_soon(self._end)
        elif now - self._began > _SLICE:
            return self._pause(now - self._began)
        return None

    def _end(self) -> None:
        self._over = True

    async def _pause(self, spent: float) -> None:
        pause = self._share.charge(spent + await _sleep(0.0))
        if pause:
            self._share.charge(await _sleep(pause))


async def _sleep(seconds: float) -> float:
    """Sleep, and return how many seconds longer others worked, unless it is next to nothing."""
    due, worked = perf_counter() + seconds, thread_time()
    await asyncio.sleep(seconds)
    late = min(perf_counter() - due, thread_time() - worked)
    return late if late > _LATE else 0.0
