"""A tool as it is declared, and the function a server framework is given to run it."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp.types as mcp
from mcp.shared.exceptions import MCPError

from transom.errors import ProtocolError, RegistrationError, ToolError
from transom.mcptypes import error_to_mcp
from transom.server import declare
from transom.server.arguments import without_structs
from transom.server.results import Outcome, Output, error_result

__all__ = ["AppTool", "Handler", "app_tool"]

Handler = Callable[..., Any]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AppTool:
    """One tool of a server with Views. `meta` says which View it opens and who may call it."""

    name: str
    title: str | None
    description: str
    annotations: mcp.ToolAnnotations | None
    meta: dict[str, Any]
    handler: Handler
    signature: inspect.Signature
    output: Output

    @property
    def hidden(self) -> bool:
        """Whether only a View may call it, so that a client without Views has no use for it."""
        visibility = self.meta.get("ui", {}).get("visibility")
        return visibility is not None and "model" not in visibility

    def bound(self, returns: Any, *, meant: tuple[type[Exception], ...]) -> Handler:
        """Return the function to register: the handler's parameters, `returns` as return type.

        It answers with a whole result. `ToolError` and `ProtocolError` become what they mean;
        exceptions of the types in `meant` pass, for the framework to deal with; any other one
        goes to the log, and the caller learns no more than that the tool failed.
        """
        handler, output, name = self.handler, self.output, self.name
        signature = self.signature.replace(return_annotation=returns)

        def failed(error: Exception) -> Outcome:
            if isinstance(error, ToolError):
                return error_result(str(error) or f"Tool {name} failed")
            if isinstance(error, ProtocolError):
                raise error_to_mcp(error) from error
            if isinstance(error, (MCPError, *meant)):
                raise error
            _log.error("tool %s failed", name, exc_info=error)
            return error_result(f"Tool {name} failed")

        if _is_async(handler):

            async def run_async(*args: Any, **kwargs: Any) -> Outcome:
                try:
                    return output.result(await handler(*args, **kwargs))
                except Exception as error:  # noqa: BLE001  (the handler is anybody's code)
                    return failed(error)

            function: Handler = run_async
        else:

            def run(*args: Any, **kwargs: Any) -> Outcome:
                try:
                    return output.result(handler(*args, **kwargs))
                except Exception as error:  # noqa: BLE001  (the handler is anybody's code)
                    return failed(error)

            function = run

        functools.update_wrapper(function, handler)
        # Frameworks follow `__wrapped__` to the handler, and would read its return type there.
        del function.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]
        function.__name__ = name
        function.__signature__ = signature
        hints = {key: p.annotation for key, p in signature.parameters.items()}
        given = {key: hint for key, hint in hints.items() if hint is not inspect.Parameter.empty}
        function.__annotations__ = {**given, "return": returns}
        return function


def app_tool(
    name: str | None,
    handler: Handler,
    *,
    title: str | None = None,
    description: str | None = None,
    annotations: object = None,
    meta: Mapping[str, Any] | None = None,
    text: Callable[[Any], str] | None = None,
) -> AppTool:
    """Check a tool's declaration and put it together.

    Raises:
        RegistrationError: something about it is wrong; the text says what to write instead.
    """
    if not callable(handler):
        raise RegistrationError(f"a tool is a function, not {type(handler).__name__}.")
    name = declare.check_name(name if name is not None else getattr(handler, "__name__", None))
    if description is None and inspect.isroutine(handler):
        description = inspect.getdoc(handler)
    if not description or not description.strip():
        raise RegistrationError(
            f"tool {name}: say what it does, in a docstring or as description=. Models go by it."
        )
    if text is not None and not callable(text):
        raise RegistrationError(
            f"tool {name}: text is a function from what the tool returns to a string, not {text!r}."
        )
    signature = _signature(name, handler)
    returns = signature.return_annotation
    return AppTool(
        name=name,
        title=title,
        description=description.strip(),
        annotations=declare.to_annotations(name, annotations),
        meta=declare.app_tool_meta(name, meta),
        handler=handler,
        signature=without_structs(name, handler, signature),
        output=Output(name, Any if returns is inspect.Signature.empty else returns, text),
    )


def _signature(name: str, handler: Handler) -> inspect.Signature:
    try:
        signature = inspect.signature(handler, eval_str=True)
    except NameError as error:
        raise RegistrationError(
            f"tool {name}: a type in its signature cannot be found ({error}). "
            "Define it at the top of a module, before the tool."
        ) from error
    except (TypeError, ValueError) as error:
        raise RegistrationError(f"tool {name}: its signature cannot be read ({error}).") from error
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RegistrationError(
                f"tool {name}: *{parameter.name} cannot be described to a model. "
                "Name each parameter."
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise RegistrationError(
                f"tool {name}: arguments come by name, and {parameter.name} is positional only. "
                "Remove the / from its signature."
            )
    return signature


def _is_async(handler: Handler) -> bool:
    while isinstance(handler, functools.partial):
        handler = handler.func
    call = getattr(handler, "__call__", None)  # noqa: B004  (an object with an async __call__)
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)
