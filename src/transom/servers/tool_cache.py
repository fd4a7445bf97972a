"""A server's tools: listed once, and kept until the server says that they changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec
from msgspec import Raw

from transom.types import Tool

_RELIST_AFTER = 1.0  # seconds between two listings when the server may not announce its changes


class ToolCache:
    """The tools of one server.

    Args:
        list_tools: asks the server for all of them.
        announced: whether the server announces every change. Otherwise tools that are older than
            a second are listed again.
    """

    def __init__(
        self,
        list_tools: Callable[[], Awaitable[Iterable[Raw]]],
        *,
        announced: Callable[[], bool] = lambda: True,
    ) -> None:
        self._list_tools = list_tools
        self._announced = announced
        self._tools: dict[str, Tool] = {}
        self._version = 0
        self._known_version = -1
        self._listed_at = float("-inf")
        self._listing: asyncio.Task[None] | None = None

    @property
    def current(self) -> bool:
        """Whether these are the server's tools now, as far as one can know."""
        fresh = self._announced() or self._age() < _RELIST_AFTER
        return fresh and self._known_version >= self._version

    def known(self, name: str) -> Tool | None:
        """A tool, if it is cached and not out of date."""
        return self._tools.get(name) if self._known_version >= self._version else None

    def invalidate(self) -> None:
        """The tools have changed, or may have: list them when they are next needed."""
        self._version += 1

    def fill(self, entries: Iterable[Raw]) -> None:
        """Take all tools, as the server has just listed them."""
        self._store(entries, self._version)

    async def tools(self) -> Mapping[str, Tool]:
        """All of them by name. Raises what listing them raises."""
        if not self._announced() and self._age() >= _RELIST_AFTER:
            self._version += 1
        wanted = self._version
        while self._known_version < wanted:
            if self._listing is None:
                self._listing = asyncio.ensure_future(self._list())
                self._listing.add_done_callback(_retrieve)
            # Shared by all who wait, so one who gives up must not end it for the others.
            await asyncio.shield(self._listing)
        return self._tools

    async def relist(self) -> None:
        """List them now."""
        self.invalidate()
        await self.tools()

    async def tool(self, name: str) -> Tool | None:
        """One of them. Lists again, at most once a second, before it returns None."""
        found = (await self.tools()).get(name)
        if found is None and self._age() >= _RELIST_AFTER:
            self._version += 1
            found = (await self.tools()).get(name)
        return found

    def _age(self) -> float:
        return asyncio.get_running_loop().time() - self._listed_at

    async def _list(self) -> None:
        version = self._version
        try:
            entries = await self._list_tools()
        finally:
            self._listing = None
        self._store(entries, version)

    def _store(self, entries: Iterable[Raw], version: int) -> None:
        found: dict[str, Tool] = {}
        for entry in entries:
            try:
                tool = msgspec.json.decode(entry, type=Tool)
            except msgspec.DecodeError:
                continue  # nothing that could be called
            found.setdefault(tool.name, tool)
        self._tools, self._known_version = found, version
        self._listed_at = asyncio.get_running_loop().time()


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # those who wait have it; there may be none left
