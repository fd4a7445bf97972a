"""Calls that run as tasks, of Views' tools and of servers', in both forms of the protocol."""

import asyncio
from typing import Any

import pytest

from tests.gateway.memory import Server, gateway, text, tool, words
from transom import App, ToolError
from transom.errors import ProtocolError

VIEW = "shop-1"
TASKS = "io.modelcontextprotocol/tasks"
META = "io.modelcontextprotocol/"
BROKEN = {"code": -7, "message": "broken"}
MODERN: Any = {"modern": True, "capabilities": {"extensions": {TASKS: {}}}}


def handle_in(opened: Any) -> str:
    """What a View is called in requests of 2026-07-28, from the result that opened it."""
    return words(opened)[-1].partition('call_view_tool with view_id "')[2].partition('"')[0]


class Worker:
    """A View with a tool that works until it may end, as a task if that is wanted."""

    def __init__(self, support: Any = "optional") -> None:
        self.done = asyncio.Event()
        self.stopped = asyncio.Event()
        self._support = support

    def __call__(self, app: App) -> None:
        @app.tool(task=self._support, annotations={"readOnlyHint": True})
        async def work(n: int = 0, how: str = "") -> str:
            """Work for long."""
            try:
                await self.done.wait()
            finally:
                self.stopped.set()
            if how == "error":
                raise ToolError("it could not be done")
            if how == "fault":
                raise ProtocolError(-7, "broken", {"why": 1})
            return f"worked {n}"


async def test_a_views_tool_runs_as_a_task_for_a_client_before_2026_07_28():
    view = Worker()
    async with gateway(setup=view) as at:
        assert at.hello["capabilities"]["tasks"]["requests"] == {"tools": {"call": {}}}
        await at.open()
        tools = {each["name"]: each for each in (await at.ask("tools/list"))["tools"]}
        for name in (f"{VIEW}__work", "call_view_tool"):
            assert tools[name]["execution"] == {"taskSupport": "optional"}
        params = {"name": f"{VIEW}__work", "arguments": {"n": 3}, "task": {"ttl": 60_000}}
        task = (await at.ask("tools/call", params))["task"]
        assert (task["status"], task["ttl"]) == ("working", 60_000)
        id = {"taskId": task["taskId"]}
        assert (await at.ask("tasks/get", id))["status"] == "working"
        waiting = await at.begin("tasks/result", id)
        view.done.set()
        result = (await waiting.answer)["result"]
        assert words(result) == ["worked 3"]
        assert result["_meta"]["io.modelcontextprotocol/related-task"] == id
        [listed] = (await at.ask("tasks/list"))["tasks"]
        assert (listed["taskId"], listed["status"]) == (task["taskId"], "completed")
        await at.shop.made[0].close()  # what it came to is kept
        assert words(await at.ask("tasks/result", id)) == ["worked 3"]
        assert at.server.now.requests("tasks/get") == []


async def test_a_task_that_is_cancelled_stops_the_views_work():
    view = Worker()
    async with gateway(setup=view) as at:
        await at.open()
        params = {"name": f"{VIEW}__work", "arguments": {}, "task": {}}
        id = {"taskId": (await at.ask("tools/call", params))["task"]["taskId"]}
        assert (await at.ask("tasks/cancel", id))["status"] == "cancelled"
        await view.stopped.wait()
        assert (await at.ask("tasks/result", id))["message"] == "The task was cancelled"
        assert (await at.ask("tasks/update", id))["code"] == -32601


@pytest.mark.parametrize("name", [f"{VIEW}__read", "list_view_tools"])
async def test_a_tool_that_does_not_support_tasks_is_not_run_as_one(name: str):
    ran: list[str] = []

    def setup(app: App) -> None:
        app.update_tool("read", description="Read it, and notice that.")
        app.tool(lambda: ran.append("noticed"), name="notice", task="forbidden")

    async with gateway(setup=setup) as at:
        await at.open()
        for tool in (name, f"{VIEW}__notice"):
            refused = await at.ask("tools/call", {"name": tool, "arguments": {}, "task": {}})
            assert (refused["code"], refused["message"]) == (
                -32601,
                f"Tool {tool} cannot run as a task",
            )
        assert ran == []
        assert words(await at.call(f"{VIEW}__read")) == ["read"]


