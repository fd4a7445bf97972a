"""A gateway in memory: a scripted server behind it, a raw client before it, Views in Python."""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp import Client
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from transom import App, InProcessRenderer
from transom.channel import Channel, memory_pair
from transom.connections.connection import Connect
from transom.errors import ChannelClosed
from transom.gateway.client_host import ViewOptions, ViewRecords
from transom.gateway.proxy import Proxy
from transom.host.asking.policy import ApprovalRequest, Decision, Deny
from transom.host.views.renderers import Renderer
from transom.host.views.ui_resource import UIResource

URI = "ui://shop/list.html"
PNG = b"\x89PNG and so on"
MIME = "text/html;profile=mcp-app"
_META = "io.modelcontextprotocol/"


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **members}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


OPENS = tool("show", description="Opens a View.", _meta={"ui": {"resourceUri": URI}})
TOOLS = [
    OPENS,
    tool("plain"),
    tool("only-app", _meta={"ui": {"visibility": ["app"]}}),
    tool("only-model", _meta={"ui": {"visibility": ["model"]}}),
]

Answers = dict[str, Any]
"""By method: a result, `{"error": ...}`, None for silence, or a function of the params."""


class Odd:
    """A result that is none."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Raw:
    """One end of a channel that speaks bare JSON, and keeps what it hears."""

    def __init__(self, channel: Channel, answers: Answers) -> None:
        self.channel = channel
        self.answers = answers
        self.lines: list[bytes] = []
        self.asked: list[dict[str, Any]] = []
        self.notes: list[dict[str, Any]] = []
        self.stray: list[dict[str, Any]] = []
        self._waiting: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Event()
        self._answering: set[asyncio.Task[None]] = set()
        self._ids = iter(range(1, 1_000_000))
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            try:
                line = await self.channel.receive()
            except ChannelClosed:
                break
            self.lines.append(line)
            self._hear(json.loads(line))
            self._news.set()
        self._news.set()

    def _hear(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            waiting = self._waiting.pop(message.get("id"), None)
            if waiting is None or waiting.done():
                self.stray.append(message)
            else:
                waiting.set_result(message)
        elif "id" in message:
            self.asked.append(message)
            task = asyncio.create_task(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        else:
            self.notes.append(message)

    async def _answer(self, message: dict[str, Any]) -> None:
        missing = {"error": {"code": -32601, "message": "Method not found"}}
        answer = self.answers.get(message["method"], missing)
        if callable(answer):
            answer = answer(message.get("params") or {})
            if inspect.isawaitable(answer):
                answer = await answer
        if isinstance(answer, Odd):
            answer = {"result": answer.value}
        elif answer is not None and set(answer) != {"error"}:
            answer = {"result": answer}
        if answer is not None:
            with suppress(ChannelClosed):  # as it may be by now
                await self.say({"id": message["id"], **answer})

    async def say(self, message: Mapping[str, Any]) -> None:
        await self.channel.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def tell(self, method: str, params: Any = None) -> None:
        await self.say({"method": method, **({} if params is None else {"params": params})})

    async def begin(self, method: str, params: Any = None) -> "Asked":
        id = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[id] = answer
        await self.say(
            {"id": id, "method": method, **({} if params is None else {"params": params})}
        )
        return Asked(id, answer)

    async def ask(self, method: str, params: Any = None) -> Any:
        """The result; for an error, the error object."""
        message = await (await self.begin(method, params)).answer
        return message["result"] if "result" in message else message["error"]

    def noted(self, method: str) -> list[Any]:
        """The params of such notifications so far."""
        return [note.get("params") for note in self.notes if note["method"] == method]

    def requests(self, method: str) -> list[Any]:
        """The params of such requests so far."""
        return [each.get("params") for each in self.asked if each["method"] == method]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until it is so; looked at whenever something was heard."""
        while not condition():
            self._news.clear()
            await self._news.wait()

    async def aclose(self) -> None:
        await self.channel.aclose()
        for task in [*self._answering, self.task]:
            task.cancel()
        await asyncio.wait([*self._answering, self.task])


class Asked:
    """A request on its way."""

    def __init__(self, id: int, answer: Awaitable[dict[str, Any]]) -> None:
        self.id = id
        self.answer = answer


