"""Where the Views of all clients of a gateway are shown: one renderer, in which each has a seat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transom.host.views.renderers import Renderer

    MakeRenderer = Callable[[], Awaitable[Renderer]]
    """Makes the renderer when the first View is opened."""


class SharedDisplay:
    """A `Display` that makes its renderer when the first View is opened.

    Args:
        make: makes the renderer.
        pictures: whether it can take pictures of Views.
        drives: whether the pages of its Views can be read and used.
        many_clients: whether clients may be other people, who do not get the token of the page: it
            also shows the Views of others.
    """

    def __init__(
        self,
        make: MakeRenderer,
        *,
        pictures: bool = False,
        drives: bool = False,
        many_clients: bool = False,
    ) -> None:
        self.pictures = pictures
        self.drives = drives
        self._make = make
        self._many_clients = many_clients
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._renderer: Any = None

    async def start(self) -> None:
        """Make the renderer now."""
        async with self._lock:
            if self._renderer is None:
                renderer: Any = await self._make()
                if hasattr(renderer, "__aenter__"):
                    await self._stack.enter_async_context(renderer)
                self._renderer = renderer

    async def aclose(self) -> None:
        """Close the renderer, if there is one."""
        self._renderer = None
        await self._stack.aclose()

    async def seat(self, client_name: str) -> Renderer:
        """A renderer for the Views of one client."""
        await self.start()
        seat = getattr(self._renderer, "seat", None)
        return self._renderer if seat is None else seat(client_name)

    def where(self) -> str | None:
        """The address of the page; with its token only while no page is open.

        None if the renderer has no page that a user sees.
        """
        stage = getattr(self._renderer, "_stage", None)
        if stage is None or self.pictures:
            return None
        if stage.has_page:
            return stage.page_origin
        if self._many_clients:
            return f"{stage.page_origin} once the address is opened that the gateway printed"
        return self._renderer.url
