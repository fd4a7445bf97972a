"""Tools of `transom.js` that run as tasks: in the page, and on the server. In Node."""

import re
from typing import Any

import pytest

from tests.browser.transomjs_host import Node, View, mounted, page_with
from tests.connections.scripted_server import ScriptedServer
from transom.errors import ProtocolError, ViewClosed
from transom.server.resource import inline_transom
from transom.testing import ViewsFixture
from transom.types import Task

APP = """
  globalThis.errors = [];
  globalThis.log = [];
  globalThis.app = new App({ name: "a", version: "1" }, undefined, { autoResize: false });
  app.onerror = (error) => errors.push(error.message);
  globalThis.gates = {};
  const optional = { execution: { taskSupport: "optional" } };
  const inputSchema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  app.registerTool("work", { ...optional, inputSchema }, async ({ n }, extra) => {
    const { signal } = extra;
    signal.addEventListener("abort", () => log.push(`aborted ${n}`));
    await new Promise((open) => { gates[n] = open; });
    await extra.sendProgress(1, 2);
    return `did ${n}`;
  });
  app.registerTool("quick", {}, () => "done");
  app.registerTool("must", { execution: { taskSupport: "required" } }, () => "done");
  app.registerTool("fails", optional, (extra) => {
    if (extra.arguments.how === "tool") throw new ToolError("sold out");
    if (extra.arguments.how === "protocol") throw new ProtocolError(-32042, "no", { why: 1 });
    throw new Error("secret");
  });
"""
PAGE = page_with(f"{APP}\nawait app.connect();")


async def start(view: View, name: str, arguments: Any = None, **task: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments or {}, "task": task}
    answer = await view.ask("tools/call", params)
    assert "result" in answer, answer
    return answer["result"]["task"]


async def ask(view: View, method: str, task: dict[str, Any] | str) -> Any:
    task_id = task if isinstance(task, str) else task["taskId"]
    return await view.ask(f"tasks/{method}", {"taskId": task_id})


async def status(view: View, task: dict[str, Any]) -> str:
    return (await ask(view, "get", task))["result"]["status"]


