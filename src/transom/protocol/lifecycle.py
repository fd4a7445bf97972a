"""The order in which a View and its host may send messages.

1. The View opens with `ui/initialize`, then `ui/notifications/initialized`. Until then the host
   sends nothing but its answers.
2. Sending `ui/initialize` again is allowed; the newest answer counts.
3. After `ui/resource-teardown` the host sends nothing new.
4. Any state can go to closed, which is final.

The order of a tool's data is the business of the host's `ToolData`.
"""

from __future__ import annotations

from enum import Enum

from transom.errors import NotConnected, OutOfOrder, PeerError
from transom.protocol.methods import METHODS, Sender


class LifecycleState(Enum):
    """The state of the conversation."""

    CREATED = "created"
    INITIALIZING = "initializing"
    READY = "ready"
    TEARING_DOWN = "tearing down"
    CLOSED = "closed"


TRANSITIONS: dict[tuple[LifecycleState, Sender, str], LifecycleState] = {
    (LifecycleState.CREATED, "view", "ui/initialize"): LifecycleState.INITIALIZING,
    (LifecycleState.INITIALIZING, "view", "ui/initialize"): LifecycleState.INITIALIZING,
    (LifecycleState.INITIALIZING, "view", "ui/notifications/initialized"): LifecycleState.READY,
    (LifecycleState.READY, "view", "ui/initialize"): LifecycleState.INITIALIZING,
    (LifecycleState.READY, "host", "ui/resource-teardown"): LifecycleState.TEARING_DOWN,
}
"""Messages that change the state. Any other leaves it as it is."""


class Lifecycle:
    """The state of one conversation, and what may be sent next."""

    def __init__(self) -> None:
        self.state = LifecycleState.CREATED

    @property
    def ready(self) -> bool:
        """Whether the View is initialised and not being torn down."""
        return self.state is LifecycleState.READY

    def check(self, sender: Sender, method: str) -> None:
        """Check that `sender` may send `method` now.

        Raises:
            NotConnected: the conversation is closed, or the View is being torn down.
            OutOfOrder: the host is too early.
            PeerError: the View sends it at the wrong time.
        """
        if self.state is LifecycleState.CLOSED:
            raise NotConnected(f"{method}: the conversation is closed")
        row = METHODS.get((sender, method))
        early = row is not None and row.early
        if sender == "host" and not early:
            if self.state in (LifecycleState.CREATED, LifecycleState.INITIALIZING):
                raise OutOfOrder(f"{method}: the View is not initialised yet")
            if self.state is LifecycleState.TEARING_DOWN:
                raise NotConnected(f"{method}: the View is being torn down")
        if (
            method == "ui/notifications/initialized"
            and self.state is not LifecycleState.INITIALIZING
        ):
            raise PeerError(f"{method}: the state is {self.state.value!r}")

    def record(self, sender: Sender, method: str) -> None:
        """Record that `sender` sent `method`."""
        self.check(sender, method)
        self.state = TRANSITIONS.get((self.state, sender, method), self.state)

    def close(self) -> None:
        """Record that the connection has closed."""
        self.state = LifecycleState.CLOSED
