import asyncio
from typing import Any

import pytest

from tests.view.fake_host import hosted
from transom.errors import ProtocolError, ToolError
from transom.types import Task
from transom.view.app import App, CallContext


def text(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


async def start(host: Any, name: str, arguments: Any = None, **task: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments or {}, "task": task}
    return (await host.ask("tools/call", params))["task"]


async def test_a_call_that_asks_for_a_task_is_answered_with_its_handle_at_once() -> None:
    app = App("a", "1")
    gate = asyncio.Event()

    @app.tool(task="optional")
    async def work(n: int) -> str:
        await gate.wait()
        return f"did {n}"

    async with hosted(app) as host:
        (listed,) = await host.list_tools()
        assert listed["execution"] == {"taskSupport": "optional"}
        task = await start(host, "work", {"n": 3}, ttl=60_000)
        assert (task["status"], task["ttl"]) == ("working", 60_000)
        assert task["createdAt"].endswith("Z")
        asked = await host.ask("tasks/get", {"taskId": task["taskId"]})
        assert asked["status"] == "working"
        result = asyncio.ensure_future(host.ask("tasks/result", {"taskId": task["taskId"]}))
        gate.set()
        done = await result
        assert text(done) == "did 3"
        related = done["_meta"]["io.modelcontextprotocol/related-task"]
        assert related == {"taskId": task["taskId"]}
        asked = await host.ask("tasks/get", {"taskId": task["taskId"]})
        assert asked["status"] == "completed"
        assert await host.ask("tasks/list") == {"tasks": [asked]}


async def test_the_same_tool_answers_a_plain_call_as_ever() -> None:
    app = App("a", "1")
    app.register_tool("work", lambda: "done", task="optional")
    async with hosted(app) as host:
        assert text(await host.call("work")) == "done"
        task = await start(host, "work")
        assert text(await host.ask("tasks/result", {"taskId": task["taskId"]})) == "done"


async def test_a_tool_that_may_not_run_as_a_task_says_so() -> None:
    app = App("a", "1")
    app.register_tool("quick", lambda: "done")
    async with hosted(app) as host:
        with pytest.raises(ProtocolError, match="cannot run as a task") as error:
            await start(host, "quick")
        assert error.value.code == -32601
        assert "execution" not in (await host.list_tools())[0]


async def test_a_tool_that_must_run_as_a_task_says_so() -> None:
    app = App("a", "1")
    app.register_tool("long", lambda: "done", task="required")
    async with hosted(app) as host:
        with pytest.raises(ProtocolError, match="must be called as a task"):
            await host.call("long")
        task = await start(host, "long")
        assert text(await host.ask("tasks/result", {"taskId": task["taskId"]})) == "done"


async def test_a_task_can_be_cancelled_and_its_coroutine_stops() -> None:
    app = App("a", "1")
    started, stopped = asyncio.Event(), asyncio.Event()

    @app.tool(task="optional")
    async def endless(ctx: CallContext) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async with hosted(app) as host:
        task = await start(host, "endless")
        await started.wait()
        cancelled = await host.ask("tasks/cancel", {"taskId": task["taskId"]})
        assert cancelled["status"] == "cancelled"
        assert stopped.is_set()
        with pytest.raises(ProtocolError, match="cancelled"):
            await host.ask("tasks/result", {"taskId": task["taskId"]})
        with pytest.raises(ProtocolError, match="has already ended: cancelled") as error:
            await host.ask("tasks/cancel", {"taskId": task["taskId"]})
        assert error.value.code == -32602


async def test_a_task_cancelled_before_it_began_ends_all_the_same() -> None:
    app = App("a", "1")

    @app.tool(task="optional")
    async def work() -> str:
        return "done"

    async with hosted(app) as host:
        params = {"name": "work", "task": {}}
        starting = asyncio.ensure_future(host.ask("tools/call", params))
        task = (await starting)["task"]
        status = (await host.ask("tasks/get", {"taskId": task["taskId"]}))["status"]
        if status == "working":
            status = (await host.ask("tasks/cancel", {"taskId": task["taskId"]}))["status"]
        assert status in ("cancelled", "completed")


@pytest.mark.parametrize("failure", [ToolError("no"), ValueError("secret"), ProtocolError(-1, "x")])
async def test_a_task_whose_tool_fails_has_failed(failure: Exception) -> None:
    app = App("a", "1")
    app.on_error = lambda: None

    @app.tool(task="optional")
    async def broken() -> str:
        raise failure

    async with hosted(app) as host:
        task_id = (await start(host, "broken"))["taskId"]
        if isinstance(failure, ToolError):
            assert (await host.ask("tasks/result", {"taskId": task_id}))["isError"] is True
        else:
            with pytest.raises(ProtocolError) as error:
                await host.ask("tasks/result", {"taskId": task_id})
            assert "secret" not in error.value.message
        assert (await host.ask("tasks/get", {"taskId": task_id}))["status"] == "failed"


async def test_bad_arguments_fail_the_task_with_the_problems() -> None:
    app = App("a", "1")

    @app.tool(task="optional")
    async def work(n: int) -> str:
        return str(n)

    async with hosted(app) as host:
        task_id = (await start(host, "work", {"n": "x"}))["taskId"]
        result = await host.ask("tasks/result", {"taskId": task_id})
        assert result["isError"] is True
        assert "n: expected integer" in text(result)


async def test_a_task_is_forgotten_after_its_time() -> None:
    app = App("a", "1")
    stopped = asyncio.Event()

    @app.tool(task="optional")
    async def endless() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async with hosted(app) as host:
        task = await start(host, "endless", ttl=1)
        await host.settled()
        await stopped.wait()
        with pytest.raises(ProtocolError, match="not found") as error:
            await host.ask("tasks/get", {"taskId": task["taskId"]})
        assert error.value.code == -32602


async def test_unknown_tasks_and_cursors_are_invalid_params() -> None:
    app = App("a", "1")
    app.register_tool("t", lambda: "x", task="optional")
    async with hosted(app) as host:
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            with pytest.raises(ProtocolError) as error:
                await host.ask(method, {"taskId": "ghost"})
            assert error.value.code == -32602
        with pytest.raises(ProtocolError) as error:
            await host.ask("tasks/list", {"cursor": "ghost"})
        assert error.value.code == -32602


async def test_tasks_are_listed_in_pages() -> None:
    app = App("a", "1", page_size=2)
    app.register_tool("t", lambda: "x", task="optional")
    async with hosted(app) as host:
        ids = [(await start(host, "t"))["taskId"] for _ in range(5)]
        found: list[str] = []
        cursor = None
        while True:
            page = await host.ask("tasks/list", {"cursor": cursor} if cursor else {})
            assert len(page["tasks"]) <= 2
            found += [task["taskId"] for task in page["tasks"]]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        assert found == ids


async def test_closing_stops_the_tasks_that_run() -> None:
    app = App("a", "1")
    started, stopped = asyncio.Event(), asyncio.Event()

    @app.tool(task="optional")
    async def endless() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async with hosted(app) as host:
        await start(host, "endless")
        await started.wait()
        await app.close()
        await stopped.wait()


SERVER_TASK = {"taskId": "server-1", "status": "working", "ttl": 1000}


def server(params: dict[str, Any]) -> dict[str, Any]:
    assert params["task"] == {"ttl": 1000}
    return {"task": SERVER_TASK}


async def test_a_handle_of_the_servers_is_passed_through_and_followed_there() -> None:
    app = App("a", "1")

    @app.tool(task="optional")
    async def export() -> Task:
        return await app.start_server_task("export", {"all": True}, ttl=1000)

    answers = {
        "tools__call": server,
        "tasks__get": {**SERVER_TASK, "status": "completed"},
        "tasks__result": {"content": [{"type": "text", "text": "exported"}]},
        "tasks__cancel": {**SERVER_TASK, "status": "cancelled"},
    }
    async with hosted(app, **answers) as host:
        assert text(await host.call("export")) == "exported"
        assert await start(host, "export") == SERVER_TASK
        assert (await host.ask("tasks/get", {"taskId": "server-1"}))["status"] == "completed"
        assert text(await host.ask("tasks/result", {"taskId": "server-1"})) == "exported"


async def test_a_handle_that_comes_as_a_surprise_is_followed_from_here() -> None:
    app = App("a", "1")

    @app.tool(task="optional")
    async def export():  # no return annotation says what comes
        return await app.start_server_task("export", ttl=1000)

    result = {"content": [{"type": "text", "text": "exported"}]}
    async with hosted(app, tools__call=server, tasks__result=result) as host:
        task = await start(host, "export")
        assert text(await host.ask("tasks/result", {"taskId": task["taskId"]})) == "exported"


async def test_a_handle_known_at_once_is_answered_as_the_servers_own() -> None:
    app = App("a", "1")
    handle = Task("server-1", "working", ttl=1000)
    app.register_tool("export", lambda: handle, task="required")
    answers = {
        "tasks__get": {**SERVER_TASK, "status": "completed"},
        "tasks__result": {"content": [{"type": "text", "text": "exported"}]},
        "tasks__cancel": {**SERVER_TASK, "status": "cancelled"},
    }
    async with hosted(app, **answers) as host:
        assert await start(host, "export") == SERVER_TASK
        assert (await host.ask("tasks/get", {"taskId": "server-1"}))["status"] == "completed"
        assert text(await host.ask("tasks/result", {"taskId": "server-1"})) == "exported"
        assert (await host.ask("tasks/cancel", {"taskId": "server-1"}))["status"] == "cancelled"
        assert [method for method, _ in host.requests[1:]] == [
            "tasks/get",
            "tasks/result",
            "tasks/cancel",
        ]
