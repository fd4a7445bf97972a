"""Event handlers that a user sets on an object: assigned, or as decorators.

    app.on_tool_result = show            # the one assigned handler; None removes it

    @app.on_tool_result                  # listeners, as many as you like
    async def _(result): ...

The assigned handler runs first, then the listeners in the order they were added; an error in one
does not stop the others. A handler gets as many of the arguments as it has parameters for.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, Self, TypeGuard, TypeVar, cast, overload

__all__ = ["Event", "Handler", "Slot"]

Handler = Callable[..., Any]
"""A function that is called with what an event says, or with as much of that as it takes."""
F = TypeVar("F", bound=Handler)
Owner = TypeVar("Owner")


def is_awaitable(value: object) -> TypeGuard[Awaitable[Any]]:
    """Whether it can be awaited. `inspect.isawaitable` takes five times as long."""
    return hasattr(value, "__await__")


def is_async(function: object) -> bool:
    """Whether it is an async function, or an object that is called as one."""
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    call = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def is_own_cancellation(error: BaseException) -> bool:
    """Whether the awaiting task itself is cancelled or closed, rather than what it awaits."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    if isinstance(error, GeneratorExit):  # thrown in where we await; a handler's own has a trace
        return error.__traceback__ is None or error.__traceback__.tb_next is None
    return False


def abandon(waiting: object) -> None:
    """Close a coroutine that will not be awaited, and those it would await, without a warning."""
    if not inspect.iscoroutine(waiting):
        return
    held: list[object] = []
    if inspect.getcoroutinestate(waiting) == inspect.CORO_CREATED:
        held += inspect.getcoroutinelocals(waiting).values()
    waiting.close()
    for value in held:
        abandon(value)


def _arity(handler: Handler) -> int | None:
    """How many positional arguments it takes; None: any number."""
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


class Slot:
    """The handlers of one event of one object. Call it with a function to add a listener."""

    def __init__(self, name: str, on_first: Callable[[str], None] | None = None) -> None:
        self.name = name
        self._on_first = on_first
        self._assigned: tuple[Handler, int | None] | None = None
        self._listeners: list[tuple[Handler, int | None]] = []

    def __call__(self, handler: F) -> F:
        """Add a listener; use it as a decorator."""
        self._check(handler)
        self._listeners.append((handler, _arity(handler)))
        return handler

    def assign(self, handler: Handler | None) -> None:
        """Replace the assigned handler; None removes it."""
        if handler is None:
            self._assigned = None
            return
        self._check(handler)
        self._assigned = (handler, _arity(handler))

    def _check(self, handler: Handler) -> None:
        if not callable(handler):
            raise TypeError(f"{self.name} needs a function, not {handler!r}")
        if self._on_first is not None and not self:
            self._on_first(self.name)

    def remove(self, listener: Handler) -> None:
        """Remove a listener; of one added twice, the first. Unknown ones are ignored."""
        for index, (known, _) in enumerate(self._listeners):
            if known == listener:
                del self._listeners[index]
                return

    def __bool__(self) -> bool:
        return self._assigned is not None or bool(self._listeners)

    def ask(self, *arguments: object) -> Any:
        """Call the one handler that answers: the assigned one, or the newest. There must be one."""
        handler, arity = self._assigned or self._listeners[-1]
        return handler(*(arguments if arity is None else arguments[:arity]))

    def fire(
        self, *arguments: object, on_error: Callable[[BaseException], object]
    ) -> Awaitable[list[Any]] | list[Any]:
        """Run all handlers in order; their results, or an awaitable of them if one is async."""
        handlers = list(self._listeners)
        if self._assigned is not None:
            handlers.insert(0, self._assigned)
        results: list[Any] = []
        for index, (handler, arity) in enumerate(handlers):
            result = _run(handler, arity, arguments, on_error)
            if is_awaitable(result):
                rest = handlers[index + 1 :]
                return _fire_rest(results, result, rest, arguments, on_error)
            results.append(result)
        return results


def _run(
    handler: Handler,
    arity: int | None,
    arguments: tuple[object, ...],
    on_error: Callable[[BaseException], object],
) -> Any:
    try:
        return handler(*(arguments if arity is None else arguments[:arity]))
    except BaseException as error:  # noqa: BLE001 - one handler must not stop the others
        on_error(error)
        return None


async def _fire_rest(
    results: list[Any],
    waiting: Awaitable[Any],
    rest: list[tuple[Handler, int | None]],
    arguments: tuple[object, ...],
    on_error: Callable[[BaseException], object],
) -> list[Any]:
    results.append(await _settle(waiting, on_error))
    for handler, arity in rest:
        result = _run(handler, arity, arguments, on_error)
        results.append(await _settle(result, on_error) if is_awaitable(result) else result)
    return results


async def _settle(waiting: Awaitable[Any], on_error: Callable[[BaseException], object]) -> Any:
    try:
        return await waiting
    except BaseException as error:  # one handler must not stop the others
        if is_own_cancellation(error):
            raise
        on_error(error)
        return None


class Event(Generic[Owner]):
    """A class attribute that gives each instance a `Slot` and turns assignment into `assign`.

    `check(owner, name)` is called before the first handler is set, and may refuse it.
    """

    def __init__(self, check: Callable[[Owner, str], None] | None = None) -> None:
        self._check = check

    def __set_name__(self, owner: type[Owner], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Owner]) -> Self: ...
    @overload
    def __get__(self, instance: Owner, owner: type[Owner]) -> Slot: ...
    def __get__(self, instance: Owner | None, owner: type[Owner]) -> Self | Slot:
        if instance is None:
            return self
        # Not through its `__dict__`: once that is made, each attribute takes longer to read.
        slots: dict[str, Slot] | None = getattr(instance, "_slots", None)
        if slots is None:
            slots = {}
            setattr(instance, "_slots", slots)  # noqa: B010 - the owner does not declare it
        slot = slots.get(self._name)
        if slot is None:
            on_first = None if self._check is None else partial(self._check, instance)
            slot = slots[self._name] = Slot(self._name, on_first)
        return slot

    def __set__(self, instance: Owner, handler: Handler | None) -> None:
        self.__get__(instance, type(instance)).assign(handler)
