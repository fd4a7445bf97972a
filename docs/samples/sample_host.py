"""The host of the samples: a `Bridge` in memory. A real View is connected by its page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from transom import App, Bridge
from transom.channel import memory_pair


@asynccontextmanager
async def hosting(app: App, **options: Any) -> AsyncIterator[Bridge]:
    """Connect an App to a host; `options` are those of `Bridge`."""
    async with waiting(**options) as (bridge, view):
        await app.connect(view)
        await bridge.initialized()
        yield bridge


@asynccontextmanager
async def waiting(**options: Any) -> AsyncIterator[tuple[Bridge, Any]]:
    """A host that waits for an App, and the channel for the App to connect to."""
    view, host = memory_pair()
    async with Bridge(host, host_info={"name": "sample-host", "version": "1"}, **options) as bridge:
        yield bridge, view


async def names(bridge: Bridge) -> list[str]:
    """The names of the View's tools, as its host sees them."""
    return [tool.name for tool in await bridge.list_tools()]
