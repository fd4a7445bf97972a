"""Views of several servers behind one gateway, with real servers in processes of their own."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.gateway.in_memory import End, Fake, gateway
from tests.gateway.raw_client import ROOT
from tests.host.shop import editor
from transom import InProcessRenderer
from transom.channel import Channel
from transom.connections.process import ServerProcess
from transom.gateway.client_host import ViewOptions
from transom.host.views.renderers import Renderer

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """These servers take their time to start, and the tests count on both being there."""
    monkeypatch.setattr("transom.gateway.members._ALL_WITHIN", 50.0)


class Screen:
    """Shows the Views of shops beside the gateway."""

    pictures = drives = False

    async def seat(self, client: str) -> Renderer:
        del client
        return InProcessRenderer({"ui://orders/list.html": editor()})

    def where(self) -> str:
        return "http://localhost:1/"


class Shop:
    """A server in a process, which can be killed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.processes: list[ServerProcess] = []

    @property
    def entry(self) -> tuple[str, Callable[[], Awaitable[Channel]]]:
        return self.name, self._connect

    async def _connect(self) -> Channel:
        command = [sys.executable, "-m", "tests.host.shop", "orders"]
        self.processes.append(await ServerProcess.start(command, cwd=str(ROOT)))
        return self.processes[-1]

    def kill(self) -> None:
        os.kill(self.processes[-1].pid, signal.SIGKILL)


async def tools(client: End) -> list[str]:
    return [tool["name"] for tool in (await client.result("tools/list"))["tools"]]


async def call(client: End, name: str, **arguments: Any) -> list[str]:
    result = await client.result("tools/call", {"name": name, "arguments": arguments})
    return [block["text"] for block in result["content"]]


async def test_views_of_two_servers_are_told_apart_and_close_with_their_own_server():
    one, two = Shop("first"), Shop("second")
    async with gateway(one.entry, two.entry, views=ViewOptions(Screen())) as client:
        assert await tools(client) == [
            "show_orders",
            "search",
            "add",
            "second__show_orders",
            "second__search",
            "second__add",
            "list_view_tools",
            "call_view_tool",
        ]
        [shown, about] = await call(client, "show_orders", status="open")
        assert shown == "orders: open"
        assert about.startswith("View first-1 is open")
        assert "first-1__read" in about
        [shown, about] = await call(client, "second__show_orders", status="late")
        assert shown == "orders: late"
        assert about.startswith("View second-1 is open")

        await call(client, "first-1__write", words="one")
        await call(client, "second-1__write", words="two")
        assert await call(client, "first-1__read") == ["one"]
        assert await call(client, "second-1__read") == ["two"]

        def lists_changed() -> int:
            return len(client.got("notifications/tools/list_changed"))

        before = lists_changed()
        one.kill()
        await client.until(lambda: lists_changed() > before)
        while any(name.startswith("first-1__") for name in await tools(client)):
            seen = lists_changed()
            await client.until(lambda seen=seen: lists_changed() > seen)
        assert await call(client, "second-1__read") == ["two"]
        assert "second-1__read" in await tools(client)

        while "show_orders" not in await tools(client):
            seen = lists_changed()
            await client.until(lambda seen=seen: lists_changed() > seen)
        [_, about] = await call(client, "show_orders")
        assert about.startswith("View first-2 is open")
        assert len(two.processes) == 1


@pytest.mark.nightly
async def test_a_server_named_like_a_view_of_another_one_can_have_views_as_well():
    one, two = Shop("shop"), Shop("shop-1")
    async with gateway(one.entry, two.entry, views=ViewOptions(Screen())) as client:
        [_, about] = await call(client, "show_orders")
        assert about.startswith("View shop-1 is open")
        [_, about] = await call(client, "shop_1__show_orders")
        assert about.startswith("View shop_1-1 is open")
        assert await call(client, "shop-1__read") == ["nothing"]


async def test_what_views_told_can_be_read_next_to_the_resources_of_servers():
    plain = Fake(
        "plain",
        answers={"resources/list": {"resources": [{"uri": "a://1", "name": "a"}]}},
        capabilities={"resources": {}},
    )
    async with gateway(plain, Shop("shop").entry, views=ViewOptions(Screen())) as client:
        await call(client, "show_orders")
        listed = (await client.result("resources/list"))["resources"]
        uris = [entry["uri"] for entry in listed]
        assert uris[0] == "a://1"
        assert uris[-2:] == ["transom://views", "transom://views/shop-1"]
        assert "contents" in await client.result("resources/read", {"uri": "transom://views"})
        assert await client.result("resources/subscribe", {"uri": "transom://views"}) == {}
        assert await client.result("resources/unsubscribe", {"uri": "transom://views"}) == {}
        assert not plain.got("resources/subscribe")
