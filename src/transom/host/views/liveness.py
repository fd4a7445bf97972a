"""Whether an open View answers: live, busy or gone.

1. Silence begins when the host waits for an answer, and again with every message of the View. A
   View that nobody waits for is not watched.
2. A View that is silent for a while gets a ping: it may work on a long call and still answer.
3. After `Limits.unresponsive_after` seconds of silence it is busy, after `Limits.gone_after` it is
   gone. With its next message it is live.
4. A View whose page certainly is gone (`lose`) is live again when it answers a ping.
5. Time in which the host itself did not run is not silence of the View.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import StrEnum

from transom.errors import ProtocolError, RequestCancelled, RequestTimeout, TransomError
from transom.host.views.bridge import Bridge

_PING_AFTER = 0.4  # of `unresponsive_after`
_TICK = 0.2  # of `unresponsive_after`: how often a View that is not live is looked at
_PING_TIMEOUT = 30.0  # seconds until a ping is sent again


class ViewState(StrEnum):
    """What a View is at the moment."""

    OPENING = "opening"
    """It is not initialised yet."""
    WAITING = "waiting"
    """No page has a place for it: it opens as soon as one has. Or its page failed before it
    connected: it opens if it connects after all, and has failed if not within `open_timeout`."""
    LIVE = "live"
    """It can be used."""
    BUSY = "busy"
    """It does not answer at the moment. Its tools stay, and calls wait for it."""
    GONE = "gone"
    """Its page shows something else or crashed, or it has not answered for long. Its tools are not
    listed and calls are refused until it answers.
    """
    CLOSING = "closing"
    """It cleans up, and takes no more calls."""
    CLOSED = "closed"
    """It was closed."""
    FAILED = "failed"
    """It was never live."""


LIVE, BUSY, GONE = ViewState.LIVE, ViewState.BUSY, ViewState.GONE


class Liveness:
    """Watches one View while something waits for its answer.

    `on_changed` is called with the new state (live, busy or gone) and the reason, and `on_tick`
    regularly while it is not live.
    """

    def __init__(
        self,
        bridge: Bridge,
        on_changed: Callable[[ViewState, str], object],
        on_tick: Callable[[], object],
    ) -> None:
        self.state = LIVE
        self._bridge = bridge
        self._on_changed = on_changed
        self._on_tick = on_tick
        self._busy_after = bridge.limits.unresponsive_after
        self._gone_after = bridge.limits.gone_after
        self._waiting = 0  # requests that wait for an answer
        self._since = 0.0  # when the first of them began to wait
        self._lost = False
        self._pinged_at = 0.0
        self._ping: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # when the timer should fire
        self._stopped = False

    @property
    def silent_for(self) -> float:
        """For how many seconds an answer has been awaited since the View's last message."""
        return time.monotonic() - max(self._since, self._bridge.last_message_at)

    def begin(self) -> None:
        """A request waits for the View's answer from now on."""
        if not self._waiting and self._ping is None:
            self._since = time.monotonic()
        self._waiting += 1
        if self._timer is None:
            self._look_in(_PING_AFTER * self._busy_after)

    def end(self) -> None:
        """A request does not wait any more."""
        self._waiting -= 1
        if self.state is not LIVE:
            self._look()

    def ping(self) -> None:
        """Find out now whether it answers."""
        if self._ping is None:
            self._pinged_at = time.monotonic()
            self._ping = asyncio.create_task(self._ping_until_answered())
            if self._timer is None:
                self._look_in(_PING_AFTER * self._busy_after)

    def lose(self, reason: str) -> None:
        """Its page is certainly gone: end what waits for it, until another page answers."""
        self._lost = True
        self._set(GONE, reason)
        self._bridge.cancel_requests(reason)
        self.ping()

    def stop(self) -> None:
        """Watch it no more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._ping is not None:
            self._ping.cancel()

    def _look_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = time.monotonic() + seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        late = time.monotonic() - self._due
        if late > _TICK * self._busy_after:  # this process was stopped, or had no time
            self._since = max(self._since, self._bridge.last_message_at) + late
        self._look()
        if self.state is not LIVE:
            self._on_tick()

    def _look(self) -> None:
        if self._stopped:
            return
        answered = self._bridge.last_message_at > self._pinged_at and not self._lost
        if self._ping is not None and answered:  # any message is an answer
            self._ping.cancel()
            self._ping = None
        watched = self._waiting or self._ping is not None
        silent = self.silent_for if watched else 0.0
        if not self._lost:
            if silent >= self._gone_after:
                self._set(GONE, f"it has not answered for {silent:.0f} s")
            else:
                self._set(BUSY if silent >= self._busy_after else LIVE)
        if not watched or self._stopped:
            return
        wait = _PING_AFTER * self._busy_after - silent
        if wait <= 0:
            self.ping()
            wait = self._busy_after - silent
        if wait <= 0:
            left = self._gone_after - silent
            wait = min(_TICK * self._busy_after, left if left > 0 else _TICK * self._busy_after)
        self._look_in(wait)

    def _set(self, state: ViewState, reason: str = "") -> None:
        if self.state is not state:
            self.state = state
            self._on_changed(state, reason)

    async def _ping_until_answered(self) -> None:
        while True:
            try:
                await self._bridge.ping(timeout=_PING_TIMEOUT)
            except (RequestTimeout, RequestCancelled):
                continue  # or it restarted, and is pinged again once it is initialised
            except ProtocolError:
                pass  # an error is an answer, too
            except TransomError:
                return  # it is closed
            break
        self._ping, self._lost = None, False
        self._look()
