"""Servers that are broken or mean: the client is answered, and nothing else suffers."""

import asyncio
import json
from typing import Any

import pytest

from tests.gateway.memory import OPENS, TOOLS, URI, Odd, Server, gateway, text, tool, words
from transom.channel import memory_pair
from transom.gateway.client_host import ViewOptions
from transom.gateway.proxy import Proxy

VIEW = "shop-1"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


# --- messages --------------------------------------------------------------------------------

LINES: list[bytes] = [
    b"Listening on port 80",
    b"\xff\xfe\x00",
    b"5",
    b"[]",
    b"null",
    b"{}",
    b'{"jsonrpc":"1.0","id":7,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"result":{}}',
    b'{"jsonrpc":"2.0","id":"nobody","result":{}}',
    b'{"jsonrpc":"2.0","id":"nobody","error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","method":5}',
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}',
    b"[" * 100_000,
    b'{"jsonrpc":"2.0","method":"x","params":' + b"[" * 100_000,
    b'{"jsonrpc":"2.0","id":"nobody","result":{"a":"' + b"x" * 1_000_000 + b'"}}',
]


async def test_lines_that_are_no_messages_are_left_out():
    async with gateway() as at:
        for line in LINES:
            await at.server.now.channel.send(line)
        assert await at.call("plain") == text("called plain")
        assert at.client.notes == []
        assert at.client.asked == []
        assert at.client.stray == []


async def test_thousands_of_garbage_lines_fill_no_log(caplog: pytest.LogCaptureFixture):
    async with gateway() as at:
        for number in range(2000):
            await at.server.now.channel.send(b"garbage %d" % number)
            await at.client.channel.send(b"garbage %d" % number)
        assert await at.call("plain") == text("called plain")
    assert [each for each in caplog.records if each.levelname in ("WARNING", "ERROR")] == []


@pytest.mark.parametrize(
    "params",
    [{}, {"requestId": {}}, {"requestId": None}, {"progressToken": {}}, {"progressToken": 1}],
)
@pytest.mark.parametrize(
    "method",
    [
        "notifications/tools/list_changed",
        "notifications/subscriptions/acknowledged",
        "notifications/message",
        "notifications/whatever",
    ],
)
async def test_odd_notifications_pass_as_they_are(method: str, params: dict[str, Any]):
    async with gateway() as at:
        await at.server.now.tell(method, params)
        await at.client.until(lambda: at.client.noted(method))
        assert at.client.noted(method) == [params]
        assert await at.call("plain") == text("called plain")


@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/progress"])
async def test_notifications_about_requests_that_there_are_not_go_nowhere(method: str):
    """Ids and tokens are translated, so the client could take them for those of its own."""
    async with gateway() as at:
        for params in ({}, {"requestId": {}}, {"requestId": 1}, {"progressToken": 1}):
            await at.server.now.tell(method, {"progress": 1, **params})
        assert await at.call("plain") == text("called plain")
        assert at.client.notes == []


@pytest.mark.parametrize("result", [5, None, "x", [1], True, {"deep": nested(250)}])
async def test_an_answer_that_cannot_be_read_is_an_error_and_no_silence(result: Any):
    async with gateway() as at:
        await at.tools()
        asked = [
            ("tools/call", {"name": "plain"}),
            ("tools/call", {"name": "show"}),
            ("tools/list", {}),
            ("resources/read", {"uri": "x:y"}),
            ("odd/method", {}),
        ]
        at.server.answers.update({method: Odd(result) for method, _ in asked})
        for method, params in asked:
            error = await at.ask(method, params)
            assert error["code"] == -32000
            assert "shop" in error["message"]


async def test_an_answer_that_comes_twice_comes_once():
    async with gateway(Server({"tools/call": None})) as at:
        await at.tools()
        asked = await at.begin("tools/call", {"name": "plain"})
        server = at.server.now
        await server.until(lambda: server.requests("tools/call"))
        id = server.asked[-1]["id"]
        for _ in range(3):
            await server.say({"id": id, "result": text("once")})
        assert (await asked.answer)["result"] == text("once")
        server.answers["tools/call"] = text("next")
        assert await at.call("plain") == text("next")
        assert at.client.stray == []


@pytest.mark.load
async def test_large_results_pass_whole():
    big = "x" * 8_000_000
    async with gateway(Server({"tools/call": text(big)})) as at:
        await at.tools()
        assert words(await at.call("plain")) == [big]
        assert words(await at.call("show"))[0] == big


async def test_a_server_that_talks_on_waits_for_a_client_that_does_not_read():
    """The gateway keeps little of it, and nothing is lost."""
    count = 5_000
    server = Server()
    ours, theirs = memory_pair(capacity=10)
    views = ViewOptions(None)
    running = asyncio.create_task(Proxy(ours, [("shop", server.connect)], views).run())
    await server.started.wait()
    sent = 0

    async def talk() -> None:
        nonlocal sent
        for number in range(count):
            await server.now.tell("notifications/message", {"data": number})
            sent = number + 1

    talking = asyncio.create_task(talk())
    before = -1
    while sent != before:  # until it is stuck
        before = sent
        for _ in range(1000):
            await asyncio.sleep(0)
    assert sent < count / 2
    heard = [json.loads(await theirs.receive())["params"]["data"] for _ in range(count)]
    assert heard == list(range(count))
    await talking
    await theirs.aclose()
    await running
    await server.now.aclose()


# --- what it says of itself ------------------------------------------------------------------


@pytest.mark.parametrize("capabilities", [5, None, [], {"tools": 5}, {"resources": "x"}, {}])
async def test_odd_capabilities_are_no_reason_to_fail(capabilities: Any):
    hello = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "odd": 1}
    async with gateway(Server({"initialize": hello})) as at:
        again = await at.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        assert again["odd"] == 1
        assert again["capabilities"]["resources"]["subscribe"] is True
        assert words(await at.call("plain")) == ["called plain"]
        assert "show" in await at.tools()


