import asyncio
from typing import Any

import pytest
from msgspec import Raw

from transom.connections import relisting as module
from transom.connections.upstream import ToolCache
from transom.errors import ProtocolError


class Listing:
    """A server's list of tools, counted."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.times = 0
        self.go_on: asyncio.Event | None = None
        self.error: Exception | None = None

    async def __call__(self) -> list[Raw]:
        self.times += 1
        names = list(self.names)
        if self.go_on is not None:
            await self.go_on.wait()
        if self.error is not None:
            raise self.error
        return [Raw(b'{"name":"%b","inputSchema":{}}' % name.encode()) for name in names]


async def test_tools_are_listed_once_and_again_after_a_change():
    listing = Listing("a")
    cache = ToolCache(listing)
    assert not cache.current
    assert cache.known("a") is None
    assert list(await cache.tools()) == ["a"]
    assert await cache.tool("a") is cache.known("a")
    assert (cache.current, listing.times) == (True, 1)
    listing.names = ["b"]
    cache.invalidate()
    assert not cache.current
    assert cache.known("a") is None
    assert list(await cache.tools()) == ["b"]
    assert listing.times == 2


async def test_an_unknown_tool_is_listed_for_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch):
    listing = Listing("a")
    cache = ToolCache(listing)
    for number in range(50):
        assert await cache.tool(f"x{number}") is None
    assert listing.times == 1
    monkeypatch.setattr(module, "RELIST_AFTER", 0.0)
    listing.names = ["new"]
    assert (await cache.tool("new")) is not None


async def test_without_announcements_tools_are_listed_again_when_they_are_old(
    monkeypatch: pytest.MonkeyPatch,
):
    listing = Listing("a")
    cache = ToolCache(listing, announced=lambda: False)
    await cache.tools()
    await cache.tools()
    assert (cache.current, listing.times) == (True, 1)
    monkeypatch.setattr(module, "RELIST_AFTER", 0.0)
    assert not cache.current
    await cache.tools()
    assert listing.times == 2


async def test_those_who_wait_share_one_listing_and_may_give_up():
    listing = Listing("a")
    listing.go_on = asyncio.Event()
    cache = ToolCache(listing)
    waiting = [asyncio.create_task(cache.tools()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    listing.go_on.set()
    assert [list(await each) for each in waiting[1:]] == [["a"], ["a"]]
    assert listing.times == 1


async def test_a_change_during_a_listing_leaves_it_out_of_date():
    listing = Listing("a")
    listing.go_on = asyncio.Event()
    cache = ToolCache(listing)
    waiting = asyncio.create_task(cache.tools())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cache.invalidate()
    listing.go_on.set()
    await waiting
    assert not cache.current


async def test_a_listing_that_fails_is_tried_again_by_the_next():
    listing = Listing("a")
    listing.error = ProtocolError(-1, "down")
    cache = ToolCache(listing)
    with pytest.raises(ProtocolError, match="down"):
        await cache.tools()
    listing.error = None
    assert list(await cache.tools()) == ["a"]


async def test_what_was_listed_to_somebody_else_is_taken_over():
    listing = Listing()
    cache = ToolCache(listing)
    entries: list[Any] = [b'{"name":"a"}', b'{"name":"a","title":"second"}', b'{"name":5}', b"7"]
    cache.fill([Raw(entry) for entry in entries])
    tools = await cache.tools()
    assert list(tools) == ["a"]
    assert tools["a"].title is None
    assert listing.times == 0
