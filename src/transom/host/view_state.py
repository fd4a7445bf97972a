"""When a View may be spoken to, and what waits until then.

1. Until the View is initialised, notices wait in order and requests wait for it.
2. The order of the tool's data is judged when it is handed over, not when it goes out: whoever
   gets it wrong is told at once.
3. A View that begins anew, having loaded itself again, gets the tool's data again.

What a View knows of its surroundings, and what it has still to be told.

1. A change is a difference in value: the order of keys does not count, setting a key to what it is
   changes nothing.
2. Changed keys go out in one `host-context-changed`. A key that was taken away goes out as null in
   one of its own: the protocol has no word for "gone", Transom's Views understand null as that,
   and a View that refuses null loses nothing else with it.
3. Until the View has asked `ui/initialize` there is nothing to tell: the answer will have it all.
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

__all__ = ["Context", "Readiness"]


_PARTIAL = "ui/notifications/tool-input-partial"


class Readiness:
    """The lifecycle of one View, and those who wait for it.

    Args:
        max_queued: how many notices may wait.
    """

    def __init__(self, max_queued: int) -> None:
        self.lifecycle = Lifecycle()
        self.reason = "the bridge was never started"
        """Why it is closed, if it is."""
        self.started = False
        self._max_queued = max_queued
        self._queued: deque[tuple[str, bytes]] = deque()
        self._delivered: list[tuple[str, bytes]] = []  # the input and the outcome, if they were
        self._waiting: list[asyncio.Future[None]] = []

    def now_ready(self) -> list[tuple[str, bytes]]:
        """Let everyone who waits go on; what the View is to be told, now or once more."""
        told = [*self._delivered, *self._queued]
        self._delivered = [notice for notice in told if notice[0] != _PARTIAL]
        self._queued.clear()
        self._wake()
        return told

    def close(self, reason: str) -> None:
        """Note that the conversation is over, and why."""
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

    def alive(self, what: str) -> None:
        """See that it is not over.

        Raises:
            NotConnected: it is.
        """
        if self.lifecycle.state is State.CLOSED:
            raise NotConnected(f"{what}: not connected ({self.reason})")

    def hand_over(self, method: str, params: bytes) -> bool:
        """Whether a notice may go out now; if not yet, it is kept.

        Raises:
            NotConnected: the conversation is over.
            OutOfOrder: it is not its turn, or too much waits already.
        """
        self.alive(method)
        lifecycle = self.lifecycle
        if lifecycle.ready or lifecycle.state is State.TEARING_DOWN:
            lifecycle.passed("host", method)
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
        """Wait until the View is initialised; the seconds that are left then.

        Raises:
            NotConnected: the conversation is over, or has not begun.
            OutOfOrder: the View is being torn down.
            RequestTimeout: it takes longer than `timeout` seconds.
            ConnectionClosed: it ends first.
        """
        if not self.started:
            raise NotConnected(f"{what}: not connected (use `async with bridge:`)")
        self.alive(what)
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


class Context:
    """The host's context as the wire has it, and the part of it that the View was told."""

    def __init__(self, context: HostContext | Mapping[str, Any] | None) -> None:
        if isinstance(context, HostContext):
            self.values: dict[str, Any] = msgspec.json.decode(context.to_wire())
        else:
            self.values = msgspec.json.decode(msgspec.json.encode(dict(context or {})))
        self._told: dict[str, bytes] | None = None

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set keys, by their Python or their wire name; None takes one away."""
        for name, value in changes.items():
            key = _WIRE_NAMES.get(name, name)
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = msgspec.json.decode(msgspec.json.encode(value))

    def tell_all(self) -> bytes:
        """All of it, for `ui/initialize`."""
        self._told = {key: _encode(value) for key, value in self.values.items()}
        return msgspec.json.encode(self.values)

    def tell_changes(self) -> list[bytes]:
        """The params of the notices that bring the View up to date; none when it is."""
        if self._told is None:
            return []
        now = {key: _encode(value) for key, value in self.values.items()}
        changed = {key: self.values[key] for key in now if self._told.get(key) != now[key]}
        gone = {key: None for key in self._told if key not in now}
        self._told = now
        return [msgspec.json.encode(part) for part in (changed, gone) if part]
