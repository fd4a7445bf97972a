"""Calling a tool's function: its arguments, and the answer to the host.

| what happens | what the host gets |
| --- | --- |
| the tool is disabled, or its schema cannot be made | an `isError` result that says so |
| the arguments do not fit | an `isError` result with each mismatch and its place |
| the handler raises `ToolError` | an `isError` result with its text |
| the handler raises `ProtocolError` | that JSON-RPC error |
| the handler raises anything else | -32603 `Tool NAME failed`; the rest goes to `on_error` |
| the result cannot be sent, or does not fit the output schema | -32603; the rest to `on_error` |

A sync handler is answered at once, without a task; only what has to be awaited is awaited.
"""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from transom.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Mismatch,
    NotConnected,
    ProtocolError,
    RegistrationError,
    SchemaError,
    ToolError,
    ValidationError,
)
from transom.events import is_async, is_awaitable, is_own_cancellation
from transom.json_values import sendable
from transom.results import encode_result
from transom.schema import Schema
from transom.types import LogLevel, ProblemKind, Task, TextContent, ToolResult

_SECTIONS = frozenset({"Args:", "Arguments:", "Returns:", "Raises:", "Yields:"})

Outcome = bytes | Task | Awaitable["bytes | Task"]
"""The outcome of a call: the JSON of a result, a task of the server, or an awaitable of these."""


class ReportProblem(Protocol):
    """Reports a problem in the View: the error, its kind, and the tool."""

    def __call__(
        self, error: BaseException, kind: ProblemKind = "error", tool: str | None = None, /
    ) -> object:
        """Report it."""
        ...


def wording(error: BaseException) -> str:
    """The type and the text of an error."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the author's exception may not even have a text
        return type(error).__name__


def error_result(text: str) -> bytes:
    """A failure the model can read."""
    return ToolResult(content=[TextContent(sendable(text))], is_error=True).to_wire()


# --- what a handler may use while it runs ------------------------------------------------------


class _Sent:
    """An awaitable for a notification that has been sent already."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class RunningCall:
    """One call of one tool, for its handler: progress, logs, cancellation; see `CallContext`."""

    def __init__(
        self, notify: Callable[[str, Raw], object], tool: str, meta: Mapping[str, Any] | None
    ) -> None:
        self.tool = tool
        """The name it was called by."""
        self.meta: Mapping[str, Any] = meta or {}
        """The `_meta` of the call."""
        self.cancelled = False
        """Whether the host has cancelled this call."""
        self.ended = False
        """Whether the call has ended, so that no more progress is sent."""
        self._notify = notify
        self._loop = asyncio.get_running_loop()

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Report progress to the host.

        Nothing is sent if the host did not ask for progress, or if the call has ended.
        """
        token = self.meta.get("progressToken")
        if isinstance(token, int | str) and not (self.cancelled or self.ended):
            params: dict[str, Any] = {"progressToken": token, "progress": progress}
            if total is not None:
                params["total"] = total
            if message is not None:
                params["message"] = message
            self._send("notifications/progress", params)
        return _Sent()

    def log(self, level: LogLevel, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message to the host."""
        params: dict[str, Any] = {"level": level, "data": data, "logger": logger or self.tool}
        self._send("notifications/message", params)
        return _Sent()

    def raise_if_cancelled(self) -> None:
        """Stop here if the host has cancelled the call; for handlers in threads.

        Raises:
            asyncio.CancelledError: it has.
        """
        if self.cancelled:
            raise asyncio.CancelledError

    def _send(self, method: str, params: dict[str, Any]) -> None:
        # Encoded here, so that data which is not JSON raises in the handler that gave it.
        data = Raw(msgspec.json.encode(params))
        try:
            in_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            in_loop = False
        if in_loop:
            self._send_now(method, data)
        else:
            with suppress(RuntimeError):  # the event loop and the connection have ended
                self._loop.call_soon_threadsafe(self._send_now, method, data)

    def _send_now(self, method: str, params: Raw) -> None:
        with suppress(NotConnected):  # the handler still runs after the connection was closed
            self._notify(method, params)


# --- a tool's function -------------------------------------------------------------------------