class Server:
    """A server that answers what a test tells it to; each start of it is a `Raw`."""

    def __init__(self, answers: Answers | None = None, **capabilities: Any) -> None:
        page = {"uri": URI, "mimeType": MIME, "text": "<!doctype html><title>t</title>"}
        hello = {
            "protocolVersion": "2025-11-25",
            "serverInfo": {"name": "scripted", "version": "1"},
            "capabilities": {"tools": {}, "resources": {}, **capabilities},
        }
        modern = {key: hello[key] for key in ("serverInfo", "capabilities")}
        self.tools: list[Any] = list(TOOLS)
        self.answers: Answers = {
            "initialize": hello,
            "server/discover": {**modern, "supportedVersions": ["2026-07-28"]},
            "ping": {},
            "tools/list": lambda _: {"tools": self.tools},
            "tools/call": lambda params: text(f"called {params['name']}"),
            "resources/list": {"resources": []},
            "resources/read": {"contents": [page]},
            **(answers or {}),
        }
        self.starts: list[Raw] = []
        self.started = asyncio.Event()
        self.broken = False

    @property
    def now(self) -> Raw:
        """The one that runs."""
        return self.starts[-1]

    async def connect(self) -> Channel:
        if self.broken:
            raise ChannelClosed("it does not start")
        ours, theirs = memory_pair()
        self.starts.append(Raw(theirs, self.answers))
        self.started.set()
        return ours

    async def kill(self) -> None:
        """It is gone, from one moment to the next."""
        self.started.clear()
        await self.now.aclose()


class Seat(InProcessRenderer):
    """Shows Views in Python; asks a user who answers `decision`; takes pictures."""

    def __init__(self, apps: Mapping[str, Callable[[], App]], screen: "Screen") -> None:
        super().__init__(apps)
        self._screen = screen

    async def open(self, page: UIResource) -> Channel:
        if self._screen.broken:
            raise RuntimeError("the screen is broken")
        return await super().open(page)

    async def approve(self, request: ApprovalRequest) -> Decision:
        self._screen.asked.append(request)
        if self._screen.ask is not None:
            return await self._screen.ask(request)
        return self._screen.decision

    async def screenshot(self, view_id: str) -> bytes:
        self._screen.pictured.append(view_id)
        return PNG


class Screen:
    """Where a test's Views are shown."""

    def __init__(
        self,
        apps: Mapping[str, Callable[[], App]],
        *,
        pictures: bool = False,
        renderer: Renderer | None = None,
    ) -> None:
        self.pictures = pictures
        self.drives = hasattr(renderer, "drive")
        self.renderer = renderer
        """Shows Views in place of a `Seat`."""
        self.address: str | None = "http://stage.test/"
        self.broken = False
        self.asked: list[ApprovalRequest] = []
        self.decision: Decision = Deny("no")
        self.ask: Any = None
        self.pictured: list[str] = []
        self._apps = apps

    async def seat(self, client: str) -> Renderer:
        return self.renderer or Seat(self._apps, self)

    def where(self) -> str | None:
        return self.address


class Shop:
    """Makes the View of the server's `show`, and keeps each that it made."""

    def __init__(self, setup: Callable[[App], object] | None = None) -> None:
        self.made: list[App] = []
        self._setup = setup

    def __call__(self) -> App:
        app = App("shop-view", "1.0.0")

        @app.tool(annotations={"readOnlyHint": True})
        def read() -> str:
            """Read it."""
            return "read"

        @app.tool
        def write(words: str) -> str:
            """Write it."""
            return f"wrote {words}"

        if self._setup is not None:
            self._setup(app)
        self.made.append(app)
        return app


