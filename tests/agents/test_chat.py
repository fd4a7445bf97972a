"""The agent of `examples/chat`, with its script and with a model of Pydantic AI by name."""

from types import SimpleNamespace
from typing import Any

import pytest

from examples.chat.agent import reply
from tests.agents.scripted import hosting
from tests.host.shop import Heard
from transom import App, Policy


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAT_MODEL", raising=False)


async def test_the_script_shows_a_view_and_uses_its_tools_in_the_same_conversation():
    parts: list[dict[str, Any]] = []

    async def emit(part: dict[str, Any]) -> None:
        parts.append(part)

    async with hosting(Policy.trusting()) as host:
        history = await reply(host, "show the open orders", emit, "[]")
        assert [part["type"] for part in parts] == ["text", "call", "view", "text"]
        assert parts[2]["view"] == "shop-1"
        await reply(host, "what is selected?", emit, history)
    assert parts[4]["tool"] == "shop-1__get_selection"
    assert parts[5]["text"] == 'Selected: {"selected": ["A-1"]}'


async def test_a_view_opens_while_its_arguments_are_written(monkeypatch: pytest.MonkeyPatch):
    heard, pieces = Heard(), iter(['{"st', "atus", '": "o', 'pen"', "}"])

    async def wait_until_shown(_: float) -> None:
        if next(pieces) == '": "o':  # there is something to show now
            await heard.has("partial")

    monkeypatch.setattr("examples.chat.script.asyncio", SimpleNamespace(sleep=wait_until_shown))

    def watch(app: App) -> None:
        app.on_tool_input_partial = lambda _: heard.append("partial")
        app.on_tool_result = lambda _: heard.append("result")

    async def emit(_: dict[str, Any]) -> None:
        pass

    async with hosting(Policy.trusting(), add=watch) as host:
        await reply(host, "show the open orders", emit, "[]")
        assert list(host.views) == ["shop-1"]
    assert heard[0] == "partial"
    assert heard[-1] == "result"


async def test_any_model_of_pydantic_ai_plays_its_part(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CHAT_MODEL", "test")
    parts: list[dict[str, Any]] = []

    async def emit(part: dict[str, Any]) -> None:
        parts.append(part)

    async with hosting() as host:
        await reply(host, "go", emit, "[]")
    assert {part["tool"] for part in parts if part["type"] == "call"} >= {"show_orders", "stock"}
    assert {"type": "view", "view": "shop-1"} in parts
    assert parts[-1]["type"] == "text"
