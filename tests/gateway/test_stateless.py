"""The gateway on HTTP without sessions, for clients of 2026-07-28."""

import asyncio
import json
from base64 import b64encode
from typing import Any

import httpx2
import pytest
from msgspec import Raw
from starlette.datastructures import Headers

from tests.connections.scripted_server import ScriptedServer
from tests.gateway.chatty import chatty, in_memory
from tests.gateway.stateless import ENVELOPE, SUBSCRIPTION, call, stamped
from tests.gateway.test_http import BOTH, INITIALIZE, Page, client, gateway, text_of, unserved
from tests.gateway.test_several_stateless import stateless, streaming
from tests.host.shop import Heard, editor, shop
from transom import App, InProcessRenderer
from transom.gateway.eras import read_request
from transom.gateway.http_session import Principal
from transom.gateway.lists import has_invalid_headers
from transom.protocol import wire

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def headers_for(method: str, params: dict[str, Any] | None, **more: str) -> dict[str, str]:
    named = params or {}
    name = named.get("uri") or named.get("name") or named.get("taskId")
    return {
        **BOTH,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **({} if name is None else {"mcp-name": name}),
        **more,
    }


async def post(
    http: httpx2.AsyncClient,
    url: str,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    id: Any = 1,
    token: str | None = None,
    meta: dict[str, Any] | None = None,
) -> httpx2.Response:
    """Send a request as a client of 2026-07-28 does."""
    headers = headers_for(method, params)
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    message = {
        "jsonrpc": "2.0",
        "id": id,
        "method": method,
        "params": stamped(params, **(meta or {})),
    }
    return await http.post(url, json=message, headers=headers)


def events(lines: list[str]) -> list[Any]:
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


async def next_event(lines: Any) -> Any:
    async for line in lines:
        if line.startswith("data: "):
            return json.loads(line[6:])
    raise AssertionError("the stream is over")


# --- requests --------------------------------------------------------------------------------


async def test_any_request_may_come_first_and_on_any_connection() -> None:
    async with gateway(in_memory(chatty())) as (url, served):
        for method, params in (("tools/call", call("count", to=1)), ("tools/list", None)):
            async with httpx2.AsyncClient() as http:
                answer = await post(http, url, method, params)
                assert (answer.status_code, answer.json()["id"]) == (200, 1)
                assert "mcp-session-id" not in answer.headers
        assert not served._clients
        assert list(served._principals) == [""]


async def test_clients_that_use_the_same_ids_and_tokens_at_once_get_their_own_answers() -> None:
    async with gateway(in_memory(chatty())) as (url, _), httpx2.AsyncClient() as http:
        counts = [call("count", to=to) | {"_meta": {"progressToken": 7}} for to in range(1, 9)]
        asked = [
            http.post(
                url,
                headers=headers_for("tools/call", count),
                json={
                    "jsonrpc": "2.0",
                    "id": "same",
                    "method": "tools/call",
                    "params": {**count, "_meta": {**ENVELOPE, **count["_meta"]}},
                },
            )
            for count in counts
        ]
        for to, answer in enumerate(await asyncio.gather(*asked), 1):
            *progress, last = events(answer.text.splitlines())
            assert last["id"] == "same"
            assert last["result"]["content"][0]["text"] == f"counted to {to}"
            assert [each["params"]["progress"] for each in progress] == list(range(to))
            assert {each["params"]["progressToken"] for each in progress} == {7}
            assert answer.headers["x-accel-buffering"] == "no"


