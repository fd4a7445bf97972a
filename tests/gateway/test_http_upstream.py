"""Servers behind the gateway that are reached by a URL."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import mcp
import mcp_types as types
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.gateway.chatty import chatty, streams
from tests.host.shop import Heard
from tests.server.clients import ERAS, serving
from transom.channel import memory_pair
from transom.errors import ChannelClosed, NotConnected
from transom.gateway.config import Server
from transom.gateway.http_client import shown
from transom.gateway.http_upstream import HttpServer
from transom.gateway.run import connect_to
from transom.gateway.session import Session
from transom.gateway.views import ClientViews

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def through_gateway(
    url: str, *, headers: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[mcp.Client]:
    """A client of a gateway in this process, in front of the server at a URL."""
    ours, theirs = memory_pair()
    connect = connect_to(Server(name="chatty", url=url, headers=headers or {}))
    session = Session(theirs, [("chatty", connect)], ClientViews(None))
    running = asyncio.create_task(session.run())
    try:
        async with mcp.Client(streams(ours), **options) as client:
            yield client
    finally:
        await ours.aclose()
        await running


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


# --- both eras -------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
async def test_calls_progress_and_cancellation_pass_in_both_eras(era: str) -> None:
    heard = Heard()
    seen: list[float] = []
    waiting = asyncio.Event()

    async def told(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)
        if message == "waiting":
            waiting.set()

    app = chatty(heard).streamable_http_app()
    async with serving(app) as url, through_gateway(url, mode=era) as client:
        await client.call_tool("count", {"to": 3}, progress_callback=told)
        assert seen == [0, 1, 2]
        calling = asyncio.create_task(client.call_tool("wait", {}, progress_callback=told))
        await waiting.wait()
        calling.cancel()
        await heard.has("cancelled")


async def test_a_server_from_2026_gets_the_headers_it_routes_by() -> None:
    app = chatty().streamable_http_app()
    async with (
        serving(app) as url,
        through_gateway(url, mode=ERAS[0], headers={"x-key": "k"}) as client,
    ):
        await client.list_tools()
        result = text_of(await client.call_tool("region_of", {"region": "Zürich"}))
    assert result == (
        "mcp-param-region==?base64?WsO8cmljaA==?= mcp-name=region_of mcp-method=tools/call "
        "mcp-protocol-version=2026-07-28 x-key=k"
    )


async def test_a_server_before_that_gets_the_version_that_was_agreed_on() -> None:
    app = chatty().streamable_http_app()
    async with (
        serving(app) as url,
        through_gateway(url, mode="legacy", headers={"x-key": "k"}) as client,
    ):
        result = text_of(await client.call_tool("region_of", {"region": "x"}))
    assert "mcp-protocol-version=2025-11-25 x-key=k" in result
    assert "mcp-method=None" in result


async def test_a_server_asks_through_the_gateway() -> None:
    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    app = chatty().streamable_http_app()
    async with (
        serving(app) as url,
        through_gateway(url, mode="legacy", elicitation_callback=elicit) as client,
    ):
        assert text_of(await client.call_tool("ask_user", {})) == "accept: name='Ada'"


async def test_changed_tools_are_told_by_the_stream_for_news() -> None:
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    app = chatty().streamable_http_app()
    async with (
        serving(app) as url,
        through_gateway(url, mode="legacy", message_handler=hear) as client,
    ):
        await client.call_tool("grow", {})
        await changed.wait()
        assert "grown" in [tool.name for tool in (await client.list_tools()).tools]


# --- servers that go and come ----------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


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


@pytest.mark.parametrize("era", ERAS)
async def test_a_killed_server_is_reached_again_when_it_is_back(era: str) -> None:
    port = free_port()
    waiting = asyncio.Event()

    async def told(*_: Any) -> None:
        waiting.set()

    async with Mortal(port) as server, through_gateway(url_of(port), mode=era) as client:
        calling = asyncio.create_task(client.call_tool("wait", {}, progress_callback=told))
        await waiting.wait()
        await server.kill()
        with pytest.raises(mcp.MCPError, match="went away"):
            await calling
        async with Mortal(port):
            assert text_of(await client.call_tool("count", {"to": 1})) == "counted to 1"


async def test_a_server_process_that_ends_is_noticed_without_a_call() -> None:
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.gateway.chatty", str(port)),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stderr is not None
        while b"Uvicorn running" not in await process.stderr.readline():
            assert process.returncode is None
        async with through_gateway(url_of(port), mode="legacy", message_handler=hear):
            process.kill()
            await process.communicate()
            await changed.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_a_subscription_from_2026_outlives_its_server() -> None:
    port = free_port()
    heard = Heard()

    async def hear(stream: Any) -> None:
        async for event in stream:
            heard.append(event)

    async with (
        Mortal(port) as server,
        through_gateway(url_of(port), mode=ERAS[0]) as client,
        client.listen(tools_list_changed=True) as stream,
    ):
        hearing = asyncio.create_task(hear(stream))
        await server.kill()
        await heard.where(lambda: heard)  # the tools are gone
        async with Mortal(port):
            await client.call_tool("count", {"to": 1})
            before = len(heard)
            await client.call_tool("grow", {})
            await heard.where(lambda: len(heard) > before)
            assert not hearing.done()
            hearing.cancel()


@pytest.mark.parametrize("status", [404, 400])
async def test_a_server_that_forgot_the_session_is_told_again_who_the_client_is(
    status: int,
) -> None:
    sessions = Counted(status)
    async with serving(sessions.app) as url, through_gateway(url, mode="legacy") as client:
        assert text_of(await client.call_tool("which", {})) == "session 1"
        sessions.forget()
        with pytest.raises(mcp.MCPError, match="does not know this session any more"):
            await client.call_tool("which", {})
        assert text_of(await client.call_tool("which", {})) == "session 2"
        assert sessions.headers[-1] == "2025-11-25"
        with pytest.raises(mcp.MCPError, match="no such method"):
            await client.get_prompt("x")
        assert text_of(await client.call_tool("which", {})) == "session 2"


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


async def test_a_session_is_ended_with_the_gateway() -> None:
    sessions = Counted()
    async with serving(sessions.app) as url:
        async with through_gateway(url, mode="legacy") as client:
            await client.call_tool("which", {})
        assert sessions.left == ["s1"]


# --- requests that fail ----------------------------------------------------------------------


def answering(answer: Callable[[Any], Response]) -> Starlette:
    """An MCP server as far as a `ping` goes; then it answers as it is told to."""

    async def handle(request: Request) -> Response:
        message = await request.json()
        if message["method"] == "ping":
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        return answer(message)

    return Starlette(routes=[Route("/mcp", handle, methods=["POST"])])


ASK = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda _: PlainTextResponse("x", 502), "The server answered 502 Bad Gateway"),
        (lambda _: PlainTextResponse("x", 401), "401 Unauthorized: the headers configured"),
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
        server = await HttpServer.connect(url)
        await server.send(json.dumps(ASK).encode())
        reply = json.loads(await server.receive())
        assert reply["id"] == 5
        assert expected in reply["error"]["message"]
        await server.aclose()


async def test_what_cannot_be_sent_is_answered() -> None:
    async with serving(answering(lambda _: Response(status_code=202))) as url:
        server = await HttpServer.connect(url)
        await server.send(b'{"jsonrpc":"2.0","id":6,"method":"x","params":[1]}')
        reply = json.loads(await server.receive())
        assert (reply["id"], reply["error"]["code"]) == (6, -32600)
        await server.aclose()


async def test_a_closed_channel_takes_and_gives_nothing() -> None:
    async with serving(answering(lambda _: Response(status_code=202))) as url:
        server = await HttpServer.connect(url)
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
        (plain(401), "answered 401 Unauthorized: it wants to know who asks"),
        (plain(403), "answered 403 Forbidden: it wants to know who asks"),
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
            await HttpServer.connect(url)
        assert str(caught.value).startswith(url)


async def test_a_port_where_nothing_listens_is_told_with_what_to_do() -> None:
    url = url_of(free_port())
    with pytest.raises(NotConnected, match=f"Nothing answers at {url}: start the server"):
        await HttpServer.connect(url)


async def test_a_server_that_is_not_there_fails_the_gateway_at_once() -> None:
    _, theirs = memory_pair()
    connect: Callable[[], Awaitable[Any]] = connect_to(Server(name="x", url=url_of(free_port())))
    with pytest.raises(NotConnected, match="Nothing answers"):
        await Session(theirs, [("x", connect)], ClientViews(None)).run()


def test_what_is_said_of_a_url_has_no_secret_in_it() -> None:
    assert shown("https://me:secret@a.example:1/mcp?key=secret#x") == "https://a.example:1/mcp"
