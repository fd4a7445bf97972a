"""The order of messages through the proxy, and that one bad message harms no other."""

import asyncio
import gc
import json
import logging
from typing import Any

import pytest

from tests.gateway.in_memory import HELLO, End, Fake, gateway, text
from transom.gateway.client_views import ClientViews
from transom.gateway.eras import ClientRequest

COUNTS = pytest.mark.parametrize("count", [1, 2])


def servers(count: int) -> list[Fake]:
    made = [Fake("one", ["add", "slow"]), Fake("two", ["find"])][:count]
    del made[0].answers["tools/call"]
    return made


def sequence(end: End) -> list[Any]:
    """What was heard: methods, and `n` of the arguments of calls."""
    found: list[Any] = []
    for message in end.heard:
        params = message.get("params") or {}
        number = (params.get("arguments") or params).get("n")
        found.append(message.get("method") if number is None else number)
    return found


@COUNTS
async def test_requests_and_notifications_reach_a_server_in_the_order_they_came(count: int):
    made = servers(count)
    async with gateway(*made) as client:
        await client.result("tools/list")
        one, before = made[0], len(made[0].heard)
        for n in range(0, 40, 2):
            call = {"name": "add", "arguments": {"n": n}}
            await client.begin("tools/call", call, id=f"call {n}")
            await client.tell("notifications/odd", {"n": n + 1})
        await one.hears("notifications/odd", times=20)
        assert sequence(one)[before:] == list(range(40))


@COUNTS
async def test_what_a_server_sent_before_a_result_comes_before_it(count: int):
    made = servers(count)
    async with gateway(*made) as client:
        await client.result("tools/list")
        params = {"name": "slow", "_meta": {"progressToken": "p"}}
        id, answer = await client.begin("tools/call", params, id="mine")
        call = await made[0].hears("tools/call")
        token = call["params"]["_meta"]["progressToken"]
        one = made[0]
        before = len(client.heard)
        await one.tell("notifications/message", {"n": 1})
        await one.tell("notifications/progress", {"progressToken": token, "progress": 1})
        await one.say({"id": 77, "method": "roots/list"})
        await one.tell("notifications/message", {"n": 2})
        await one.reply(call["id"], {"content": []})
        await answer
        heard = client.heard[before:]
        assert [each.get("method", each.get("id")) for each in heard] == [
            "notifications/message",
            "notifications/progress",
            "roots/list",
            "notifications/message",
            id,
        ]


@COUNTS
async def test_a_request_that_is_cancelled_at_once_is_given_up_and_the_next_is_answered(count: int):
    made = servers(count)
    async with gateway(*made) as client:
        await client.result("tools/list")
        for n in range(20):
            await client.begin("tools/call", {"name": "add"}, id=f"cancelled {n}")
            await client.tell("notifications/cancelled", {"requestId": f"cancelled {n}"})
        made[0].answers["tools/call"] = {"content": [text("here")]}
        assert await client.result("tools/call", {"name": "add"}) == {"content": [text("here")]}
        begun = [each["id"] for each in made[0].got("tools/call")[:-1]]
        given_up = [each["params"]["requestId"] for each in made[0].got("notifications/cancelled")]
        assert begun == given_up
        assert not [each for each in client.heard if str(each.get("id")).startswith("cancelled")]


@COUNTS
async def test_what_goes_wrong_with_one_message_is_answered_logged_and_harms_no_other(
    count: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    owns = ClientViews.owns

    def broken(views: ClientViews, request: ClientRequest) -> bool:
        if request.name == "broken":
            raise RuntimeError("a secret")
        return owns(views, request)

    monkeypatch.setattr(ClientViews, "owns", broken)
    made = servers(count)
    made[0].answers["tools/call"] = {"content": []}
    async with gateway(*made) as client:
        with caplog.at_level(logging.ERROR, "transom.gateway"):
            error = await client.error("tools/call", {"name": "broken"})
        assert error == {"code": -32603, "message": "Internal error"}
        assert "a secret" in caplog.text
        assert await client.result("tools/call", {"name": "add"}) == {"content": []}


@COUNTS
async def test_a_notification_that_cannot_be_handled_does_not_cut_off_those_after_it(
    count: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    made = servers(count)
    async with gateway(*made) as client:
        await client.result("tools/list")
        odd = made[0]
        notify = "transom.connections.connection.ServerConnection.notify"

        def failing(*_: Any) -> None:
            raise RuntimeError("odd")

        with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, "transom.gateway"):
            patch.setattr(notify, failing)
            await client.tell("notifications/odd")
            await client.result("tools/list")
        assert "a message could not be handled" in caplog.text
        await client.tell("notifications/next")
        await odd.hears("notifications/next")


async def test_a_client_that_asks_too_much_at_once_is_told_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("transom.gateway.client._MAX_INCOMING", 3)
    [one] = servers(1)
    async with gateway(one) as client:
        await client.result("tools/list")
        waiting = [(await client.begin("tools/call", {"name": "add"}))[1] for _ in range(4)]
        assert (await waiting[-1])["error"]["code"] == -32000
        for call in one.got("tools/call"):
            await one.reply(call["id"], {"content": []})
        await asyncio.wait(waiting)


async def test_numbers_and_text_pass_as_they_were_written():
    [one] = servers(1)
    async with gateway(one, greet=False) as client:
        await client.result("initialize", HELLO)
        assert client.channel is not None
        params = b'{"a":1.50,"b":1e3,"c":"\\u00fc\\ud83d\\ude00","d":[1,1.0,-0.0]}'
        await client.channel.send(b'{"jsonrpc":"2.0","id":9,"method":"x/y","params":%b}' % params)
        asked = await one.hears("x/y")
        assert params in one.raw[-1]
        assert one.channel is not None
        answer = b'{"jsonrpc":"2.0","id":%b,"result":%b}'
        await one.channel.send(answer % (json.dumps(asked["id"]).encode(), params))
        await client.until(lambda: any(each.get("id") == 9 for each in client.heard))
        assert params in client.raw[-1]


@COUNTS
async def test_a_client_that_leaves_while_it_is_introduced_leaves_no_error_behind(count: int):
    made = servers(count)
    for each in made:
        del each.answers["initialize"]
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    async with gateway(*made, greet=False) as client:
        await client.begin("initialize", HELLO)
        for each in made:
            await each.hears("initialize")
    gc.collect()  # asyncio reports the error of a task that nobody looked at when it is freed
    assert unseen == []


async def test_a_server_that_only_ever_dies_is_not_said_to_be_there(
    caplog: pytest.LogCaptureFixture,
):
    one = Fake("one", ["add"], {"ping": {}})
    async with gateway(one, greet=False) as client:
        await client.result("ping")
        for starts in (2, 3):
            await one.crash()
            while "error" in await client.ask("ping") or one.starts < starts:
                pass  # it is not yet there again
        [warning] = [each.message for each in caplog.records if each.levelno == logging.WARNING]
        assert warning.startswith("Server one is left out for now: ")
        await client.result("initialize", HELLO)
        await one.crash()
        await client.result("tools/list")
        assert "Server one is there" in [each.message for each in caplog.records]
