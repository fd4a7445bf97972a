"""Changing tools, closing and connecting where one should not."""

import asyncio
from typing import Any

import pytest

from tests.view.fake_host import FakeHost
from tests.view.hostile import (
    OBJECT,
    RAISED,
    cyclic_dict,
    reconnected,
    surviving,
    text,
)
from transom.channel import memory_pair
from transom.errors import (
    AlreadyConnected,
    ConnectionClosed,
    ProtocolError,
)
from transom.view.app import App
from transom.view.tools import RegisteredTool

# --- changing tools from everywhere ----------------------------------------------------------


async def test_a_handler_may_turn_the_registry_upside_down() -> None:
    app = App("a", "1")
    other = app.register_tool("other", lambda: "other")

    @app.tool
    async def churn() -> list[str]:
        for n in range(50):
            tool = app.register_tool(f"t{n}", lambda n=n: str(n))
            tool.update(name=f"u{n}", description="changed")
            if n % 2:
                tool.remove()
        other.disable(reason="churned")
        churn.update(name="churned")
        churn.remove()
        return [tool.name for tool in app.tools]

    async with surviving(app) as (host, errors):
        names = (await host.call("churn"))["structuredContent"]["result"]
        assert names == ["other", "fine", *(f"u{n}" for n in range(0, 50, 2))]
        assert await host.list_changes() == 1
        assert await host.names() == ["fine", *(f"u{n}" for n in range(0, 50, 2))]
        assert text(await host.call("u48")) == "48"
        assert "churned" in text(await host.call("other"))
        assert errors == []


async def test_a_listener_of_changes_may_change_tools() -> None:
    app = App("a", "1")
    seen: list[str] = []

    @app.on_tool_change
    def _(tool: RegisteredTool) -> None:
        seen.append(tool.name)
        if tool.name == "first" and not any(other.name == "second" for other in app.tools):
            app.register_tool("second", lambda: "second")
        if tool.name == "second":
            tool.update(description="described")

    async with surviving(app) as (host, errors):
        app.register_tool("first", lambda: "first")
        assert seen == ["fine", "first", "second", "second"]
        assert await host.list_changes() == 1
        assert await host.names() == ["fine", "first", "second"]
        assert errors == []


async def test_a_listener_of_changes_that_never_comes_to_an_end_is_stopped_and_told() -> None:
    app = App("a", "1")

    @app.on_tool_change
    def _(tool: RegisteredTool) -> None:
        if tool.name == "loop":
            tool.update(description=f"{tool.description}!")

    async with surviving(app) as (host, errors):
        app.register_tool("loop", lambda: "x", description="")
        # Where the stack ends is chance: in the listener, or while the definition is encoded.
        (error,) = errors
        assert isinstance(error.__cause__ or error, RecursionError)
        assert await host.list_changes() == 1
        assert await host.names() == ["fine", "loop"]


async def test_a_listener_of_changes_that_removes_the_tool_leaves_it_removed() -> None:
    app = App("a", "1")

    @app.on_tool_change
    def _(tool: RegisteredTool) -> None:
        if tool.name == "unwanted":
            tool.remove()

    async with surviving(app) as (host, _):
        unwanted = app.register_tool("unwanted", lambda: "x")
        assert unwanted.stale
        assert await host.names() == ["fine"]


async def test_on_list_tools_may_change_tools() -> None:
    app = App("a", "1")
    app.register_tool("old", lambda: "x")

    @app.on_list_tools
    async def _() -> list[dict[str, Any]]:
        for tool in app.tools:
            if tool.name == "old":
                tool.remove()
        if not any(tool.name == "new" for tool in app.tools):
            app.register_tool("new", lambda: "new")
        return [{"name": name, "inputSchema": OBJECT} for name in ("new", "added")]

    async with surviving(app) as (host, errors):
        await host.names()
        assert await host.names() == ["fine", "new", "added"]
        assert await host.list_changes() == 1
        assert errors == []


