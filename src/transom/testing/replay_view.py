"""The View of a replay: the page that a server has now, with nobody to answer it but the record."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from transom.channel import Channel
from transom.connections.targets import Target, connect
from transom.host.views.renderers import Renderer
from transom.host.views.ui_resource import load_ui_resource
from transom.testing.replay import Replay

_MAX_PAGE = 10 * 1024 * 1024


@asynccontextmanager
async def open_page(replay: Replay, target: Target, renderer: Renderer) -> AsyncGenerator[Channel]:
    """The page that the replay's View showed, as the server has it now, shown by a renderer."""
    server = await connect(target)
    try:
        resource = await load_ui_resource(
            server,
            view_id=replay.name,
            server_name="replay",
            uri=replay.page_uri(),
            max_bytes=_MAX_PAGE,
        )
    finally:
        await server.aclose()
    channel = await renderer.open(resource)
    try:
        yield channel
    finally:
        await channel.aclose()