class TestInThePage:
    async def test_a_call_that_asks_for_a_task_is_answered_with_its_handle_at_once(
        self, node: Node
    ):
        async with mounted(node, PAGE) as view:
            listed = {tool["name"]: tool.get("execution") for tool in await view.tools()}
            assert listed == {
                "work": {"taskSupport": "optional"}, "quick": None,
                "must": {"taskSupport": "required"}, "fails": {"taskSupport": "optional"},
            }  # fmt: skip
            task = await start(view, "work", {"n": 3}, ttl=60_000)
            assert (task["status"], task["ttl"]) == ("working", 60_000)
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", task["createdAt"])
            assert task["createdAt"] == task["lastUpdatedAt"]
            assert (await ask(view, "get", task))["result"] == task
            await view.page.evaluate(
                "id => { window.result = ask('tasks/result', { taskId: id }) }", task["taskId"]
            )
            assert await status(view, task) == "working"
            await view.run("gates[3]()")
            done = (await view.page.evaluate("result"))["result"]
            assert done == {
                "content": [{"type": "text", "text": "did 3"}],
                "_meta": {
                    "io.modelcontextprotocol/related-task": {"taskId": task["taskId"]},
                },
            }
            ended = (await ask(view, "get", task))["result"]
            assert ended["status"] == "completed"
            assert (await view.ask("tasks/list"))["result"] == {"tasks": [ended]}
            assert (await ask(view, "result", task))["result"] == done

    async def test_the_same_tool_answers_a_plain_call_as_ever(self, node: Node):
        async with mounted(node, PAGE) as view:
            await view.page.evaluate(
                "void (window.plain = ask('tools/call', { name: 'work', arguments: { n: 1 } }))"
            )
            await view.until("gates[1]")
            await view.run("gates[1]()")
            answer = await view.page.evaluate("plain")
            assert answer["result"] == {"content": [{"type": "text", "text": "did 1"}]}

    async def test_what_may_not_and_what_must_run_as_a_task_say_so(self, node: Node):
        async with mounted(node, PAGE) as view:
            for name in ("quick", "unknown"):
                answer = await view.ask("tools/call", {"name": name, "task": {}})
                assert answer["error"] == {
                    "code": -32601,
                    "message": f"Tool {name} cannot run as a task",
                }
            answer = await view.ask("tools/call", {"name": "must"})
            assert answer["error"] == {
                "code": -32601,
                "message": "Tool must must be called as a task",
            }
            task = await start(view, "must")
            result = (await ask(view, "result", task))["result"]
            assert result["content"][0]["text"] == "done"

    async def test_a_task_that_is_cancelled_stops_its_callback(self, node: Node):
        async with mounted(node, PAGE) as view:
            task = await start(view, "work", {"n": 1})
            await view.page.evaluate(
                "id => { window.result = ask('tasks/result', { taskId: id }) }", task["taskId"]
            )
            stopped = (await ask(view, "cancel", task))["result"]
            assert stopped["status"] == "cancelled"
            assert await view.run("log") == ["aborted 1"]
            gone = {"code": -32000, "message": "The task was cancelled"}
            assert (await view.page.evaluate("result"))["error"] == gone
            assert (await ask(view, "result", task))["error"] == gone
            await view.run("gates[1]()")
            assert await status(view, task) == "cancelled"
            again = await ask(view, "cancel", task)
            assert again["error"]["code"] == -32602
            assert again["error"]["message"].endswith("has already ended: cancelled")

    @pytest.mark.parametrize(
        ("how", "expected"),
        [
            ("tool", {"result": "sold out"}),
            ("protocol", {"error": {"code": -32042, "message": "no", "data": {"why": 1}}}),
            ("other", {"error": {"code": -32603, "message": "Tool fails failed"}}),
        ],
    )
    async def test_a_task_whose_tool_fails_has_failed(self, node: Node, how: str, expected: Any):
        async with mounted(node, PAGE) as view:
            task = await start(view, "fails", {"how": how})
            answer = await ask(view, "result", task)
            if "result" in answer:
                assert answer["result"]["isError"]
                answer = {"result": answer["result"]["content"][0]["text"]}
            assert answer == expected
            assert await status(view, task) == "failed"
            assert await view.run("errors") == (["secret"] if how == "other" else [])

    async def test_bad_arguments_fail_the_task_with_the_problems(self, node: Node):
        async with mounted(node, PAGE) as view:
            task = await start(view, "work", {"n": "x"})
            result = (await ask(view, "result", task))["result"]
            assert result["content"][0]["text"] == (
                "Invalid arguments for tool work:\n- n: expected integer, got string"
            )
            assert await status(view, task) == "failed"

    async def test_a_task_is_forgotten_after_its_time(self, node: Node):
        async with mounted(node, PAGE) as view:
            task = await start(view, "work", {"n": 1}, ttl=1)
            await view.until("log.length")
            answer = await ask(view, "get", task)
            assert answer["error"]["message"] == f"Task {task['taskId']} not found"
            for ttl, kept in ((None, 600_000), (-5, 600_000), (0.5, 1), (1e12, 86_400_000)):
                made = await start(view, "work", {"n": 2}, ttl=ttl)
                assert made["ttl"] == kept

    async def test_unknown_tasks_and_cursors_are_invalid_params(self, node: Node):
        async with mounted(node, PAGE) as view:
            for method in ("get", "result", "cancel"):
                answer = await ask(view, method, "x" * 1000)
                assert answer["error"] == {
                    "code": -32602,
                    "message": f"Task {'x' * 100} not found",
                }
                for params in ({}, {"taskId": 5}):
                    answer = await view.ask(f"tasks/{method}", params)
                    assert answer["error"] == {"code": -32602, "message": "Invalid params"}
            assert (await view.ask("tasks/list", {"cursor": "x"}))["error"]["code"] == -32602
            for task in (5, [], "x"):
                answer = await view.ask("tools/call", {"name": "work", "task": task})
                assert answer["error"] == {"code": -32602, "message": "Invalid params"}

    async def test_tasks_are_listed_in_pages_and_there_is_an_end_to_them(self, node: Node):
        async with mounted(node, PAGE) as view:
            made = await view.page.evaluate("""async () => {
              const call = () => ask("tools/call", { name: "must", task: {} });
              const answers = await Promise.all(Array.from({ length: 1001 }, call));
              return answers.filter(({ result }) => result).length;
            }""")
            assert made == 1000
            answer = await view.ask("tools/call", {"name": "must", "task": {}})
            assert answer["error"] == {"code": -32000, "message": "Too many tasks"}
            first = (await view.ask("tasks/list"))["result"]
            last = (await view.ask("tasks/list", {"cursor": "900"}))["result"]
            assert (len(first["tasks"]), first["nextCursor"]) == (100, "100")
            assert len(last["tasks"]) == 100
            assert "nextCursor" not in last

    async def test_closing_stops_the_tasks_that_run(self, node: Node):
        async with mounted(node, PAGE) as view:
            await start(view, "work", {"n": 1})
            await view.run("async () => { await app.close(); await app.connect(); }")
            assert await view.run("log") == ["aborted 1"]
            assert (await view.ask("tasks/list"))["result"] == {"tasks": []}

    async def test_progress_goes_on_after_the_call_was_answered(self, node: Node):
        async with mounted(node, PAGE) as view:
            params = {
                "name": "work", "arguments": {"n": 1}, "task": {}, "_meta": {"progressToken": "p"},
            }  # fmt: skip
            await view.ask("tools/call", params)
            await view.run("gates[1]()")
            [progress] = await view.heard("notifications/progress")
            assert progress["params"] == {"progressToken": "p", "progress": 1, "total": 2}

    async def test_a_support_that_makes_no_sense_is_refused(self, node: Node):
        async with mounted(node, PAGE) as view:
            attempt = """() => {
              try { app.registerTool("t", { execution: { taskSupport: "maybe" } }, () => ""); }
              catch (error) { return error.message; }
            }"""
            assert await view.run(attempt) == "Not a taskSupport"


