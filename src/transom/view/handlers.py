"""A tool's function: how to call it, whatever its shape."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any

from transom.errors import Problem, RegistrationError, SchemaError, ValidationError
from transom.types import Task
from transom.view.context import CallContext

__all__ = ["ToolFunction", "description_of", "name_of"]

_CONTEXT_NAMES = ("CallContext", "transom.CallContext")


class ToolFunction:
    """A handler and what is known of its signature.

    Args:
        function: sync or async; may take a `CallContext`.
        thread: run it in a thread, so that a slow sync function does not block the event loop.
    """

    def __init__(self, function: Callable[..., Any], *, thread: bool = False) -> None:
        if not callable(function):
            raise TypeError(f"A tool needs a function to call, not {function!r}")
        self.function = function
        self.is_async = inspect.iscoroutinefunction(
            inspect.unwrap(getattr(function, "func", function))
        ) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
        if thread and self.is_async:
            raise TypeError("thread=True is for sync functions; this one is async already")
        self.thread = thread
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            parameters = None
        self.context_name = _context_parameter(function, parameters or {})
        self.returns_task = _resolve(function, "return") is Task
        """Whether what it returns is a handle on work of the server's."""
        self._takes_any = parameters is None or any(
            p.kind is p.VAR_KEYWORD for p in parameters.values()
        )
        named: dict[str, inspect.Parameter] = {
            name: p
            for name, p in (parameters or {}).items()
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and name != self.context_name
        }
        self._known = set(named)
        self._needed = {n for n, p in named.items() if p.default is p.empty}
        self._positional = [
            name
            for name, p in (parameters or {}).items()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and name != self.context_name
        ]

    @property
    def takes_one(self) -> bool:
        """Whether it has a parameter that one whole object can go to."""
        return bool(self._positional)

    def fit(self, arguments: Mapping[str, Any]) -> None:
        """See that the function can be called with these keyword arguments.

        Raises:
            ValidationError: one is missing, or one too many.
        """
        keys = arguments.keys()
        if set(keys) == self._known:
            return
        problems = [Problem(name, "is required") for name in sorted(self._needed - keys)]
        if not self._takes_any:
            unknown = sorted(keys - self._known)[:10]
            problems += [Problem(name[:100], "unexpected argument") for name in unknown]
        if problems:
            raise ValidationError(problems)


def name_of(function: Callable[..., Any]) -> str:
    """The name to register a function under.

    Raises:
        RegistrationError: it has none of its own.
    """
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise RegistrationError(f"{function!r} has no name of its own: pass name=")
    return name


def description_of(function: Callable[..., Any]) -> str | None:
    """Its docstring, up to the sections about its arguments and results."""
    if not inspect.isroutine(function):
        return None
    text = inspect.getdoc(function) or ""
    return re.split(r"\n\s*(?:Args|Arguments|Returns|Raises|Yields):\s*\n", text)[0].strip() or None


def _context_parameter(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]
) -> str | None:
    """The name of the parameter that wants the `CallContext`, if there is one."""
    for name, parameter in parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            if annotation.strip("'\"").split("[")[0] in _CONTEXT_NAMES:
                return name
            annotation = _resolve(function, name)
        if annotation is CallContext or CallContext in typing.get_args(annotation):
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise SchemaError(f"{name}: the CallContext cannot be a positional-only parameter")
            return name
        if name == "ctx" and parameter.annotation is parameter.empty:
            return name
    return None


def _resolve(function: Callable[..., Any], name: str) -> object:
    try:
        return typing.get_type_hints(inspect.unwrap(function)).get(name)
    except (NameError, TypeError, AttributeError):
        return None  # the schema says so, with a better message
