"""Calling a tool: from the host's request to the bytes of the answer.

| what happens | what the host gets |
| --- | --- |
| the tool is disabled, or its schema cannot be made | an `isError` result that says so |
| the arguments do not fit | an `isError` result with each problem and its place |
| the handler raises `ToolError` | an `isError` result with its text |
| the handler raises `ProtocolError` | that JSON-RPC error |
| the handler raises anything else | -32603 `Tool NAME failed`; the rest goes to `on_error` |
| the result cannot be sent, or does not fit the output schema | -32603; the rest to `on_error` |

A sync handler is answered at once, without a task; only what has to be awaited is awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from transom.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ProtocolError,
    SchemaError,
    ToolError,
    ValidationError,
)
from transom.events import is_awaitable, stops_us
from transom.schema import Schema
from transom.types import Task, TextContent, ToolResult
from transom.view.context import CallContext
from transom.view.results import result_json
from transom.view.tools import RegisteredTool, Unavailable

if TYPE_CHECKING:
    from transom.view.app import App

__all__ = ["Invocation", "Outcome", "call", "error_result"]

Outcome = bytes | Task | Awaitable["bytes | Task"]
"""What comes of a call: the JSON of a result, a handle on the server's work, or one in a while."""

OnProblem = Callable[[BaseException], object]


def error_result(text: str) -> bytes:
    """A failure the model can read."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be sent
    return ToolResult(content=[TextContent(text)], is_error=True).to_wire()


def call(
    tool: RegisteredTool,
    arguments: Raw,
    app: App,
    meta: Mapping[str, Any] | None,
) -> Outcome:
    """Call a registered tool.

    Raises:
        ProtocolError: what the host is to be answered with.
    """
    name = tool.name
    if not tool.enabled:
        why = f": {tool.reason}" if tool.reason else ""
        return error_result(f"Tool {name} is disabled{why}")
    try:
        schema = tool.schema()
    except Unavailable:
        return error_result(f"Tool {name} is unavailable right now")
    function = tool.function
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    try:
        value = schema.parse(arguments)
        if not schema.spread:
            args = (value,)
        else:
            kwargs = value
            if not tool.fits:
                function.fit(kwargs)
    except ValidationError as error:
        problems = "".join(f"\n- {problem}" for problem in error.problems)
        return error_result(f"Invalid arguments for tool {name}:{problems}")
    ctx = None
    if function.context_name is not None:
        ctx = CallContext(app, name, meta)
        kwargs = {**kwargs, function.context_name: ctx}
    invocation = Invocation(name, tool.output, ctx, app.report)
    if function.thread:
        return invocation.awaited(_in_thread(function.function, args, kwargs))
    return invocation.run(function.function, args, kwargs)


async def _in_thread(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    returned = await asyncio.to_thread(_carried, function, args, kwargs)
    return await returned if is_awaitable(returned) else returned


def _carried(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except (StopIteration, GeneratorExit) as error:  # a Future cannot carry them
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error


def _can_be_sent(code: object, message: object) -> bool:
    return isinstance(code, int) and isinstance(message, str)


class Invocation:
    """One run of one function on behalf of a host, and what to answer for it."""

    __slots__ = ("ctx", "name", "on_problem", "output")

    def __init__(
        self, name: str, output: Schema | None, ctx: CallContext | None, on_problem: OnProblem
    ) -> None:
        self.name = name
        self.output = output
        self.ctx = ctx
        self.on_problem = on_problem

    def run(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Outcome:
        """Call it.

        Raises:
            ProtocolError: what the host is to be answered with.
        """
        try:
            returned = function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - whatever it raises has its answer
            return self._raised(error)
        if is_awaitable(returned):
            return self.awaited(returned)
        return self._returned(returned)

    async def awaited(self, waiting: Awaitable[Any]) -> bytes | Task:
        """Wait for what it returned.

        Raises:
            ProtocolError: what the host is to be answered with.
        """
        try:
            returned = await waiting
        except BaseException as error:  # whatever it raises has its answer
            if not stops_us(error):
                return self._raised(error)
            if self.ctx is not None:
                self.ctx.cancelled = True
            raise
        return self._returned(returned)

    def _raised(self, error: BaseException) -> bytes:
        if self.ctx is not None:
            self.ctx.ended = True
        if isinstance(error, ToolError):
            return error_result(str(error) or f"Tool {self.name} failed")
        if isinstance(error, ProtocolError) and _can_be_sent(error.code, error.message):
            raise error
        self.on_problem(error)
        raise ProtocolError(INTERNAL_ERROR, f"Tool {self.name} failed") from None

    def _returned(self, returned: object) -> bytes | Task:
        if self.ctx is not None:
            self.ctx.ended = True
        if isinstance(returned, Task):
            return returned
        if returned is NotImplemented:
            raise ProtocolError(INVALID_PARAMS, f"Tool {self.name} not found")
        try:
            return result_json(returned, self.output)
        except (ValidationError, SchemaError) as error:
            self.on_problem(error)
            text = f"Tool {self.name} returned something it must not"
            raise ProtocolError(INTERNAL_ERROR, text) from None