HANDED = f"""{APP}
  app.registerTool("export", {{ ...optional, returnsTask: true }}, () =>
    app.startServerTask({{ name: "export", arguments: {{ all: true }} }}, {{ ttl: 1000 }}));
  app.registerTool("surprise", optional, () => app.startServerTask({{ name: "export" }}));
  app.registerTool("instead", {{ ...optional, returnsTask: true }}, () => "no need to");
  app.registerTool("copied", optional, async () =>
    ({{ ...await app.startServerTask({{ name: "export" }}) }}));
"""
SERVER_TASK = {"taskId": "server-1", "status": "working", "ttl": 1000}


class TestOnTheServer:
    PAGE = page_with(f"{HANDED}\nawait app.connect();")

    async def answered(self, view: View, **answers: Any) -> None:
        await view.page.evaluate(
            "given => { for (const key in given) answers[key.replace('__', '/')] = given[key]; }",
            {"tools__call": {"task": SERVER_TASK}, **answers},
        )

    async def test_a_handle_of_the_servers_is_passed_through_and_followed_there(self, node: Node):
        result = {"content": [{"type": "text", "text": "exported"}]}
        async with mounted(node, self.PAGE) as view:
            await self.answered(
                view,
                tasks__get={**SERVER_TASK, "status": "completed"},
                tasks__result=result,
                tasks__cancel={**SERVER_TASK, "status": "cancelled"},
            )
            assert await start(view, "export") == SERVER_TASK
            [asked] = await view.seen("tools/call")
            assert asked["params"]["task"] == {"ttl": 1000}
            assert asked["params"]["arguments"] == {"all": True}
            assert (await ask(view, "get", "server-1"))["result"]["status"] == "completed"
            assert (await ask(view, "result", "server-1"))["result"] == result
            assert (await ask(view, "cancel", "server-1"))["result"]["status"] == "cancelled"
            assert (await view.ask("tasks/list"))["result"] == {"tasks": []}
            assert "returnsTask" not in (await view.tools())[-1]

    async def test_a_plain_call_waits_for_the_servers_result(self, node: Node):
        async with mounted(node, self.PAGE) as view:
            await self.answered(view, tasks__result={"content": [], "structuredContent": {"n": 1}})
            assert (await view.call("export"))["structuredContent"] == {"n": 1}
            [asked] = await view.seen("tasks/result")
            assert asked["params"] == {"taskId": "server-1"}

    async def test_a_handle_that_comes_as_a_surprise_is_followed_from_here(self, node: Node):
        async with mounted(node, self.PAGE) as view:
            result = {"content": [{"type": "text", "text": "exported"}]}
            await self.answered(view, tasks__result=result)
            task = await start(view, "surprise")
            assert task["taskId"] != "server-1"
            done = (await ask(view, "result", task))["result"]
            assert done["content"] == result["content"]
            task = await start(view, "instead")
            done = (await ask(view, "result", task))["result"]
            assert done["content"][0]["text"] == "no need to"

    async def test_only_the_servers_own_handle_is_one(self, node: Node):
        async with mounted(node, self.PAGE) as view:
            await self.answered(view)
            assert (await view.call("copied"))["structuredContent"] == SERVER_TASK

    async def test_a_server_that_answers_at_once_started_no_task(self, node: Node):
        async with mounted(node, self.PAGE) as view:
            await self.answered(view, tools__call={"content": []})
            answer = await view.ask("tools/call", {"name": "export", "task": {}})
            assert answer["error"] == {"code": -32603, "message": "Tool export failed"}
            assert await view.run("errors") == ["export started no task"]