class ToolFunction:
    """A handler and its signature."""

    def __init__(self, function: Callable[..., Any], *, thread: bool = False) -> None:
        if not callable(function):
            raise TypeError(f"A tool needs a function to call, not {function!r}")
        self.function = function
        if thread and is_async(function):
            raise TypeError("thread=True is for sync functions; this one is async already")
        self.thread = thread
        try:
            parameters = dict(inspect.signature(function).parameters)
            self._takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        except (TypeError, ValueError):
            parameters = {}
            self._takes_any = True
        self.context_name = _context_parameter(function, parameters)
        """The parameter that takes the `CallContext`, if there is one."""
        self.returns_task = _resolve(function, "return") is Task
        """Whether it returns a task of the server's."""
        parameters.pop(self.context_name or "", None)
        named = {
            name: p
            for name, p in parameters.items()
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        }
        self._known = set(named)
        self._needed = {name for name, p in named.items() if p.default is p.empty}
        self.takes_one = any(
            p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values()
        )
        """Whether it has a parameter that one whole object can be passed to."""

    def check_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Check that the function can be called with these keyword arguments."""
        keys = arguments.keys()
        if set(keys) == self._known:
            return
        mismatches = [Mismatch(name, "is required") for name in sorted(self._needed - keys)]
        if not self._takes_any:
            unknown = sorted(keys - self._known)[:10]
            mismatches += [Mismatch(name[:100], "unexpected argument") for name in unknown]
        if mismatches:
            raise ValidationError(mismatches)

    async def run_in_thread(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it in a thread."""
        returned = await asyncio.to_thread(self._call, args, kwargs)
        return await returned if is_awaitable(returned) else returned

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return self.function(*args, **kwargs)
        except (StopIteration, GeneratorExit) as error:  # a Future cannot carry them
            raise RuntimeError(f"the handler raised {type(error).__name__}") from error


def name_of(function: Callable[..., Any]) -> str:
    """The name to register a function under."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise RegistrationError(f"{function!r} has no name of its own: pass name=")
    return name


def description_of(function: Callable[..., Any]) -> str | None:
    """Its docstring, up to the sections about its arguments and results."""
    if not inspect.isroutine(function):
        return None
    lines = (inspect.getdoc(function) or "").splitlines()
    return "\n".join(takewhile(lambda line: line.strip() not in _SECTIONS, lines)).strip() or None


def _context_parameter(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]
) -> str | None:
    for name, parameter in parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            if annotation.strip("'\"").split("[")[0] in ("CallContext", "transom.CallContext"):
                return name
            annotation = _resolve(function, name)
        if any(map(_is_context, (annotation, *typing.get_args(annotation)))):
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise SchemaError(f"{name}: the CallContext cannot be a positional-only parameter")
            return name
        if name == "ctx" and parameter.annotation is parameter.empty:
            return name
    return None


def _is_context(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, RunningCall)


def _resolve(function: Callable[..., Any], name: str) -> object:
    try:
        return typing.get_type_hints(inspect.unwrap(function)).get(name)
    except (NameError, TypeError, AttributeError):
        return None  # making the schema fails too, with a better message


# --- one run -----------------------------------------------------------------------------------


class Invocation(msgspec.Struct):
    """One run of one function on behalf of a host, and the answer to it."""

    name: str
    output: Schema | None
    ctx: RunningCall | None
    report: ReportProblem

    def run(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Outcome:
        """Call it."""
        try:
            returned = function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - whatever it raises has its answer
            return self._raised(error)
        if is_awaitable(returned):
            return self.awaited(returned)
        return self._returned(returned)

    async def awaited(self, waiting: Awaitable[Any]) -> bytes | Task:
        """Await what it returned."""
        try:
            returned = await waiting
        except BaseException as error:  # every exception has an answer
            if not is_own_cancellation(error):
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
        self.report(error, "tool", self.name)
        raise ProtocolError(INTERNAL_ERROR, f"Tool {self.name} failed") from None

    def _returned(self, returned: object) -> bytes | Task:
        if self.ctx is not None:
            self.ctx.ended = True
        if type(returned) is Task:  # quicker than `isinstance` for classes of msgspec's
            return returned
        if returned is NotImplemented:
            raise ProtocolError(INVALID_PARAMS, f"Tool {self.name} not found")
        try:
            return encode_result(returned, self.output)
        except (ValidationError, SchemaError) as error:
            self.report(error, "tool", self.name)
            text = f"Tool {self.name} returned an invalid result"
            raise ProtocolError(INTERNAL_ERROR, text) from None


def _can_be_sent(code: object, message: object) -> bool:
    return isinstance(code, int) and isinstance(message, str)
