"""Each client gets what it can use: over every transport, in every era, at the same time."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StdioTransport
from mcp import StdioServerParameters

from tests.server import clients, shop
from tests.server.clients import CLIENTS, ERAS, FRAMEWORKS

SHOP = str(Path(shop.__file__))

every_framework = pytest.mark.parametrize("framework", FRAMEWORKS)
every_era = pytest.mark.parametrize("era", ERAS)
every_client = pytest.mark.parametrize("client", CLIENTS)
two_clients = pytest.mark.parametrize("client", ["shows Views", "no extensions"])

# Starting a server takes a second or two. In memory every combination is tried; a process has to
# show only that each framework, each era and each kind of client works across one.
PAIRS = [("official", "shows Views"), ("fastmcp", "no extensions")]
OTHER_PAIRS = [("official", "no extensions"), ("fastmcp", "shows Views")]


def check(client: str, seen: clients.Seen) -> None:
    if client.startswith("shows Views"):
        clients.check_sees_views(seen)
    else:
        clients.check_sees_no_views(seen)


@every_framework
@every_era
@every_client
async def test_in_memory(framework: str, era: str, client: str):
    async with clients.memory_client(shop.make(framework), CLIENTS[client], era) as connected:
        check(client, await clients.look(connected))


@pytest.mark.processes
@pytest.mark.parametrize(
    ("framework", "client", "era"),
    [
        pytest.param(*pair, era, marks=() if daily else pytest.mark.nightly)
        for index, pair in enumerate(PAIRS)
        for number, era in enumerate(ERAS)
        for daily in [index == number % len(PAIRS)]
    ],
)
async def test_over_stdio_with_the_official_client(framework: str, era: str, client: str):
    server = StdioServerParameters(command=sys.executable, args=[SHOP, framework])
    async with clients.official_client(server, CLIENTS[client], era) as connected:
        check(client, await clients.look(connected))


@pytest.mark.processes
@pytest.mark.parametrize(
    ("framework", "client"),
    [OTHER_PAIRS[0], pytest.param(*OTHER_PAIRS[1], marks=pytest.mark.nightly)],
)
async def test_over_stdio_with_the_fastmcp_client(framework: str, client: str):
    transport = StdioTransport(sys.executable, [SHOP, framework], keep_alive=False)
    async with clients.fast_client(transport, CLIENTS[client]) as connected:
        check(client, await clients.look(connected))


@pytest.mark.load
@every_framework
@every_era
@pytest.mark.parametrize("make_client", [clients.official_client, clients.fast_client])
async def test_over_http_two_clients_at_once_each_get_their_own(
    framework: str, era: str, make_client: Any
):
    async with clients.serving(clients.http_app(shop.make(framework))) as url:
        able, plain = CLIENTS["shows Views"], CLIENTS["no extensions"]
        async with make_client(url, able, era) as one, make_client(url, plain, era) as other:
            # Their requests mix, three times over.
            seen = await asyncio.gather(*(clients.look(each) for each in (one, other) * 3))
            for with_views, without in zip(seen[::2], seen[1::2], strict=True):
                clients.check_sees_views(with_views)
                clients.check_sees_no_views(without)


@every_framework
async def test_in_memory_two_clients_of_different_eras_at_once(framework: str):
    server = shop.make(framework)
    able, plain = CLIENTS["shows Views"], CLIENTS["no types"]
    async with (
        clients.memory_client(server, able, ERAS[0]) as one,
        clients.memory_client(server, plain, ERAS[1]) as two,
        clients.memory_client(server, plain, ERAS[0]) as three,
        clients.memory_client(server, able, ERAS[1]) as four,
    ):
        seen = await asyncio.gather(*(clients.look(each) for each in (one, two, three, four)))
        clients.check_sees_views(seen[0])
        clients.check_sees_no_views(seen[1])
        clients.check_sees_no_views(seen[2])
        clients.check_sees_views(seen[3])


@every_framework
@two_clients
async def test_over_stateless_http_a_modern_client_is_known_at_every_request(
    framework: str, client: str
):
    async with (
        clients.serving(clients.http_app(shop.make(framework), stateless=True)) as url,
        clients.official_client(url, CLIENTS[client]) as connected,
    ):
        check(client, await clients.look(connected))


@every_framework
@pytest.mark.parametrize("assume_views", [False, True])
async def test_over_stateless_http_nothing_is_known_of_an_older_client(
    framework: str, assume_views: bool, monkeypatch: pytest.MonkeyPatch
):
    made = shop.Views(assume_views=assume_views)
    monkeypatch.setattr(shop, "Views", lambda: made)
    async with (
        clients.serving(clients.http_app(shop.make(framework), stateless=True)) as url,
        clients.official_client(url, CLIENTS["shows Views"], "legacy") as connected,
    ):
        seen = await clients.look(connected)
        if assume_views:
            clients.check_sees_views(seen)
        else:
            clients.check_sees_no_views(seen)


@every_framework
@every_era
async def test_assuming_views_changes_nothing_for_a_client_that_is_known(
    framework: str, era: str, monkeypatch: pytest.MonkeyPatch
):
    made = shop.Views(assume_views=True)
    monkeypatch.setattr(shop, "Views", lambda: made)
    async with clients.memory_client(shop.make(framework), {}, era) as connected:
        clients.check_sees_no_views(await clients.look(connected))