async def test_a_client_that_goes_away_has_cancelled_its_request() -> None:
    heard = Heard()
    async with gateway(in_memory(chatty(heard))) as (url, _), httpx2.AsyncClient() as http:
        params = {**call("wait"), "_meta": {**ENVELOPE, "progressToken": "p"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = headers_for("tools/call", params)
        async with http.stream("POST", url, json=message, headers=headers) as stream:
            assert (await next_event(stream.aiter_lines()))["params"]["progressToken"] == "p"
        await heard.has("cancelled")


async def test_a_request_given_up_before_its_turn_is_whole_when_it_comes() -> None:
    everyone = Principal("everyone", 1800, unserved)
    params = stamped(call("wait", until="noon"), progressToken="p")
    asked = wire.decode(wire.encode_request("same", "tools/call", json.dumps(params).encode()))
    assert isinstance(asked, wire.Request)
    post = everyone.post(read_request(asked), Headers(), asyncio.Event().wait, send=print)  # type: ignore[arg-type]
    posting = asyncio.create_task(post)
    await asyncio.sleep(0)
    posting.cancel()
    await asyncio.wait([posting])
    received = wire.decode(await everyone.receive())
    assert isinstance(received, wire.Request)
    request = everyone.read(received)
    assert (request.id, request.name, request.arguments) == (1, "wait", {"until": "noon"})
    assert request.progress_token == Raw(b"1")
    assert b"notifications/cancelled" in await everyone.receive()


async def test_requests_that_are_worked_on_have_a_limit_for_their_total_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transom.gateway.client.MAX_BYTES", 1000)
    async with gateway(in_memory(chatty())) as (url, _), httpx2.AsyncClient() as http:
        params = call("wait", why="x" * 500)
        calls = [asyncio.create_task(post(http, url, "tools/call", params)) for _ in range(8)]
        answered, waiting = await asyncio.wait(calls, timeout=5, return_when="FIRST_COMPLETED")
        for each in waiting:
            each.cancel()
        assert answered
        text = "Too many requests in flight (limit 4000 bytes)"
        assert answered.pop().result().json()["error"] == {"code": -32000, "message": text}


async def test_who_waits_long_for_an_answer_gets_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transom.gateway.http_session._KEEP_ALIVE", 0.01)
    server = stateless("slow", "wait")
    del server.answers["tools/call"]
    async with gateway(server.connect) as (url, _), httpx2.AsyncClient() as http:
        params = stamped(call("wait"))
        message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
        headers = headers_for("tools/call", params)
        async with http.stream("POST", url, json=message, headers=headers) as stream:
            lines = stream.aiter_lines()
            assert (await anext(lines)).startswith(":")
            asked = await server.hears("tools/call")
            await server.reply(asked["id"], {"content": []})
            assert (await next_event(lines))["id"] == 5


async def test_a_stream_carries_its_own_id_and_ends_when_its_client_goes() -> None:
    server = streaming("one", "search")
    async with gateway(server.connect) as (url, _), httpx2.AsyncClient() as http:
        params = stamped({"notifications": {"toolsListChanged": True}})
        message = {"jsonrpc": "2.0", "method": "subscriptions/listen", "params": params}
        headers = headers_for("subscriptions/listen", params)
        async with (
            http.stream("POST", url, json={**message, "id": "a"}, headers=headers) as first,
            http.stream("POST", url, json={**message, "id": "a"}, headers=headers) as second,
        ):
            both = [first.aiter_lines(), second.aiter_lines()]
            for lines in both:
                note = await next_event(lines)
                assert note["method"] == ACKNOWLEDGED
                assert note["params"]["_meta"] == {SUBSCRIPTION: "a"}
            one, two = (each["id"] for each in server.got("subscriptions/listen"))
            for id in (one, two):
                note = {"_meta": {SUBSCRIPTION: id}, "for": id}
                await server.tell("notifications/tools/list_changed", note)
            for lines, id in zip(both, (one, two), strict=True):
                note = await next_event(lines)
                assert note["params"] == {"_meta": {SUBSCRIPTION: "a"}, "for": id}
            await server.reply(two, {"resultType": "complete", "_meta": {SUBSCRIPTION: two}})
            end = await next_event(both[1])
            assert (end["id"], end["result"]["_meta"]) == ("a", {SUBSCRIPTION: "a"})
        cancelled = await server.hears("notifications/cancelled")
        assert cancelled["params"]["requestId"] == one


async def test_a_log_reaches_the_request_that_wants_one_and_no_other() -> None:
    server = stateless("one", "work")
    del server.answers["tools/call"]
    async with gateway(server.connect) as (url, _), httpx2.AsyncClient() as http:

        async def work(**meta: Any) -> list[Any]:
            params = {**call("work"), "_meta": {**ENVELOPE, **meta}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await http.post(url, json=message, headers=headers_for("tools/call", params))
            return events(answer.text.splitlines()) or [answer.json()]

        logs = asyncio.ensure_future(work(**{"io.modelcontextprotocol/logLevel": "info"}))
        first = await server.hears("tools/call")
        quiet = asyncio.ensure_future(work())
        second = await server.hears("tools/call", times=2)
        await server.tell("notifications/message", {"level": "info", "data": "x"})
        for asked in (second, first):
            await server.reply(asked["id"], {"content": []})
        assert len(await quiet) == 1
        assert [each.get("method") for each in await logs] == ["notifications/message", None]


# --- headers and methods ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"mcp-method": "tools/list"}, -32020),
        ({"mcp-method": None}, -32020),
        ({"mcp-name": "other"}, -32020),
        ({"mcp-name": None}, -32020),
        ({"mcp-name": "=?base64?%%%?="}, -32020),
        ({"mcp-name": "=?base64?" + b64encode(b"other").decode() + "?="}, -32020),
        ({"mcp-protocol-version": "2027-01-01"}, -32020),
        ({"mcp-protocol-version": None}, -32020),
    ],
)
async def test_a_request_that_is_not_what_its_headers_say_is_refused(
    changed: dict[str, str | None], code: int
) -> None:
    async with gateway(in_memory(chatty())) as (url, served), httpx2.AsyncClient() as http:
        params = stamped(call("count", to=1))
        given = {**headers_for("tools/call", params), **changed}
        headers = {key: value for key, value in given.items() if value is not None}
        message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
        answer = await http.post(url, json=message, headers=headers)
        assert answer.status_code == 400
        assert (answer.json()["id"], answer.json()["error"]["code"]) == (3, code)
        assert not served._principals


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_a_request_about_a_task_that_its_header_does_not_name_is_refused(method: str) -> None:
    async with gateway(in_memory(chatty())) as (url, served), httpx2.AsyncClient() as http:
        params = stamped({"taskId": "one"})
        for headers in (
            headers_for(method, params, **{"mcp-name": "other"}),
            headers_for(method, None),
        ):
            message = {"jsonrpc": "2.0", "id": 3, "method": method, "params": params}
            answer = await http.post(url, json=message, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
        assert not served._principals


async def test_a_header_that_is_there_twice_is_refused() -> None:
    async with gateway(in_memory(chatty())) as (url, _), httpx2.AsyncClient() as http:
        message = {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": stamped()}
        headers = [*headers_for("tools/list", None).items(), ("mcp-method", "tools/call")]
        answer = await http.post(url, json=message, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize(
    ("given", "arguments", "accepted"),
    [
        ({"Mcp-Param-Region": "north"}, {"region": "north"}, True),
        ({"mcp-param-region": "=?base64?WsO8cmljaA==?="}, {"region": "Zürich"}, True),
        ({}, {"region": "north"}, False),
        ({"Mcp-Param-Region": "south"}, {"region": "north"}, False),
        ({"Mcp-Param-Region": "=?base64?%%%?="}, {"region": "north"}, False),
        ({"Mcp-Param-Region": "north"}, {}, False),
    ],
)
async def test_an_argument_that_a_header_repeats_must_be_what_the_header_says(
    given: dict[str, str], arguments: dict[str, str], accepted: bool, asked_before: bool
) -> None:
    async with gateway(in_memory(chatty())) as (url, _), httpx2.AsyncClient() as http:
        if asked_before:
            await post(http, url, "tools/list")
        params = stamped(call("region_of", **arguments))
        message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
        headers = headers_for("tools/call", params, **given)
        answer = await http.post(url, json=message, headers=headers)
        if accepted:
            assert (answer.status_code, answer.json()["result"]["isError"]) == (200, False)
        else:
            assert answer.status_code == 400
            assert (answer.json()["id"], answer.json()["error"]["code"]) == (3, -32020)


def headed(name: str, header: str) -> dict[str, Any]:
    region = {"type": "string", "x-mcp-header": header}
    schema = {"type": "object", "properties": {"region": region}}
    return {"name": name, "inputSchema": schema}


async def test_a_tool_whose_headers_are_invalid_is_neither_listed_nor_called_by_http() -> None:
    tools = [headed("good", "Region"), headed("broken", "a b")]
    server = ScriptedServer({"tools/list": {"tools": tools}, "tools/call": {"content": []}})
    async with gateway(server.connect) as (url, _), httpx2.AsyncClient() as http:
        listed = await post(http, url, "tools/list")
        assert [each["name"] for each in listed.json()["result"]["tools"]] == ["good"]
        answer = await post(http, url, "tools/call", call("broken", region="north"))
        assert answer.json()["error"]["code"] == -32602
    assert not server.sent("tools/call")


@pytest.mark.parametrize("key", [b"x-mcp-header", rb"x\u002dmcp-header"])
def test_a_tool_whose_headers_cannot_be_read_counts_as_one_with_invalid_ones(key: bytes) -> None:
    deep = b'{"name": "a", "inputSchema": {"%s": 1, "items": %s%s}}'
    assert has_invalid_headers(Raw(deep % (key, b"[" * 10_000, b"]" * 10_000)))


@pytest.mark.parametrize(
    ("meta", "version", "code"),
    [
        ({"io.modelcontextprotocol/protocolVersion": None}, "2026-07-28", -32602),
        ({"io.modelcontextprotocol/clientCapabilities": None}, "2026-07-28", -32602),
        ({"io.modelcontextprotocol/protocolVersion": "1900-01-01"}, "1900-01-01", -32022),
    ],
)
async def test_a_request_without_its_envelope_or_of_another_version_is_refused(
    meta: dict[str, Any], version: str, code: int
) -> None:
    async with gateway(in_memory(chatty())) as (url, served), httpx2.AsyncClient() as http:
        given = {key: value for key, value in {**ENVELOPE, **meta}.items() if value is not None}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": given}}
        headers = headers_for("tools/list", None, **{"mcp-protocol-version": version})
        answer = await http.post(url, json=message, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
        if code == -32022:
            assert answer.json()["error"]["data"]["supported"][0] == "2026-07-28"
        assert not served._principals


REMOVED = [
    *("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
    *("tasks/list", "tasks/result"),
]
"""Methods of earlier versions that 2026-07-28 does not have."""


@pytest.mark.parametrize("enveloped", [True, False])
@pytest.mark.parametrize("method", REMOVED)
async def test_a_method_that_the_version_does_not_have_is_404_and_begins_nothing(
    method: str, enveloped: bool
) -> None:
    async with gateway(in_memory(chatty())) as (url, served), httpx2.AsyncClient() as http:
        params = stamped() if enveloped else INITIALIZE["params"]
        message = {"jsonrpc": "2.0", "id": 9, "method": method, "params": params}
        answer = await http.post(url, json=message, headers=headers_for(method, None))
        assert answer.status_code == 404
        assert (answer.json()["id"], answer.json()["error"]["code"]) == (9, -32601)
        assert not served._principals
        assert not served._clients


async def test_versions_in_a_refusal_are_those_of_discovery() -> None:
    server = stateless("one")  # it knows a version that the gateway does not
    async with gateway(server.connect) as (url, _), httpx2.AsyncClient() as http:
        meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
        headers = headers_for("tools/list", None, **{"mcp-protocol-version": "2027-01-01"})
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        refused = (await http.post(url, json=message, headers=headers)).json()["error"]["data"]
        found = (await post(http, url, "server/discover")).json()["result"]
        assert refused == {"supported": ["2026-07-28"], "requested": "2027-01-01"}
        assert found["supportedVersions"] == ["2026-07-28"]


async def test_a_name_that_no_header_can_have_is_encoded() -> None:
    server = stateless("one", "größe")
    async with gateway(server.connect) as (url, _), httpx2.AsyncClient() as http:
        params = stamped(call("größe"))
        name = "=?base64?" + b64encode("größe".encode()).decode() + "?="
        headers = headers_for("tools/call", params, **{"mcp-name": name})
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        assert (await http.post(url, json=message, headers=headers)).status_code == 200


async def test_an_unknown_method_is_404_and_what_is_no_request_is_refused() -> None:
    unknown = {"error": {"code": -32601, "message": "Method not found"}}
    server = stateless("one", answers={"no/such": unknown})
    async with gateway(server.connect) as (url, _), httpx2.AsyncClient() as http:
        answer = await post(http, url, "no/such")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)
        headers = headers_for("", None)
        reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert (await http.post(url, json=reply, headers=headers)).status_code == 400
        note = {"jsonrpc": "2.0", "method": "notifications/x"}
        answer = await http.post(url, json=note, headers=headers)
        assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_nothing_to_get_and_nothing_to_delete(method: str) -> None:
    async with gateway(in_memory(chatty())) as (url, served), httpx2.AsyncClient() as http:
        session = await http.post(url, json=INITIALIZE, headers=BOTH)
        old = {"mcp-session-id": session.headers["mcp-session-id"]}
        answer = await http.request(method, url, headers=headers_for("", None) | old)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        listed = await http.post(
            url,
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": stamped()},
            headers=headers_for("tools/list", None) | old,
        )
        assert listed.status_code == 200  # a session's id means nothing here
        assert len(served._clients) == len(served._principals) == 1


# --- principals ------------------------------------------------------------------------------


@pytest.mark.load
async def test_only_so_many_principals_are_let_in_and_they_end_when_idle() -> None:
    async with (
        gateway(in_memory(chatty()), max_clients=5, idle=0.2) as (url, served),
        httpx2.AsyncClient(timeout=None) as http,
    ):
        asked = [post(http, url, "tools/list", token=f"token-{n}") for n in range(80)]
        statuses = [answer.status_code for answer in await asyncio.gather(*asked)]
        assert statuses.count(503) >= 40
        assert set(statuses) == {200, 503}
        assert len(served._principals) <= 5
        assert not any("token" in key for key in served._principals)
        while served._principals:
            await asyncio.wait([each.task for each in served._principals.values()])
        assert (await post(http, url, "tools/list", token="new")).status_code == 200


async def test_a_server_that_cannot_be_started_is_an_error_and_tried_again() -> None:
    server = stateless("one", "search")
    server.broken = True
    async with gateway(server.connect) as (url, served), httpx2.AsyncClient() as http:
        answer = await post(http, url, "tools/list")
        assert "broken" in answer.json()["error"]["message"]
        assert not served._principals
        server.broken = False
        assert (await post(http, url, "tools/list")).status_code == 200


# --- lists -----------------------------------------------------------------------------------


class Kept(Page):
    """A page whose Views a test can close."""

    def __init__(self) -> None:
        super().__init__()
        self.apps: list[App] = []

    async def seat(self, client: str) -> InProcessRenderer:
        def make() -> App:
            self.apps.append(editor()())
            return self.apps[-1]

        return InProcessRenderer({"ui://orders/list.html": make})


async def test_lists_stand_still_for_every_client_and_connection_whatever_views_are_open() -> None:
    page = Kept()
    connections = [(name, httpx2.AsyncClient()) for name in ("a", "a", "b", "b", "c", "c")]
    async with gateway(in_memory(shop()), page) as (url, _):

        async def listings() -> set[tuple[bytes, bytes]]:
            """What 3 clients with 2 connections each are listed."""
            found: set[tuple[bytes, bytes]] = set()
            for name, http in connections:
                info = {"io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}
                tools = await post(http, url, "tools/list", meta=info)
                resources = await post(http, url, "resources/list", meta=info)
                found.add((tools.content, resources.content))
            return found

        before = await listings()
        assert len(before) == 1
        assert b"call_view_tool" in next(iter(before))[0]
        async with client(url, mode="auto") as one, client(url, mode="2026-07-28") as two:
            opened = text_of(await one.call_tool("show_orders", {}))
            assert "View orders-1 is open" in opened
            assert await listings() == before
            assert "orders-1" in text_of(await two.call_tool("list_view_tools", {}))
            await page.apps[0].request_teardown()
            while "orders-1" in text_of(await two.call_tool("list_view_tools", {})):
                pass
        assert await listings() == before
        for _, http in connections:
            await http.aclose()


async def test_a_view_is_reached_by_its_principal_on_any_connection_and_by_no_other() -> None:
    async with gateway(in_memory(shop()), Page()) as (url, served):

        async def use(tool: str, token: str | None, **arguments: Any) -> Any:
            async with httpx2.AsyncClient() as http:
                answer = await post(http, url, "tools/call", call(tool, **arguments), token=token)
            return answer.json()["result"]

        for token in (None, "ann's", "bob's"):
            await use("add", token, a=1, b=2)
        opened = await use("show_orders", "ann's")
        handle = opened["content"][-1]["text"].rpartition('view_id "')[2].removesuffix('".')
        reading = {"view_id": handle, "name": "read"}
        read = await use("call_view_tool", "ann's", **reading)
        assert read["content"][0]["text"] == "nothing"
        for tool in ("call_view_tool", "list_view_tools"):
            unknown = await use(tool, "bob's", **reading | {"view_id": "orders-1.x"})
            assert unknown["isError"]
            for token in (None, "bob's"):
                assert await use(tool, token, **reading) == unknown
        for token in (None, "bob's"):
            assert (await use("list_view_tools", token))["structuredContent"] == {"views": []}
        assert len(served._principals) == 3
