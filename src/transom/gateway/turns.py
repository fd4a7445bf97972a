"""Whose turn it is: the requests of one HTTP client do not slow down those of the others.

1. What this process works between two requests, or parts of their bodies, is charged to the client
   of the first: whoever sends most is charged most.
2. A client that is charged more than its share waits before its next request is read, one request
   after the other, as long as there is a client that is not: clients that all send more than that
   do not wait for each other, and one that is alone never waits.
"""

from __future__ import annotations

import asyncio
from time import thread_time

from starlette.types import Message, Receive

from transom.fair_share import Active, FairShare
from transom.recent import Recent

_SHARE = 0.25
_MOST = 0.1  # seconds charged at once: the work may have been for something else
_MAX_CLIENTS = 1_000  # that are remembered


class ClientTurns:
    """The turns of the clients of one gateway."""

    def __init__(self) -> None:
        self._active = Active()
        self._shares: Recent[str, FairShare] = Recent(_MAX_CLIENTS)
        self._working_for: FairShare | None = None
        self._worked = thread_time()

    async def wait(self, client: str) -> FairShare:
        """Wait until a request of this client may be read; returns what it may take."""
        share = self._shares.get(client) or FairShare(_SHARE, client, self._active)
        self._shares[client] = share
        self._charge(share)
        share.note_message()
        if share.debt and share.has_others:
            async with share.queue:
                await asyncio.sleep(share.debt)
                self._charge(share)
        return share

    def charging(self, share: FairShare, receive: Receive) -> Receive:
        """Have what is worked after each part of a request charged to its client, as it is read."""

        async def receive_charged() -> Message:
            part = await receive()
            self._charge(share)
            return part

        return receive_charged

    def _charge(self, following: FairShare) -> None:
        worked = thread_time()
        if self._working_for is not None:
            self._working_for.charge(min(worked - self._worked, _MOST))
        self._working_for, self._worked = following, worked
