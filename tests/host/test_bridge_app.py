"""Our two halves together: a Bridge and a `transom.App`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer

from transom import App, Bridge, CallContext, ProtocolError, ToolError
from transom.channel import memory_pair
from transom.types import Task

HOST = {"name": "host", "version": "1"}


@asynccontextmanager
async def joined(app: App, **options: Any) -> AsyncIterator[Bridge]:
    ours, theirs = memory_pair()
    async with Bridge(ours, **{"host_info": HOST, **options}) as bridge:
        await app.connect(theirs)
        await bridge.initialized()
        yield bridge


def editor() -> App:
    app = App("editor", "1.0")

    @app.tool(annotations={"readOnlyHint": True})
    def get_selection(start: int, end: int = 3) -> str:
        """The text between two places."""
        return "abcdef"[start:end]

    @app.tool
    async def save(name: str, ctx: CallContext) -> dict[str, Any]:
        """Save it."""
        await ctx.progress(1, 2, "writing")
        if name == "full":
            raise ToolError("the disk is full")
        return {"saved": name}

    return app


async def test_tools_are_listed_and_called_with_validation_on_both_ends():
    async with joined(editor()) as bridge:
        [selection, save] = await bridge.list_tools()
        assert selection.description == "The text between two places."
        assert selection.annotations is not None
        assert selection.annotations.read_only_hint is True
        assert save.input_schema["required"] == ["name"]
        assert (await bridge.call_tool("get_selection", {"start": 1})).text == "bc"
        wrong = await bridge.call_tool("get_selection", {"start": "one"})
        assert wrong.is_error
        assert "start" in wrong.text
        with pytest.raises(ProtocolError, match="Tool nothing not found"):
            await bridge.call_tool("nothing")


async def test_progress_results_and_errors_come_through():
    steps: list[tuple[float, float | None, str | None]] = []
    async with joined(editor()) as bridge:
        saved = await bridge.call_tool(
            "save",
            {"name": "a"},
            on_progress=lambda p: steps.append((p.progress, p.total, p.message)),
        )
        assert saved.structured_content == {"saved": "a"}
        assert steps == [(1, 2, "writing")]
        full = await bridge.call_tool("save", {"name": "full"})
        assert (full.is_error, full.text) == (True, "the disk is full")


async def test_changes_are_told_once_a_turn():
    app = editor()
    told: asyncio.Queue[None] = asyncio.Queue()
    async with joined(app) as bridge:
        bridge.on_tools_changed = lambda: told.put_nowait(None)
        app.update_tool("save", disabled=True)
        app.update_tool("get_selection", description="Words")
        await told.get()
        [selection] = await bridge.list_tools()
        assert selection.description == "Words"
        assert told.empty()


async def test_the_context_arrives_changes_and_loses_keys():
    app = editor()
    async with joined(app, context={"theme": "dark", "locale": "en", "mood": 1}) as bridge:
        assert app.host_context is not None
        assert app.host_context.theme == "dark"
        changed: asyncio.Queue[Any] = asyncio.Queue()
        app.on_host_context_changed = changed.put_nowait
        await bridge.set_context(locale=None, theme="light", mood=None)
        await changed.get()
        await changed.get()
        assert app.host_context.theme == "light"
        assert app.host_context.locale is None
        assert "mood" not in app.host_context.extra


async def test_what_the_app_asks_the_host_answers():
    app = App("asker", "1")
    heard: list[Any] = []
    context = {"displayMode": "inline", "availableDisplayModes": ["inline", "pip"]}
    ours, theirs = memory_pair()
    bridge = Bridge(ours, host_info=HOST, context=context)
    bridge.on_message = lambda blocks: heard.append(blocks[0].text)
    bridge.on_open_link = heard.append
    bridge.on_update_model_context = lambda update: heard.append(update.structured_content)
    bridge.on_request_display_mode = lambda mode: None
    bridge.on_log = lambda entry: heard.append(entry.data)
    async with bridge:
        await app.connect(theirs)
        await app.send_message("hello")
        await app.open_link("https://example.com/")
        await app.update_model_context(structured_content={"n": 1})
        assert await app.request_display_mode("pip") == "pip"
        await app.send_log("info", "logged")
        assert app.host_context is not None
        assert app.host_context.display_mode == "pip"
    assert heard == ["hello", "https://example.com/", {"n": 1}, "logged"]


async def test_a_call_that_is_cancelled_stops_in_the_app():
    app = App("slow", "1")
    began, stopped = asyncio.Event(), asyncio.Event()

    @app.tool
    async def wait() -> None:
        """Wait for ever."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with joined(app) as bridge:
        call = asyncio.ensure_future(bridge.call_tool("wait"))
        await began.wait()
        call.cancel()
        await stopped.wait()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_long_work_runs_as_a_task():
    app = App("tasks", "1")
    release = asyncio.Event()

    async def work() -> str:
        """Work."""
        await release.wait()
        return "done"

    app.register_tool("work", work, task="optional")
    async with joined(app) as bridge:
        handle = await bridge.start_task("work", ttl=60_000)
        assert isinstance(handle, Task)
        assert (await bridge.get_task(handle.task_id)).status == "working"
        assert [t.task_id for t in (await bridge.list_tasks()).tasks] == [handle.task_id]
        release.set()
        assert (await bridge.task_result(handle.task_id)).text == "done"
        assert (await bridge.get_task(handle.task_id)).status == "completed"


async def test_the_reason_of_a_teardown_reaches_the_app():
    app = editor()
    reasons: list[Any] = []
    async with joined(app) as bridge:
        app.on_teardown = reasons.append
        assert await bridge.teardown("the user closed the chat") is True
    assert reasons == ["the user closed the chat"]


async def test_the_app_reaches_its_server_through_the_bridge():
    server = MCPServer("s")

    @server.tool()
    async def add(a: int, b: int, ctx: Context) -> int:
        await ctx.report_progress(1, 2)
        return a + b

    @server.tool(meta={"ui": {"visibility": ["model"]}})
    def hidden() -> str:
        return "ran"

    app = App("client", "1")
    async with Client(server) as client, joined(app, upstream=client):
        assert [tool.name for tool in await app.list_server_tools()] == ["add"]
        result = await app.call_server_tool("add", {"a": 1, "b": 2})
        assert result.structured_content == {"result": 3}
        with pytest.raises(ProtocolError, match="may not be called by a View"):
            await app.call_server_tool("hidden", {})
