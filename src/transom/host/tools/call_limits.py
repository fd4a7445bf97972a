"""How long the calls of one server may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager


class CallLimits:
    """The time limits of a server's running calls. They do not run while the user is asked.

    Servers of the handshake era do not say for which call they ask, so that all of them wait.
    """

    def __init__(self) -> None:
        self._running: dict[asyncio.Timeout, float] = {}
        self._asking = 0

    @asynccontextmanager
    async def limit(self, seconds: float | None) -> AsyncGenerator[asyncio.Timeout]:
        """End what runs in this block with a TimeoutError after that time; None: never."""
        async with asyncio.timeout(None if self._asking else seconds) as limit:
            if seconds is not None:
                self._running[limit] = seconds
            try:
                yield limit
            finally:
                self._running.pop(limit, None)

    def restart(self, limit: asyncio.Timeout) -> None:
        """Start a limit again with its full time: after progress, or an answer of the user."""
        seconds = self._running.get(limit)
        if seconds is not None and not limit.expired():
            now = asyncio.get_running_loop().time()
            limit.reschedule(None if self._asking else now + seconds)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop all limits in this block; after it, each starts again with its full time."""
        self._asking += 1
        self._restart_all()
        try:
            yield
        finally:
            self._asking -= 1
            self._restart_all()

    def _restart_all(self) -> None:
        for limit in list(self._running):
            self.restart(limit)
