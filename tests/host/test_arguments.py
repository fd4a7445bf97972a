"""Arguments that a model writes and nobody can send: half a character, or nested without end."""

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest

from tests.host.page import PageRenderer
from tests.host.shop import URI, editor, hosting, shop
from transom import Host, InProcessRenderer, Limits, Policy
from transom.errors import BusUnreachable, ProtocolError
from transom.host.open_views import HostRecords, ViewRecord
from transom.host.views.shown_calls import ViewOrigin
from transom.types import Tool
from transom.web.application.user_records import SharedRecords, _write_view, read_records


def nested(levels: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for _ in range(levels - 1):
        arguments = {"status": arguments}
    return arguments


BAD = [
    pytest.param({"status": "\ud800"}, "half of a surrogate pair", id="half a character"),
    pytest.param({"\udfff": 1}, "half of a surrogate pair", id="half a character as a name"),
    pytest.param({"status": object()}, "cannot be written as JSON", id="no JSON"),
    *(pytest.param(odd, "JSON object", id=f"{odd}") for odd in ([["a", 1]], [], "{}", 0, True)),
    pytest.param(nested(99), "at most 98 levels deep", id="too deep to be read"),
    pytest.param(nested(5000), "at most 98 levels deep", id="too deep to be written"),
]


@pytest.mark.parametrize("name", ["search", "show_orders", "orders-1__write", "orders-1__read"])
@pytest.mark.parametrize(("arguments", "words"), BAD)
async def test_a_model_reads_at_once_what_is_wrong_with_arguments_that_cannot_be_sent(
    name: str, arguments: Any, words: str
):
    async with asyncio.timeout(30), hosting(policy=Policy.trusting()) as host:
        await host.call_tool("show_orders")
        result = await host.answer(name, arguments, call_id="1")
        assert result.is_error
        assert result.text.startswith(f"Invalid arguments for {name}: they ")
        assert words in result.text
        assert list(host.views) == ["orders-1"]
        [refusal] = await host.audit.read(event="refusal")
        assert (refusal.tool, refusal.detail) == (name, result.text + " (-32602)")


async def test_arguments_as_deep_as_allowed_reach_the_tool_of_a_view():
    async with asyncio.timeout(30), hosting(policy=Policy.trusting()) as host:
        await host.call_tool("show_orders")
        result = await host.answer("orders-1__write", nested(98))
        assert "status: is not expected" in result.text  # which is what the View says


async def test_how_deep_arguments_may_be_follows_the_hosts_limit():
    async with asyncio.timeout(30), hosting(limits=Limits(max_message_depth=10)) as host:
        assert "at most 8 levels deep" in (await host.answer("search", nested(9))).text
        assert "at most 8 levels" not in (await host.answer("search", nested(8))).text


async def test_a_view_whose_peer_takes_less_answers_that_a_call_is_too_deep():
    limits = Limits(max_message_depth=200)  # of the host; a View in Python takes 100
    async with asyncio.timeout(30), hosting(policy=Policy.trusting(), limits=limits) as host:
        await host.call_tool("show_orders")
        result = await host.answer("orders-1__write", nested(150))
        assert result.is_error
        assert result.text == "Message is nested deeper than 100"


@pytest.mark.parametrize(("arguments", "words"), BAD)
async def test_nobody_is_asked_about_arguments_that_cannot_be_sent(arguments: Any, words: str):
    async with hosting(policy=Policy()) as host:
        await host.call_tool("show_orders")
        asked = await host.approval_needed("orders-1__write", {"words": "x"}, call_id="1")
        assert asked is not None
        assert await host.approval_needed("orders-1__write", arguments, call_id="2") is None


@pytest.mark.parametrize(
    "arguments", [{"view_id": "\ud800"}, nested(99), nested(5000), 1, [], [["view_id", "orders-1"]]]
)
async def test_a_look_at_a_view_with_arguments_that_cannot_be_sent_is_a_result(arguments: Any):
    async with hosting(renderer=PageRenderer()) as host:
        await host.call_tool("show_orders")
        assert await host.approval_needed("look_at_view", arguments, call_id="1") is None
        result = await host.call_tool("look_at_view", arguments)
        assert result.is_error
        assert result.text.startswith("Invalid arguments for look_at_view: they ")


@pytest.mark.parametrize(("arguments", "words"), BAD)
async def test_no_view_opens_with_arguments_that_it_could_not_get(arguments: Any, words: str):
    async with hosting() as host:
        with pytest.raises(ProtocolError, match=words):
            await host.open_view("orders", "show_orders", arguments)
        assert not host.views
        assert not host.records().views


@pytest.mark.parametrize(("arguments", "words"), BAD)
async def test_a_call_that_somebody_else_makes_goes_on_without_its_view(arguments: Any, words: str):
    async def call_server() -> str:
        return "the server's"

    async with hosting() as host:
        tool = await host.server("orders").tool("show_orders")
        assert tool is not None
        shown = await host.call_with_view("orders", tool, arguments, call_server)
        assert (shown.result, shown.view) == ("the server's", None)
        assert words in (shown.error or "")


@pytest.mark.parametrize(("arguments", "words"), BAD)
async def test_input_that_cannot_be_sent_is_refused_and_can_be_sent_again(
    arguments: Any, words: str
):
    async with hosting() as host:
        view = await host.open_view("orders", "show_orders", partial=True)
        with pytest.raises(ProtocolError, match=words):
            await view.send_partial_input(arguments)
        with pytest.raises(ProtocolError, match=words):
            await view.send_input(arguments)
        await view.send_input({"status": "open"})
        assert msgspec.msgpack.encode(host.records())


async def test_a_call_that_is_written_and_cannot_be_sent_leaves_records_that_can_be_kept():
    async with hosting() as host:
        host.stream_arguments("show_orders", '{"status":' * 150 + "1", call_id="1")
        result = await host.answer("show_orders", nested(150), call_id="1")
        assert result.is_error
        assert msgspec.msgpack.encode(host.records())


async def test_a_view_is_used_again_after_a_call_that_could_not_be_sent():
    renderer = InProcessRenderer({URI: editor()})
    async with Host(renderer=renderer, policy=Policy.trusting()) as host:
        await host.add_server("orders", shop(), reuse_views="arguments")
        await host.answer("show_orders", {"status": "a"})
        assert (await host.answer("show_orders", {"status": "\ud800"})).is_error
        again = await host.answer("show_orders", {"status": "a"})
        assert (again.meta or {})["transom/view"]["reused"] is True


@pytest.mark.parametrize("arguments", [{"a": "\ud800"}, {"a": object()}, nested(100_000)])
def test_a_record_whose_arguments_were_changed_to_no_json_is_left_out(arguments: Any):
    origin = ViewOrigin("orders", URI, Tool("show_orders"), arguments, result=b"{}")
    record = ViewRecord(origin)
    assert record.size > 0
    assert _write_view(record) is None


@pytest.mark.parametrize("damage", [b"\x91" * 100_000 + b"\xc0", b"\xa4d\xe8ep", b"\xc1"])
async def test_what_cannot_be_read_costs_that_view_alone_and_is_deleted(damage: bytes):
    record = ViewRecord(ViewOrigin("orders", URI, Tool("show_orders"), {"a": "deep"}, result=b"{}"))
    host, view = (msgspec.msgpack.encode(each) for each in (HostRecords(), record))
    damaged = view.replace(b"\xa4deep", damage)
    fields = {"host": host, "view orders-1": view, "view orders-2": damaged}
    records = read_records(fields)
    assert records is not None
    assert list(records.views) == ["orders-1"]
    assert read_records({"host": damage, "view orders-1": view}) is None
    lease = AsyncMock(held=True)
    await SharedRecords(lease, lambda: records, fields).finish()
    [written] = lease.write.await_args.args
    assert written == {"host": host, "view orders-1": view, "view orders-2": None}
    lease.write.side_effect = [BusUnreachable("away"), None]
    shared = SharedRecords(lease, lambda: records, fields)
    await shared._write(again=False)
    await shared.finish()
    assert lease.write.await_args.args == (written,)


def test_a_record_is_as_deep_as_the_arguments_that_a_host_with_a_higher_limit_takes():
    origin = ViewOrigin("orders", URI, Tool("show_orders"), nested(500), result=b"{}")
    written = _write_view(ViewRecord(origin))
    assert written is not None
    host = msgspec.msgpack.encode(HostRecords())
    records = read_records({"host": host, "view orders-1": written})
    assert records is not None
    assert records.views["orders-1"].origin.arguments == nested(500)
