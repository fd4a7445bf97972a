"""Views that mean harm, or are broken: what the host sees, and that nobody else is affected."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.host.bare_view import HOST, Errors, begun, ready, text, tool
from transom import Bridge, Limits
from transom.channel import Channel, memory_pair
from transom.errors import (
    ChannelClosed,
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    OutOfOrder,
    ProtocolError,
    RequestTimeout,
)
from transom.protocol.lifecycle import LifecycleState


class RawView:
    """A View that writes its messages by hand."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel

    async def send(self, **message: Any) -> None:
        await self.channel.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def receive(self) -> dict[str, Any]:
        return json.loads(await self.channel.receive())

    async def be_ready(self) -> None:
        params = {
            "appInfo": {"name": "evil", "version": "666"},
            "appCapabilities": {"tools": {}},
            "protocolVersion": "2026-01-26",
        }
        await self.send(id="init", method="ui/initialize", params=params)
        assert (await self.receive())["id"] == "init"
        await self.send(method="ui/notifications/initialized")


@asynccontextmanager
async def raw(**options: Any) -> AsyncIterator[tuple[Bridge, RawView, Errors]]:
    ours, theirs = memory_pair()
    options = {"host_info": HOST, "limits": Limits(teardown_timeout=0.01), **options}
    bridge, errors = Bridge(ours, **options), Errors()
    bridge.on_error = errors.take
    async with bridge:
        view = RawView(theirs)
        await view.be_ready()
        yield bridge, view, errors


@pytest.mark.load
async def test_a_view_with_a_hundred_thousand_tools_has_fifty():
    many = {"tools": [tool(f"t{n}") for n in range(100_000)]}
    async with ready(answers={"tools/list": many}) as (bridge, _, errors):
        assert len(await bridge.list_tools()) == 50
        text = "PeerError: tools/list: the View has more than 50 tools (max_tools)"
        assert errors == [f"{text}: 99950 left out"]


async def test_a_hundred_thousand_bad_tools_are_not_all_looked_at():
    many = {"tools": [{"name": n} for n in range(100_000)]}
    async with ready(answers={"tools/list": many}) as (bridge, _, errors):
        assert await bridge.list_tools() == []
        assert len(bridge.left_out) == 101
        assert len(errors) == 101


async def test_a_cursor_of_a_million_characters_is_not_sent_back():
    answer = {"tools": [], "nextCursor": "c" * 1_000_000}
    async with ready(answers={"tools/list": answer}) as (bridge, view, _):
        assert await bridge.list_tools() == []
        assert len(view.requests) == 1


async def test_a_result_of_fifty_megabytes_is_not_read_and_the_view_stays_usable():
    big = text("x" * 50_000_000)
    async with ready(answers={"tools/call": big}) as (bridge, view, errors):
        with pytest.raises(InvalidResult, match="over the limit of 16777216"):
            await bridge.call_tool("big")
        assert "is over the limit of 16777216" in await errors.one_with("over the limit")
        view.answers["tools/call"] = text("small")
        assert (await bridge.call_tool("big")).text == "small"


async def test_a_result_nested_deeper_than_any_is_refused():
    async with raw() as (bridge, view, errors):
        call = await begun(bridge.call_tool("deep"))
        request = await view.receive()
        nested = '{"x":' * 5000 + "1" + "}" * 5000
        data = f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{nested}}}'
        await view.channel.send(data.encode())
        await errors.one_with("nested deeper than 100")
        with pytest.raises(InvalidResult, match="nested deeper than 100"):
            await call


async def test_the_first_answer_counts_and_the_second_is_reported():
    async with raw() as (bridge, view, errors):
        call = await begun(bridge.call_tool("a"))
        request = await view.receive()
        await view.send(id=request["id"], result=text("first"))
        await view.send(id=request["id"], result=text("second"))
        await view.send(id=request["id"], error={"code": 1, "message": "third"})
        assert (await call).text == "first"
        assert "response for an unknown request: 1" in errors[0]
        assert "error for an unknown request: 1" in errors[1]


@pytest.mark.parametrize("wrong", [77, "1", 0])
async def test_an_answer_with_a_wrong_id_answers_nothing(wrong: Any):
    async with raw() as (bridge, view, errors):
        call = await begun(bridge.call_tool("a"))
        request = await view.receive()
        await view.send(id=wrong, result=text("for someone else"))
        await errors.one_with("unknown request")
        assert not call.done()
        await view.send(id=request["id"], result=text("mine"))
        assert (await call).text == "mine"


