"""The gateway on streamable HTTP, with real clients."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import mcp
import mcp_types as types
import pytest
from fastmcp import Client as FastClient
from mcp.client.streamable_http import streamable_http_client

from tests.gateway.chatty import chatty, in_memory
from tests.gateway.raw_client import alive
from tests.host.shop import Heard, editor, shop
from transom import InProcessRenderer
from transom.cli import gateway as cli_gateway
from transom.cli.options import COMMANDS
from transom.connections.process import ServerProcess
from transom.errors import UsageError
from transom.gateway import Gateway
from transom.gateway import http as http_module
from transom.gateway.client import MAX_BYTES
from transom.gateway.client_host import ViewOptions
from transom.gateway.configuration.config import ServerConfig, server_from_command
from transom.gateway.http import HttpGateway, address_of, serving
from transom.gateway.http_session import HttpClient, HttpSession, Principal
from transom.gateway.members import connect_to

PLAIN = Path(__file__).parents[1] / "cli" / "plain_server.py"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"},
    },
}
BOTH = {"accept": "application/json, text/event-stream"}
JSON = {"content-type": "application/json"}


class Page:
    """A screen without a browser: Views are Apps in this process."""

    pictures = drives = False

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.told = Heard()

    async def seat(self, client: str) -> InProcessRenderer:
        self.seen.append(client)
        return InProcessRenderer({"ui://orders/list.html": editor(self.told)})

    def where(self) -> str:
        return "http://127.0.0.1:1"


@asynccontextmanager
async def gateway(
    connect: Any, screen: Any = None, **options: Any
) -> AsyncIterator[tuple[str, HttpGateway]]:
    served = HttpGateway([("orders", connect)], ViewOptions(screen), **options)
    async with serving(served, "127.0.0.1", 0) as url:
        yield url, served


def client(url: str, name: str = "tester", mode: Any = "legacy", **options: Any) -> mcp.Client:
    """A client that has a session, unless its mode is another one."""
    info = types.Implementation(name=name, version="1")
    return mcp.Client(url, client_info=info, mode=mode, **options)


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


async def names_of(one: mcp.Client) -> list[str]:
    return [tool.name for tool in (await one.list_tools()).tools]


async def gone(served: HttpGateway) -> None:
    """Wait until every session has ended."""
    while served._clients:
        await asyncio.wait([each.task for each in served._clients.values()])


async def unserved(_: object) -> None:
    """Serves a client that the test itself reads from and writes to."""


async def nothing_open(session: HttpSession) -> None:
    """Wait until every response of a session has been sent."""
    while session._open:  # noqa: ASYNC110 - nobody but a test wants to know
        await asyncio.sleep(0)


# --- clients and their Views -----------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [partial(Principal, "whole", 1800), lambda serve: HttpSession("whole", 1800, serve, "id")],
    ids=["principal", "session"],
)
async def test_a_client_is_whole_when_it_begins_to_be_served(make: Any) -> None:
    had = set[str]()

    def serve(one: HttpClient) -> Any:  # where tasks are eager, it works on from here
        had.update(vars(one))
        return unserved(one)

    one = make(serve)
    assert set(vars(one)) - had == {"task"}
    await one.task


@pytest.mark.parametrize(
    ("mode", "version", "sessions"), [("auto", "2026-07-28", 0), ("legacy", "2025-11-25", 1)]
)
async def test_a_client_has_a_session_only_if_its_version_has(
    mode: Any, version: str, sessions: int
) -> None:
    async with gateway(in_memory(chatty())) as (url, served), client(url, mode=mode) as one:
        assert text_of(await one.call_tool("count", {"to": 2})) == "counted to 2"
        assert one.protocol_version == version
        assert (len(served._clients), len(served._principals)) == (sessions, 1 - sessions)


async def test_no_client_gets_the_token_of_the_page_that_shows_the_views_of_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_gateway, "_PAGE_WITHIN", 0.05)
    options = COMMANDS["gateway"]().read(["--http", "0", "--no-open", "--", "none"])
    screen = cli_gateway._page(options, [server_from_command(["none"])])
    async with (
        aclosing(screen),
        gateway(in_memory(shop()), screen) as (url, _),
        client(url, "first") as first,
        client(url, "second") as second,
    ):
        told = [text_of(await each.call_tool("show_orders", {})) for each in (first, second)]
    printed = capsys.readouterr().err
    [address] = re.findall(r"Open this page to see Views: (\S+)", printed)
    token = address.partition("#token=")[2]
    assert len(token) > 16
    for text in told:
        assert "the gateway printed" in text
        assert token not in text


@pytest.mark.parametrize("whole", [b"", b'{"jsonrpc":'])
async def test_a_body_that_does_not_come_is_refused(
    whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_module, "_BODY_WITHIN", 0.05)
    async with gateway(in_memory(chatty())) as (url, served):
        host = url.removeprefix("http://").removesuffix("/mcp")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        head = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        writer.write(head.encode() + b"Content-Length: 100\r\n\r\n" + whole)
        assert b" 408 " in await reader.readline()
        writer.close()
        assert not served._clients


async def test_a_fastmcp_client_calls_a_tool_of_the_server() -> None:
    async with gateway(in_memory(chatty())) as (url, _), FastClient(url) as one:
        assert text_of(await one.call_tool("count", {"to": 2})) == "counted to 2"


async def test_each_client_has_views_of_its_own() -> None:
    screen = Page()
    async with (
        gateway(in_memory(shop()), screen) as (url, _),
        client(url, "first") as first,
        client(url, "second") as second,
    ):
        await asyncio.gather(first.list_tools(), second.list_tools())
        opened = text_of(await first.call_tool("show_orders", {}))
        assert "View orders-1 is open" in opened
        assert "orders-1__write" in await names_of(first)
        assert "orders-1__write" not in await names_of(second)

        await second.call_tool("show_orders", {"status": "closed"})
        await first.call_tool("orders-1__write", {"words": "one"})
        await second.call_tool("orders-1__write", {"words": "two"})
        assert text_of(await first.call_tool("orders-1__read", {})) == "one"
        assert text_of(await second.call_tool("orders-1__read", {})) == "two"
        assert sorted(screen.seen) == ["first", "second"]


async def test_clients_of_one_name_are_shown_under_two() -> None:
    screen = Page()
    async with (
        gateway(in_memory(shop()), screen) as (url, _),
        client(url, "twin") as first,
        client(url, "twin") as second,
    ):
        await first.call_tool("show_orders", {})
        await second.call_tool("show_orders", {})
    assert screen.seen == ["twin", "twin (2)"]


@pytest.mark.processes
async def test_each_client_has_a_server_process_of_its_own() -> None:
    started: list[ServerProcess] = []

    async def connect() -> ServerProcess:
        started.append(await ServerProcess.start([sys.executable, str(PLAIN), "good"]))
        return started[-1]

    async with gateway(connect) as (url, _), client(url) as first, client(url) as second:
        assert text_of(await first.call_tool("count_orders", {})) == "Two orders."
        assert text_of(await second.call_tool("count_orders", {})) == "Two orders."
    assert len({process.pid for process in started}) == 2
    assert not any(alive(process.pid) for process in started)


async def test_a_view_that_opens_is_told_to_a_client_between_its_requests() -> None:
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    async with (
        gateway(in_memory(shop()), Page()) as (url, _),
        client(url, message_handler=hear) as one,
    ):
        await one.list_tools()
        await one.call_tool("show_orders", {})
        await changed.wait()
        assert "orders-1__read" in await names_of(one)


# --- what a server does besides answering ----------------------------------------------------


async def test_progress_reaches_the_call_that_asked_for_it() -> None:
    async def counting(one: mcp.Client, to: int) -> list[float]:
        seen: list[float] = []

        async def told(progress: float, total: float | None, message: str | None) -> None:
            assert total == to
            seen.append(progress)

        await one.call_tool("count", {"to": to}, progress_callback=told)
        return seen

    async with gateway(in_memory(chatty())) as (url, _), client(url) as one:
        found = await asyncio.gather(counting(one, 3), counting(one, 5))
    assert found == [[0, 1, 2], [0, 1, 2, 3, 4]]


async def test_a_cancelled_call_is_cancelled_at_the_server_and_its_stream_ends() -> None:
    heard = Heard()
    waiting = asyncio.Event()

    async def told(*_: Any) -> None:
        waiting.set()

    async with gateway(in_memory(chatty(heard))) as (url, served), client(url) as one:
        calling = asyncio.create_task(one.call_tool("wait", {}, progress_callback=told))
        await waiting.wait()
        calling.cancel()
        await heard.has("cancelled")
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert text_of(await one.call_tool("count", {"to": 1})) == "counted to 1"
        (session,) = served._clients.values()
        assert not session._in_flight


async def test_a_call_cancelled_by_hand_ends_with_an_answer() -> None:
    heard = Heard()
    async with gateway(in_memory(chatty(heard))) as (url, _), by_hand(url) as (http, headers):
        call = {"name": "wait", "arguments": {}, "_meta": {"progressToken": 7}}
        message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call}
        async with http.stream("POST", url, json=message, headers=headers) as stream:
            events = stream.aiter_lines()
            async for line in events:
                if "notifications/progress" in line:
                    break
            note = {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 9},
            }
            assert (await http.post(url, json=note, headers=headers)).status_code == 202
            rest = [line async for line in events]
        await heard.has("cancelled")
    assert any('"code":-32800' in line and '"id":9' in line for line in rest)


async def test_a_server_asks_the_user_and_the_model_through_the_client() -> None:
    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        assert params.message == "Who are you?"
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(context: Any, params: Any) -> types.CreateMessageResult:
        words = types.TextContent(type="text", text="hello")
        return types.CreateMessageResult(role="assistant", content=words, model="m")

    async with (
        gateway(in_memory(chatty())) as (url, _),
        client(url, elicitation_callback=elicit, sampling_callback=sample) as one,
    ):
        assert text_of(await one.call_tool("ask_user", {})) == "accept: name='Ada'"
        assert text_of(await one.call_tool("ask_model", {})) == "the model said hello"


async def test_a_server_says_that_its_tools_changed() -> None:
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    async with (
        gateway(in_memory(chatty())) as (url, _),
        client(url, message_handler=hear) as one,
    ):
        assert "grown" not in await names_of(one)
        await one.call_tool("grow", {})
        await changed.wait()
        assert "grown" in await names_of(one)


async def test_news_wait_for_a_client_that_has_no_stream_open() -> None:
    news = b'{"jsonrpc":"2.0","method":"notifications/news","params":{"number":%d}}'
    async with gateway(in_memory(chatty())) as (url, served), by_hand(url) as (http, headers):
        (session,) = served._clients.values()
        await nothing_open(session)
        await session.send(news % 1)
        await session.send(news % 2)
        async with http.stream("GET", url, headers=headers) as stream:
            seen = await _data(stream, 2)
        assert [data["params"]["number"] for data in seen] == [1, 2]

        await nothing_open(session)
        await session.send(news % 3)
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        answer = await http.post(url, json=listing, headers=headers)
        assert answer.text.index('"number":3') < answer.text.index('"tools"')


async def test_what_waits_for_a_client_without_a_stream_is_bounded_in_number_and_in_size() -> None:
    news = b'{"jsonrpc":"2.0","method":"notifications/news","params":{"number":%d,"text":"%s"}}'
    for size, kept in ((1, 64), (400_000, 3)):
        session, sent = HttpSession("away", 1800, unserved, "away"), list[bytes]()
        for number in range(200):
            assert session.send_nowait(news % (number, b"x" * size))

        async def send(message: Any, sent: list[bytes] = sent) -> None:
            if b"data: " in message.get("body", b""):
                sent.append(message["body"])

        listening = asyncio.create_task(session.listen(None, asyncio.Event().wait, send))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        session.ended()
        await listening
        assert len(sent) == kept
        assert b'"number":199' in sent[-1]


async def test_an_answer_alone_is_json_and_one_with_news_before_it_a_stream() -> None:
    async with gateway(in_memory(chatty())) as (url, _), by_hand(url) as (http, headers):
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        answer = await http.post(url, json=listing, headers=headers)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["id"] == 2
        call = {"name": "count", "arguments": {"to": 1}, "_meta": {"progressToken": "t"}}
        message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}
        answer = await http.post(url, json=message, headers=headers)
        assert answer.headers["content-type"] == "text/event-stream"
        data = [json.loads(line[6:]) for line in answer.text.split("\n") if "data: " in line]
        assert [each.get("id", each.get("method")) for each in data] == [
            "notifications/progress",
            3,
        ]


async def test_a_client_that_goes_away_gets_no_more_and_its_call_runs_on() -> None:
    heard = Heard()
    async with gateway(in_memory(chatty(heard))) as (url, served), by_hand(url) as (http, headers):
        call = {"name": "wait", "arguments": {}, "_meta": {"progressToken": 7}}
        message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call}
        async with http.stream("POST", url, json=message, headers=headers) as stream:
            await _data(stream, 1)
        (session,) = served._clients.values()
        await nothing_open(session)
        assert session._in_flight[9].abandoned  # its answer is kept for the client
        assert heard == []
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
        await http.post(url, json=note, headers=headers)
        await heard.has("cancelled")


async def test_an_id_that_is_in_use_is_refused_and_the_first_request_answered() -> None:
    async with gateway(in_memory(chatty())) as (url, _), by_hand(url) as (http, headers):
        call = {"name": "wait", "arguments": {}, "_meta": {"progressToken": 7}}
        message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call}
        async with http.stream("POST", url, json=message, headers=headers) as stream:
            events = stream.aiter_lines()
            async for line in events:
                if "notifications/progress" in line:
                    break
            again = await http.post(url, json=message, headers=headers)
            assert again.status_code == 400
            assert "being worked on" in again.json()["error"]["message"]
            note = {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 9},
            }
            await http.post(url, json=note, headers=headers)
            assert any('"id":9' in line for line in [line async for line in events])


async def test_a_client_that_does_not_read_makes_the_sender_wait() -> None:
    news = b'{"jsonrpc":"2.0","method":"notifications/news","params":{"text":"%s"}}' % (b"x" * 4096)
    session = HttpSession("slow", 1800, unserved, "slow")
    blocked, let_go = asyncio.Event(), asyncio.Event()

    async def send(message: Any) -> None:
        if len(message.get("body", b"")) > 4096:
            blocked.set()
            await let_go.wait()

    listening = asyncio.create_task(session.listen(None, asyncio.Event().wait, send))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    sent = 0
    while session.send_nowait(news):
        sent += 1
    assert sent < 100
    waiting = asyncio.create_task(session.send(news))
    await blocked.wait()
    let_go.set()
    await waiting
    session.ended()
    await listening


async def _data(stream: httpx2.Response, count: int) -> list[Any]:
    """What comes on a stream, so many messages of it."""
    found: list[Any] = []
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data:")))
            if len(found) == count:
                break
    return found


# --- sessions --------------------------------------------------------------------------------


@asynccontextmanager
async def by_hand(
    url: str, **headers: str
) -> AsyncIterator[tuple[httpx2.AsyncClient, dict[str, str]]]:
    """A session of a client that is nothing but HTTP."""
    async with httpx2.AsyncClient(headers=BOTH | headers, timeout=30) as http:
        answer = await http.post(url, json=INITIALIZE)
        assert answer.status_code == 200, answer.text
        session = {"mcp-session-id": answer.headers["mcp-session-id"]}
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await http.post(url, json=note, headers=session)).status_code == 202
        yield http, session


async def test_a_client_that_says_goodbye_takes_its_server_and_views_with_it() -> None:
    screen = Page()
    async with gateway(in_memory(shop()), screen) as (url, served), by_hand(url) as (http, headers):
        show = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "show_orders"},
        }
        await http.post(url, json=show, headers=headers)
        assert (await http.delete(url, headers=headers)).status_code == 200
        await screen.told.has(("teardown",))
        await gone(served)
        again = await http.post(url, json=show, headers=headers)
        assert again.status_code == 404


async def test_a_session_without_anything_open_ends_after_a_while() -> None:
    async with (
        gateway(in_memory(chatty()), idle=3600) as (url, served),
        by_hand(url) as (http, headers),
    ):
        async with http.stream("GET", url, headers=headers) as stream:
            assert stream.status_code == 200
            call = {"name": "count", "arguments": {"to": 1}}
            message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
            await http.post(url, json=message, headers=headers)
            (session,) = served._clients.values()
            session._idle = 0.01  # not before: a slow machine would end it too soon
            assert session._idle_timer is None or session._idle_timer.cancelled()
        await gone(served)
        assert (await http.delete(url, headers=headers)).status_code == 404


async def test_only_so_many_clients_are_let_in() -> None:
    async with gateway(in_memory(chatty()), max_clients=1) as (url, served):
        async with by_hand(url) as (http, headers):
            second = await http.post(url, json=INITIALIZE)
            assert second.status_code == 503
            assert "--max-clients 1" in second.json()["error"]["message"]
            await http.delete(url, headers=headers)
            await gone(served)
        async with client(url) as one:
            assert "count" in await names_of(one)


@pytest.mark.processes
async def test_a_server_that_cannot_be_started_is_told_to_the_client() -> None:
    connect = connect_to(ServerConfig(name="lost", command=("no-such-command-at-all",)))
    async with gateway(connect) as (url, served), httpx2.AsyncClient(headers=BOTH) as http:
        answer = await http.post(url, json=INITIALIZE)
        assert "There is no command 'no-such-command-at-all'" in answer.text
        assert '"id":1' in answer.text
        await gone(served)


async def test_what_comes_without_a_session_and_without_a_version_is_refused() -> None:
    async with gateway(in_memory(chatty())) as (url, served):
        async with httpx2.AsyncClient(headers=BOTH) as http:
            probe = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}
            answer = await http.post(url, json=probe)
            assert answer.status_code == 400
            assert answer.json()["error"]["code"] == -32020
            listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            assert (await http.post(url, json=listing)).status_code == 400
            assert (await http.post(url, content=b"{", headers=JSON)).status_code == 400
            assert (await http.get(url)).status_code == 400
            assert (await http.get(url.replace("/mcp", "/"))).status_code == 404
        assert not served._clients


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"content-type": "text/plain"}, 415),
        ("POST", {"accept": "application/json"}, 406),
        ("GET", {"accept": "application/json"}, 406),
        ("PUT", {}, 405),
        ("POST", {"mcp-session-id": "unknown"}, 404),
    ],
)
async def test_what_is_not_streamable_http_is_refused(
    method: str, headers: dict[str, str], status: int
) -> None:
    async with gateway(in_memory(chatty())) as (url, served):
        async with httpx2.AsyncClient(headers=BOTH | JSON | headers) as http:
            answer = await http.request(method, url, content=json.dumps(INITIALIZE))
            assert answer.status_code == status
            assert answer.json()["error"]["message"]
        assert not served._clients


async def test_a_body_over_the_limit_is_refused_before_it_is_read_whole() -> None:
    async with gateway(in_memory(chatty())) as (url, _), by_hand(url) as (http, headers):
        body = b'{"jsonrpc":"2.0","method":"x","params":{"a":"%s"}}' % (b"x" * MAX_BYTES)
        answer = await http.post(url, content=body, headers=headers | JSON)
        assert answer.status_code == 400
        assert "limit" in answer.json()["error"]["message"]


# --- who is let in ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://orders-1.localhost:9000"}, 403),
        ({"origin": "null"}, 403),
    ],
)
async def test_a_page_in_a_browser_gets_nothing(headers: dict[str, str], status: int) -> None:
    async with gateway(in_memory(chatty())) as (url, served):
        async with httpx2.AsyncClient(headers=BOTH | headers) as http:
            assert (await http.post(url, json=INITIALIZE)).status_code == status
        assert not served._clients


@pytest.mark.parametrize(
    "name",
    [
        *("origin", "authorization", "content-type", "last-event-id"),
        *("mcp-protocol-version", "mcp-session-id"),
    ],
)
async def test_a_header_that_counts_once_is_not_taken_from_two(name: str) -> None:
    async with gateway(in_memory(chatty())) as (url, served), httpx2.AsyncClient() as http:
        headers = [(key, value) for key, value in BOTH.items() if key.lower() != name]
        twice = [(name, "one"), (name, "other")]
        answer = await http.post(url, json=INITIALIZE, headers=[*headers, *twice])
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == f"A header is there more than once: {name}"
        assert not served._clients


async def test_who_does_not_know_the_token_gets_nothing() -> None:
    token = "correct-horse-battery"
    async with gateway(in_memory(chatty()), token=token) as (url, served):
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {token}"}):
            async with httpx2.AsyncClient(headers=BOTH | given) as http:
                answer = await http.post(url, json=INITIALIZE)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
        assert not served._clients
        authorized = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"})
        async with authorized, client(streamable_http_client(url, http_client=authorized)) as one:  # type: ignore[arg-type]
            assert "count" in await names_of(one)


@pytest.mark.parametrize("token", [None, "short", "no spaces may be in it"])
async def test_another_address_needs_a_token_worth_the_name(token: str | None) -> None:
    with pytest.raises(UsageError, match="at least 16"):
        await Gateway({"none": ["none"]}).serve_http("0.0.0.0:0", token=token)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8000", ("127.0.0.1", 8000)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:0", ("::1", 0)),
        ("192.0.2.1:80", ("192.0.2.1", 80)),
    ],
)
def test_an_address_is_a_port_with_or_without_a_host(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", "x", "host:", "1:x", "70000", "-1", "²"])
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        address_of(text)


async def test_a_port_that_is_taken_is_said_so() -> None:
    async with gateway(in_memory(chatty())) as (url, served):
        port = int(url.rpartition(":")[2].removesuffix("/mcp"))
        with pytest.raises(UsageError, match="cannot be used"):
            async with serving(served, "127.0.0.1", port):
                pass


async def test_the_end_of_the_gateway_ends_what_is_open() -> None:
    async with gateway(in_memory(chatty())) as (url, served), by_hand(url) as (http, headers):
        opening = http.stream("GET", url, headers=headers)
        stream = await opening.__aenter__()
        await served.aclose()
        assert [line async for line in stream.aiter_lines() if "data: " in line] == []
        await opening.__aexit__(None, None, None)
        assert not served._clients
        assert (await http.post(url, json=INITIALIZE)).status_code == 503


# --- the command -----------------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_serves_clients_and_leaves_no_process_behind(
    number: signal.Signals, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    shell = f'echo $$ >> "{pids}"; echo "${{TRANSOM_TOKEN-no token}}" >> "{pids}"; exec "$@"'
    command = ["sh", "-c", shell, "sh", sys.executable, str(PLAIN), "good"]
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "transom"),
        *("gateway", "--no-open", "--http", "0", "--", *command),
        env=os.environ | {"TRANSOM_TOKEN": "correct-horse-battery"},
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    told = (await process.stderr.readline()).decode()
    url = told.split()[-1]
    assert "The gateway listens at http://127.0.0.1:" in told

    headers = {"authorization": "Bearer correct-horse-battery"}
    async with by_hand(url, **headers) as (http, session), by_hand(url, **headers):
        call = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "count_orders"},
        }
        answer = await http.post(url, json=call, headers=session)
        assert "Two orders." in answer.text
        process.send_signal(number)
        printed, _ = await process.communicate()
    assert (process.returncode, printed) == (0, b"")
    first, second = (int(line) for line in pids.read_text().split("\n")[0:3:2])
    assert "correct-horse" not in pids.read_text()
    for pid in (first, second):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
