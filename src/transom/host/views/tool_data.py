"""The data of the call that a View shows: its input, then its result or a cancellation.

1. There is one order: any number of partial inputs, the input once, then the result or the
   cancellation, once. It is checked when a part is given, sent or not.
2. A View that is used for another call gets that one's data in the same order.
3. A View that is not initialised yet gets the parts when it is. One that initialises again, because
   its page was reloaded, gets the input and the outcome again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from transom.errors import NotConnected, OutOfOrder
from transom.protocol import wire
from transom.protocol.lifecycle import Lifecycle, LifecycleState
from transom.protocol.messages import ToolCancelledParams

INPUT = "ui/notifications/tool-input"
PARTIAL_INPUT = "ui/notifications/tool-input-partial"
RESULT = "ui/notifications/tool-result"
CANCELLED = "ui/notifications/tool-cancelled"


class Delivery(Enum):
    """How much of a call's data the View has been given."""

    NOTHING = "nothing"
    PARTIAL = "partial input"
    INPUT = "input"
    DONE = "result or cancellation"


_ORDER: dict[tuple[Delivery, str], Delivery] = {
    (Delivery.NOTHING, PARTIAL_INPUT): Delivery.PARTIAL,
    (Delivery.PARTIAL, PARTIAL_INPUT): Delivery.PARTIAL,
    (Delivery.NOTHING, INPUT): Delivery.INPUT,
    (Delivery.PARTIAL, INPUT): Delivery.INPUT,
    (Delivery.INPUT, RESULT): Delivery.DONE,
    (Delivery.NOTHING, CANCELLED): Delivery.DONE,
    (Delivery.PARTIAL, CANCELLED): Delivery.DONE,
    (Delivery.INPUT, CANCELLED): Delivery.DONE,
}


class ToolData:
    """Sends one View the data of the call it shows. `send` sends it a notification."""

    def __init__(self, lifecycle: Lifecycle, send: Callable[[str, bytes], object]) -> None:
        self._lifecycle = lifecycle
        self._send = send
        self._given = Delivery.NOTHING
        self._parts: list[tuple[str, bytes]] = []  # for a View that initialises, the first time too

    def deliver(self, method: str, params: bytes) -> None:
        """Send a part, or keep it until the View is initialised.

        Raises:
            OutOfOrder: it is not the turn of this part.
            NotConnected: the View is being torn down, or closed.
        """
        early = self._lifecycle.state in (LifecycleState.CREATED, LifecycleState.INITIALIZING)
        if not early:
            self._lifecycle.check("host", method)
        step = _ORDER.get((self._given, method))
        if step is None:
            raise OutOfOrder(f"{method}: not after {self._given.value}")
        self._given = step
        if method == PARTIAL_INPUT:
            self._parts.clear()  # this one has all of it
        if early or method != PARTIAL_INPUT:
            self._parts.append((method, params))
        if not early:
            self._send(method, params)

    def begin_call(self, arguments: Mapping[str, Any] | None) -> None:
        """Another call's data follows; a View that waits for the last one's gets a cancellation."""
        if self._lifecycle.state is LifecycleState.TEARING_DOWN:
            raise NotConnected("begin_call: the View is being torn down")
        if self._lifecycle.ready and self._given in (Delivery.PARTIAL, Delivery.INPUT):
            reason = ToolCancelledParams("It is used for another call")
            self.deliver(CANCELLED, wire.encode(reason))
        self._given = Delivery.NOTHING
        self.clear()
        if arguments is not None:
            self.deliver(INPUT, wire.encode({"arguments": dict(arguments)}))

    def take_due(self) -> list[tuple[str, bytes]]:
        """What a View that has just initialised gets."""
        due = self._parts
        self._parts = [part for part in due if part[0] != PARTIAL_INPUT]
        return due

    def clear(self) -> None:
        """Forget all parts."""
        self._parts.clear()
