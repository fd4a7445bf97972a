"""What goes wrong behind the gateway reaches the client in words, whoever's fault it is."""

from typing import Any

import pytest

from tests.gateway.memory import Odd, Screen, Server, gateway, words
from tests.host.bare_view import ECHO
from tests.host.faults import reload_without_tools
from tests.host.shop import BareRenderer
from transom import Deny

READ_ONLY = {**ECHO, "annotations": {"readOnlyHint": True}}


async def test_a_server_that_cannot_be_reached_is_named_in_the_error(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("transom.gateway.members._PATIENCE", 0.05)
    async with gateway() as at:
        await at.tools()
        at.server.broken = True
        await at.server.kill()
        error = await at.call("plain")
        assert error["code"] == -32000
        assert error["message"] == "Server shop is not running: it does not start"


async def test_a_server_that_answers_nonsense_is_named_in_the_error():
    async with gateway(Server({"tools/call": Odd("no object")})) as at:
        error = await at.call("plain")
        assert error["code"] == -32000
        assert error["message"].startswith("Server shop: The answer was refused")


async def test_an_error_of_the_server_is_passed_on_as_it_is():
    fault = {"code": -32099, "message": "no such article", "data": {"sku": 1}}
    async with gateway(Server({"tools/call": {"error": fault}})) as at:
        assert await at.call("plain") == fault


async def test_a_call_that_the_user_refuses_says_so():
    async with gateway(approval="page") as at:
        await at.open()
        at.screen.decision = Deny("not today")
        result = await at.call("shop-1__write", words="x")
        assert result["isError"]
        assert "not today" in words(result)[0]


async def test_a_view_that_is_gone_is_named_in_the_result():
    async with gateway() as at:
        await at.open()
        await at.shop.made[0].close()
        result = await at.call("shop-1__read")
        assert result["isError"]
        assert "View shop-1 is closed" in words(result)[0]


async def test_a_view_that_was_loaded_again_without_tools_has_no_such_tool(
    monkeypatch: pytest.MonkeyPatch,
):
    renderer = BareRenderer({"tools/list": {"tools": [READ_ONLY]}})

    async def seat(_: Screen, client: str) -> Any:
        return renderer

    monkeypatch.setattr(Screen, "seat", seat)
    async with gateway() as at:
        await at.open()
        assert words(await at.call("shop-1__echo")) == ["called echo"]
        await reload_without_tools(renderer.views["shop-1"])
        error = await at.call("shop-1__echo")
        assert error == {"code": -32602, "message": "View shop-1 has no tool echo"}