async def test_a_lazy_schema_may_change_tools_its_own_included() -> None:
    app = App("a", "1")

    def schema() -> Any:
        if not any(tool.name == "made" for tool in app.tools):
            app.register_tool("made", lambda: "made")
        lazy.update(description="listed")
        return OBJECT

    def last() -> Any:
        gone.remove()
        return OBJECT

    lazy = app.register_tool("lazy", lambda: "x", input_schema=schema)
    gone = app.register_tool("gone", lambda: "x", input_schema=last)
    async with surviving(app) as (host, errors):
        await host.names()
        assert await host.names() == ["lazy", "fine", "made"]
        assert text(await host.call("lazy")) == "x"
        assert errors == []


async def test_a_lazy_schema_that_asks_for_itself_is_unavailable() -> None:
    app = App("a", "1")
    odd = app.register_tool("odd", lambda: "x", input_schema=lambda: odd.definition().input_schema)
    async with surviving(app) as (host, errors):
        assert await host.names() == ["fine"]
        assert errors


async def test_a_handler_in_a_thread_may_change_tools_whatever_listens() -> None:
    app = App("a", "1")
    heard = asyncio.Event()
    save = app.register_tool("save", lambda: "x", enabled=False)

    @app.tool(thread=True)
    def work() -> str:
        save.enable()
        return "ok"

    @app.on_tool_change
    async def _(tool: RegisteredTool) -> None:
        if tool is save:
            heard.set()

    async with surviving(app) as (host, errors):
        assert text(await host.call("work")) == "ok"
        await heard.wait()
        await host.heard("notifications/tools/list_changed")
        assert "save" in await host.names()
        assert errors == []


# --- closing and connecting from everywhere --------------------------------------------------


async def test_closing_in_a_handler_that_another_task_runs_for_it_ends_cleanly() -> None:
    app = App("a", "1")

    @app.tool
    async def leave() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(app.close())

    async with surviving(app) as (host, _):
        with pytest.raises((ConnectionClosed, ProtocolError)):
            await host.call("leave")
        await app.wait_closed()
        await reconnected(app, host)


