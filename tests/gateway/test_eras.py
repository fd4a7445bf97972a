"""A client of one era of MCP before a server of the other, through the one proxy."""

import asyncio
from typing import Any

import httpx2
import pytest

from tests.gateway.in_memory import HELLO, Fake, gateway, text
from tests.gateway.memory import TOOLS, Server, words
from tests.gateway.memory import gateway as viewing
from tests.gateway.test_http import gateway as http_gateway
from tests.gateway.test_several_stateless import (
    ACKNOWLEDGED,
    COMPLETE,
    META,
    STREAM,
    TOOLS_CHANGED,
    UNKNOWN,
    stamped,
    stateless,
    streaming,
)
from tests.gateway.test_stateless import post
from transom import App
from transom.errors import ProtocolError

UPDATED = "notifications/resources/updated"
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


def older(name: str = "one", *tools: str, **options: Any) -> Fake:
    """A server that knows nothing of 2026-07-28."""
    can = {"resources": {"subscribe": True}, "logging": {}, "prompts": {}}
    answers = {"server/discover": UNKNOWN, **options.pop("answers", {})}
    return Fake(name, tools, answers, capabilities=can, **options)


def asking(server: Fake, method: str = "elicitation/create") -> None:
    """Have the calls of a server ask the client first."""

    async def call(message: dict[str, Any]) -> None:
        asked.append(message["id"])
        id = f"ask {len(asked)}"
        await server.say({"id": id, "method": method, "params": {"message": "Who?"}})

    asked: list[Any] = []
    server.by_message["tools/call"] = call
    server.asked = asked  # type: ignore[attr-defined]


async def finish(server: Fake) -> dict[str, Any]:
    """Answer the call of `asking` once the client has answered; its answer."""

    def answers() -> list[dict[str, Any]]:
        return [each for each in server.heard if str(each.get("id")).startswith("ask")]

    await server.until(answers)
    await server.reply(server.asked[-1], {"content": [text("done")]})  # type: ignore[attr-defined]
    return answers()[-1]


# --- a 2026-07-28 client before an older server ----------------------------------------------


async def test_any_first_request_of_a_newer_client_reaches_an_older_server():
    one = older("one", "search")
    async with gateway(one, greet=False) as client:
        found = await client.result("tools/call", stamped({"name": "search"}))
        assert found == {"content": [text("one: search None")], "resultType": "complete"}
        listed = await client.result("tools/list", stamped())
        assert COMPLETE.items() <= listed.items()
        discovered = await client.result("server/discover", stamped())
        assert discovered["supportedVersions"] == ["2026-07-28"]
        assert discovered["_meta"] == {f"{META}serverInfo": {"name": "one", "version": "1"}}
        assert COMPLETE.items() <= discovered.items()
        assert len(one.got("initialize")) == len(one.got("server/discover")) == 1


