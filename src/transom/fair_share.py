"""How much of a process's time one of many may take: here, the messages of one user's pages.

1. The messages of a page are handled in slices, and after each all other tasks have a turn.
2. Slices that were used up are charged to the user, and so is the turn of the others if it took
   long: a message may start work that is done then. While another user is active, so are the turns
   after it, until one has nothing to do: a call of a server in this process takes many. What waits,
   such as a call of a server elsewhere, leaves such turns, so that it is not charged.
3. While another user is present, a user's Views call servers one call after the other, as long as
   that is work in this process: chains of calls, where each answer starts the next, use up no
   slice, however many there are. The next call begins when the last one is answered, or there is
   a lull because it waits, or after 20 ms of work in a process that has none; and when the user is
   no longer in debt, since what is worked meanwhile is charged.
4. A page that connects is charged a fixed time, and a large message for its size, because most of
   that work is done before or much later.
5. The pages of a user who is in debt are read again when `share` of the time that has passed covers
   it, one page after the other. No message is lost: the sockets fill up, and the browser waits.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Coroutine
from time import perf_counter, thread_time
from typing import Any

from transom.errors import UsageError
from transom.recent import Recent

_log = logging.getLogger("transom.web")

_SLICE = 0.00025  # seconds
_LATE = 0.001
_NOTHING = 0.00002  # a turn of the event loop in which nothing else ran takes less
_IDLE_TURNS = 4  # in the middle of a call some may be that short: two in a row were seen
_MOST = 0.02  # seconds of later turns that count: in a busy process some work is for others
_ALLOWANCE = 0.2  # seconds of saving up: a burst that takes `share` of them is free
_LONGEST_PAUSE = 1.0
_WARN_EVERY = 60.0
_ACTIVE = 1.0  # seconds for which somebody counts as active after a message
_PRESENT = 10.0  # seconds for which they count as present, so that others take turns
_BYTE = 0.00000001  # seconds of work that one of a large message counts for
_CONNECTION = 0.002  # seconds of work that a connection counts for
_MAX_CONNECTING = 100  # connections of a user that wait
_MAX_USERS = 10_000  # that are remembered


class Lulls:
    """When the event loop has nothing to do; a process that always has gets one after 20 ms."""

    def __init__(self) -> None:
        self._waiting = deque[tuple[float, Callable[[], object]]]()
        self._worked = 0.0
        self._idle = 0

    def at_next(self, do: Callable[[], object]) -> None:
        """Call that at the next one."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._turn)
        self._worked, self._idle = thread_time(), 0
        self._waiting.append((self._worked, do))

    def _turn(self) -> None:
        before, self._worked = self._worked, thread_time()
        self._idle = self._idle + 1 if self._worked - before < _NOTHING else 0
        since = math.inf if self._idle == _IDLE_TURNS else self._worked - _MOST
        while self._waiting and self._waiting[0][0] < since:
            self._waiting.popleft()[1]()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._turn)


class Active:
    """Who has sent something within their share: the last two, so that each can find another."""

    def __init__(self) -> None:
        self._last = [("", -math.inf), ("", -math.inf)]
        self.lulls = Lulls()

    def add(self, name: str) -> None:
        """That one is active now."""
        before = self._last[0] if self._last[1][0] == name else self._last[1]
        self._last = [before, (name, perf_counter())]

    def has_others(self, name: str, within: float) -> bool:
        """Whether anyone else was active in the last seconds."""
        since = perf_counter() - within
        return any(other != name and when > since for other, when in self._last)


