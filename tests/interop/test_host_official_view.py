"""Our Host and the official View: `App` of ext-apps 2.x and 1.x, in Node."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.host.shop import shop, tool_names
from tests.interop.node_peer import NodePeer
from transom import Host, Limits, Policy, ToolResult
from transom.channel import Channel, lines
from transom.errors import ProtocolError, Refused, ViewClosed
from transom.host.views.ui_resource import UIResource
from transom.types import TextContent

pytestmark = pytest.mark.processes

QUERY = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
READS = {"readOnlyHint": True}


class NodeRenderer:
    """Every View is an official App in Node, prepared by `setup`."""

    def __init__(self, start: Any, sdk: str) -> None:
        self.views: dict[str, NodePeer] = {}
        self.setup: Callable[[NodePeer], Awaitable[None]] = two_tools
        self._start = start
        self._sdk = sdk
        self._connecting: set[asyncio.Task[Any]] = set()

    async def open(self, page: UIResource) -> Channel:
        view = self.views[page.view_id] = await self._start("view", sdk=self._sdk)
        await self.setup(view)
        connecting = asyncio.ensure_future(view.do("connect"))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        return lines(*view.wire)


async def two_tools(view: NodePeer) -> None:
    await view.do("create", appInfo={"name": "doc", "version": "3.1"}, capabilities=LISTS)
    await view.do("registerTool", name="read", behaviour="text", value="here", annotations=READS)
    await view.do("registerTool", name="write", behaviour="echo", inputSchema=QUERY)


LISTS = {"tools": {"listChanged": True}}


@pytest.fixture(params=["2", "1"])
def renderer(request: pytest.FixtureRequest, start_node: Any) -> NodeRenderer:
    return NodeRenderer(start_node, request.param)


@pytest.fixture
async def host(renderer: NodeRenderer) -> AsyncIterator[Host]:
    limits = Limits(relist_interval=0.0)
    async with Host(
        renderer=renderer, policy=Policy.trusting(), limits=limits, open_timeout=30
    ) as host:
        await host.add_server("orders", shop())
        yield host


async def test_the_official_view_opens_with_input_and_result_and_offers_its_tools(
    host: Host, renderer: NodeRenderer
):
    result = await host.call_tool("show_orders", {"status": "late"})
    assert result.meta["transom/view"] == {"id": "orders-1", "state": "live"}
    view = renderer.views["orders-1"]
    given = await view.event("toolinput")
    assert given["params"] == {"arguments": {"status": "late"}}
    told = await view.event("toolresult")
    assert told["params"]["content"] == [{"type": "text", "text": "orders: late"}]
    context = await view.do("hostContext")
    assert context["toolInfo"]["tool"]["name"] == "show_orders"
    assert (await tool_names(host))[3:] == ["orders-1__read", "orders-1__write"]
    [shown] = [tool for tool in await host.list_tools() if tool.name == "orders-1__write"]
    assert shown.description == "⟦View⟧"
    assert shown.input_schema["required"] == ["text"]


async def test_its_tools_are_called_and_its_errors_told(host: Host):
    await host.call_tool("show_orders")
    assert (await host.call_tool("orders-1__read")).text == "here"
    result = await host.call_tool("orders-1__write", {"text": "hi"})
    assert result == ToolResult(content=[TextContent('{"text":"hi"}')])
    try:
        wrong = await host.call_tool("orders-1__write", {"text": 5})
    except ProtocolError as error:
        assert "text" in error.message  # 2.x answers with an error ...
    else:
        assert wrong.is_error  # ... and 1.x may with a result
    with pytest.raises(ProtocolError, match="View orders-1 has no tool nothing"):
        await host.call_tool("orders-1__nothing")


async def test_what_changes_in_the_official_view_changes_on_the_surface(
    host: Host, renderer: NodeRenderer
):
    await host.call_tool("show_orders")
    view = renderer.views["orders-1"]
    changed = asyncio.Event()
    host.on_tools_changed = changed.set

    async def surface_is(*names: str) -> None:
        while (await tool_names(host))[3:] != [f"orders-1__{name}" for name in names]:
            changed.clear()
            await changed.wait()

    await view.do("disable", name="write")
    await view.do("sendToolListChanged")
    await surface_is("read")
    await view.do("enable", name="write")
    await view.do("registerTool", name="more", behaviour="text", value="!")
    await view.do("sendToolListChanged")
    await surface_is("read", "write", "more")
    assert (await host.call_tool("orders-1__more")).text == "!"


async def test_two_official_views_are_two(host: Host, renderer: NodeRenderer):
    await host.call_tool("show_orders")

    async def other(view: NodePeer) -> None:
        await view.do("create", appInfo={"name": "other", "version": "1"}, capabilities=LISTS)
        await view.do("registerTool", name="read", behaviour="text", value="elsewhere")

    renderer.setup = other
    await host.call_tool("show_orders")
    assert (await host.call_tool("orders-1__read")).text == "here"
    assert (await host.call_tool("orders-2__read")).text == "elsewhere"
    for number, view in enumerate(renderer.views.values(), 1):
        block = {"type": "text", "text": f"from {number}"}
        await view.do("updateModelContext", params={"content": [block]})
    said = [(each.view_id, each.content[0].text) for each in host.model_context()]
    assert said == [("orders-1", "from 1"), ("orders-2", "from 2")]


async def test_the_official_view_calls_its_server_within_the_rules(
    host: Host, renderer: NodeRenderer
):
    await host.call_tool("show_orders")
    view = renderer.views["orders-1"]
    params = {"name": "refresh", "arguments": {"query": "x"}}
    answer = await view.do("callServerTool", params=params)
    assert answer["content"][0]["text"] == "orders refreshed x"
    with pytest.raises(Exception, match="visibility lacks 'app'"):
        await view.do("callServerTool", params={"name": "search", "arguments": {"query": "x"}})


async def test_messages_and_links_of_the_official_view_reach_the_host(
    host: Host, renderer: NodeRenderer
):
    heard: list[Any] = []

    def refuse(view: Any, url: str) -> None:
        raise Refused("not there")

    host.on_message = lambda view, blocks: heard.append((view.id, blocks[0].text))
    host.on_open_link = refuse
    await host.call_tool("show_orders")
    view = renderer.views["orders-1"]
    block = {"type": "text", "text": "hello"}
    assert await view.do("sendMessage", params={"role": "user", "content": [block]}) == {}
    assert heard == [("orders-1", "hello")]
    assert (await view.do("openLink", params={"url": "https://a.example"}))["isError"] is True


async def test_the_official_view_is_torn_down_closed_and_opened_again(
    host: Host, renderer: NodeRenderer
):
    await host.call_tool("show_orders", {"status": "late"})
    first = renderer.views["orders-1"]
    await host.views["orders-1"].close("enough")
    await first.event("closed")
    with pytest.raises(ViewClosed, match="View orders-1 is closed: enough"):
        await host.call_tool("orders-1__read")
    await host.reopen("orders-1")
    second = renderer.views["orders-1"]
    assert second is not first
    assert (await second.event("toolinput"))["params"] == {"arguments": {"status": "late"}}
    await second.event("toolresult")
    assert (await host.call_tool("orders-1__read")).text == "here"


async def test_the_official_view_that_dies_is_closed(host: Host, renderer: NodeRenderer):
    closed = asyncio.Event()
    host.on_view_closed = lambda view: closed.set()
    await host.call_tool("show_orders")
    renderer.views["orders-1"].order("die")
    await closed.wait()
    assert await tool_names(host) == ["show_orders", "search", "add"]
    with pytest.raises(ViewClosed):
        await host.call_tool("orders-1__read")


async def test_the_official_view_takes_the_input_and_result_of_another_call(
    host: Host, renderer: NodeRenderer
):
    await host.add_server("again", shop("again"), reuse_views="always")
    await host.call_tool("show_again", {"status": "one"})
    used = await host.call_tool("show_again", {"status": "two"})
    assert used.meta["transom/view"] == {"id": "again-1", "state": "live", "reused": True}
    view = renderer.views["again-1"]
    for status in ("one", "two"):
        assert (await view.event("toolinput"))["params"] == {"arguments": {"status": status}}
        told = (await view.event("toolresult"))["params"]
        assert told["content"] == [{"type": "text", "text": f"again: {status}"}]
