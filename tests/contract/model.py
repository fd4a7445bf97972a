"""What a model has of a View: through a `Host`, and as a client of the gateway.

A View is a page with `transom.js` in Chromium, or an `App` in Python. Between it and the model are
all the parts there are.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec
from mcp.server.mcpserver import MCPServer

from tests.browser.hosting import inside
from tests.gateway.memory import Raw
from transom import AllowAlways, Host, Limits, Policy, Tool, ToolResult
from transom.channel import Channel, memory_pair
from transom.connections.targets import way_to
from transom.errors import ProtocolError
from transom.gateway.client_host import ViewOptions
from transom.gateway.proxy import Proxy
from transom.host.asking.policy import ApprovalRequest
from transom.host.tools.tool_visibility import ViewCalls
from transom.host.views.renderers import Renderer
from transom.host.views.ui_resource import UIResource
from transom.server import Views
from transom.types import ViewProblem
from transom.web.local.headless import HeadlessRenderer

Through = Literal["Host", "gateway"]
Side = Literal["transom.js", "Python"]
URI = "ui://samples/page.html"
EMPTY = "<!doctype html><html><title>A View in Python</title><body></body></html>"
HELLO = {
    "protocolVersion": "2025-11-25",
    "clientInfo": {"name": "model", "version": "1"},
    "capabilities": {"elicitation": {}},
}


class Model:
    """A model with one View in front of it."""

    view = "samples-1"
    user: "User"
    asked: list[str]
    """About which tools somebody was asked, who allowed each for good."""

    async def listed(self) -> list[Tool]:
        """Every tool there is."""
        raise NotImplementedError

    async def call_any(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool by the name it is listed under.

        Raises:
            ProtocolError: it was answered with an error.
        """
        raise NotImplementedError

    async def changed(self, since: int) -> int:
        """Wait until the list has changed more often than that; how often it has."""
        raise NotImplementedError

    async def tools(self) -> dict[str, Tool]:
        """The View's tools, by their own names."""
        mine = f"{self.view}__"
        return {
            tool.name.removeprefix(mine): tool
            for tool in await self.listed()
            if tool.name.startswith(mine)
        }

    async def when(self, fits: Callable[[dict[str, Tool]], object]) -> dict[str, Tool]:
        """The View's tools, as soon as they fit."""
        async with asyncio.timeout(30):
            seen = 0
            while True:
                tools = await self.tools()
                if fits(tools):
                    return tools
                seen = await self.changed(seen)

    async def until(self, *names: str) -> dict[str, Tool]:
        """The View's tools, as soon as they are these."""
        return await self.when(lambda tools: [*tools] == [*names])

    async def call(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool of the View by its own name."""
        return await self.call_any(f"{self.view}__{name}", arguments)


class HostModel(Model):
    """A model of an agent that has a `Host`."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._changes = 0
        self._news = asyncio.Condition()
        self.pins: list[str] = []
        """Why Views asked to stay; they may."""
        self.problems: asyncio.Queue[ViewProblem] = asyncio.Queue()
        host.on_tools_changed = self._note
        host.on_request_pin = lambda _, reason: self.pins.append(reason)
        host.on_view_problem = lambda _, problem: self.problems.put_nowait(problem)

    async def _note(self, *_: object) -> None:
        async with self._news:
            self._changes += 1
            self._news.notify_all()

    async def listed(self) -> list[Tool]:
        return list(await self.host.list_tools())

    async def call_any(self, name: str, arguments: Any = None) -> ToolResult:
        return await self.host.call_tool(name, arguments)

    async def changed(self, since: int) -> int:
        async with self._news:
            await self._news.wait_for(lambda: self._changes > since)
            return self._changes


class GatewayModel(Model):
    """A model of an MCP client that knows nothing of Views."""

    def __init__(self, client: Raw) -> None:
        self.client = client

    async def ask(self, method: str, params: Any = None) -> Any:
        message = await (await self.client.begin(method, params)).answer
        if "error" in message:
            raise ProtocolError(message["error"]["code"], message["error"]["message"])
        return message["result"]

    async def listed(self) -> list[Tool]:
        return msgspec.convert((await self.ask("tools/list"))["tools"], list[Tool])

    async def call_any(self, name: str, arguments: Any = None) -> ToolResult:
        result = await self.ask("tools/call", {"name": name, "arguments": arguments or {}})
        return msgspec.convert(result, ToolResult)

    async def changed(self, since: int) -> int:
        def count() -> int:
            return len(self.client.noted("notifications/tools/list_changed"))

        await self.client.until(lambda: count() > since)
        return count()


class Screen:
    """Shows the Views of the gateway's client."""

    pictures = drives = False

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    async def seat(self, client: str) -> Renderer:
        return self._renderer

    def where(self) -> None:
        return None


@asynccontextmanager
async def model_of(
    through: Through,
    server: object,
    renderer: Renderer,
    *,
    asks: bool = False,
    view_calls: ViewCalls = "linked",
) -> AsyncIterator[HostModel | GatewayModel]:
    """A model that can call the tools of a server, and those of its Views.

    With `asks` somebody is asked before a tool of a View runs, and allows it for good.
    """
    asked: list[str] = []

    def allow(request: ApprovalRequest) -> AllowAlways:
        asked.append(request.tool.name)
        return AllowAlways()

    def accept(question: dict[str, Any]) -> dict[str, Any]:
        asked.append(question["message"].split()[1])
        return {"action": "accept", "content": {"always": True}}

    if through == "Host":
        policy = Policy(approve=allow) if asks else Policy.trusting()
        policy.view_calls = view_calls
        async with Host(
            renderer=renderer,
            policy=policy,
            limits=Limits(relist_interval=0),
            audit=None,
            open_timeout=40,
        ) as host:
            await host.add_server("samples", server)
            model = HostModel(host)
            model.asked = asked
            yield model
        return
    ours, theirs = memory_pair()
    approval = "elicit" if asks else "client"
    views = ViewOptions(Screen(renderer), approval=approval, view_calls=view_calls)
    proxy = Proxy(ours, [("samples", way_to(server))], views)
    running = asyncio.create_task(proxy.run())
    client = Raw(theirs, {"elicitation/create": accept})
    try:
        await client.ask("initialize", HELLO)
        await client.tell("notifications/initialized")
        model = GatewayModel(client)
        model.asked = asked
        yield model
    finally:
        await client.aclose()
        await running


class InPython:
    """Starts a View that is written in Python as a page is: with nothing but where its host is."""

    def __init__(self, start: Callable[[Channel], Awaitable[None]]) -> None:
        self._start = start
        self._running: asyncio.Future[None] | None = None

    async def open(self, page: UIResource) -> Channel:
        ours, theirs = memory_pair()
        self._running = asyncio.ensure_future(self._start(theirs))
        return ours


User = Callable[..., Awaitable[Any]]
"""`await user("select")` calls that function of a page, or that method of a `World` in Python."""


def user_of_page(browser: HeadlessRenderer, key: str) -> User:
    """Somebody at the page of a View in Chromium."""

    async def user(name: str, *arguments: Any) -> Any:
        assert browser.page is not None
        call = f"() => {name}({', '.join(map(json.dumps, arguments))})"
        shown = inside(browser.page, f'[id="view-{key}"]')
        return await shown.locator("html").evaluate(call)

    return user


def user_of_world(world: object) -> User:
    """Somebody who does the same in Python."""

    async def user(name: str, *arguments: Any) -> Any:
        done = getattr(world, name)(*arguments)
        return await done if asyncio.iscoroutine(done) else done

    return user


def server_of(html: str) -> MCPServer:
    """A server whose `open_sample` opens this page."""
    views = Views()

    @views.tool(opens=views.add(URI, html=html))
    def open_sample() -> str:
        """Open the sample."""
        return "open"

    return MCPServer("samples", extensions=[views])
