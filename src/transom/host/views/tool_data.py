"""The data of the call that a View shows: its input, then its result or a cancellation.

1. Its order is that of the lifecycle table, checked when a part is given, sent or not.
2. Parts for a View that is not initialised yet are queued. A View that initialises again, because
   its page was reloaded, gets the input and the outcome again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from transom.errors import OutOfOrder, TooManyRequests
from transom.protocol import wire
from transom.protocol.lifecycle import DELIVERY, Delivery, Lifecycle, LifecycleState
from transom.protocol.messages import ToolCancelledParams

INPUT = "ui/notifications/tool-input"
PARTIAL_INPUT = "ui/notifications/tool-input-partial"
RESULT = "ui/notifications/tool-result"
CANCELLED = "ui/notifications/tool-cancelled"


class ToolData:
    """Sends one View the data of the call it shows. `send` sends it a notification."""

    def __init__(
        self, lifecycle: Lifecycle, send: Callable[[str, bytes], object], *, max_queued: int
    ) -> None:
        self._lifecycle = lifecycle
        self._send = send
        self._max_queued = max_queued
        self._queued: deque[tuple[str, bytes]] = deque()
        self._sent: list[tuple[str, bytes]] = []  # the input and the outcome

    def deliver(self, method: str, params: bytes) -> None:
        """Send a part, or queue it until the View is initialised.

        Raises:
            OutOfOrder: it is not the turn of this part, or the View is being torn down.
            TooManyRequests: too many parts wait.
        """
        lifecycle = self._lifecycle
        if lifecycle.state in (LifecycleState.READY, LifecycleState.TEARING_DOWN):
            lifecycle.record("host", method)
            if method != PARTIAL_INPUT:
                self._sent.append((method, params))
            self._send(method, params)
            return
        step = DELIVERY.get((lifecycle.delivery, method))
        if step is None:
            raise OutOfOrder(f"{method}: not after {lifecycle.delivery.value}")
        if method == PARTIAL_INPUT and self._queued and self._queued[-1][0] == PARTIAL_INPUT:
            self._queued.pop()  # this one has all of it
        if len(self._queued) >= self._max_queued:
            raise TooManyRequests(
                f"{method}: {self._max_queued} notifications are already waiting for the View"
            )
        lifecycle.delivery = step
        self._queued.append((method, params))

    def begin_call(self, arguments: Mapping[str, Any] | None) -> None:
        """Another call's data follows; a View that waits for the last one's gets a cancellation."""
        lifecycle = self._lifecycle
        if lifecycle.state is LifecycleState.TEARING_DOWN:
            raise OutOfOrder("begin_call: the View is being torn down")
        waits = lifecycle.delivery in (Delivery.PARTIAL, Delivery.INPUT)
        if waits and lifecycle.ready:
            reason = ToolCancelledParams("It is used for another call")
            self.deliver(CANCELLED, wire.encode(reason))
        lifecycle.begin_call()
        self.clear()
        if arguments is not None:
            self.deliver(INPUT, wire.encode({"arguments": dict(arguments)}))

    def take_due(self) -> list[tuple[str, bytes]]:
        """What a View that has just initialised gets: what was sent before, then what waits."""
        due = [*self._sent, *self._queued]
        self._sent = [part for part in due if part[0] != PARTIAL_INPUT]
        self._queued.clear()
        return due

    def clear(self) -> None:
        """Forget all parts."""
        self._queued.clear()
        self._sent.clear()
