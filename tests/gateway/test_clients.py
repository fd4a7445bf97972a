"""Real clients as libraries, before a real gateway process: list, open, see, call, see vanish.

Agents are loaded where they are used: that takes seconds, and every process collects this file.
"""

import asyncio
import json
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import fastmcp
import mcp
import pytest
from fastmcp.client.transports import StdioTransport
from mcp import StdioServerParameters

from tests.gateway.raw_client import PYTHON, ROOT

pytestmark = pytest.mark.processes

SERVER = str(ROOT / "tests" / "gateway" / "orders_server.py")
SERVER_TOOLS = {"show_orders", "search"}
STANDING = SERVER_TOOLS | {"list_view_tools", "call_view_tool"}
VIEW = "orders-1"
TOOLS = {f"{VIEW}__{name}" for name in ("read", "write", "leave")}


def command(surface: str) -> list[str]:
    return ["-m", "tests.gateway.viewing_gateway", surface, "--", PYTHON, "-S", SERVER]


# --- MCP clients -----------------------------------------------------------------------------


def sdk_client(mode: str, surface: str = "both", **options: Any) -> mcp.Client:
    server = StdioServerParameters(command=PYTHON, args=command(surface), cwd=ROOT)
    return mcp.Client(server, mode=mode, **options)


async def names(client: Any) -> set[str]:
    listed = await client.list_tools()
    return {tool.name for tool in getattr(listed, "tools", listed)}


async def test_the_sdk_client_of_the_handshake_is_told_of_a_views_tools():
    changed = asyncio.Event()

    async def heard(message: Any) -> None:
        if isinstance(message, mcp.types.ToolListChangedNotification):
            changed.set()

    async def until(wanted: set[str]) -> None:
        while await names(client) != wanted:
            await changed.wait()
            changed.clear()

    async with sdk_client("legacy", message_handler=heard) as client:
        assert client.protocol_version == "2025-11-25"
        assert await names(client) == STANDING
        result = await client.call_tool("show_orders", {"status": "late"})
        assert result.content[0].text == 'show_orders {"status": "late"}'  # type: ignore[union-attr]
        await until(STANDING | TOOLS)
        written = await client.call_tool(f"{VIEW}__write", {"words": "w"})
        assert written.content[0].text == "wrote w"  # type: ignore[union-attr]
        await client.call_tool(f"{VIEW}__leave", {})
        await until(STANDING)
        assert (await client.call_tool(f"{VIEW}__write", {"words": "w"})).is_error


async def test_the_sdk_client_of_2026_07_28_lists_the_same_tools_and_calls_a_views_by_the_view():
    async with sdk_client("auto") as client:
        assert client.protocol_version == "2026-07-28"
        before = await client.list_tools()
        assert {tool.name for tool in before.tools} == STANDING
        result = await client.call_tool("show_orders", {"status": "late"})
        assert result.content[0].text == 'show_orders {"status": "late"}'  # type: ignore[union-attr]
        assert await client.list_tools() == before
        view = _handle(str(result.content))
        written = await client.call_tool(*_through(view, "write", words="w"))
        assert written.content[0].text == "wrote w"  # type: ignore[union-attr]
        await client.call_tool(*_through(view, "leave"))
        while not (await client.call_tool(*_through(view, "write", words="w"))).is_error:
            pass
        assert await client.list_tools() == before


async def test_the_sdk_client_of_2026_07_28_is_told_of_view_tools_that_it_wants_in_its_list():
    async with sdk_client("auto", "flat") as client:
        assert client.protocol_version == "2026-07-28"
        assert await names(client) == SERVER_TOOLS
        async with client.listen(tools_list_changed=True) as events:

            async def until(wanted: set[str]) -> None:
                if await names(client) != wanted:
                    async for _ in events:
                        if await names(client) == wanted:
                            break

            await client.call_tool("show_orders", {"status": "late"})
            await until(SERVER_TOOLS | TOOLS)
            written = await client.call_tool(f"{VIEW}__write", {"words": "w"})
            assert written.content[0].text == "wrote w"  # type: ignore[union-attr]
            await client.call_tool(f"{VIEW}__leave", {})
            await until(SERVER_TOOLS)
            assert (await client.call_tool(f"{VIEW}__write", {"words": "w"})).is_error


@pytest.mark.nightly
async def test_fastmcp_lists_the_same_tools_and_calls_a_views_by_the_view():
    args = command("both")
    transport = StdioTransport(command=PYTHON, args=args, cwd=str(ROOT), keep_alive=False)
    async with fastmcp.Client(transport, init_timeout=50) as client:
        assert await names(client) == STANDING
        view = _handle(str((await client.call_tool("show_orders", {})).content))
        assert await names(client) == STANDING
        result = await client.call_tool(*_through(view, "write", words="w"))
        assert result.content[0].text == "wrote w"  # type: ignore[union-attr]
        await client.call_tool(*_through(view, "leave"))
        while not (await client.call_tool(*_through(view, "read"), raise_on_error=False)).is_error:
            pass


# --- agents ----------------------------------------------------------------------------------

Turn = tuple[str, dict[str, Any]] | None
"""The tool that the model calls next, with its arguments; None: it is done."""