class FairShare:
    """What the pages of one user may take: `share` of the time, 1.0 for all of it.

    Args:
        share: which part.
        name: whose it is, for the log and among those who are active.
        active: who else there is; by default nobody.
        warns: whether the log says who takes more.
    """

    def __init__(
        self,
        share: float = 1.0,
        name: str = "",
        active: Active | None = None,
        *,
        warns: bool = False,
    ) -> None:
        self._share = share
        self._name = name
        self._warns = warns
        self._active = active or Active()
        self.queue = asyncio.Lock()
        """For what waits, one after the other."""
        self.calls = asyncio.Lock()
        """For calls of servers."""
        self._paid_at = 0.0  # when all charges are covered
        self._warned_at = -math.inf
        self._connecting = 0

    @property
    def debt(self) -> float:
        """For how many seconds to pause now."""
        return max(self._paid_at - perf_counter(), 0.0)

    def call(self) -> ServerCall:
        """A call of a server by a View: to be entered before, and left when it is answered."""
        return ServerCall(self, self._active.lulls)

    @property
    def is_alone(self) -> bool:
        """Whether nobody else is present."""
        return not self._active.has_others(self._name, _PRESENT)

    @property
    def has_others(self) -> bool:
        """Whether another is active, within their share."""
        return self._active.has_others(self._name, _ACTIVE)

    def note_message(self) -> None:
        """A message has arrived."""
        if not self.debt:
            self._active.add(self._name)

    async def connect(self) -> bool:
        """Wait until a page may connect; False if too many wait already."""
        if self._connecting >= _MAX_CONNECTING:
            return False
        self._connecting += 1
        try:
            async with self.queue:
                if pause := self.charge(_CONNECTION):
                    await asyncio.sleep(pause)
        finally:
            self._connecting -= 1
        return True

    def charge(self, seconds: float) -> float:
        """Charge the user, and return for how many seconds to pause."""
        now = perf_counter()
        due = max(self._paid_at, now - _ALLOWANCE) + seconds / self._share
        self._paid_at = min(due, now + _LONGEST_PAUSE)
        pause = max(self._paid_at - now, 0.0)
        if pause and self._warns and now > self._warned_at + _WARN_EVERY:
            self._warned_at = now
            text = (
                "The pages of user %r send more than %g %% of this worker's time covers: they wait"
            )
            _log.warning(text, self._name, self._share * 100)
        return pause


class ServerCall:
    """One call of a server at a time, as long as that is work: not while all of it waits."""

    def __init__(self, share: FairShare, lulls: Lulls) -> None:
        self._share = share
        self._lulls = lulls
        self._began: float | None = None

    async def __aenter__(self) -> None:
        share = self._share
        if share.is_alone:
            return
        await share.calls.acquire()
        try:
            if share.debt and share.has_others:
                await asyncio.sleep(share.debt)
        except BaseException:
            share.calls.release()
            raise
        self._began = thread_time()
        self._lulls.at_next(self._end_turn)

    async def __aexit__(self, *error: object) -> None:
        self._end_turn()

    def _end_turn(self) -> None:
        if self._began is not None:
            worked = thread_time() - self._began
            self._began = None
            self._share.charge(min(worked, _MOST))
            self._share.calls.release()


class FairShares:
    """The shares of all users, each `share` of the time.

    Raises:
        UsageError: that is no share.
    """

    def __init__(self, share: float) -> None:
        if not 0 < share <= 1:
            raise UsageError(f"UserLimits(max_share={share:g}): it is above 0, and 1 at most")
        self._share = share
        self._active = Active()
        self._users: Recent[str, FairShare] = Recent(_MAX_USERS)

    def of(self, user: str) -> FairShare:
        """The share of a user, which all their pages have in common."""
        share = self._users.get(user) or FairShare(self._share, user, self._active, warns=True)
        self._users[user] = share
        return share


class PageTurns:
    """The turns of one page at the worker's time, out of its user's share."""

    def __init__(self, share: FairShare) -> None:
        self._share = share
        self._began = 0.0
        self._over = True
        self._large = 0.0  # seconds for what was large

    def note_size(self, size: int) -> None:
        """A message of that size was read."""
        if size > _SLICE / _BYTE and self._share.has_others:
            self._large += size * _BYTE

    def next(self) -> Coroutine[Any, Any, None] | None:
        """To be called before each message is read: what to wait for first, if anything."""
        now = thread_time()  # not the clock: this process may not be running all the time
        if self._large:
            large, self._large = self._large, 0.0
            return self._pause(large)
        if self._over:
            self._over, self._began = False, now
            self._share.note_message()
            asyncio.get_running_loop().call_soon(self._end)
        elif now - self._began > _SLICE:
            return self._pause(now - self._began)
        return None

    def _end(self) -> None:
        self._over = True

    async def _pause(self, spent: float) -> None:
        async with self._share.queue:  # pages that measure the same turns would charge them twice
            pause = self._share.charge(spent + await self._let_others_work())
            if pause:
                self._share.charge(await _sleep(pause))

    async def _let_others_work(self) -> float:
        """Let all other tasks work; returns for how many seconds, unless it is next to nothing."""
        began = worked = thread_time()
        while True:
            await asyncio.sleep(0)
            before, worked = worked, thread_time()
            nothing = worked - before < _NOTHING
            if nothing or worked - began > _MOST or not self._share.has_others:
                return worked - began if worked - began > _LATE else 0.0


async def _sleep(seconds: float) -> float:
    """Sleep, and return how many seconds longer others worked, unless it is next to nothing."""
    due, worked = perf_counter() + seconds, thread_time()
    await asyncio.sleep(seconds)
    late = min(perf_counter() - due, thread_time() - worked)
    return late if late > _LATE else 0.0
