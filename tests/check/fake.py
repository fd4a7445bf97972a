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
META = "io.modelcontextprotocol/"
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
    hints: dict[str, Object] = field(default_factory=dict)
    """By method: other cache hints in MCP 2026-07-28; one that is `...` is left out."""
    relists: Callable[[list[Any], Object], list[Any]] | None = None
    """Makes another list of tools in MCP 2026-07-28, from the list and what the connection did."""

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
        meta = message.get("params", {}).get("_meta", {})
        if f"{META}protocolVersion" not in meta:
            return self.answer_any(message, session)
        session.update(meta[f"{META}clientCapabilities"])
        answer = self.answer_any(message, session)
        if answer is None or "result" not in answer:
            return answer
        method, answered = message["method"], {**answer["result"], "resultType": "complete"}
        if method == "tools/list" and self.relists is not None:
            answered["tools"] = self.relists(answered["tools"], session)
        session[method] = session.get(method, 0) + 1
        if method != "tools/call":
            answered |= {"ttlMs": 0, "cacheScope": "private", **self.hints.get(method, {})}
        return {"result": {key: value for key, value in answered.items() if value is not ...}}

    def answer_any(self, message: Object, session: Object) -> Object | None:
        method, params = message.get("method"), message.get("params", {})
        match method:
            case "server/discover":
                return {
                    "result": {
                        "supportedVersions": ["2026-07-28"],
                        "capabilities": {"tools": {}, "resources": {}},
                    }
                }
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

    connections: int = 0

    async def connect(self) -> "FakeChannel":
        self.connections += 1
        return FakeChannel(self)


class FakeChannel:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.session: Object = {"connection": server.connections}
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
