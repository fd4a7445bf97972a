"""Handlers that are assigned (`bridge.on_log = f`) or used as decorators (`@bridge.on_log`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, overload

__all__ = ["Event", "Setter"]

Function = TypeVar("Function", bound=Callable[..., Any])


class _HasHandlers(Protocol):
    @property
    def handlers(self) -> dict[str, Callable[..., Any]]: ...


class Setter(Generic[Function]):
    """Called with a function, it makes it the handler and returns it."""

    def __init__(self, handlers: dict[str, Callable[..., Any]], name: str) -> None:
        self._handlers = handlers
        self._name = name

    def __call__(self, function: Function) -> Function:
        """Make `function` the handler."""
        if not callable(function):
            raise TypeError(f"{self._name} needs a function, not {function!r}")
        self._handlers[self._name] = function
        return function

    def __bool__(self) -> bool:
        """Whether there is a handler."""
        return self._name in self._handlers


class Event(Generic[Function]):
    """A handler of the class it stands in, kept in `handlers` by its name.

    The newest one counts. None takes it away.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Event[Function]: ...
    @overload
    def __get__(self, instance: _HasHandlers, owner: type) -> Setter[Function]: ...
    def __get__(
        self, instance: _HasHandlers | None, owner: type
    ) -> Setter[Function] | Event[Function]:
        return self if instance is None else Setter(instance.handlers, self._name)

    def __set__(self, instance: _HasHandlers, function: Function | None) -> None:
        if function is None:
            instance.handlers.pop(self._name, None)
        else:
            Setter[Function](instance.handlers, self._name)(function)