class Gateway:
    """A client's end of a gateway, and everything around it."""

    def __init__(self, client: Raw, server: Server, screen: Screen, shop: Shop) -> None:
        self.client = client
        self.server = server
        self.screen = screen
        self.shop = shop
        self.meta: dict[str, Any] = {}
        self.hello: dict[str, Any] = {}
        """What the gateway said about itself."""

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """As the client's version of the protocol has it."""
        return await self.client.ask(method, self.stamped(params))

    async def begin(self, method: str, params: dict[str, Any] | None = None) -> Asked:
        return await self.client.begin(method, self.stamped(params))

    def stamped(self, params: dict[str, Any] | None) -> dict[str, Any]:
        given = params or {}
        return {**given, "_meta": {**self.meta, **given.get("_meta", {})}} if self.meta else given

    async def call(self, name: str, /, **arguments: Any) -> Any:
        return await self.ask("tools/call", {"name": name, "arguments": arguments})

    async def tools(self) -> list[str]:
        return [each["name"] for each in (await self.ask("tools/list"))["tools"]]

    async def open(self, **arguments: Any) -> Any:
        """The result of the tool that opens a View."""
        await self.tools()
        return await self.call("show", **arguments)

    async def changed(self, times: int = 1, what: str = "tools") -> None:
        """Wait until the client has been told that a list changed."""
        method = f"notifications/{what}/list_changed"
        await self.client.until(lambda: len(self.client.noted(method)) >= times)


def words(result: Any) -> list[str]:
    """The texts of a result."""
    return [block["text"] for block in result["content"] if block["type"] == "text"]


@asynccontextmanager
async def gateway(
    server: Server | None = None,
    *,
    setup: Callable[[App], object] | None = None,
    answers: Answers | None = None,
    capabilities: dict[str, Any] | None = None,
    modern: bool = False,
    pictures: bool = False,
    renderer: Renderer | None = None,
    hung_after: float = 300.0,
    records: ViewRecords | None = None,
    **options: Any,
) -> AsyncIterator[Gateway]:
    """A gateway with a client that has said hello, or says who it is each time (`modern`)."""
    server = Server() if server is None else server
    shop = Shop(setup)
    screen = Screen({URI: shop}, pictures=pictures, renderer=renderer)
    ours, theirs = memory_pair()
    views = ViewOptions(screen, **options)
    servers = [("shop", server.connect)]
    proxy = Proxy(ours, servers, views, records=records, hung_after=hung_after)
    running = asyncio.create_task(proxy.run())
    client = Raw(theirs, answers or {})
    made = Gateway(client, server, screen, shop)
    hello = {"clientInfo": {"name": "raw", "version": "1"}, "capabilities": capabilities or {}}
    if modern:
        made.meta = {
            f"{_META}protocolVersion": "2026-07-28",
            f"{_META}clientInfo": hello["clientInfo"],
            f"{_META}clientCapabilities": hello["capabilities"],
        }
        made.hello = await made.ask("server/discover")
    else:
        made.hello = await client.ask("initialize", {"protocolVersion": "2025-11-25", **hello})
        await client.tell("notifications/initialized")
    try:
        yield made
    finally:
        await client.aclose()
        await running
        for start in server.starts:
            await start.aclose()


class _SdkChannel:
    """The gateway's end of what the official client reads and writes."""

    def __init__(self, read: Any, write: Any) -> None:
        self._read, self._write = read, write

    async def send(self, data: bytes) -> None:
        try:
            await self._write.send(SessionMessage(jsonrpc_message_adapter.validate_json(data)))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise ChannelClosed("the client is gone") from None

    async def receive(self) -> bytes:
        try:
            item = await self._read.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise ChannelClosed("the client is gone") from None
        return item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()

    async def aclose(self) -> None:
        await self._write.aclose()


@asynccontextmanager
async def official_client(
    *,
    server: Server | None = None,
    setup: Callable[[App], object] | None = None,
    mode: Any = "legacy",
    renderer: Renderer | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """The official client of a gateway, in front of a `Server` whose `show` opens a `Shop`."""
    server = Server() if server is None else server
    views = ViewOptions(Screen({URI: Shop(setup)}, renderer=renderer), **options)
    try:
        async with served(server.connect, views, mode) as client:
            yield client
    finally:
        for start in server.starts:
            await start.aclose()


@asynccontextmanager
async def served(connect: Connect, views: ViewOptions, mode: Any) -> AsyncIterator[Client]:
    """The official client of a gateway in front of one server."""
    async with create_client_server_memory_streams() as (ours, theirs):
        proxy = Proxy(_SdkChannel(*theirs), [("shop", connect)], views)
        running = asyncio.create_task(proxy.run())

        @asynccontextmanager
        async def transport() -> AsyncIterator[Any]:
            yield ours

        try:
            async with Client(transport(), mode=mode) as client:
                yield client
        finally:
            await running
