"""The order in which a View and its host may send messages.

1. The View opens with `ui/initialize`, then `ui/notifications/initialized`. Until then the host
   sends nothing but its answers.
2. Sending `ui/initialize` again is allowed; the newest answer counts.
3. The tool's data goes to the View in one order: any number of partial inputs, the input once,
   then the result or the cancellation, once. No partial after the input. A View that is used for
   another call gets that one's data in the same order.
4. After `ui/resource-teardown` the host sends nothing new.
5. Any state can go to closed, which is final.

Two tables hold these rules. `Lifecycle` looks messages up in them and keeps the state.
"""

from __future__ import annotations

from enum import Enum

from transom.errors import OutOfOrder
from transom.protocol.methods import METHODS, Sender


class LifecycleState(Enum):
    """The state of the conversation."""

    CREATED = "created"
    INITIALIZING = "initializing"
    READY = "ready"
    TEARING_DOWN = "tearing down"
    CLOSED = "closed"


class Delivery(Enum):
    """How much of the tool's data has been sent to the View."""

    NOTHING = "nothing"
    PARTIAL = "partial input"
    INPUT = "input"
    DONE = "result or cancellation"


TRANSITIONS: dict[tuple[LifecycleState, Sender, str], LifecycleState] = {
    (LifecycleState.CREATED, "view", "ui/initialize"): LifecycleState.INITIALIZING,
    (LifecycleState.INITIALIZING, "view", "ui/initialize"): LifecycleState.INITIALIZING,
    (LifecycleState.INITIALIZING, "view", "ui/notifications/initialized"): LifecycleState.READY,
    (LifecycleState.READY, "view", "ui/initialize"): LifecycleState.INITIALIZING,
    (LifecycleState.READY, "host", "ui/resource-teardown"): LifecycleState.TEARING_DOWN,
}
"""Messages that change the state. Any other leaves it as it is."""

DELIVERY: dict[tuple[Delivery, str], Delivery] = {
    (Delivery.NOTHING, "ui/notifications/tool-input-partial"): Delivery.PARTIAL,
    (Delivery.PARTIAL, "ui/notifications/tool-input-partial"): Delivery.PARTIAL,
    (Delivery.NOTHING, "ui/notifications/tool-input"): Delivery.INPUT,
    (Delivery.PARTIAL, "ui/notifications/tool-input"): Delivery.INPUT,
    (Delivery.INPUT, "ui/notifications/tool-result"): Delivery.DONE,
    (Delivery.NOTHING, "ui/notifications/tool-cancelled"): Delivery.DONE,
    (Delivery.PARTIAL, "ui/notifications/tool-cancelled"): Delivery.DONE,
    (Delivery.INPUT, "ui/notifications/tool-cancelled"): Delivery.DONE,
}
"""The order of the tool's data. Any other step is out of order."""

_DELIVERED = frozenset(method for _, method in DELIVERY)


class Lifecycle:
    """The state of one conversation, and what may be sent next."""

    def __init__(self) -> None:
        self.state = LifecycleState.CREATED
        self.delivery = Delivery.NOTHING

    @property
    def ready(self) -> bool:
        """Whether the View is initialised and not being torn down."""
        return self.state is LifecycleState.READY

    def check(self, sender: Sender, method: str) -> None:
        """Whether `sender` may send `method` now."""
        if self.state is LifecycleState.CLOSED:
            raise OutOfOrder(f"{method}: the conversation is closed")
        row = METHODS.get((sender, method))
        early = row is not None and row.early
        if sender == "host" and not early:
            if self.state in (LifecycleState.CREATED, LifecycleState.INITIALIZING):
                raise OutOfOrder(f"{method}: the View is not initialised yet")
            if self.state is LifecycleState.TEARING_DOWN:
                raise OutOfOrder(f"{method}: the View is being torn down")
        if (
            method == "ui/notifications/initialized"
            and self.state is not LifecycleState.INITIALIZING
        ):
            raise OutOfOrder(f"{method}: the state is {self.state.value!r}")
        if method in _DELIVERED and sender == "host" and (self.delivery, method) not in DELIVERY:
            raise OutOfOrder(f"{method}: not after {self.delivery.value}")

    def record(self, sender: Sender, method: str) -> None:
        """Record that `sender` sent `method`."""
        self.check(sender, method)
        self.state = TRANSITIONS.get((self.state, sender, method), self.state)
        if sender == "host":
            self.delivery = DELIVERY.get((self.delivery, method), self.delivery)

    def begin_call(self) -> None:
        """Record that another call's data follows."""
        self.delivery = Delivery.NOTHING

    def close(self) -> None:
        """Record that the connection has closed."""
        self.state = LifecycleState.CLOSED