async def test_closing_that_is_cancelled_has_closed_all_the_same() -> None:
    app = App("a", "1")
    started, release = asyncio.Event(), asyncio.Event()

    @app.tool
    async def stubborn() -> None:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with surviving(app) as (host, _):
        call = asyncio.ensure_future(host.call("stubborn"))
        await started.wait()
        closing = asyncio.ensure_future(app.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(ConnectionClosed):
            await call
        assert not app.connected
        release.set()
        await reconnected(app, host)


@pytest.mark.parametrize("event", ["on_teardown", "on_tool_input", "on_error", "on_tool_change"])
async def test_closing_inside_any_handler_ends_the_connection_cleanly(event: str) -> None:
    app = App("a", "1")
    closed = asyncio.Event()

    async def leave(*_: Any) -> None:
        await app.close()
        closed.set()

    async with surviving(app) as (host, _):
        getattr(app, event)(leave) if event != "on_tool_input" else None
        if event == "on_teardown":
            with pytest.raises(ConnectionClosed):
                await host.ask("ui/resource-teardown", {})
        elif event == "on_tool_change":
            app.register_tool("new", lambda: "x")
        elif event == "on_error":
            app.report(ValueError("x"))
        else:
            with pytest.warns(RuntimeWarning):
                app.on_tool_input = leave
            await host.tell("ui/notifications/tool-input", {})
        await closed.wait()
        assert not app.connected
        assert getattr(app, event)
        getattr(app, event).remove(leave)
        app.on_tool_input = None
        await reconnected(app, host)


async def test_a_sync_teardown_handler_may_hand_back_the_close_itself() -> None:
    app = App("a", "1")
    app.on_teardown = lambda: app.close()
    async with surviving(app) as (host, _):
        with pytest.raises(ConnectionClosed):
            await host.ask("ui/resource-teardown", {})
        await app.wait_closed()
        await reconnected(app, host)


async def test_connecting_inside_a_handler_is_refused_and_changes_nothing() -> None:
    app = App("a", "1")

    @app.tool
    async def again() -> str:
        with pytest.raises(AlreadyConnected):
            await app.connect(memory_pair()[0])
        return "still here"

    async with surviving(app) as (host, _):
        assert text(await host.call("again")) == "still here"


async def test_a_handler_may_close_and_connect_elsewhere() -> None:
    app = App("a", "1")
    hosts: list[FakeHost] = []
    moved = asyncio.Event()

    @app.tool
    async def move() -> None:
        await app.close()
        view, end = memory_pair()
        hosts.append(FakeHost(end))
        hosts[0].session.start()
        await app.connect(view)
        moved.set()

    async with surviving(app) as (host, errors):
        with pytest.raises(ConnectionClosed):
            await host.call("move")
        await moved.wait()
        assert errors == []
        host.session = hosts[0].session


async def test_a_call_that_is_closed_before_it_began_is_answered_and_leaves_no_trace() -> None:
    app = App("a", "1")
    begun: list[str] = []

    @app.tool
    async def late() -> None:
        begun.append("late")

    async with surviving(app) as (host, errors):
        call = asyncio.ensure_future(host.call("late"))
        closing = asyncio.ensure_future(app.close())
        with pytest.raises(ProtocolError, match="cancelled"):
            await call
        await closing
        assert begun == []
        assert errors == []
        await reconnected(app, host)


def test_an_app_may_live_in_one_event_loop_after_another() -> None:
    app = App("a", "1")
    save = app.register_tool("save", lambda: "x", enabled=False)

    async def live() -> None:
        async with surviving(app) as (host, errors):
            save.enable()
            assert await host.list_changes() == 1
            save.disable()
            assert await host.list_changes() == 2
            assert errors == []
        app.tools[-1].remove()

    for _ in range(3):
        asyncio.run(live())


@pytest.mark.parametrize("returned", [cyclic_dict(), {"f": object()}, [1], "text", object()])
async def test_teardown_is_answered_whatever_its_handler_returns(returned: Any) -> None:
    app = App("a", "1")
    app.on_teardown = lambda: returned
    async with surviving(app) as (host, _):
        assert await host.ask("ui/resource-teardown", {}) == {}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("what", RAISED)
async def test_a_listener_that_raises_anything_stops_neither_the_others_nor_teardown(
    what: str, is_async: bool
) -> None:
    app, failure = App("a", "1"), RAISED[what]()
    told: asyncio.Queue[str] = asyncio.Queue()

    def broken() -> None:
        raise failure

    async def broken_later() -> None:
        raise failure

    for slot in (app.on_teardown, app.on_tool_input):
        slot(broken_later if is_async else broken)
        slot(lambda: told.put_nowait("still told"))
    async with surviving(app) as (host, errors):
        assert await host.ask("ui/resource-teardown", {}) == {}
        await host.tell("ui/notifications/tool-input", {})
        for _ in range(2):
            assert await told.get() == "still told"
        for error in errors:  # Python itself wraps a StopIteration
            assert failure in (error, error.__cause__)
        assert len(errors) == 2


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("what", RAISED)
async def test_an_error_handler_that_raises_anything_is_survived(
    what: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app, failure = App("a", "1"), RAISED[what]()

    def broken(_: BaseException) -> None:
        raise failure

    async def broken_later(_: BaseException) -> None:
        raise failure

    told: asyncio.Queue[BaseException] = asyncio.Queue()
    app.on_error = broken_later if is_async else broken
    app.on_error(told.put_nowait)
    app.on_tool_input = lambda: 1 / 0
    async with surviving(app) as (host, _):
        await host.tell("ui/notifications/tool-input", {})
        assert isinstance(await told.get(), ZeroDivisionError)
    assert "on_error itself failed" in caplog.text
