"""Several servers behind one gateway, for clients of 2026-07-28."""

import asyncio
from typing import Any

import pytest

from tests.gateway.in_memory import HELLO, End, Fake, gateway, text

META = "io.modelcontextprotocol/"
STREAM = f"{META}subscriptionId"
UI = f"{META}ui"
ENVELOPE = {
    f"{META}protocolVersion": "2026-07-28",
    f"{META}clientInfo": {"name": "scripted", "version": "1"},
    f"{META}clientCapabilities": {"elicitation": {}},
}
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TOOLS_CHANGED = "notifications/tools/list_changed"


UNKNOWN = {"error": {"code": -32601, "message": "Method not found"}}


def stamped(params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    return {**(params or {}), "_meta": {**ENVELOPE, **meta}}


def stateless(name: str, *tools: str, **options: Any) -> Fake:
    """A server that speaks 2026-07-28, and acknowledges streams without ending them."""
    answers = {
        "server/discover": {
            "supportedVersions": ["2026-07-28", "2027-01-01"],
            "capabilities": {"tools": {"listChanged": True}, **options.pop("capabilities", {})},
            "instructions": f"Use {name}.",
            "_meta": {f"{META}serverInfo": {"name": name, "version": "1"}},
            **COMPLETE,
        },
        **options.pop("answers", {}),
    }
    server = Fake(name, tools, answers, **options)
    del server.answers["initialize"]
    return server


def streaming(name: str, *tools: str, honours: dict[str, Any] | None = None) -> Fake:
    server = stateless(name, *tools)

    async def listen(message: dict[str, Any]) -> None:
        wanted = message["params"]["notifications"] if honours is None else honours
        note = {"notifications": wanted, "_meta": {STREAM: message["id"]}}
        await server.tell(ACKNOWLEDGED, note)

    server.by_message["subscriptions/listen"] = listen
    return server


async def change(server: Fake, method: str = TOOLS_CHANGED, **params: Any) -> None:
    """Notify on the last stream that was opened with a server."""
    id = server.got("subscriptions/listen")[-1]["id"]
    await server.tell(method, {**params, "_meta": {STREAM: id}})


def names(listing: dict[str, Any]) -> list[str]:
    return [each["name"] for each in listing["tools"]]


# --- the introduction ------------------------------------------------------------------------


async def test_discovery_is_merged_when_all_servers_speak_it():
    one = stateless("one", capabilities={"logging": {}})
    two = stateless("two", capabilities={"prompts": {}})
    async with gateway(one, two, greet=False) as client:
        found = await client.result("server/discover", stamped())
    info = found.pop("_meta")[f"{META}serverInfo"]
    assert info["name"] == "transom-gateway"
    assert found == {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "logging": {},
            "extensions": {f"{META}tasks": {}},
        },
        "instructions": "# one\n\n> Use one.\n\n# two\n\n> Use two.",
        **COMPLETE,
    }


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "tasks/list"])
@pytest.mark.parametrize("servers", [1, 2])
async def test_a_method_of_an_earlier_version_is_not_found_and_changes_nothing(
    method: str, servers: int
):
    behind = [stateless(each, "look", capabilities={"logging": {}}) for each in "ab"[:servers]]
    async with gateway(*behind, greet=False) as client:
        await client.result("server/discover", stamped())
        refused = await client.ask(method, stamped({"level": "debug"}))
        assert refused["error"] == {"code": -32601, "message": "Method not found", "data": method}
        assert "look" in names(await client.result("tools/list", stamped()))
        assert not any(each.got(method) for each in behind)