# --- with a host and a server ----------------------------------------------------------------

URI = "ui://orders/list.html"
TIMES = {"createdAt": "2026-01-01T12:00:00Z", "lastUpdatedAt": "2026-01-01T12:00:00Z", "ttl": None}


def task_server(state: dict[str, str]) -> ScriptedServer:
    """A server with the View, whose tool `export` runs as a task; `state` says how far it is."""

    def handle(params: dict[str, Any]) -> dict[str, Any]:
        return {"taskId": params["taskId"], "status": state["status"], **TIMES}

    def call(params: dict[str, Any]) -> dict[str, Any]:
        if params["name"] == "show_orders":
            return {"content": [{"type": "text", "text": "shown"}]}
        return {"task": {"taskId": "t-1", "status": "working", **TIMES}}

    html = inline_transom(page_with(f"{HANDED}\nawait app.connect();"))
    page = {"uri": URI, "mimeType": "text/html;profile=mcp-app", "text": html}
    schema = {"type": "object"}
    show = {"name": "show_orders", "inputSchema": schema, "_meta": {"ui": {"resourceUri": URI}}}
    return ScriptedServer(
        {
            "tools/list": {"tools": [show, {"name": "export", "inputSchema": schema}]},
            "tools/call": call,
            "resources/read": {"contents": [page]},
            "tasks/get": handle,
            "tasks/result": {"content": [{"type": "text", "text": "exported"}]},
        },
        capabilities={"tools": {}, "resources": {}, "tasks": {}},
    )


@pytest.mark.processes
async def test_a_task_that_was_handed_to_the_server_outlives_its_view(views: ViewsFixture) -> None:
    state = {"status": "working"}
    async with task_server(state).negotiated() as client:
        view = await views.open(client, "show_orders")
        host, name = view.host, view.view.id
        task = await host.start_task(f"{name}__export")
        assert isinstance(task, Task)
        assert task.task_id == f"{name}/t-1"
        assert (await host.get_task(task.task_id)).status == "working"

        # One in the page ends with the page.
        other = await host.start_task(f"{name}__work", {"n": 1}, ttl=60_000)
        assert isinstance(other, Task)
        assert (await host.get_task(other.task_id)).status == "working"
        assert (await host.cancel_task(other.task_id)).status == "cancelled"
        with pytest.raises(ProtocolError, match="The task was cancelled"):
            await host.task_result(other.task_id)

        await view.close()
        assert (await host.get_task(task.task_id)).status == "working"
        state["status"] = "completed"
        assert (await host.get_task(task.task_id)).status == "completed"
        assert (await host.task_result(task.task_id)).text == "exported"
        with pytest.raises(ViewClosed):
            await host.get_task(other.task_id)
