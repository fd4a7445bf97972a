"""Whose turn it is: the requests of one HTTP client do not slow down those of the others.

1. What this process works between two requests, or parts of their bodies, is charged to the client
   of the first: whoever sends most is charged most.
2. A client that is charged more than its share waits before its next request is read, one request
   after the other, as long as there is a client that is not: clients that all send more than that
   do not wait for each other, and one that is alone never waits.
"""

from __future__ import annotations

import asyncio
from time import perf_counter, thread_time

from starlette.types import Message, Receive

from transom.fair_share import FairShare
from transom.recent import Recent

_SHARE = 0.25
_THERE = 1.0  # seconds for which another client counts as there after its last request
_MOST = 0.1  # seconds charged at once: the work may have been for something else
_MAX_CLIENTS = 1_000  # that are remembered


class _Account:
    """What one client has used, and its place in the queue."""

    def __init__(self) -> None:
        self.share = FairShare(_SHARE)
        self.queue = asyncio.Lock()


class ClientTurns:
    """The turns of the clients of one gateway."""

    def __init__(self) -> None:
        self._accounts: Recent[str, _Account] = Recent(_MAX_CLIENTS)
        self._within = [("", 0.0), ("", 0.0)]  # the last two that were within their share, and when
        self._working_for: _Account | None = None
        self._worked = thread_time()

    async def wait(self, client: str) -> None:
        """Wait until a request of this client may be read."""
        account = self._accounts[client] = self._accounts.get(client) or _Account()
        self._charge(account)
        now = perf_counter()
        if not account.share.debt:
            before = self._within[0] if self._within[1][0] == client else self._within[1]
            self._within = [before, (client, now)]
        elif any(name != client and now - when < _THERE for name, when in self._within):
            async with account.queue:
                await asyncio.sleep(account.share.debt)
                self._charge(account)

    def charging(self, client: str, receive: Receive) -> Receive:
        """Have what is worked after each part of a request charged to its client, as it is read."""
        account = self._accounts.get(client) or _Account()

        async def receive_charged() -> Message:
            part = await receive()
            self._charge(account)
            return part

        return receive_charged

    def _charge(self, following: _Account) -> None:
        worked = thread_time()
        if self._working_for is not None:
            self._working_for.share.charge(min(worked - self._worked, _MOST))
        self._working_for, self._worked = following, worked
