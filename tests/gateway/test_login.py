"""Servers behind the gateway that want a login."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp
import pytest

from tests.connections.login_servers import (
    Browser,
    FastSite,
    IssuerSite,
    OfficialSite,
    nothing_kept,
)
from tests.gateway.chatty import streams
from tests.server.clients import ERAS
from transom.channel import memory_pair
from transom.cli import gateway as command
from transom.cli.options import find_command
from transom.errors import NotConnected
from transom.gateway.client_host import ViewOptions
from transom.gateway.configuration.config import ServerConfig
from transom.gateway.members import connect_to
from transom.gateway.proxy import Proxy

pytestmark = pytest.mark.load  # authorization servers and logins: many requests


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with nothing_kept(tmp_path, monkeypatch):
        yield


@asynccontextmanager
async def gateway_to(*servers: ServerConfig, era: str = "legacy") -> AsyncIterator[mcp.Client]:
    ours, theirs = memory_pair()
    ways = [(each.name, connect_to(each)) for each in servers]
    running = asyncio.create_task(Proxy(theirs, ways, ViewOptions(None)).run())
    try:
        async with mcp.Client(streams(ours), mode=era) as client:
            yield client
    finally:
        await ours.aclose()
        await running


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@pytest.mark.processes
@pytest.mark.parametrize("era", ERAS)
async def test_the_gateway_logs_in_once_and_its_client_sees_no_token(era: str) -> None:
    browser = Browser()
    async with FastSite() as site:
        server = ServerConfig(name="fast", url=site.url, ask=browser)
        for _ in range(2):
            async with gateway_to(server, era=era) as client:
                seen = repr(await client.list_tools())
                result = await client.call_tool("greet", {"name": "Ada"})
                assert text_of(result) == "Hello, Ada"
                seen += repr(result)
        [given] = site.issuer.given
        assert given.access_token not in seen
    assert len(browser.pages) == 1


async def test_several_servers_of_different_issuers_have_a_login_each() -> None:
    browser = Browser()
    async with FastSite() as fast, IssuerSite() as issuer, OfficialSite(issuer) as official:
        servers = [
            ServerConfig(name="fast", url=fast.url, ask=browser),
            ServerConfig(name="official", url=official.url, ask=browser),
        ]
        async with gateway_to(*servers) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            greeters = [name for name in names if "greet" in name]
            assert len(greeters) == 2
            for name in greeters:
                assert text_of(await client.call_tool(name, {"name": "Ada"})) == "Hello, Ada"
        one, other = fast.issuer.given[0], official.issuer.given[0]
        for secret in (other.access_token, other.refresh_token):
            assert secret is not None
            assert not fast.got(secret)
        for secret in (one.access_token, one.refresh_token):
            assert secret is not None
            assert not official.got(secret)
            assert not issuer.got(secret)
    assert len(browser.pages) == 2


async def test_a_login_that_is_lost_is_an_error_of_the_call_and_works_again_after_it() -> None:
    async with FastSite() as site:
        async with gateway_to(ServerConfig(name="fast", url=site.url, ask=Browser())):
            pass
        async with gateway_to(ServerConfig(name="fast", url=site.url)) as client:
            site.issuer.forget_all()
            with pytest.raises(mcp.MCPError, match=f"Run: transom login {site.url}"):
                await client.call_tool("greet", {"name": "Ada"})
            async with gateway_to(ServerConfig(name="fast", url=site.url, ask=Browser())):
                pass
            assert text_of(await client.call_tool("greet", {"name": "Bo"})) == "Hello, Bo"


async def test_without_anybody_to_ask_the_gateway_says_which_command_to_run() -> None:
    async with FastSite() as site:
        ours, theirs = memory_pair()
        connect = connect_to(ServerConfig(name="fast", url=site.url))
        with pytest.raises(NotConnected, match=f"Run: transom login {site.url}"):
            await Proxy(theirs, [("fast", connect)], ViewOptions(None)).run()
        await ours.aclose()


@pytest.mark.parametrize(("words", "asks"), [([], True), (["--no-open"], False)])
def test_the_command_opens_a_browser_unless_it_must_not(words: list[str], asks: bool) -> None:
    line = ["gateway", "--url", "https://a.example/mcp", "--header", "X-Key: k", *words]
    found, rest = find_command(line)
    [server] = command._servers(found.read(rest))
    assert server.headers == {"X-Key": "k"}
    assert (server.ask is not None) == asks