@pytest.mark.parametrize("wrong", [1.5, None, True, [0]])
async def test_requests_with_impossible_ids_are_not_answered(wrong: Any):
    async with raw() as (_, view, errors):
        await view.send(id=wrong, method="ping")
        await view.send(id=5, method="ping")
        assert await view.receive() == {"jsonrpc": "2.0", "id": 5, "result": {}}
        assert len(errors) == 1


async def test_answers_echo_the_type_of_the_id():
    async with raw() as (_, view, _):
        for given in (7, "7", "", -3):
            await view.send(method="ping", id=given)
            assert (await view.receive())["id"] == given


async def test_an_id_that_is_in_use_is_not_used_twice():
    async with raw() as (bridge, view, errors):
        release = asyncio.Event()
        heard: list[str] = []

        @bridge.on_message
        async def _(blocks: Any) -> None:
            heard.append(blocks[0].text)
            await release.wait()

        for words in ("first", "second"):
            params = {"role": "user", "content": text(words)["content"]}
            await view.send(id=1, method="ui/message", params=params)
        await errors.one_with("Request id 1 is in use")
        release.set()
        assert await view.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        await view.send(id=1, method="ping")
        assert await view.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert heard == ["first"]


async def test_batches_and_garbage_are_reported_and_change_nothing():
    async with raw() as (bridge, view, errors):
        await view.channel.send(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]')
        await view.channel.send(b"not json")
        await view.channel.send(b'{"jsonrpc":"2.0","id":2,"method":"ping","extra":1}')
        assert (await view.receive())["error"]["code"] == -32600
        await view.send(id=3, method="ping")
        assert (await view.receive())["id"] == 3
        assert len(errors) == 3
        assert bridge.state is LifecycleState.READY


async def test_the_order_of_members_does_not_matter():
    async with raw() as (bridge, view, _):
        call = await begun(bridge.call_tool("a"))
        request = await view.receive()
        answer = json.dumps({"result": text("ok"), "id": request["id"], "jsonrpc": "2.0"})
        await view.channel.send(answer.encode())
        assert (await call).text == "ok"


async def test_an_answer_after_the_time_is_up_is_reported_and_ignored():
    async with raw() as (bridge, view, errors):
        call = await begun(bridge.call_tool("late", timeout=0.01))
        request = await view.receive()
        with pytest.raises(RequestTimeout):
            await call
        stop = await view.receive()
        assert stop["method"] == "notifications/cancelled"
        assert stop["params"]["requestId"] == request["id"]
        await view.send(id=request["id"], result=text("sorry"))
        await errors.one_with("unknown request")


async def test_an_answer_after_teardown_changes_nothing():
    async with raw() as (bridge, view, _):
        call = await begun(bridge.call_tool("a"))
        request = await view.receive()
        assert await bridge.teardown() is False
        with pytest.raises(ConnectionClosed):
            await call
        with pytest.raises(ChannelClosed):
            await view.send(id=request["id"], result=text("too late"))
        with pytest.raises(NotConnected):
            await bridge.call_tool("a")


