"""A server in this process that answers anything, right or wrong, over the checker's own pipe."""

import asyncio
import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from transom.errors import ChannelClosed

MIME = "text/html;profile=mcp-app"
EXTENSION = "io.modelcontextprotocol/ui"
URI = "ui://orders/list.html"
HTML = "<!doctype html><html><body><h1>Orders</h1><script>let a = 1</script></body></html>"

Object = dict[str, Any]


def shows_views(capabilities: Object) -> bool:
    extension = capabilities.get("extensions", {}).get(EXTENSION, {})
    return MIME in extension.get("mimeTypes", [])


def tool(name: str, /, **changes: Any) -> Object:
    """A tool nobody could complain about; a change to `...` removes a key."""
    made: Object = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "description": f"What {name} does.",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"count": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "_meta": {"ui": {"visibility": ["model", "app"]}},
    }
    made.update(changes)
    return {key: value for key, value in made.items() if value is not ...}


def result(**changes: Any) -> Object:
    made: Object = {
        "content": [{"type": "text", "text": "Two orders are open."}],
        "structuredContent": {"count": 2},
    }
    made.update(changes)
    return {key: value for key, value in made.items() if value is not ...}


SHOW = tool(
    "show_orders",
    inputSchema={
        "type": "object",
        "properties": {"status": {"type": "string", "enum": ["open", "done"]}},
        "required": ["status"],
    },
    _meta={"ui": {"resourceUri": URI}},
)
HELPER = tool("list_page", _meta={"ui": {"visibility": ["app"]}})
BACKEND = tool("count_orders")


@dataclass
class Server:
    """What a server has and answers. The one made without arguments keeps every rule."""

    tools: list[Any] = field(default_factory=lambda: [SHOW, HELPER, BACKEND])
    resources: list[Any] = field(
        default_factory=lambda: [{"uri": URI, "name": "orders", "mimeType": MIME}]
    )
    pages: dict[str, Any] = field(default_factory=dict)
    """The answer to resources/read by URI, or a function that makes it, or `None`: an error."""
    results: dict[str, Any] = field(default_factory=dict)
    """The answer to tools/call by name: a result, a JSON-RPC error, or a function of arguments."""
    gated: Callable[[Object], bool] = shows_views
    """Whether a client with these capabilities gets Views."""
    lists: Callable[[list[Any], bool], list[Any]] | None = None
    """Makes the list of tools from all tools and whether the client gets Views."""

    def for_client(self, capabilities: Object) -> list[Any]:
        views = self.gated(capabilities)
        if self.lists is not None:
            return self.lists(copy.deepcopy(self.tools), views)
        return self.tools if views else [without_ui(t) for t in self.tools if not app_only(t)]

    def read(self, uri: str) -> Object:
        answer = self.pages.get(uri, page() if uri == URI else None)
        answer = answer() if callable(answer) else answer
        return {"result": answer} if answer is not None else error(-32002, "Resource not found")

    def call(self, name: str, arguments: Object, known: list[Any]) -> Object:
        definition = next((t for t in known if t["name"] == name), None)
        if definition is None:
            return error(-32602, f"Tool {name} not found")
        answer = self.results.get(name)
        if callable(answer):
            answer = answer(arguments)
        if answer is None:
            required = definition.get("inputSchema", {}).get("properties", {})
            bad = any(not isinstance(arguments.get(key, ""), str) for key in required)
            text = [{"type": "text", "text": "status must be open or done"}]
            answer = {"content": text, "isError": True} if bad else result()
        return answer if "error" in answer else {"result": answer}

    def answer(self, message: Object, session: Object) -> Object | None:
        method, params = message.get("method"), message.get("params", {})
        match method:
            case "initialize":
                session.update(params["capabilities"])
                return {
                    "result": {
                        "protocolVersion": params["protocolVersion"],
                        "capabilities": {"tools": {}, "resources": {}},
                        "serverInfo": {"name": "orders", "version": "1.0"},
                    }
                }
            case "tools/list":
                return {"result": {"tools": self.for_client(session)}}
            case "resources/list":
                return {"result": {"resources": self.resources}}
            case "resources/read":
                return self.read(params["uri"])
            case "tools/call":
                return self.call(params["name"], params["arguments"], self.for_client(session))
            case _ if "id" in message:
                return error(-32601, "Method not found")
        return None

    async def connect(self) -> "FakeChannel":
        return FakeChannel(self)


class FakeChannel:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.session: Object = {}
        self.answers: asyncio.Queue[bytes | ChannelClosed] = asyncio.Queue()

    async def send(self, data: bytes) -> None:
        message = json.loads(data)
        answer = self.server.answer(message, self.session)
        if answer is not None:
            whole = {"jsonrpc": "2.0", "id": message["id"], **answer}
            self.answers.put_nowait(msgspec.json.encode(whole))

    async def receive(self) -> bytes:
        answer = await self.answers.get()
        if isinstance(answer, ChannelClosed):
            raise answer
        return answer

    async def aclose(self) -> None: ...


def page(uri: str = URI, text: Any = HTML, ui: Any = None, **changes: Any) -> Object:
    """The answer to resources/read; a change to `...` removes a key of the content item."""
    item: Object = {"uri": uri, "mimeType": MIME, "text": text}
    item["_meta"] = {"ui": {"prefersBorder": True, **(ui or {})}}
    item.update(changes)
    return {"contents": [{key: value for key, value in item.items() if value is not ...}]}


def error(code: int, message: str) -> Object:
    return {"error": {"code": code, "message": message}}


def without_ui(entry: Object) -> Object:
    meta = {key: value for key, value in entry.get("_meta", {}).items() if key != "ui"}
    meta.pop("ui/resourceUri", None)
    rest = {key: value for key, value in entry.items() if key != "_meta"}
    return {**rest, "_meta": meta} if meta else rest


def app_only(entry: Any) -> bool:
    ui = entry.get("_meta", {}).get("ui", {}) if isinstance(entry, dict) else {}
    return isinstance(ui, dict) and ui.get("visibility") == ["app"]