async def test_a_tool_that_cannot_run_as_a_task_is_one_that_has_ended():
    async with gateway() as at:
        await at.open()
        through = {"view_id": VIEW, "name": "read"}
        params = {"name": "call_view_tool", "arguments": through, "task": {"ttl": "odd"}}
        task = (await at.ask("tools/call", params))["task"]
        assert words(await at.ask("tasks/result", {"taskId": task["taskId"]})) == ["read"]


@pytest.mark.parametrize("support", ["optional", "required"])
async def test_a_views_tool_that_takes_long_is_a_task_for_a_client_with_the_extension(
    support: Any, monkeypatch: pytest.MonkeyPatch
):
    view = Worker(support)
    async with gateway(setup=view, **MODERN) as at:
        assert TASKS in at.hello["capabilities"]["extensions"]
        through = {"view_id": handle_in(await at.open()), "name": "work", "arguments": {"n": 3}}
        task = await at.call("call_view_tool", **through)
        assert (task["resultType"], task["status"]) == ("task", "working")
        assert (task["ttlMs"], task["pollIntervalMs"]) == (600_000, 500)
        id = {"taskId": task["taskId"]}
        working = await at.ask("tasks/get", id)
        assert (working["resultType"], working["status"]) == ("complete", "working")
        assert "result" not in working
        assert await at.ask("tasks/update", {**id, "inputResponses": {}}) == {
            "resultType": "complete"
        }
        for gone in ("tasks/result", "tasks/list"):
            assert (await at.ask(gone, id))["code"] == -32601
        view.done.set()
        while (state := await at.ask("tasks/get", id))["status"] == "working":
            pass
        assert state["status"] == "completed"
        assert words(state["result"]) == ["worked 3"]
        # What ends at once is no task.
        monkeypatch.setattr("transom.gateway.view_tasks._TASK_AFTER", 3600)
        assert words(await at.call("call_view_tool", **through)) == ["worked 3"]
        at.meta[f"{META}clientCapabilities"] = {}
        assert (await at.ask("tasks/get", id))["code"] == -32021
        assert words(await at.call("call_view_tool", **through)) == ["worked 3"]


@pytest.mark.parametrize(
    ("how", "state"),
    [
        ("error", {"status": "completed"}),
        ("fault", {"status": "failed", "error": {**BROKEN, "data": {"why": 1}}}),
        ("cancel", {"status": "cancelled"}),
    ],
)
async def test_a_task_of_the_extension_that_goes_wrong_says_how(how: str, state: dict[str, Any]):
    view = Worker()
    async with gateway(setup=view, **MODERN) as at:
        through = {"view_id": handle_in(await at.open()), "name": "work", "arguments": {"how": how}}
        id = {"taskId": (await at.call("call_view_tool", **through))["taskId"]}
        if how == "cancel":
            assert await at.ask("tasks/cancel", id) == {"resultType": "complete"}
        else:
            view.done.set()
        await view.stopped.wait()
        while (ended := await at.ask("tasks/get", id))["status"] == "working":
            pass
        assert ended.items() >= state.items()
        if how == "error":
            assert ended["result"]["isError"] is True


async def test_a_servers_task_opens_its_view_when_it_has_a_result():
    task = {"taskId": "t", "status": "working"}
    answers = {"tools/call": {"task": task}, "tasks/get": task, "tasks/result": text("shown")}
    async with gateway(Server(answers)) as at:
        await at.tools()
        assert await at.ask("tools/call", {"name": "show", "task": {}}) == {"task": task}
        assert await at.ask("tasks/get", {"taskId": "t"}) == task
        assert at.shop.made == []
        shown, about = words(await at.ask("tasks/result", {"taskId": "t"}))
        assert shown == "shown"
        assert f"View {VIEW} is open" in about
        assert words(await at.ask("tasks/result", {"taskId": "t"})) == ["shown"]
        assert len(at.shop.made) == 1


