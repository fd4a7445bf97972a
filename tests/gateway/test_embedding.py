"""`Gateway`, without the command."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import pytest

from tests.gateway.memory import Raw, words
from transom import InProcessRenderer
from transom.channel import memory_pair
from transom.errors import UsageError
from transom.gateway import Gateway, ServerConfig
from transom.gateway.display import SharedDisplay

SHOP = Path(__file__).parents[2] / "docs" / "samples" / "sample_shop.py"
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "embedding", "version": "1"},
}


async def result_of(gateway: Gateway, tool: str) -> list[str]:
    """The texts of a tool's result, for a client on a channel."""
    ours, theirs = memory_pair()
    serving = asyncio.create_task(gateway.serve(ours))
    client = Raw(theirs, {})
    try:
        await client.ask("initialize", HELLO)
        await client.tell("notifications/initialized")
        return words(await client.ask("tools/call", {"name": tool, "arguments": {}}))
    finally:
        await client.aclose()
        await serving


@pytest.mark.processes
def test_what_views_need_is_not_loaded_before_a_tool_opens_one():
    code = "import sys, transom.gateway.gateway; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "transom.gateway.proxy" in loaded
    assert not {"mcp", "transom.host.host", "transom.host.views.view"} & loaded


@pytest.mark.processes
async def test_without_a_renderer_a_tool_with_a_view_just_runs():
    async with Gateway({"shop": [sys.executable, str(SHOP)]}) as gateway:
        assert await result_of(gateway, "show_orders") == ["The open orders are shown."]


@pytest.mark.processes
async def test_settings_of_a_server_say_that_its_views_do_not_open():
    shop = ServerConfig(name="shop", command=(sys.executable, str(SHOP)), open_views={"*": "never"})
    async with Gateway([shop], renderer=InProcessRenderer({})) as gateway:
        assert await result_of(gateway, "show_orders") == ["The open orders are shown."]


def test_an_application_that_anyone_could_use_is_refused():
    gateway = Gateway({"shop": ["python"]})
    with pytest.raises(UsageError, match="give a token, or allowed_hosts"):
        gateway.asgi()
    with pytest.raises(UsageError, match="at least 16"):
        gateway.asgi(token="short")
    assert not gateway.asgi(allowed_hosts=["localhost:8000"]).needs_token


@pytest.mark.parametrize("servers", [{}, {"shop": []}, {"shop": "no URL"}])
def test_a_gateway_without_a_usable_server_is_refused(servers: dict[str, str | list[str]]):
    with pytest.raises(UsageError, match=r"^(Gateway\(servers\): 'shop'|A gateway needs at least)"):
        Gateway(servers)


@pytest.mark.parametrize(
    "wrong", [{"command": None}, {"command": ()}, {"command": ("python",), "url": "http://x/mcp"}]
)
def test_a_configured_server_that_cannot_be_reached_is_refused(wrong: dict[str, Any]):
    with pytest.raises(UsageError, match=r"^Gateway\(servers\): 'shop' needs either a command"):
        Gateway([ServerConfig(name="shop", **wrong)])


@pytest.mark.parametrize(
    ("wrong", "known"),
    [
        ({"naming": "nonsense"}, "flat, indirect, both"),
        ({"approval": "maybe"}, "client, page, elicit, never"),
        ({"drive": "x"}, "when_no_tools, always, never"),
        ({"view_calls": "all"}, "spec, linked, declared"),
        ({"naming": ["flat"]}, "flat, indirect, both"),
    ],
)
def test_a_setting_that_there_is_not_is_refused(wrong: dict[str, Any], known: str):
    (name, value) = next(iter(wrong.items()))
    with pytest.raises(UsageError) as refused:
        Gateway({"shop": ["python"]}, **wrong)
    assert str(refused.value) == f"{name} is one of {known}, not {value!r}"


@pytest.mark.processes
async def test_a_renderer_is_entered_with_the_first_view_and_left_with_the_gateway():
    events: list[str] = []

    class Shown(InProcessRenderer):
        def seat(self, client: str) -> InProcessRenderer:
            events.append(f"seat of {client}")
            return InProcessRenderer({})

        async def __aenter__(self) -> Self:
            events.append("entered")
            return self

        async def __aexit__(self, *_: object) -> None:
            events.append("left")

    async def make() -> Shown:
        return Shown({})

    display = SharedDisplay(make)
    await display.seat("one")
    await display.seat("two")
    assert display.where() is None
    await display.aclose()
    assert events == ["entered", "seat of one", "seat of two", "left"]