async def test_a_view_that_never_answers_costs_one_timeout_per_call():
    async with raw(limits=Limits(call_timeout=0.02, teardown_timeout=0.01)) as (bridge, _, _):
        calls = [bridge.call_tool("a") for _ in range(50)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {RequestTimeout}


async def test_progress_that_nobody_asked_for_is_reported():
    async with raw() as (bridge, view, errors):
        call = await begun(bridge.call_tool("a"))
        request = await view.receive()
        params = {"progressToken": request["id"], "progress": 1}
        await view.send(method="notifications/progress", params=params)
        await errors.one_with("did not ask for it")
        await view.send(id=request["id"], result=text("ok"))
        assert (await call).text == "ok"


async def test_a_flood_of_requests_is_answered_up_to_the_limit():
    limits = Limits(max_requests=10, teardown_timeout=0.01)
    async with raw(limits=limits) as (bridge, view, _):
        release = asyncio.Event()
        running: list[str] = []

        @bridge.on_open_link
        async def _(url: str) -> None:
            running.append(url)
            await release.wait()

        params = {"url": "https://example.com/"}
        for number in range(100):
            await view.send(id=number, method="ui/open-link", params=params)
        refused = [await view.receive() for _ in range(90)]
        assert {answer["error"]["message"] for answer in refused} == {
            "Too many requests in flight (limit 10)"
        }
        release.set()
        done = [await view.receive() for _ in range(10)]
        assert sorted(answer["id"] for answer in done) == list(range(10))
        assert len(running) == 10


async def test_requests_that_wait_are_bounded_in_bytes():
    limits = Limits(max_message_bytes=10_000, teardown_timeout=0.01)
    async with raw(limits=limits) as (bridge, view, _):
        release = asyncio.Event()

        @bridge.on_message
        async def _(blocks: Any) -> None:
            await release.wait()

        params = {"role": "user", "content": [{"type": "text", "text": "x" * 8_000}]}
        for number in range(20):
            await view.send(id=number, method="ui/message", params=params)
        await view.send(method="notifications/cancelled", params={"requestId": 0})
        await view.send(id=20, method="ui/message", params=params)
        refused = [await view.receive() for _ in range(17)]
        assert {answer["error"]["message"] for answer in refused} == {
            "Too many requests in flight (limit 40000 bytes)"
        }
        release.set()
        done = [await view.receive() for _ in range(3)]
        assert [answer["id"] for answer in done] == [1, 2, 3]
        await view.send(id=21, method="ui/message", params=params)
        assert (await view.receive())["result"] == {}


async def test_a_view_cannot_initialise_its_way_past_the_order_of_things():
    async with raw() as (bridge, view, _):
        await bridge.send_tool_input({"n": 1})
        assert (await view.receive())["method"] == "ui/notifications/tool-input"
        await view.be_ready()
        assert (await view.receive())["params"] == {"arguments": {"n": 1}}  # as after a reload
        await bridge.send_tool_result("once")
        assert (await view.receive())["params"] == text("once")
        with pytest.raises(OutOfOrder, match="not after result"):
            await bridge.send_tool_result("twice")


async def test_a_message_of_a_million_arrays_is_refused_unread():
    async with raw() as (bridge, view, _):
        call = await begun(bridge.call_tool("wide"))
        request = await view.receive()
        wide = b'{"x":[' + b"[]," * 1_000_000 + b"1]}"
        answer = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (request["id"], wide)
        await view.channel.send(answer)
        with pytest.raises(InvalidResult, match="more than 250000 arrays and objects"):
            await call
        await view.channel.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b}' % wide)
        refused = (await view.receive())["error"]["message"]
        assert refused == "Message has more than 250000 arrays and objects"


async def test_a_view_that_asks_but_never_reads_is_cut_off():
    ours, theirs = memory_pair(capacity=1)
    bridge = Bridge(ours, host_info=HOST, limits=Limits(teardown_timeout=0.01))
    bridge.start()
    flood = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "extra": 1}).encode()

    async def rage() -> None:
        while True:
            await theirs.send(flood)
            await asyncio.sleep(0)

    with pytest.raises(ChannelClosed):
        await rage()
    assert await bridge.wait_closed() == "the other side sends requests but does not read"


async def test_one_bad_view_does_not_disturb_another():
    async with raw() as (_, evil, errors), ready() as (good, _, good_errors):

        async def rage() -> None:
            for number in range(2000):
                await evil.send(method="notifications/tools/list_changed")
                await evil.send(id=number, result=text("?"))
                await evil.channel.send(b"{")

        raging = asyncio.ensure_future(rage())
        for _ in range(200):
            assert (await good.call_tool("echo")).text == "called echo"
        await raging
        assert len(errors) == 4000
        assert good_errors == []


async def test_a_view_learns_nothing_from_errors_of_the_host():
    async with raw() as (bridge, view, _):

        @bridge.on_message
        def _(blocks: Any) -> None:
            raise KeyError("secret")

        params = {"role": "user", "content": []}
        await view.send(id=1, method="ui/message", params=params)
        assert (await view.receive())["error"] == {"code": -32603, "message": "Internal error"}


async def test_a_tool_named_like_anything_can_be_called():
    async with ready(
        answers={"tools/list": {"tools": [tool("__proto__"), tool("a b"), tool("ü/ö")]}}
    ) as (bridge, _, _):
        for entry in await bridge.list_tools():
            assert (await bridge.call_tool(entry.name)).text == f"called {entry.name}"


async def test_an_error_answer_with_strange_members_is_still_an_error():
    async with raw() as (bridge, view, _):
        call = await begun(bridge.call_tool("a"))
        request = await view.receive()
        error = {"code": -32603, "message": "MCP error -32603: x", "data": [1, {"a": None}]}
        await view.send(id=request["id"], error=error)
        with pytest.raises(ProtocolError) as raised:
            await call
        assert raised.value.data == [1, {"a": None}]
