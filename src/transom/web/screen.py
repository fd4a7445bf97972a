"""Where a gateway shows Views: a page that is there from the first View on, for all its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from transom.web.csp import CspMode

if TYPE_CHECKING:
    from transom.host.renderers import Renderer

__all__ = ["Screen"]

_PAGE_WITHIN = 10.0  # seconds that a call waits for a page to be opened


class Screen:
    """Opens the Stage when the first View is to be shown, and keeps it.

    Args:
        headless: show Views in a browser without a window.
        open_browser: open the page in the user's browser; False: the user opens it.
        csp: how much a View's page may do with itself.
        tell: told where the page is when the user has to open it.
    """

    def __init__(
        self,
        *,
        headless: bool = False,
        open_browser: bool = True,
        csp: CspMode = "compat",
        tell: Callable[[str], object] = print,
    ) -> None:
        self.pictures = headless
        self._open_browser = open_browser
        self._csp: CspMode = csp
        self._tell = tell
        self._lock = asyncio.Lock()
        self._renderer: Any = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        renderer, self._renderer = self._renderer, None
        if renderer is not None:
            await renderer.__aexit__(kind, error, trace)

    async def seat(self, label: str) -> Renderer:
        """A renderer for the Views of one client."""
        async with self._lock:
            if self._renderer is None:
                renderer = await self._make()
                await renderer.__aenter__()
                self._renderer = renderer
        return self._renderer.seat(label)

    def where(self) -> str | None:
        """The address of the page; with the word that lets one in only while nobody is in."""
        if self._renderer is None or self.pictures:
            return None
        stage = self._renderer.stage
        return stage.page_origin if stage.has_page else self._renderer.url

    async def _make(self) -> Any:
        # The web server and the SDK take a second to load, which the first answers should not
        # wait for.
        if self.pictures:
            module: Any = await asyncio.to_thread(import_module, "transom.web.headless")
            return module.HeadlessRenderer(csp=self._csp)
        module = await asyncio.to_thread(import_module, "transom.web.renderers")
        return module.BrowserRenderer(
            csp=self._csp,
            open_page=module.open_in_browser if self._open_browser else None,
            on_unopened=self._unopened,
            page_timeout=_PAGE_WITHIN,
            share=True,
        )

    def _unopened(self, url: str) -> None:
        self._tell(f"Open this page to see Views: {url}")
