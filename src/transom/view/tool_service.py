"""Answers a host's requests for a View's tools: `tools/list`, `tools/call` and `tasks/*`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from transom.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError, ValidationError
from transom.events import Slot
from transom.protocol.messages import CallToolParams, CreateTaskResult
from transom.protocol.methods import describe
from transom.types import Task
from transom.view.invoke import Invocation, Outcome, ReportProblem, RunningCall, error_result
from transom.view.listing import Listing
from transom.view.tasks import RequestHost, TaskStore
from transom.view.tools import RegisteredTool, Registry, Unavailable

Answer = bytes | Awaitable[bytes]

_BRACE, _NULL = b"{n"  # how an object and a null begin


class ToolService:
    """Serves the tools of one App."""

    def __init__(
        self,
        registry: Registry,
        *,
        page_size: int,
        on_list_tools: Slot,
        on_call_tool: Slot,
        make_context: Callable[[str, Mapping[str, Any] | None], RunningCall],
        flush_changes: Callable[[], None],
        request_host: RequestHost,
        report: ReportProblem,
    ) -> None:
        self._registry = registry
        self._on_call_tool = on_call_tool
        self._make_context = make_context
        self._flush_changes = flush_changes
        self._report = report
        self._listing = Listing(registry, page_size, on_list_tools, report)
        self._tasks = TaskStore(request_host, page_size=page_size)
        self.methods: dict[str, Callable[[Any], Answer]] = {
            "tools/list": lambda params: self._listing.list_page(params.cursor),
            "tools/call": self._serve_call,
            "tasks/get": lambda params: self._tasks.get(params.task_id),
            "tasks/list": lambda params: self._tasks.list(params.cursor),
            "tasks/result": lambda params: self._tasks.result(params.task_id),
            "tasks/cancel": lambda params: self._tasks.cancel(params.task_id),
        }
        """What answers a request, by its method; it takes the params as a struct."""

    def close(self) -> None:
        """The connection is closed: cancel all tasks."""
        self._tasks.close()

    def _serve_call(self, params: CallToolParams) -> Answer:
        name, task, arguments = params.name, params.task, params.arguments
        tool = self._registry.get(name)
        if task is None:
            if tool is not None and tool.task_support == "required":
                raise ProtocolError(METHOD_NOT_FOUND, f"Tool {name} must be called as a task")
        elif tool is None or tool.task_support == "forbidden":
            raise ProtocolError(METHOD_NOT_FOUND, f"Tool {name[:128]} cannot run as a task")
        elif not tool._function.returns_task:
            self._tasks.check_room()

        if tool is not None:
            outcome = self._call(name, tool, arguments, params.meta)
        elif self._on_call_tool:
            outcome = self._call_unregistered(name, _as_object(arguments), params.meta)
        else:
            raise ProtocolError(INVALID_PARAMS, f"Tool {name[:128]} not found")
        if task is None:
            if not isinstance(outcome, bytes):
                return self._wait_for_result(outcome)
            self._flush_changes()  # the host is notified of a change before it gets the result
            return outcome
        if tool is not None and tool._function.returns_task:
            return self._wait_for_task(outcome, task.ttl)
        return self._start_task(outcome, task.ttl)

    def _call(
        self, name: str, tool: RegisteredTool, arguments: Raw, meta: Mapping[str, Any] | None
    ) -> Outcome:
        try:
            schema = tool._schema()
        except Unavailable as error:
            return error_result(f"Tool {name} is {error}")
        function = tool._function
        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = {}
        try:
            parse = schema.parse
            if tool._fits:  # it is made of the function's parameters, and reads objects only
                kwargs = parse(arguments)
            elif schema.spread:
                kwargs = parse(_as_object(arguments))
                function.check_arguments(kwargs)
            else:
                args = (parse(_as_object(arguments)),)
        except ValidationError as error:
            if (given := _as_object(arguments)) is not arguments:
                return self._call(name, tool, given, meta)
            mismatches = "".join(f"\n- {mismatch}" for mismatch in error.mismatches)
            return error_result(f"Invalid arguments for tool {name}:{mismatches}")
        ctx = None
        if function.context_name is not None:
            ctx = self._make_context(name, meta)
            kwargs = {**kwargs, function.context_name: ctx}
        invocation = Invocation(name, tool._output, ctx, self._report)
        if function.thread:
            return invocation.awaited(function.run_in_thread(args, kwargs))
        return invocation.run(function.function, args, kwargs)

    def _call_unregistered(
        self, name: str, arguments: Raw, meta: Mapping[str, Any] | None
    ) -> Outcome:
        try:
            decoded: dict[str, Any] = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            text = f"Invalid params for tools/call: arguments: {describe(error)}"
            raise ProtocolError(INVALID_PARAMS, text) from None
        ctx = self._make_context(name, meta)
        invocation = Invocation(name[:128], None, ctx, self._report)
        return invocation.run(self._on_call_tool.ask, (name, decoded, ctx), {})

    async def _wait_for_result(self, outcome: Outcome) -> bytes:
        """Wait for the result, from the server if the tool returned a task of the server."""
        if not isinstance(outcome, bytes | Task):
            outcome = await outcome
        if isinstance(outcome, Task):
            outcome = await self._tasks.wait(outcome)
        self._flush_changes()
        return outcome

    async def _wait_for_task(self, outcome: Outcome, ttl: float | None) -> bytes:
        """Wait for the server's task, so that the host can follow it."""
        if not isinstance(outcome, bytes | Task):
            outcome = await outcome
        return self._start_task(outcome, ttl)

    def _start_task(self, outcome: Outcome, ttl: float | None) -> bytes:
        if isinstance(outcome, Task):
            return self._tasks.delegate(outcome)
        if isinstance(outcome, bytes):
            outcome = _completed(outcome)
        return CreateTaskResult(task=self._tasks.start(outcome, ttl).task).to_wire()


def _as_object(arguments: Raw) -> Raw:
    """The arguments of a call, which are an object; null stands for none."""
    first = memoryview(arguments)[0]
    if first == _BRACE:
        return arguments
    if first == _NULL:
        return Raw(b"{}")
    text = "Invalid params for tools/call: arguments: Expected `object`"
    raise ProtocolError(INVALID_PARAMS, text)


async def _completed(outcome: bytes) -> bytes:
    return outcome
