"""What handlers do that nobody waits for: async `on_error` and `on_tool_change`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from transom.events import abandon
from transom.session import Session

__all__ = ["Asides"]


class Asides:
    """Runs such handlers on one connection, and ends with it. Call it from any thread.

    Args:
        session: the connection; its event loop runs them.
        most: how many may run at a time, so that a host that gives cause for many cannot fill
            the memory.
    """

    def __init__(self, session: Session, *, most: int = 100) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._most = most
        self._running = 0

    def run(self, waiting: Awaitable[object]) -> bool:
        """Let it come about. False: it will not; too many run, or the connection is over."""
        if self._session.closed or self._loop.is_closed() or self._running >= self._most:
            abandon(waiting)
            return False
        self._running += 1
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._session.background.start(self._counted(waiting))
        else:  # a handler in a thread gave cause for it
            self._loop.call_soon_threadsafe(self._session.background.start, self._counted(waiting))
        return True

    async def _counted(self, waiting: Awaitable[object]) -> None:
        try:
            await waiting
        finally:
            self._running -= 1