class Plays:
    """A model that opens a View, uses its tools as they are listed, closes it, and sees them go."""

    surface = "flat"

    def __init__(self) -> None:
        self.seen: list[set[str]] = []
        self.heard: list[str] = []
        self._calls = iter(
            [
                ("show_orders", {"status": "late"}),
                (f"{VIEW}__write", {"words": "w"}),
                (f"{VIEW}__leave", {}),
            ]
        )
        self._left = False

    def __call__(self, offered: set[str], heard: str) -> Turn:
        self.seen.append(offered)
        self.heard.append(heard)
        if self._left:
            return None if not offered & TOOLS else ("search", {})
        call = next(self._calls)
        if call[0] not in offered:  # it is about to be
            self._calls = iter([call, *self._calls])
            return "search", {}
        self._left = call[0].endswith("leave")
        return call

    def check(self) -> None:
        assert self.seen[0] == SERVER_TOOLS
        assert SERVER_TOOLS | TOOLS in self.seen
        assert self.seen[-1] == SERVER_TOOLS
        assert any("wrote w" in heard for heard in self.heard)


class PlaysByView:
    """A model that reads the result's text and goes through one tool: its list never changes."""

    surface = "both"

    def __init__(self) -> None:
        self.seen: list[set[str]] = []
        self.heard: list[str] = []
        self._calls = iter(
            [
                ("show_orders", {"status": "late"}),
                ("list_view_tools", {}),
                _through("", "write", words="w"),
                _through("", "leave"),
                _through("", "read"),
            ]
        )

    def __call__(self, offered: set[str], heard: str) -> Turn:
        self.seen.append(offered)
        self.heard.append(heard)
        turn = next(self._calls, None)
        if turn is not None and "view_id" in turn[1]:
            turn[1]["view_id"] = _handle("".join(self.heard))
        return turn

    def check(self) -> None:
        assert all(offered == STANDING for offered in self.seen)
        _, opened, listed, written, left, _ = self.heard
        assert f"View {VIEW} is open" in opened
        assert "call_view_tool" in opened
        assert "write" in listed
        assert "wrote w" in written
        assert "left" in left


def _handle(opened: str) -> str:
    """What the View is called, as the result of the call says that opened it."""
    found = re.search(rf"{VIEW}\.[\w-]{{22}}", opened)
    return VIEW if found is None else found[0]


def _through(view: str, name: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "call_view_tool", {"view_id": view, "name": name, "arguments": arguments}


Play = Callable[[set[str], str], Turn]


def pydantic_model(play: Play) -> Any:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: Any, info: Any) -> ModelResponse:
        offered = {tool.name for tool in info.function_tools}
        turn = play(offered, str(messages[-1]))
        part = TextPart("done") if turn is None else ToolCallPart(turn[0], turn[1])
        return ModelResponse(parts=[part])

    return FunctionModel(answer)


# By itself a framework keeps the list until it is told of a change, and with 2026-07-28 it never
# asks to be.
listing_again = pytest.mark.parametrize(
    ("caches", "player"),
    [pytest.param(False, Plays, marks=pytest.mark.nightly), (True, PlaysByView)],
)


@listing_again
async def test_pydantic_ai_uses_a_views_tools_whether_or_not_it_lists_again(
    caches: bool, player: type[Plays | PlaysByView]
):
    from pydantic_ai import Agent, UsageLimits
    from pydantic_ai.mcp import MCPToolset

    play = player()
    args = command(play.surface)
    transport = StdioTransport(command=PYTHON, args=args, cwd=str(ROOT), keep_alive=False)
    toolset: Any = MCPToolset(
        transport, tool_error_behavior="failed", cache_tools=caches, init_timeout=50
    )
    agent = Agent(pydantic_model(play), toolsets=[toolset])
    async with agent:
        result = await agent.run("go", usage_limits=UsageLimits(request_limit=None))
    assert result.output == "done"
    play.check()


def openai_model(play: Play) -> Any:
    from agents import Model, ModelResponse, Usage
    from openai.types import responses

    class Player(Model):
        async def get_response(
            self,
            system_instructions: Any,
            input: Any,  # noqa: A002 - the SDK's name for it
            model_settings: Any,
            tools: Any,
            *_: Any,
            **__: Any,
        ) -> ModelResponse:
            last = input if isinstance(input, str) else json.dumps(input[-1], default=str)
            turn = play({tool.name for tool in tools}, last)
            number = next(ids)
            if turn is None:
                text = responses.ResponseOutputText(text="done", type="output_text", annotations=[])
                output: Any = responses.ResponseOutputMessage(
                    id=f"m{number}",
                    role="assistant",
                    status="completed",
                    type="message",
                    content=[text],
                )
            else:
                output = responses.ResponseFunctionToolCall(
                    call_id=f"c{number}", name=turn[0], arguments=json.dumps(turn[1]),
                    type="function_call",
                )  # fmt: skip
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("nobody here asks for a stream")

    ids = count()
    return Player()


@pytest.mark.nightly
@listing_again
async def test_openai_agents_use_a_views_tools_whether_or_not_they_list_again(
    caches: bool, player: type[Plays | PlaysByView]
):
    from agents import Agent, RunConfig, Runner
    from agents.mcp import MCPServerStdio

    play = player()
    async with MCPServerStdio(
        params={"command": PYTHON, "args": command(play.surface), "cwd": ROOT},
        cache_tools_list=caches,
        client_session_timeout_seconds=30,
    ) as server:
        agent = Agent(name="a", model=openai_model(play), mcp_servers=[server])
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, "go", max_turns=10_000, run_config=config)
    assert result.final_output == "done"
    play.check()
