"""Channels to servers that are reached by a URL, and connections over them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.gateway.chatty import chatty
from tests.host.bare_view import until
from tests.host.shop import Heard
from tests.ports import reserved_port
from tests.server.clients import serving
from transom.connections.connection import ServerConnection
from transom.connections.http import connect_http
from transom.connections.urls import is_loopback, server_of
from transom.errors import ChannelClosed, ConnectionClosed, NotConnected, ProtocolError


@asynccontextmanager
async def connected(url: str, **headers: str) -> AsyncIterator[ServerConnection]:
    """A connection that is made again when it is lost."""
    connection = ServerConnection(
        "chatty", lambda: connect_http(url, headers=headers), reconnect=True
    )
    await connection.start()
    await connection.negotiate()
    try:
        yield connection
    finally:
        await connection.aclose()


async def call(connection: ServerConnection, name: str, **arguments: Any) -> str:
    params = {"name": name, "arguments": arguments}
    result = json.loads(await connection.request("tools/call", params))
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


# --- connections -----------------------------------------------------------------------------


async def test_calls_progress_changes_and_cancellation_pass() -> None:
    heard = Heard()
    changed: asyncio.Queue[str] = asyncio.Queue()
    steps: asyncio.Queue[float] = asyncio.Queue()
    async with serving(chatty(heard).streamable_http_app()) as url, connected(url) as connection:
        assert connection.protocol_version == "2026-07-28"
        connection.subscribe(changed.put_nowait)
        params = {"name": "count", "arguments": {"to": 3}}
        await connection.request(
            "tools/call", params, on_progress=lambda step: steps.put_nowait(step.progress)
        )
        assert [await steps.get() for _ in range(3)] == [0, 1, 2]
        await until(lambda: connection.tool_cache._announced())
        await call(connection, "grow")
        assert await changed.get() == "notifications/tools/list_changed"
        assert "grown" in await connection.tools()
        calling = asyncio.create_task(
            connection.request(
                "tools/call",
                {"name": "wait", "arguments": {}},
                on_progress=lambda step: steps.put_nowait(step.progress),
            )
        )
        await steps.get()
        calling.cancel()
        await heard.has("cancelled")


async def test_a_server_from_2026_gets_the_headers_it_routes_by() -> None:
    async with (
        serving(chatty().streamable_http_app()) as url,
        connected(url, **{"x-key": "k"}) as connection,
    ):
        await connection.tools()
        assert await call(connection, "region_of", region="Zürich") == (
            "mcp-param-region==?base64?WsO8cmljaA==?= mcp-name=region_of mcp-method=tools/call "
            "mcp-protocol-version=2026-07-28 x-key=k"
        )


class Modern:
    """A 2026-07-28 server that has these tools, and keeps every request that it gets."""

    def __init__(self, *tools: dict[str, Any]) -> None:
        self.tools = list(tools)
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/mcp", self._handle, methods=["POST"])])

    async def _handle(self, request: Request) -> Response:
        message = await request.json()
        self.requests.append((dict(request.headers), message))
        results: dict[str, dict[str, Any]] = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": self.tools},
            "tools/call": {"content": []},
        }
        result = {**results[message["method"]], "resultType": "complete"}
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})


def tool(name: str, **annotated: Any) -> dict[str, Any]:
    """A tool with one property."""
    return {"name": name, "inputSchema": {"type": "object", "properties": {"a": annotated}}}


async def test_every_request_says_who_makes_it_also_the_one_that_looks_for_a_server() -> None:
    server = Modern(tool("add", type="integer"))
    async with serving(server.app()) as url, connected(url) as connection:
        await call(connection, "add", a=1)
    assert len(server.requests) == 3  # who is there, the introduction, the call
    for headers, message in server.requests:
        meta = message["params"]["_meta"]
        assert headers["mcp-protocol-version"] == "2026-07-28"
        assert headers["mcp-method"] == message["method"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "transom"
        assert meta["io.modelcontextprotocol/clientCapabilities"].keys() == {"extensions"}


INVALID = [
    tool("empty", **{"type": "string", "x-mcp-header": ""}),
    tool("spaced", **{"type": "string", "x-mcp-header": "a b"}),
    tool("object", **{"type": "object", "x-mcp-header": "A"}),
    tool("nested", type="array", items={"type": "string", "x-mcp-header": "A"}),
]


@pytest.mark.parametrize("invalid", INVALID, ids=[each["name"] for each in INVALID])
async def test_a_tool_with_an_invalid_header_is_neither_listed_nor_called(
    invalid: dict[str, Any],
) -> None:
    server = Modern(tool("valid", **{"type": "string", "x-mcp-header": "A"}), invalid)
    async with serving(server.app()) as url, connected(url) as connection:
        assert list(await connection.tools()) == ["valid"]
        with pytest.raises(ProtocolError, match=f"{invalid['name']} cannot be called") as refused:
            await call(connection, invalid["name"])
        assert refused.value.code == -32602
        await call(connection, "valid", a="x")
        called = [each for each in server.requests if each[1]["method"] == "tools/call"]
        assert [headers["mcp-param-a"] for headers, _ in called] == ["x"]
        server.tools = [tool(invalid["name"], type="string")]  # its author has mended it
        await connection.tool_cache.relist()
        assert list(await connection.tools()) == [invalid["name"]]
        await call(connection, invalid["name"])


# --- servers that go and come ----------------------------------------------------------------


class Mortal(uvicorn.Server):
    """The server on a port. Killing it breaks off its connections, as the end of a process does."""

    def __init__(self, port: int) -> None:
        app = chatty().streamable_http_app()
        super().__init__(uvicorn.Config(app, port=port, log_level="error", ws="none"))
        self._ready = asyncio.Event()
        self._running = asyncio.create_task(self.serve())

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    async def __aenter__(self) -> Self:
        await self._ready.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def kill(self) -> None:
        for listening in self.servers:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        self.should_exit = True
        await self._running


def url_of(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


async def test_a_killed_server_is_reached_again_when_it_is_back() -> None:
    port = reserved_port()
    async with Mortal(port) as server, connected(url_of(port)) as connection:
        assert await call(connection, "count", to=1) == "counted to 1"
        await server.kill()
        async with Mortal(port):
            assert await connection.wait_up(30)
            while True:
                try:
                    assert await call(connection, "count", to=1) == "counted to 1"
                    break
                except ConnectionClosed:
                    await connection.wait_up(30)


@pytest.mark.parametrize("status", [404, 400])
async def test_a_server_that_forgot_the_session_is_told_again_who_we_are(status: int) -> None:
    sessions = Counted(status)
    async with serving(sessions.app) as url:
        async with connected(url) as connection:
            assert await call(connection, "which") == "session 1"
            sessions.forget()
            with pytest.raises(ConnectionClosed, match="does not know this session any more"):
                await call(connection, "which")
            assert await connection.wait_up(30)
            assert await call(connection, "which") == "session 2"
            assert sessions.headers[-1] == "2025-11-25"
            with pytest.raises(ProtocolError, match="no such method"):
                await connection.request("prompts/get", {"name": "x"})
            assert await call(connection, "which") == "session 2"
        assert sessions.left == ["s2"]


class Counted:
    """A server of few words, which can forget its sessions."""

    def __init__(self, status: int = 404) -> None:
        self._status = status
        self._number = 0
        self._known = ""
        self.headers: list[str | None] = []
        self.left: list[str] = []
        self.app = Starlette(routes=[Route("/mcp", self._answer, methods=["POST", "DELETE"])])

    def forget(self) -> None:
        self._known = ""

    async def _answer(self, request: Request) -> Response:
        session = request.headers.get("mcp-session-id")
        if request.method == "DELETE":
            self.left.append(str(session))
            return Response()
        message = await request.json()
        match message["method"]:
            case "initialize":
                self._number += 1
                session = self._known = f"s{self._number}"
                result: Any = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "counted", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": "which", "inputSchema": {"type": "object"}}]}
            case "prompts/get":
                return JSONResponse(_error("no such method", -32601), 404)
            case _:
                result = {"content": [{"type": "text", "text": f"session {self._number}"}]}
        if session is None:
            return JSONResponse(_error("Missing session ID"), 400)
        if session != self._known:
            return PlainTextResponse("No valid session ID provided", self._status)
        if "id" not in message:
            return Response(status_code=202)
        self.headers.append(request.headers.get("mcp-protocol-version"))
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return JSONResponse(answer, headers={"mcp-session-id": session})


def _error(text: str, code: int = -32600) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}


# --- requests that fail ----------------------------------------------------------------------


def answering(answer: Callable[[Any], Response]) -> Starlette:
    """An MCP server as far as `server/discover` goes; then it answers as it is told to."""

    async def handle(request: Request) -> Response:
        message = await request.json()
        if message["method"] == "server/discover":
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        return answer(message)

    return Starlette(routes=[Route("/mcp", handle, methods=["POST"])])


ASK = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda _: PlainTextResponse("x", 502), "The server answered 502 Bad Gateway"),
        (lambda _: PlainTextResponse("x", 401), "requires a login. Run: transom login"),
        (lambda _: JSONResponse(_error("No such thing"), 400), "No such thing"),
        (lambda _: JSONResponse({"detail": "x"}, 500), "500 Internal Server Error"),
        (lambda _: PlainTextResponse("x", 404), "Not Found"),
        (lambda _: Response(status_code=202), "202 Accepted"),
        (lambda _: PlainTextResponse("hello"), "Unexpected content type"),
        (lambda _: Response("{", media_type="application/json"), "Failed to parse"),
        (lambda _: Response("", media_type="text/event-stream"), "ended without a response"),
    ],
)
async def test_a_request_that_fails_is_answered(
    answer: Callable[[Any], Response], expected: str
) -> None:
    async with serving(answering(answer)) as url:
        server = await connect_http(url)
        await server.send(json.dumps(ASK).encode())
        reply = json.loads(await server.receive())
        assert reply["id"] == 5
        assert expected in reply["error"]["message"]
        await server.aclose()


async def test_what_cannot_be_sent_is_answered() -> None:
    async with serving(answering(lambda _: Response(status_code=202))) as url:
        server = await connect_http(url)
        await server.send(b'{"jsonrpc":"2.0","id":6,"method":"x","params":[1]}')
        reply = json.loads(await server.receive())
        assert (reply["id"], reply["error"]["code"]) == (6, -32600)
        await server.aclose()


async def test_a_closed_channel_takes_and_gives_nothing() -> None:
    async with serving(answering(lambda _: Response(status_code=202))) as url:
        server = await connect_http(url)
        receiving = asyncio.create_task(server.receive())
        await server.aclose()
        await server.aclose()
        with pytest.raises(ChannelClosed):
            await receiving
        with pytest.raises(ChannelClosed):
            await server.send(json.dumps(ASK).encode())


# --- the beginning ---------------------------------------------------------------------------


def plain(status: int, text: str = "<html>", **headers: str) -> Starlette:
    async def handle(_: Request) -> Response:
        return Response(text, status, headers=headers, media_type="text/html")

    return Starlette(routes=[Route("/mcp", handle, methods=["GET", "POST"])])


async def elsewhere(_: Request) -> Response:
    return RedirectResponse("http://other.example/mcp?secret=1", 307)


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        (plain(401), " requires a login. Run: transom login http"),
        (plain(403), "answered 403 Forbidden: it does not accept the Authorization"),
        (plain(404), "answered 404 Not Found: there is no MCP server at that path"),
        (plain(405), "answered 405 Method Not Allowed: it does not speak streamable HTTP there"),
        (plain(500), "answered 500 Internal Server Error: the server fails"),
        (plain(200), "answered 200 OK: that is no answer of an MCP server"),
        (
            Starlette(routes=[Route("/mcp", elsewhere, methods=["POST"])]),
            "redirects to http://other.example/mcp: use that URL",
        ),
    ],
)
async def test_what_is_no_server_is_told_with_what_to_do(app: Any, expected: str) -> None:
    async with serving(app) as url:
        with pytest.raises(NotConnected, match=expected.replace("(", "\\(")) as caught:
            await connect_http(url)
        assert str(caught.value).startswith(url)


async def test_a_port_where_nothing_listens_is_told_with_what_to_do() -> None:
    url = url_of(reserved_port())
    with pytest.raises(NotConnected, match=f"Nothing answers at {url}: start the server"):
        await connect_http(url)


def test_what_is_said_of_a_url_has_no_secret_in_it() -> None:
    assert server_of("https://me:secret@a.example:1/mcp?key=secret#x") == "https://a.example:1/mcp"


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        *[
            (host, True)
            for host in ("localhost", "x.localhost.", "127.0.0.1", "127.9.9.9", "[::1]")
        ],
        *[(host, False) for host in ("127.0.0.1.x.example", "127.x.example", "10.0.0.1", "[::2]")],
    ],
)
def test_a_host_whose_name_begins_like_an_address_of_this_machine_is_elsewhere(
    host: str, ours: bool
) -> None:
    assert is_loopback(f"http://{host}:8000/mcp") is ours