async def test_a_task_of_the_extension_is_asked_about_where_it_was_given():
    def worker(name: str) -> Fake:
        made = {"taskId": f"task-{name}", "status": "working", "ttlMs": None}
        return stateless(
            name,
            f"work_{name}",
            capabilities={"extensions": {f"{META}tasks": {}}},
            answers={
                "tools/call": {**made, "resultType": "task"},
                "tasks/get": lambda params: {"taskId": params["taskId"], "by": name},
                "tasks/cancel": lambda params: {"cancelled": name},
            },
        )

    async with gateway(worker("one"), worker("two"), greet=False) as client:
        await client.result("server/discover", stamped())
        given = await client.result("tools/call", stamped({"name": "work_two"}))
        assert (given["resultType"], given["taskId"]) == ("task", "task-two")
        asked = stamped({"taskId": "task-two"})
        assert (await client.result("tasks/get", asked))["by"] == "two"
        assert await client.result("tasks/cancel", asked) == {"cancelled": "two"}
        # One that this gateway did not see being made: after a restart, for instance.
        other = await client.result("tasks/get", stamped({"taskId": "task-one"}))
        assert other["by"] == "one"


async def test_each_server_gets_the_clients_envelope_and_that_views_can_be_shown():
    one, two = stateless("one", "search"), stateless("two", "search")
    async with gateway(one, two, greet=False) as client:
        await client.result("server/discover", stamped())
        await client.result("tools/list", stamped())
        await client.result("tools/call", stamped({"name": "two__search"}))
    for server in (one, two):
        for message in server.heard:
            meta = dict(message["params"]["_meta"])
            can = meta.pop(f"{META}clientCapabilities")
            assert UI in can.pop("extensions")
            assert {**meta, f"{META}clientCapabilities": can} == ENVELOPE
    assert [each["method"] for each in two.heard] == [
        "server/discover",
        "tools/list",
        "tools/call",
    ]


async def test_an_older_server_is_discovered_with_the_others_and_its_requests_are_translated():
    one, two = stateless("one", "search"), Fake("two", ["find"], {"server/discover": UNKNOWN})
    async with gateway(one, two, greet=False) as client:
        found = await client.result("server/discover", stamped())
        assert found["supportedVersions"] == ["2026-07-28"]
        hello = two.got("initialize")[-1]["params"]
        assert hello["clientInfo"] == ENVELOPE[f"{META}clientInfo"]
        assert {"elicitation", "extensions"} == hello["capabilities"].keys()
        await two.hears("notifications/initialized")
        assert names(await client.result("tools/list", stamped())) == ["search", "find"]
        called = await client.result("tools/call", stamped({"name": "find"}, kept=1))
        assert called == {"content": [text("two: find None")], "resultType": "complete"}
        assert two.got("tools/call")[-1]["params"] == {"name": "find", "_meta": {"kept": 1}}
        assert one.starts == two.starts == 1


async def test_an_older_client_is_initialized_with_newer_servers_and_its_requests_are_translated():
    one, two = stateless("one", "search", instructions="x"), Fake("two", ["find"])
    one.answers["initialize"] = UNKNOWN
    async with gateway(one, two) as client:
        assert names(await client.result("tools/list")) == ["search", "find"]
        called = await client.result("tools/call", {"name": "search"})
        assert called == {"content": [text("one: search None")]}
        meta = one.got("tools/call")[-1]["params"]["_meta"]
        assert meta[f"{META}protocolVersion"] == "2026-07-28"
        assert meta[f"{META}clientInfo"] == HELLO["clientInfo"]
        assert "_meta" not in (two.got("tools/list")[-1].get("params") or {})
        assert not one.got("notifications/initialized")


@pytest.mark.parametrize("versions", [["2027-01-01"], "nonsense", []])
async def test_a_server_without_a_known_version_is_left_out(versions: Any):
    one, two = stateless("one"), stateless("two")
    two.answers["server/discover"] = {
        **two.answers["server/discover"],
        "supportedVersions": versions,
    }
    two.answers["initialize"] = UNKNOWN
    async with gateway(one, two, greet=False) as client:
        found = await client.result("server/discover", stamped())
        assert found["instructions"] == "# one\n\n> Use one."


async def test_a_server_that_is_not_there_is_left_out_of_discovery_and_comes_later():
    one, two = streaming("one"), streaming("two", "find")
    two.broken = True
    async with gateway(one, two, greet=False) as client:
        found = await client.result("server/discover", stamped())
        assert found["instructions"] == "# one\n\n> Use one."
        await opened(client, {"toolsListChanged": True})
        two.broken = False
        await client.hears(TOOLS_CHANGED)
        assert names(await client.result("tools/list", stamped())) == ["find"]


