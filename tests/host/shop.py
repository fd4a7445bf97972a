"""A server with a View, and the host around it. Run it as a script for a server of its own."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer

from tests.host.bare_view import BareView
from transom import App, Host, InProcessRenderer, Policy
from transom.channel import Channel, memory_pair
from transom.host.views.ui_resource import UIResource
from transom.server.views import Views


class Heard(list[Any]):
    """A list that can be waited for."""

    def __init__(self) -> None:
        self._arrived = asyncio.Event()

    def append(self, entry: Any) -> None:
        super().append(entry)
        self._arrived.set()

    async def has(self, entry: Any, times: int = 1) -> None:
        """Wait until the entry is there so many times."""
        await self.where(lambda: self.count(entry) >= times)

    async def where(self, condition: Callable[[], object]) -> None:
        """Wait until it holds; looked at whenever something arrives."""
        while not condition():
            self._arrived.clear()
            await self._arrived.wait()


HTML = "<!doctype html><html><head><title>t</title></head><body>{}</body></html>"
URI = "ui://orders/list.html"


def shop(name: str = "orders", uri: str | None = None) -> MCPServer:
    """`show_NAME` opens a View; `refresh` is for Views; `search` for the model; `add` for both."""
    views = Views()
    page = views.add(uri or f"ui://{name}/list.html", html=HTML.format(name))

    @views.tool(opens=page, name=f"show_{name}", annotations={"readOnlyHint": True})
    def show(status: str = "open") -> str:
        """Show what there is."""
        if status == "broken":
            raise ValueError("no such status")
        return f"{name}: {status}"

    @views.helper
    def refresh(query: str) -> str:
        """Search again."""
        return f"{name} refreshed {query}"

    server = MCPServer(name, extensions=[views])

    @server.tool(meta={"ui": {"visibility": ["model"]}})
    def search(query: str) -> str:
        """Search everything."""
        return f"{name} found {query}"

    @server.tool(meta={"ui": {"visibility": ["model", "app"]}})
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return server


def editor(log: list[Any] | None = None, name: str = "editor") -> Callable[[], App]:
    """Makes Apps with a tool that reads and one that writes; `log` gets what they are told."""
    heard = [] if log is None else log

    def make() -> App:
        app = App(name, "1.0.0")
        text = ["nothing"]
        app.on_tool_input = lambda arguments: heard.append(("input", arguments))
        app.on_tool_input_partial = lambda arguments: heard.append(("partial", arguments))
        app.on_tool_result = lambda result: heard.append(("result", result.text))
        app.on_tool_cancelled = lambda reason: heard.append(("cancelled", reason))
        app.on_teardown = lambda: heard.append(("teardown",))

        @app.tool(annotations={"readOnlyHint": True})
        def read() -> str:
            """Read the text."""
            return text[0]

        @app.tool
        def write(words: str) -> str:
            """Write the text."""
            text[0] = words
            return f"wrote {words}"

        return app

    return make


class BareRenderer:
    """Shows Views that do just what a test tells them to.

    `answers` are a `BareView`'s; `setup(view)` is called with each View and says how it begins:
    by itself it initialises.
    """

    def __init__(
        self,
        answers: dict[str, Any] | None = None,
        setup: Callable[[BareView], Any] | None = None,
    ) -> None:
        self.answers = answers
        self.setup = setup or (lambda view: view.be_ready())
        self.views: dict[str, BareView] = {}
        self.pages: list[UIResource] = []
        self.capacity = 1024

    async def open(self, page: UIResource) -> Channel:
        self.pages.append(page)
        ours, theirs = memory_pair(capacity=self.capacity)
        view = self.views[page.view_id] = BareView(theirs, self.answers)
        view.session.start()
        view.session.background.start(self.setup(view))
        return ours


@asynccontextmanager
async def hosting(
    *names: str, renderer: Any = None, policy: Policy | None = None, **options: Any
) -> AsyncIterator[Host]:
    """A host with a shop of each name (orders, unless given), which trusts its Views."""
    shops = names or ("orders",)
    if renderer is None:
        renderer = InProcessRenderer({f"ui://{name}/list.html": editor() for name in shops})
    policy = Policy.trusting() if policy is None else policy
    async with Host(renderer=renderer, policy=policy, **options) as host:
        for name in shops:
            await host.add_server(name, shop(name))
        yield host


async def tool_names(host: Host) -> list[str]:
    return [tool.name for tool in await host.list_tools()]


if __name__ == "__main__":
    shop(*sys.argv[1:]).run("stdio")
