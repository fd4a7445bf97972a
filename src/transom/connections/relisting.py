"""Listing again, on demand: one listing at a time, shared by all who wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from transom.background import shared_task

RELIST_AFTER = 1.0  # seconds between two listings that nobody announced a change for


class Relisting:
    """How old a list is, and how to list again.

    Args:
        list_again: lists, and stores what it finds. A change that is announced meanwhile makes
            another listing necessary.
    """

    def __init__(self, list_again: Callable[[], Awaitable[None]]) -> None:
        self._list_again = list_again
        self._version = 0
        self._known_version = -1
        self._listed_at = float("-inf")
        self._listing: asyncio.Task[None] | None = None

    @property
    def current(self) -> bool:
        """Whether it was listed since the last change that is known of."""
        return self._known_version >= self._version

    @property
    def old(self) -> bool:
        """Whether it may be listed again without a reason."""
        return asyncio.get_running_loop().time() - self._listed_at >= RELIST_AFTER

    def invalidate(self) -> None:
        """The list may have changed: list it again when it is next needed."""
        self._version += 1

    def listed(self, version: int | None = None) -> None:
        """It has been listed, as of this version; by default just now."""
        self._known_version = self._version if version is None else version
        self._listed_at = asyncio.get_running_loop().time()

    async def wait_current(self) -> None:
        """List it if it may have changed. Raises what listing it raises."""
        wanted = self._version
        while self._known_version < wanted:
            if self._listing is None:
                self._listing = shared_task(self._list())
            await asyncio.shield(self._listing)

    async def search_again(self) -> bool:
        """List it again for something that was not found, at most once a second.

        Returns:
            Whether it was listed since.
        """
        if not self.old:
            return False
        self.invalidate()
        await self.wait_current()
        return True

    async def _list(self) -> None:
        version = self._version
        try:
            await self._list_again()
        finally:
            self._listing = None
        self.listed(version)
