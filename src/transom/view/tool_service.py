"""What a host may ask of a View's tools: `tools/list`, `tools/call` and `tasks/*`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from transom.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError
from transom.protocol import wire
from transom.protocol.messages import CallToolParams
from transom.protocol.methods import HOST, describe
from transom.types import Task
from transom.view.context import CallContext
from transom.view.invoke import Invocation, Outcome, call
from transom.view.listing import Listing
from transom.view.registry import Registry
from transom.view.tasks import Ask, TaskStore

if TYPE_CHECKING:
    from transom.view.app import App

__all__ = ["ToolService"]

Answer = bytes | Awaitable[bytes]

_BRACE, _NULL = b"{n"  # how an object and a null begin


class ToolService:
    """Serves the tools of one App."""

    def __init__(self, app: App, registry: Registry, page_size: int, ask: Ask) -> None:
        self._app = app
        self._registry = registry
        self._listing = Listing(registry, page_size, app.on_list_tools, app.report)
        self._tasks = TaskStore(ask, page_size=page_size)
        self.methods: dict[str, Callable[[Any], Answer]] = {
            "tools/list": lambda params: self._listing.page(params.cursor),
            "tools/call": self._call,
            "tasks/get": lambda params: self._tasks.get(params.task_id),
            "tasks/list": lambda params: self._tasks.list(params.cursor),
            "tasks/result": lambda params: self._tasks.result(params.task_id),
            "tasks/cancel": lambda params: self._tasks.cancel(params.task_id),
        }

    def serve(self, request: wire.Request) -> Answer:
        """Answer one of `methods`.

        Raises:
            ProtocolError: what the host is to be answered with.
        """
        method = request.method
        return self.methods[method](HOST[method].read_params(request.params))

    def close(self) -> None:
        """The connection is over: stop what runs as a task."""
        self._tasks.close()

    def _call(self, params: CallToolParams) -> Answer:
        arguments = params.arguments
        if (first := memoryview(arguments)[0]) != _BRACE:
            if first != _NULL:
                text = "Invalid params for tools/call: arguments: Expected `object`"
                raise ProtocolError(INVALID_PARAMS, text)
            arguments = Raw(b"{}")
        tool = self._registry.get(params.name)
        support = "forbidden" if tool is None else tool.task_support
        if params.task is None:
            if support == "required":
                text = f"Tool {params.name} must be called as a task"
                raise ProtocolError(METHOD_NOT_FOUND, text)
        elif tool is None or support == "forbidden":
            raise ProtocolError(METHOD_NOT_FOUND, f"Tool {params.name[:128]} cannot run as a task")
        elif not tool.function.returns_task:
            self._tasks.check_room()

        if tool is not None:
            outcome = call(tool, arguments, self._app, params.meta)
        elif self._app.on_call_tool:
            given = _decoded(arguments)
            ctx = CallContext(self._app, params.name, params.meta)
            invocation = Invocation(params.name[:128], None, ctx, self._app.report)
            outcome = invocation.run(self._app.on_call_tool.ask, (params.name, given, ctx), {})
        else:
            raise ProtocolError(INVALID_PARAMS, f"Tool {params.name[:128]} not found")
        if params.task is None:
            if not isinstance(outcome, bytes):
                return self._whole(outcome)
            self._app.tell_changes()  # a host that has the result knows what it changed
            return outcome
        if tool is not None and tool.function.returns_task:
            return self._delegated(outcome, params.task.ttl)
        if isinstance(outcome, Task):
            return self._tasks.delegate(outcome)
        return self._as_task(outcome, params.task.ttl)

    async def _whole(self, outcome: Outcome) -> bytes:
        """Wait for the result itself, on the server too if it works on it."""
        if not isinstance(outcome, bytes | Task):
            outcome = await outcome
        if isinstance(outcome, Task):
            outcome = await self._tasks.wait(outcome)
        self._app.tell_changes()
        return outcome

    async def _delegated(self, outcome: Outcome, ttl: float | None) -> bytes:
        """Wait for the server's handle, so that the host can follow it there."""
        if not isinstance(outcome, bytes | Task):
            outcome = await outcome
        if isinstance(outcome, Task):
            return self._tasks.delegate(outcome)
        return self._as_task(outcome, ttl)

    def _as_task(self, outcome: Outcome, ttl: float | None) -> bytes:
        if isinstance(outcome, bytes | Task):
            outcome = _there_already(outcome)
        return self._tasks.start(outcome, ttl)


def _decoded(arguments: Raw) -> dict[str, Any]:
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        text = f"Invalid params for tools/call: arguments: {describe(error)}"
        raise ProtocolError(INVALID_PARAMS, text) from None


async def _there_already(outcome: bytes | Task) -> bytes | Task:
    return outcome