async def test_a_client_may_begin_with_any_request():
    one, two = stateless("one", "search"), stateless("two", "find")
    async with gateway(one, two, greet=False) as client:
        listings = [client.result("tools/list", stamped()) for _ in range(3)]
        for listing in await asyncio.gather(*listings):
            assert names(listing) == ["search", "find"]
            assert COMPLETE.items() <= listing.items()
        assert len(one.got("server/discover")) == len(two.got("server/discover")) == 1


# --- calls -----------------------------------------------------------------------------------


async def test_a_call_that_wants_input_first_passes_through_and_so_does_its_answer():
    wanted = {
        "resultType": "input_required",
        "inputRequests": {"name": {"method": "elicitation/create", "params": {}}},
        "requestState": "sealed",
    }
    done = {"resultType": "complete", "content": [text("done")]}
    one = stateless("one", "greet")
    two = stateless("two", "greet")
    two.answers["tools/call"] = lambda params: done if "inputResponses" in params else wanted
    async with gateway(one, two, greet=False) as client:
        await client.result("tools/list", stamped())
        call = {"name": "two__greet", "arguments": {"word": "hi"}}
        assert await client.result("tools/call", stamped(call)) == wanted
        again = {**call, "inputResponses": {"name": {"action": "accept"}}, "requestState": "sealed"}
        assert await client.result("tools/call", stamped(again)) == done
        sent = two.got("tools/call")[-1]["params"]
        assert sent["name"] == "greet"
        assert (sent["inputResponses"], sent["requestState"]) == (again["inputResponses"], "sealed")


# --- streams ---------------------------------------------------------------------------------


