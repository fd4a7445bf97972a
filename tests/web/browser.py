"""A browser that is none: its page runs the Views of a Stage as Apps in Python."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from mcp.server.mcpserver import MCPServer

from tests.web.page import PageEnd, StagePage
from transom import App, Host
from transom.host.views.view import View
from transom.server import Views
from transom.web.stage import Stage

URI = "ui://music/page.html"


def music() -> MCPServer:
    """A server whose `play` opens a View."""
    views = Views()
    page = views.add(URI, html="<!doctype html><html><body></body></html>")

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def play(song: str = "") -> str:
        """Play a song."""
        return f"playing {song}"

    @views.helper
    def song() -> str:
        """Say what is playing."""
        return "nothing"

    return MCPServer("music", extensions=[views])


async def play(host: Host, song: str = "") -> View:
    """Open a View of the server `music` and return it when it is live."""
    note = ((await host.call_tool("play", {"song": song})).meta or {})["transom/view"]
    assert note["state"] == "live", note
    return host.views[note["id"]]


def player(key: str) -> App:
    """The View: it knows what the Stage calls it."""
    app = App("player", "1.0")
    app.register_tool("key", lambda: key, annotations={"readOnlyHint": True})
    app.register_tool("stop", lambda: f"stopped {key}", annotations={"destructiveHint": True})
    return app


class PythonBrowser:
    """Give its `open_page` to a renderer; `page` is the page that was opened last."""

    def __init__(self, stage: Callable[[], Stage], theme: str = "light") -> None:
        self._stage = stage
        self._theme = theme
        self._tasks: set[asyncio.Task[Any]] = set()
        self.pages: list[StagePage] = []
        self.apps: dict[str, App] = {}

    @property
    def page(self) -> StagePage:
        return self.pages[-1]

    async def open_page(self, _: str = "") -> None:
        page = StagePage(self._stage())
        page.on_mount = self._mounted
        self.pages.append(page)
        await page.__aenter__()
        await page.tell(do="surroundings", value={"theme": self._theme})

    def _mounted(self, key: str, end: PageEnd) -> None:
        app = self.apps[key] = player(key)
        task = asyncio.create_task(app.connect(end))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its page may be gone before it has begun

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for page in self.pages:
            await page.__aexit__(kind, error, trace)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
