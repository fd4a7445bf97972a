"""Servers behind the gateway that are reached by a URL."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp
import mcp_types as types
import pytest

from tests.connections.test_http import Counted, Mortal, url_of
from tests.gateway.chatty import chatty, streams
from tests.host.shop import Heard
from tests.ports import reserved_port
from tests.server.clients import ERAS, serving
from transom.channel import memory_pair
from transom.errors import NotConnected
from transom.gateway.client_host import ViewOptions
from transom.gateway.configuration.config import ServerConfig
from transom.gateway.members import connect_to
from transom.gateway.proxy import Proxy

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def through_gateway(
    url: str, *, headers: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[mcp.Client]:
    """A client of a gateway in this process, in front of the server at a URL."""
    ours, theirs = memory_pair()
    connect = connect_to(ServerConfig(name="chatty", url=url, headers=headers or {}))
    proxy = Proxy(theirs, [("chatty", connect)], ViewOptions(None))
    running = asyncio.create_task(proxy.run())
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


@pytest.mark.parametrize("era", ERAS)
async def test_a_killed_server_is_reached_again_when_it_is_back(era: str) -> None:
    port = reserved_port()
    waiting = asyncio.Event()

    async def told(*_: Any) -> None:
        waiting.set()

    async with Mortal(port) as server, through_gateway(url_of(port), mode=era) as client:
        calling = asyncio.create_task(client.call_tool("wait", {}, progress_callback=told))
        await waiting.wait()
        await server.kill()
        with pytest.raises(mcp.MCPError, match="is gone"):
            await calling
        async with Mortal(port):
            assert text_of(await client.call_tool("count", {"to": 1})) == "counted to 1"


@pytest.mark.processes
async def test_a_server_process_that_ends_is_noticed_without_a_call() -> None:
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    port = reserved_port()
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
    port = reserved_port()
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


async def test_a_session_is_ended_with_the_gateway() -> None:
    sessions = Counted()
    async with serving(sessions.app) as url:
        async with through_gateway(url, mode="legacy") as client:
            await client.call_tool("which", {})
        assert sessions.left == ["s1"]


async def test_a_server_that_is_not_there_fails_the_gateway_at_once() -> None:
    _, theirs = memory_pair()
    connect = connect_to(ServerConfig(name="x", url=url_of(reserved_port())))
    with pytest.raises(NotConnected, match="Nothing answers"):
        await Proxy(theirs, [("x", connect)], ViewOptions(None)).run()