async def opened(client: End, wanted: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """A stream: its id, its end, and what was acknowledged."""
    id, ended = await client.begin(
        "subscriptions/listen", stamped({"notifications": wanted}), id="stream"
    )
    note = await client.hears(ACKNOWLEDGED)
    assert note["params"]["_meta"] == {STREAM: id}
    return id, ended, note["params"]["notifications"]


async def test_one_stream_is_fed_by_every_server_and_acknowledged_once():
    one = streaming("one", honours={"toolsListChanged": True, "resourceSubscriptions": ["a://1"]})
    two = streaming("two", honours={"promptsListChanged": True, "resourceSubscriptions": ["b://1"]})
    wanted = {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourceSubscriptions": ["a://1", "b://1", "transom://views"],
    }
    async with gateway(one, two, greet=False) as client:
        await client.result("server/discover", stamped())
        id, ended, honoured = await opened(client, wanted)
        assert honoured == wanted
        for server in (one, two):
            asked = server.got("subscriptions/listen")[-1]["params"]["notifications"]
            assert asked == {**wanted, "resourceSubscriptions": ["a://1", "b://1"]}
        await change(one, odd=1)
        await change(two, "notifications/resources/updated", uri="b://1")
        changed = await client.hears(TOOLS_CHANGED)
        assert changed["params"] == {"odd": 1, "_meta": {STREAM: id}}
        updated = await client.hears("notifications/resources/updated")
        assert updated["params"] == {"uri": "b://1", "_meta": {STREAM: id}}
        assert len(client.got(ACKNOWLEDGED)) == 1
        assert not ended.done()
        await client.tell("notifications/cancelled", {"requestId": id})
        for server in (one, two):
            cancelled = await server.hears("notifications/cancelled")
            asked = server.got("subscriptions/listen")[-1]
            assert cancelled["params"]["requestId"] == asked["id"]


async def test_a_server_that_acknowledges_resources_that_are_none_does_not_hold_up_a_stream():
    one = streaming("one", honours={"resourceSubscriptions": [["a"], {"b": 1}, 5, "a://1"]})
    two = streaming("two", honours={"resourceSubscriptions": ["b://1"]})
    wanted = {"resourceSubscriptions": ["a://1", "b://1"]}
    async with asyncio.timeout(5), gateway(one, two, greet=False) as client:
        await client.result("server/discover", stamped())
        _, _, honoured = await opened(client, wanted)
        assert honoured == wanted


async def test_a_list_that_nobody_knows_may_change(caplog: pytest.LogCaptureFixture):
    one, two = Fake("one", ["add"]), streaming("two")
    async with gateway(one, two, greet=False) as client:
        await client.result("server/discover", stamped())
        await opened(client, {"toolsListChanged": True})
        await one.tell("notifications/odd/list_changed")
        await one.tell(TOOLS_CHANGED)
        await client.hears(TOOLS_CHANGED)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


async def test_nothing_comes_on_a_stream_before_it_is_acknowledged():
    one, two = streaming("one"), streaming("two")
    acknowledge = two.by_message.pop("subscriptions/listen")
    async with gateway(one, two, greet=False) as client:
        await client.result("server/discover", stamped())
        await client.begin(
            "subscriptions/listen", stamped({"notifications": {"toolsListChanged": True}}), id="s"
        )
        await one.hears("subscriptions/listen")
        await change(one)
        await client.result("tools/list", stamped())
        assert not client.got(TOOLS_CHANGED)
        await acknowledge(await two.hears("subscriptions/listen"))
        await client.hears(TOOLS_CHANGED)
        methods = [each.get("method") for each in client.heard if "method" in each]
        assert methods == [ACKNOWLEDGED, TOOLS_CHANGED]


async def test_a_server_without_streams_does_not_keep_the_others_from_it():
    unknown = {"error": {"code": -32601, "message": "Method not found"}}
    one = stateless("one", answers={"subscriptions/listen": unknown})
    two = streaming("two")
    async with gateway(one, two, greet=False) as client:
        await client.result("server/discover", stamped())
        _, ended, honoured = await opened(client, {"toolsListChanged": True})
        assert honoured == {"toolsListChanged": True}
        await change(two)
        await client.hears(TOOLS_CHANGED)
        assert not ended.done()


async def test_a_stream_that_every_server_refuses_is_refused():
    no = {"error": {"code": -32602, "message": "no", "data": [1]}}
    one = stateless("one", answers={"subscriptions/listen": no})
    two = stateless("two", answers={"subscriptions/listen": no})
    async with gateway(one, two, greet=False) as client:
        await client.result("server/discover", stamped())
        wanted = stamped({"notifications": {"toolsListChanged": True}})
        assert await client.error("subscriptions/listen", wanted) == no["error"]
        nonsense = stamped({"notifications": 5})
        assert (await client.error("subscriptions/listen", nonsense))["code"] == -32602
        assert not client.got(ACKNOWLEDGED)


async def test_a_stream_goes_on_with_a_server_that_came_back():
    one, two = streaming("one"), streaming("two")
    async with gateway(one, two, greet=False) as client:
        await client.result("server/discover", stamped())
        id, ended, _ = await opened(client, {"toolsListChanged": True})
        await two.crash()
        await client.hears(TOOLS_CHANGED, times=2)  # it is gone, and it is back
        await two.hears("subscriptions/listen", times=2)
        await change(two)
        changed = await client.hears(TOOLS_CHANGED, times=3)
        assert changed["params"] == {"_meta": {STREAM: id}}
        assert len(client.got(ACKNOWLEDGED)) == 1
        assert not ended.done()


async def test_a_stream_ends_when_every_server_has_ended_it():
    one, two = streaming("one"), streaming("two")
    async with gateway(one, two, greet=False) as client:
        await client.result("server/discover", stamped())
        id, ended, _ = await opened(client, {"toolsListChanged": True})
        for server in (one, two):
            assert not ended.done()
            asked = server.got("subscriptions/listen")[-1]["id"]
            await server.reply(asked, {"resultType": "complete", "_meta": {STREAM: asked, "x": 1}})
        end = await ended
        assert end["result"] == {"resultType": "complete", "_meta": {STREAM: id, "x": 1}}
