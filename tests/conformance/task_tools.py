"""Tools of the conformance server that run as tasks, by the extension of 2026-07-28.

The names and texts are those that the suite's scenarios describe.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.extension import Extension, MethodBinding, ToolBinding
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    RequestParams,
    TextContent,
)
from pydantic import Field

TASKS = "io.modelcontextprotocol/tasks"


def text(words: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=words)], is_error=is_error)


def form(message: str, field: str) -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": "string"}}}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


class Task:
    """One call that goes on after it was answered."""

    def __init__(self, work: Callable[["Task"], Awaitable[CallToolResult]]) -> None:
        self.id = secrets.token_hex(16)
        self._status = "working"
        self._created = self._updated = datetime.now(UTC).isoformat()
        self._more: dict[str, Any] = {}
        self._asked: dict[str, ElicitRequest] = {}
        self._answers: dict[str, asyncio.Future[object]] = {}
        self._running = asyncio.create_task(self._run(work))

    async def _run(self, work: Callable[["Task"], Awaitable[CallToolResult]]) -> None:
        try:
            result = await work(self)
            self._end("completed", result=result.model_dump(mode="json", by_alias=True))
        except MCPError as error:
            self._end("failed", error={"code": error.error.code, "message": error.error.message})
        except asyncio.CancelledError:
            self._end("cancelled")

    def _end(self, status: str, **more: object) -> None:
        self._status, self._more = status, more
        self._updated = datetime.now(UTC).isoformat()

    async def ask(self, key: str, message: str) -> None:
        """Wait for the user's answer."""
        self._asked[key] = form(message, "confirm")
        self._answers[key] = asyncio.get_running_loop().create_future()
        await self._answers[key]

    def answer(self, responses: dict[str, Any]) -> None:
        for key in responses.keys() & self._asked.keys():
            del self._asked[key]
            self._answers[key].set_result(responses[key])

    def cancel(self) -> None:
        self._running.cancel()

    def handle(self) -> dict[str, Any]:
        return {
            "taskId": self.id,
            "status": self._status
            if self._status != "working" or not self._asked
            else "input_required",
            "createdAt": self._created,
            "lastUpdatedAt": self._updated,
            "ttlMs": 60_000,
            "pollIntervalMs": 200,
        }

    def details(self) -> dict[str, Any]:
        asked = {
            key: each.model_dump(mode="json", by_alias=True) for key, each in self._asked.items()
        }
        more = {"inputRequests": asked} if asked and not self._more else self._more
        return {**self.handle(), **more, "resultType": "complete"}


# --- the tools -------------------------------------------------------------------------------


def greet(name: str) -> str:
    """Answer at once."""
    return f"Hello, {name}!"


async def slow_compute(seconds: float = 0, label: str = "") -> str:
    """Take some seconds."""
    await asyncio.sleep(seconds)
    return f"{label} took {seconds} s"


async def failing_job() -> str:
    """Fail; it has to be a task."""
    return ""


async def protocol_error_job() -> str:
    """Fail with an error of the protocol."""
    return ""


async def confirm_delete(filename: str) -> str:
    """Ask before it deletes."""
    return filename


async def multi_input() -> str:
    """Ask for two things at once."""
    return ""


async def test_tool_with_task(ctx: Context) -> InputRequiredResult:
    """Ask for a name, and become a task then."""
    return InputRequiredResult(input_requests={"user_name": form("Your name?", "name")})


def job(name: str, params: CallToolRequestParams) -> Callable[[Task], Awaitable[CallToolResult]]:
    """What a tool does as a task."""
    arguments = params.arguments or {}

    async def work(task: Task) -> CallToolResult:
        match name:
            case "slow_compute":
                return text(await slow_compute(**arguments))
            case "failing_job":
                return text("it failed", is_error=True)
            case "protocol_error_job":
                raise MCPError(code=-32603, message="It broke")
            case "confirm_delete":
                await task.ask("confirm", "Delete it?")
            case "multi_input":
                await asyncio.gather(task.ask("one", "One?"), task.ask("two", "Two?"))
            case _:
                answer = (params.input_responses or {})["user_name"]
                content = answer.content if isinstance(answer, ElicitResult) else None
                return text(f"Hello, {(content or {}).get('name')}!")
        return text("done")

    return work


class TaskParams(RequestParams):
    task_id: str
    input_responses: dict[str, Any] = Field(default_factory=dict)


def declared(ctx: ServerRequestContext) -> bool:
    can = ctx.session.client_capabilities
    return can is not None and TASKS in (can.extensions or {})


def require(ctx: ServerRequestContext) -> None:
    if not declared(ctx):
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="This needs the tasks extension",
            data={"requiredCapabilities": {"extensions": {TASKS: {}}}},
        )


class Tasks(Extension):
    identifier = TASKS

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def tools(self) -> Sequence[ToolBinding]:
        return [
            ToolBinding(each)
            for each in (
                *(greet, slow_compute, failing_job, protocol_error_job),
                *(confirm_delete, multi_input, test_tool_with_task),
            )
        ]

    def methods(self) -> Sequence[MethodBinding]:
        return [
            MethodBinding("tasks/get", TaskParams, self._get),
            MethodBinding("tasks/update", TaskParams, self._update),
            MethodBinding("tasks/cancel", TaskParams, self._cancel),
        ]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext, call_next: CallNext
    ) -> HandlerResult:
        mine = [binding.fn.__name__ for binding in self.tools()]
        if params.name not in mine or params.name == "greet":
            return await call_next(ctx)
        if params.name == "failing_job":
            require(ctx)
        if params.name == "test_tool_with_task" and not params.input_responses:
            return await call_next(ctx)
        if not declared(ctx):
            return await call_next(ctx)
        task = Task(job(params.name, params))
        self._tasks[task.id] = task
        return {**task.handle(), "resultType": "task"}

    def _find(self, ctx: ServerRequestContext, params: TaskParams) -> Task:
        require(ctx)
        if params.task_id not in self._tasks:
            raise MCPError(code=INVALID_PARAMS, message="There is no such task")
        return self._tasks[params.task_id]

    async def _get(self, ctx: ServerRequestContext, params: TaskParams) -> dict[str, Any]:
        return self._find(ctx, params).details()

    async def _update(self, ctx: ServerRequestContext, params: TaskParams) -> dict[str, Any]:
        self._find(ctx, params).answer(params.input_responses)
        return {"resultType": "complete"}

    async def _cancel(self, ctx: ServerRequestContext, params: TaskParams) -> dict[str, Any]:
        self._find(ctx, params).cancel()
        return {"resultType": "complete"}