ODD_TOOLS: list[Any] = [
    None,
    5,
    "x",
    [],
    {},
    {"name": 5},
    {"name": None, "_meta": {"ui": {"resourceUri": URI}}},
    tool("meta-5", _meta=5),
    tool("meta-list", _meta=[1]),
    tool("ui-5", _meta={"ui": 5}),
    tool("ui-null", _meta={"ui": None}),
    tool("uri-5", _meta={"ui": {"resourceUri": 5}}),
    tool("uri-elsewhere", _meta={"ui": {"resourceUri": "https://x.test/"}}),
    tool("uri-old-5", _meta={"ui/resourceUri": 5}),
    tool("visible-5", _meta={"ui": {"visibility": 5}}),
    tool("visible-odd", _meta={"ui": {"visibility": [5, {}, "model"]}}),
    {"name": "no-schema"},
    {"name": "schema-5", "inputSchema": 5},
    tool("description-5", description=5),
    tool("annotated-5", annotations=5),
    tool("x" * 100_000),
    tool(""),
]


async def test_odd_tools_are_listed_as_they_are_and_the_good_ones_work():
    server = Server()
    server.tools = [*ODD_TOOLS, *TOOLS]
    async with gateway(server) as at:
        listed = (await at.ask("tools/list"))["tools"]
        assert listed[: len(ODD_TOOLS)] == ODD_TOOLS
        assert "is open" in words(await at.call("show"))[-1]
        for each in ODD_TOOLS:
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                result = await at.call(each["name"])
                assert words(result)[0] == f"called {each['name']}"
        after = (await at.ask("tools/list"))["tools"]
        assert after[: len(ODD_TOOLS)] == ODD_TOOLS


@pytest.mark.parametrize(
    "listing",
    [{}, {"tools": 5}, {"tools": None}, {"tools": {}}, {"tools": [], "nextCursor": 5}],
)
async def test_an_odd_listing_passes_as_it_is(listing: dict[str, Any]):
    async with gateway(Server({"tools/list": listing})) as at:
        result = await at.ask("tools/list")
        assert {"tools": [], **listing}.items() <= {"tools": [], **result}.items()
        assert words(await at.call("show")) == ["called show"]


async def test_a_listing_without_an_end_does_not_hold_up_a_call():
    pages = iter(range(10**9))
    endless = {"tools/list": lambda _: {"tools": [OPENS], "nextCursor": f"page {next(pages)}"}}
    async with gateway(Server(endless)) as at:
        assert words(await at.call("show"))[0] == "called show"
        assert next(pages) < 1000


async def test_two_tools_of_one_name_are_both_listed_and_the_first_counts():
    server = Server()
    server.tools = [OPENS, tool("show", description="The other.")]
    async with gateway(server) as at:
        names = [each["name"] for each in (await at.ask("tools/list"))["tools"]]
        assert names.count("show") == 2
        assert "is open" in words(await at.call("show"))[-1]


# --- results ---------------------------------------------------------------------------------

ODD_RESULTS: list[dict[str, Any]] = [
    {},
    {"content": 5},
    {"content": None},
    {"content": [5, None, {"type": 5}, {"type": "new", "x": 1}]},
    {"content": [], "structuredContent": 5},
    {"content": [], "structuredContent": [1]},
    {"content": [], "isError": "yes"},
    {"content": [], "_meta": 5},
    {"content": [], "_meta": {"transom/view": {"id": "other-1", "state": "live"}}},
    {"content": [{"type": "text"}]},
    {"content": [{"type": "image", "data": "not base64", "mimeType": 5}]},
]


@pytest.mark.parametrize("result", ODD_RESULTS)
async def test_an_odd_result_keeps_its_members_with_or_without_a_view(result: dict[str, Any]):
    async with gateway(Server({"tools/call": result})) as at:
        await at.tools()
        assert await at.call("plain") == result
        shown = await at.call("show")
        content = result.get("content", [])
        if isinstance(content, list):
            assert shown["content"][: len(content)] == content
            assert f"View {VIEW}" in shown["content"][-1]["text"] or "could not" in str(shown)
            assert "other-1" not in str(shown["content"])
        assert {**shown, "content": 0} == {**result, "content": 0}


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"contents": 5},
        {"contents": []},
        {"contents": [5]},
        {"contents": [{"uri": URI}]},
        {"contents": [{"uri": URI, "mimeType": "text/plain", "text": "x"}]},
        {"contents": [{"uri": URI, "mimeType": "text/html;profile=mcp-app", "blob": "%%%"}]},
        {"contents": [{"uri": URI, "mimeType": "text/html;profile=mcp-app", "text": 5}]},
        {"contents": [{"uri": URI, "mimeType": "text/html;profile=mcp-app",
                       "text": "x" * 20_000_000}]},
    ],
    ids=lambda page: str(page)[:40],
)  # fmt: skip
async def test_an_odd_page_is_no_view_and_leaves_the_result_whole(page: dict[str, Any]):
    async with gateway(Server({"resources/read": page})) as at:
        first, about = words(await at.open())
        assert first == "called show"
        assert "could not be opened" in about


async def test_a_page_that_never_comes_is_given_up_when_the_call_is():
    async with gateway(Server({"resources/read": None})) as at:
        await at.tools()
        call = await at.begin("tools/call", {"name": "show"})
        server = at.server.now
        await server.until(lambda: server.requests("resources/read"))
        await at.client.tell("notifications/cancelled", {"requestId": call.id})
        assert await at.call("plain") == text("called plain")