async def test_a_servers_task_of_the_extension_opens_its_view_when_it_has_a_result():
    task = {"taskId": "t", "status": "working", "ttlMs": None}
    done = {**task, "status": "completed", "result": text("shown")}
    states = iter([task, done, done])
    answers = {
        "tools/call": {**task, "resultType": "task"},
        "tasks/get": lambda _: {**next(states), "resultType": "complete"},
    }
    async with gateway(Server(answers), **MODERN) as at:
        await at.tools()
        assert (await at.call("show"))["resultType"] == "task"
        assert (await at.ask("tasks/get", {"taskId": "t"}))["status"] == "working"
        assert at.shop.made == []
        ended = await at.ask("tasks/get", {"taskId": "t"})
        shown, about = words(ended["result"])
        assert shown == "shown"
        assert "is open" in about
        assert words((await at.ask("tasks/get", {"taskId": "t"}))["result"]) == ["shown"]
        assert len(at.shop.made) == 1


async def test_a_task_that_nobody_has_is_unknown_and_tasks_need_the_extension():
    unknown = {"taskId": "nobody's"}
    async with gateway() as older:
        assert (await older.ask("tasks/get", unknown))["code"] == -32602
    async with gateway(**MODERN) as newer:
        assert (await newer.ask("tasks/get", unknown))["code"] == -32602
    async with gateway(modern=True) as without:
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            error = await without.ask(method, unknown)
            required = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            assert (error["code"], error["data"]) == (-32021, required)


async def test_servers_are_not_asked_about_the_tasks_of_views():
    view = Worker()
    async with gateway(setup=view, **MODERN) as at:
        through = {"view_id": handle_in(await at.open()), "name": "work"}
        id = (await at.call("call_view_tool", **through))["taskId"]
        wanted = {"notifications": {"taskIds": [id, "theirs"], "toolsListChanged": True}}
        await at.begin("subscriptions/listen", wanted)
        await at.server.now.until(lambda: at.server.now.requests("subscriptions/listen"))
        [asked] = at.server.now.requests("subscriptions/listen")
        assert asked["notifications"] == {"taskIds": ["theirs"], "toolsListChanged": True}


async def test_a_2026_07_28_servers_task_is_one_for_an_older_client():
    made = {"taskId": "t", "status": "working", "ttlMs": 5, "pollIntervalMs": 20}
    done = {**made, "status": "completed", "result": text("shown")}
    states = iter([made, made, done])
    refused = {"error": {"code": -32022, "message": "Unsupported protocol version"}}
    server = Server(
        {
            "initialize": refused,
            "tools/call": {**made, "resultType": "task"},
            "tasks/get": lambda _: {**next(states), "resultType": "complete"},
        }
    )
    async with gateway(server) as at:
        await at.tools()
        task = (await at.ask("tools/call", {"name": "show", "task": {"ttl": 5}}))["task"]
        assert (task["taskId"], task["ttl"], task["pollInterval"]) == ("t", 5, 20)
        [call] = at.server.now.requests("tools/call")
        assert TASKS in call["_meta"][f"{META}clientCapabilities"]["extensions"]
        assert (await at.ask("tasks/get", {"taskId": "t"}))["status"] == "working"
        shown, about = words(await at.ask("tasks/result", {"taskId": "t"}))
        assert shown == "shown"
        assert f"View {VIEW} is open" in about


async def test_an_older_servers_tool_that_must_run_as_a_task_can_be_called_by_a_newer_client():
    task = {"task": {"taskId": "t", "status": "working", "ttl": None}}
    refused = {"error": {"code": -32601, "message": "Method not found"}}
    finished = asyncio.Event()

    async def result(_: Any) -> Any:
        await finished.wait()
        return text("worked")

    server = Server(
        {
            "server/discover": refused,
            "tools/call": lambda params: task if "task" in params else refused,
            "tasks/result": result,
            "tasks/cancel": task["task"],
        }
    )
    server.tools = [tool("work", execution={"taskSupport": "required"})]
    async with gateway(server, modern=True) as at:
        await at.tools()
        cancelled = await at.begin("tools/call", {"name": "work"})
        await at.server.now.until(lambda: at.server.now.requests("tasks/result"))
        await at.client.tell("notifications/cancelled", {"requestId": cancelled.id})
        await at.server.now.until(lambda: at.server.now.requests("tasks/cancel"))
        finished.set()
        answer = await at.call("work")
        assert (words(answer), answer["resultType"]) == (["worked"], "complete")