async def test_an_older_server_that_never_answers_what_it_does_not_know_is_initialized(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("transom.gateway.members._DISCOVERED_WITHIN", 0.05)
    one = older("one", "search")
    del one.answers["server/discover"]
    async with gateway(one, greet=False) as client:
        found = await client.result("server/discover", stamped())
        assert found["supportedVersions"] == ["2026-07-28"]


async def test_a_newer_server_that_is_slow_to_start_is_discovered_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("transom.gateway.members._DISCOVERED_WITHIN", 0.05)
    one = stateless("one", "search")
    found = one.answers.pop("server/discover")
    one.answers["initialize"] = {
        "error": {"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}}
    }
    async with gateway(one, greet=False) as client:
        _, asked = await client.begin("server/discover", stamped())
        await one.hears("server/discover", times=2)
        await one.reply(one.got("server/discover")[1]["id"], found)
        assert (await asked)["result"]["instructions"] == "Use one."


async def test_what_an_older_server_asks_for_is_a_newer_clients_to_answer_when_it_calls_again():
    one = older("one", "greet")
    asking(one)
    async with gateway(one, greet=False) as client:
        call = {"name": "greet", "arguments": {"word": "hi"}}
        wanted = await client.result("tools/call", stamped(call))
        assert wanted["resultType"] == "input_required"
        [(key, question)] = wanted["inputRequests"].items()
        assert question == {"method": "elicitation/create", "params": {"message": "Who?"}}
        again = {
            **call,
            "inputResponses": {key: ACCEPTED},
            "requestState": wanted["requestState"],
        }
        _, asked = await client.begin("tools/call", stamped(again))
        assert (await finish(one))["result"] == ACCEPTED
        done = (await asked)["result"]
        assert done == {"content": [text("done")], "resultType": "complete"}
        assert len(one.got("tools/call")) == 1
        assert client.got("elicitation/create") == []


async def test_a_call_with_other_params_or_a_strange_state_starts_over():
    one = older("one", "greet")
    asking(one)
    async with gateway(one, greet=False) as client:
        call = {"name": "greet", "arguments": {"word": "hi"}}
        for other in ({"requestState": "transom.guessed"}, {"arguments": {"word": "no"}}):
            wanted = await client.result("tools/call", stamped(call))
            [key] = wanted["inputRequests"]
            again = {
                **call,
                "inputResponses": {key: ACCEPTED},
                "requestState": wanted["requestState"],
                **other,
            }
            before = len(one.got("tools/call"))
            fresh = await client.result("tools/call", stamped(again))
            assert fresh["resultType"] == "input_required"
            assert fresh["requestState"] != wanted["requestState"]
            assert len(one.got("tools/call")) == before + 1
            assert "inputResponses" not in one.got("tools/call")[-1]["params"]


async def test_a_client_that_cannot_answer_is_not_asked():
    one = older("one", "greet")
    asking(one, "sampling/createMessage")
    async with gateway(one, greet=False) as client:
        _, asked = await client.begin("tools/call", stamped({"name": "greet"}))
        assert (await finish(one))["error"]["code"] == -32601
        assert (await asked)["result"]["resultType"] == "complete"


async def test_a_call_that_its_client_never_comes_back_for_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("transom.gateway.inputs._PATIENCE", 0.05)
    one = older("one", "greet")
    asking(one)
    async with gateway(one, greet=False) as client:
        await client.result("tools/call", stamped({"name": "greet"}))
        cancelled = await one.hears("notifications/cancelled")
        assert cancelled["params"]["requestId"] == one.got("tools/call")[0]["id"]


async def test_a_stream_is_fed_by_the_notifications_of_an_older_server():
    one = older("one", answers={"resources/subscribe": {}, "resources/unsubscribe": {}})
    wanted = {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourceSubscriptions": ["a://1"],
    }
    async with gateway(one, greet=False) as client:
        ids = ["s", "t"]
        for id in ids:
            params = stamped({"notifications": wanted})
            await client.begin("subscriptions/listen", params, id=id)
        await client.hears(ACKNOWLEDGED, times=2)
        assert all(each["params"]["notifications"] == wanted for each in client.got(ACKNOWLEDGED))
        assert len(one.got("resources/subscribe")) == 1
        await one.tell(TOOLS_CHANGED)
        await one.tell(UPDATED, {"uri": "a://1"})
        await one.tell(UPDATED, {"uri": "a://2"})
        await one.tell("notifications/prompts/list_changed")
        await client.hears("notifications/prompts/list_changed", times=2)
        for method in (TOOLS_CHANGED, UPDATED):
            notes = client.got(method)
            assert [each["params"]["_meta"][STREAM] for each in notes] == ids
        await client.tell("notifications/cancelled", {"requestId": "s"})
        await client.result("tools/list", stamped())
        assert not one.got("resources/unsubscribe")
        await client.tell("notifications/cancelled", {"requestId": "t"})
        assert (await one.hears("resources/unsubscribe"))["params"] == {"uri": "a://1"}


async def test_a_newer_client_gets_nothing_from_an_older_server_that_it_did_not_ask_for():
    one = older("one", "work", answers={"logging/setLevel": {}})
    async with gateway(one, greet=False) as client:
        await client.result("tools/call", stamped({"name": "work"}))
        for method in (TOOLS_CHANGED, "notifications/message", "notifications/odd"):
            await one.tell(method, {})
        await client.result("tools/call", stamped({"name": "work"}))
        assert [each for each in client.heard if "method" in each] == []
        level = {f"{META}logLevel": "info"}
        await client.result("tools/call", stamped({"name": "work"}, **level))
        assert one.got("logging/setLevel")[0]["params"] == {"level": "info"}
        await one.tell("notifications/message", {"level": "info", "data": 1})
        await client.hears("notifications/message")


async def test_an_older_servers_missing_resource_is_an_error_of_the_newer_version():
    missing = {"error": {"code": -32002, "message": "gone", "data": {"uri": "a://1"}}}
    one = older("one", answers={"resources/read": missing})
    async with gateway(one, greet=False) as client:
        error = await client.error("resources/read", stamped({"uri": "a://1"}))
        assert error == {**missing["error"], "code": -32602}


async def test_over_http_an_older_server_serves_newer_clients_without_sessions():
    one = older("one", "greet")
    asking(one)
    async with http_gateway(one.connect) as (url, served), httpx2.AsyncClient() as http:
        call = {"name": "greet", "arguments": {}}
        wanted = (await post(http, url, "tools/call", call)).json()["result"]
        [key] = wanted["inputRequests"]
        assert (await post(http, url, "initialize")).status_code == 404  # and changes nothing
        again = {
            **call,
            "inputResponses": {key: ACCEPTED},
            "requestState": wanted["requestState"],
        }
        asked = asyncio.ensure_future(post(http, url, "tools/call", again))
        assert (await finish(one))["result"] == ACCEPTED
        assert (await asked).json()["result"]["content"] == [text("done")]
        assert not served._clients


# --- an older client before a 2026-07-28 server ----------------------------------------------


def newer(name: str = "one", *tools: str, **options: Any) -> Fake:
    """A server that knows nothing of what was before 2026-07-28."""
    server = streaming(name, *tools)
    server.answers |= {"initialize": UNKNOWN, **options}
    return server


async def test_an_older_client_is_initialized_before_a_newer_server():
    one = newer("one", "search")
    async with gateway(one, greet=False) as client:
        hello = await client.result("initialize", HELLO)
        assert hello["protocolVersion"] == "2025-11-25"
        assert hello["serverInfo"] == {"name": "one", "version": "1"}
        assert hello["instructions"] == "Use one."
        await client.tell("notifications/initialized")
        assert await client.result("ping") == {}
        called = await client.result("tools/call", {"name": "search"})
        assert called == {"content": [text("one: search None")]}
        meta = one.got("tools/call")[-1]["params"]["_meta"]
        assert meta[f"{META}clientInfo"] == HELLO["clientInfo"]
        assert not one.got("notifications/initialized")
        assert await client.result("logging/setLevel", {"level": "debug"}) == {}
        await client.result("tools/call", {"name": "search"})
        assert one.got("tools/call")[-1]["params"]["_meta"][f"{META}logLevel"] == "debug"


async def test_what_a_newer_server_asks_for_is_sent_to_an_older_client():
    wanted = {
        "resultType": "input_required",
        "inputRequests": {
            "name": {"method": "elicitation/create", "params": {"message": "Who?"}},
            "roots": {"method": "roots/list"},
        },
        "requestState": "sealed",
    }
    done = {"resultType": "complete", "content": [text("done")]}
    one = newer("one", "greet")
    one.answers["tools/call"] = lambda params: done if "inputResponses" in params else wanted
    answers = {"elicitation/create": ACCEPTED, "roots/list": {"roots": []}}
    async with gateway(one, answers=answers) as client:
        assert await client.result("tools/call", {"name": "greet"}) == {"content": [text("done")]}
        again = one.got("tools/call")[-1]["params"]
        assert again["inputResponses"] == {"name": ACCEPTED, "roots": {"roots": []}}
        assert again["requestState"] == "sealed"


async def test_an_older_client_hears_of_a_newer_servers_changes():
    one = newer("one", "search")
    async with gateway(one) as client:
        await client.result("tools/list")
        lists = await one.hears("subscriptions/listen")
        assert lists["params"]["notifications"] == {"toolsListChanged": True}
        await one.tell(TOOLS_CHANGED, {"_meta": {STREAM: lists["id"]}})
        await client.hears(TOOLS_CHANGED)
        assert await client.result("resources/subscribe", {"uri": "a://1"}) == {}
        stream = await one.hears("subscriptions/listen", times=2)
        assert stream["params"]["notifications"] == {"resourceSubscriptions": ["a://1"]}
        await one.tell(UPDATED, {"uri": "a://1", "_meta": {STREAM: stream["id"]}})
        assert (await client.hears(UPDATED))["params"] == {"uri": "a://1"}
        assert await client.result("resources/unsubscribe", {"uri": "a://1"}) == {}
        cancelled = await one.hears("notifications/cancelled")
        assert cancelled["params"]["requestId"] == stream["id"]


# --- Views -----------------------------------------------------------------------------------

_WANTED = {
    "resultType": "input_required",
    "inputRequests": {"name": {"method": "elicitation/create", "params": {"message": "Who?"}}},
    "requestState": "sealed",
}


def greeting(params: dict[str, Any]) -> dict[str, Any]:
    if params["name"] != "greet":
        return {"content": [text("shown")], "resultType": "complete"}
    given = params.get("inputResponses")
    found = _WANTED if given is None else {"content": [text(given["name"]["content"]["name"])]}
    return {"resultType": "complete", **found}


def greets(app: App) -> None:
    @app.tool(annotations={"readOnlyHint": True})
    async def greet() -> str:
        """Ask the server whom to greet."""
        return (await app.call_server_tool("greet", {})).text


GREET = {
    "name": "greet",
    "inputSchema": {"type": "object"},
    "_meta": {"ui": {"visibility": ["model", "app"]}},
}


async def test_what_a_views_own_call_needs_is_asked_of_whoever_called_the_view():
    server = Server({"tools/call": greeting, "tools/list": {"tools": [*TOOLS, GREET]}})
    can = {"elicitation": {}}
    async with viewing(server, setup=greets, modern=True, capabilities=can) as at:
        opened = words(await at.open())[-1]
        handle = opened.partition('call_view_tool with view_id "')[2].removesuffix('".')
        call = {"name": "call_view_tool", "arguments": {"view_id": handle, "name": "greet"}}
        wanted = await at.ask("tools/call", call)
        [(key, question)] = wanted["inputRequests"].items()
        assert question["params"] == {"message": "Who?"}
        again = {"inputResponses": {key: ACCEPTED}, "requestState": wanted["requestState"]}
        assert words(await at.ask("tools/call", {**call, **again})) == ["Ada"]
        # Nobody waits for anything, so nobody can be asked.
        with pytest.raises(ProtocolError, match="wants input"):
            await at.shop.made[0].call_server_tool("greet", {})


async def test_what_a_views_own_call_needs_is_asked_of_an_older_client():
    server = Server(
        {"tools/call": greeting, "tools/list": {"tools": [*TOOLS, GREET]}, "initialize": UNKNOWN}
    )
    answers = {"elicitation/create": ACCEPTED}
    can = {"elicitation": {}}
    async with viewing(server, setup=greets, answers=answers, capabilities=can) as at:
        await at.open()
        result = await at.shop.made[0].call_server_tool("greet", {})
        assert result.text == "Ada"
