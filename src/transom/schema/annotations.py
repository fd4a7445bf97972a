"""Annotations of functions, resolved where they were written."""

from __future__ import annotations

import functools
import inspect
import typing
from collections import ChainMap
from collections.abc import Callable
from typing import Any, cast

from transom.errors import SchemaError

__all__ = ["Annotations", "innermost"]


class Annotations:
    """Resolves a function's annotations, one by one: a bad one does not spoil the others."""

    def __init__(self, function: Callable[..., Any]) -> None:
        inner = innermost(function)
        self._globals: dict[str, Any] = getattr(inner, "__globals__", {})
        self._locals = _defining_locals(getattr(inner, "__code__", None))
        self._parameters = getattr(inner, "__type_params__", ())

    def __call__(self, annotation: Any, where: str) -> Any:
        """Resolve one annotation; none at all is Any.

        Raises:
            SchemaError: it names something that cannot be found. `where` tells whose it is.
        """
        if annotation is inspect.Parameter.empty:
            return Any
        holder = type("Holder", (), {"__annotations__": {"hint": annotation}})
        parameters = {parameter.__name__: parameter for parameter in self._parameters}
        names: Any = ChainMap(parameters, self._locals)
        try:
            hints = typing.get_type_hints(holder, self._globals, names, include_extras=True)
        except Exception as error:
            raise SchemaError(
                f"cannot resolve the type hint {annotation!r} of {where}: {error}. Define what it "
                "names at module level, or register the tool where it is defined"
            ) from error
        return hints["hint"]


def _defining_locals(code: Any) -> ChainMap[str, Any]:
    """The local names around a function's definition, while those functions are still running."""
    found: list[dict[str, Any]] = []
    frame = inspect.currentframe()
    while frame is not None and code is not None:
        if code in frame.f_code.co_consts:
            found.append(dict(frame.f_locals))
            code = frame.f_code
        frame = frame.f_back
    return ChainMap(*found)


def innermost(function: Any) -> Any:
    """Find the plain function inside partials, decorators, methods and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = cast("Any", function).func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.ismethod(function):
            function = function.__func__
        elif not inspect.isroutine(function) and not isinstance(function, type):
            function = type(function).__call__
        else:
            return function
