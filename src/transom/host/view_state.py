"""How far the conversation with a View is, and what the View knows of its surroundings.

Readiness:

1. Until the View is initialised, notifications are queued in order and requests wait.
2. The order of the tool's data is checked when it is handed over, not when it is sent, so that the
   caller gets the error.
3. A View that initialises again, because its page was loaded again, gets the tool's data again.

Context:

1. A change is a difference in value: the order of keys does not matter, and setting a key to the
   value it has changes nothing.
2. Changed keys are sent in one `host-context-changed`. Removed keys are sent as null, in a
   notification of their own: the protocol has no other way to remove a key, Transom's Views
   understand null, and a View that refuses null still gets the changed keys.
3. Until the View has sent `ui/initialize` there is nothing to send: the answer will have it all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from transom.errors import ConnectionClosed, NotConnected, OutOfOrder, RequestTimeout
from transom.protocol.lifecycle import DELIVERY, Lifecycle, State
from transom.types import HostContext

_PARTIAL = "ui/notifications/tool-input-partial"


class Readiness:
    """The lifecycle of one View, and what waits until it is ready.

    Args:
        max_queued: how many notifications may be queued.
    """

    def __init__(self, max_queued: int) -> None:
        self.lifecycle = Lifecycle()
        self.reason = "the bridge was never started"
        """Why it is closed, if it is."""
        self.started = False
        self._max_queued = max_queued
        self._queued: deque[tuple[str, bytes]] = deque()
        self._delivered: list[tuple[str, bytes]] = []  # the input and the outcome, once sent
        self._waiting: list[asyncio.Future[None]] = []

    def become_ready(self) -> list[tuple[str, bytes]]:
        """Wake everyone who waits; returns the notifications to send now, or once more."""
        due = [*self._delivered, *self._queued]
        self._delivered = [notice for notice in due if notice[0] != _PARTIAL]
        self._queued.clear()
        self._wake()
        return due

    def close(self, reason: str) -> None:
        """End it, with the reason."""
        self.reason = reason
        self.lifecycle.close()
        self._queued.clear()
        self._delivered.clear()
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def check_open(self, what: str) -> None:
        """Check that the conversation is not over.

        Raises:
            NotConnected: it is.
        """
        if self.lifecycle.state is State.CLOSED:
            raise NotConnected(f"{what}: not connected ({self.reason})")

    def admit(self, method: str, params: bytes) -> bool:
        """Whether a notification may be sent now. If it is too early, it is queued.

        Raises:
            NotConnected: the conversation is over.
            OutOfOrder: the lifecycle does not allow it, or too many are queued.
        """
        self.check_open(method)
        lifecycle = self.lifecycle
        if lifecycle.ready or lifecycle.state is State.TEARING_DOWN:
            lifecycle.record("host", method)
            if method != _PARTIAL:
                self._delivered.append((method, params))
            return True
        step = DELIVERY.get((lifecycle.delivery, method))
        if step is None:
            raise OutOfOrder(f"{method}: not after {lifecycle.delivery.value}")
        if len(self._queued) >= self._max_queued:
            raise OutOfOrder(f"{method}: {self._max_queued} notices wait for the View already")
        lifecycle.delivery = step
        self._queued.append((method, params))
        return False

    async def until_ready(self, what: str, timeout: float) -> float:
        """Wait until the View is initialised; returns the seconds that are left.

        Raises:
            NotConnected: the conversation is over, or has not begun.
            OutOfOrder: the View is being torn down.
            RequestTimeout: it takes longer than `timeout` seconds.
            ConnectionClosed: the conversation ends first.
        """
        if not self.started:
            raise NotConnected(f"{what}: not connected (use `async with bridge:`)")
        self.check_open(what)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not self.lifecycle.ready:
            if self.lifecycle.state is State.CLOSED:
                raise ConnectionClosed(f"{what}: connection closed: {self.reason}")
            if self.lifecycle.state is State.TEARING_DOWN:
                raise OutOfOrder(f"{what}: the View is being torn down")
            future = loop.create_future()
            self._waiting.append(future)
            try:
                async with asyncio.timeout_at(deadline):
                    await future
            except TimeoutError:
                text = f"{what}: the View was not initialised within {timeout:g} s"
                raise RequestTimeout(text) from None
            finally:
                if future in self._waiting:
                    self._waiting.remove(future)
        return max(deadline - loop.time(), 0.001)


_WIRE_NAMES = {f.name: f.encode_name for f in msgspec.structs.fields(HostContext)}
_encode = msgspec.json.Encoder(order="deterministic").encode


class ViewContext:
    """The host's context as the wire has it, and the part of it that the View has."""

    def __init__(self, context: HostContext | Mapping[str, Any] | None) -> None:
        if isinstance(context, HostContext):
            self.values: dict[str, Any] = msgspec.json.decode(context.to_wire())
        else:
            self.values = msgspec.json.decode(msgspec.json.encode(dict(context or {})))
        self._sent: dict[str, bytes] | None = None

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set keys, by their Python or their wire name; None removes one."""
        for name, value in changes.items():
            key = _WIRE_NAMES.get(name, name)
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = msgspec.json.decode(msgspec.json.encode(value))

    def take_all(self) -> bytes:
        """All of it as JSON, for `ui/initialize`."""
        self._sent = {key: _encode(value) for key, value in self.values.items()}
        return msgspec.json.encode(self.values)

    def take_changes(self) -> list[bytes]:
        """The params of the notifications that bring the View up to date; none when it is."""
        if self._sent is None:
            return []
        now = {key: _encode(value) for key, value in self.values.items()}
        changed = {key: self.values[key] for key in now if self._sent.get(key) != now[key]}
        removed = {key: None for key in self._sent if key not in now}
        self._sent = now
        return [msgspec.json.encode(part) for part in (changed, removed) if part]
