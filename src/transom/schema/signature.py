"""Schemas from a function's signature: what it takes and what it returns.

1. Annotations are resolved where the function was defined, local names included.
2. The docstring describes the parameters: an `Args:` section, or `:param name:` lines.
3. A return annotation that says nothing about structured content gives no schema.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec

from transom.errors import Mismatch, SchemaError, ValidationError
from transom.schema.document import require_object
from transom.schema.hints import describe, translate
from transom.schema.mismatches import invalid
from transom.schema.schema import Schema, read_json, to_json
from transom.schema.typed import Typed, generate, typed_output
from transom.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolResult,
)


class Annotations:
    """Resolves a function's annotations one by one: a bad one does not affect the others."""

    def __init__(self, function: Callable[..., Any]) -> None:
        inner = innermost(function)
        self._globals: dict[str, Any] = getattr(inner, "__globals__", {})
        self._locals = _defining_locals(getattr(inner, "__code__", None))
        self._parameters = getattr(inner, "__type_params__", ())

    def __call__(self, annotation: Any, where: str) -> Any:
        """Resolve one annotation; none at all is Any."""
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


# Compiled when they are first used, by the first tool with a docstring.
_SECTION = r"(?:Args|Arguments|Parameters):\s*"
_GOOGLE = r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?:\s*(?P<text>.*)"
_SPHINX = r":param\s+(?:[^:]*\s)?\*{0,2}(?P<name>\w+):\s*(?P<text>.*)"


def parameter_descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Read the `Args:` section (Google style) and `:param name:` lines (Sphinx style)."""
    lines = (inspect.getdoc(function) or "").splitlines()
    found: dict[str, list[str]] = {}
    base: int | None = None  # how far the entries of the section are indented
    current: list[str] | None = None
    in_section = False
    for line in lines:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if sphinx := re.fullmatch(_SPHINX, text):
            in_section = False
            current = found[sphinx["name"]] = [sphinx["text"]]
        elif indent == 0 and text:
            in_section, base, current = bool(re.fullmatch(_SECTION, text)), None, None
        elif not text:
            current = None
        elif in_section and (base is None or indent <= base):
            base = indent
            entry = re.fullmatch(_GOOGLE, text)
            current = found.setdefault(entry["name"], [entry["text"]]) if entry else None
        elif current is not None:
            current.append(text)
    descriptions = {name: " ".join(part for part in text if part) for name, text in found.items()}
    return {name: text for name, text in descriptions.items() if text}


_CONTENT = (AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent, ToolResult)
_CONTENT_NAMES = frozenset({"CallToolResult", *(cls.__name__ for cls in _CONTENT)})
_NO_DATA = (Any, object, None, type(None), str, bytes, bytearray, memoryview, typing.NoReturn)


def _has_no_data(hint: Any) -> bool:
    """Whether a return annotation declares nothing that a schema can describe."""
    if any(hint is kind for kind in _NO_DATA) or isinstance(hint, typing.TypeVar):
        return True
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _has_no_data(arguments[0])
    if origin is Union or origin is types.UnionType:
        return all(_has_no_data(argument) for argument in arguments)
    kind = origin or hint
    if kind is dict or kind is Mapping or kind is cast("Any", typing.Mapping):
        return len(arguments) < 2 or arguments[1] in {Any, object}
    return False


def _has_content(hint: Any) -> bool:
    """Content blocks and whole results, ours or the official SDK's, anywhere in a hint."""
    if isinstance(hint, type) and not get_args(hint):
        if hint in _CONTENT:
            return True
        return hint.__module__.partition(".")[0] in {"mcp", "mcp_types"} and (
            hint.__name__ in _CONTENT_NAMES
        )
    return any(_has_content(argument) for argument in get_args(hint))


_PLAIN = (type(None), bool, int, float, str)


class _Parameter(msgspec.Struct, frozen=True):
    name: str
    hint: Any  # translated
    default: Any  # inspect.Parameter.empty when there is none


def from_signature(function: Callable[..., Any], *, skip: Collection[str] = ()) -> Schema:
    """Describe a function's arguments by its type hints.

    The value is a mapping of keyword arguments, defaults included. Unknown names are refused,
    unless the function takes `**kwargs`. Parameters without a hint take anything.
    """
    where = _name(function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"{where} has no signature to read: {error}") from error
    resolve = Annotations(function)
    descriptions = parameter_descriptions(innermost(function))
    parameters: list[_Parameter] = []
    rest: Any = None
    for parameter in signature.parameters.values():
        if parameter.name in skip:
            continue
        _require_keyword(parameter, where)
        with_name = f"parameter {parameter.name!r} of {where}"
        hint = resolve(parameter.annotation, with_name)
        try:
            read = _read_parameter(parameter, hint, descriptions.get(parameter.name))
        except SchemaError as error:
            raise SchemaError(f"{with_name}: {error}") from error
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            rest = read.hint
        else:
            parameters.append(read)
    reserved = {*skip, *_bound_names(function, signature)}
    try:
        return _arguments(parameters, rest, reserved)
    except SchemaError as error:
        raise _with_parameter(error, parameters, where) from error


def from_return(function: Callable[..., Any]) -> Schema | None:
    """Describe what a function returns by its return annotation."""
    try:
        annotation = inspect.signature(function).return_annotation
        hint = Annotations(function)(annotation, "the return value")
        if annotation is inspect.Signature.empty or _has_no_data(hint) or _has_content(hint):
            return None
        return typed_output(hint)
    except (SchemaError, TypeError, ValueError):
        return None


# --- parameters ------------------------------------------------------------------------------


def _require_keyword(parameter: inspect.Parameter, where: str) -> None:
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise SchemaError(
            f"parameter {parameter.name!r} of {where} is positional-only, but arguments are given "
            "by name: drop the '/'"
        )
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        raise SchemaError(
            f"{where} takes *{parameter.name}, but arguments are given by name: take a list "
            "(or use functools.wraps, if this wraps another function)"
        )


def _read_parameter(parameter: inspect.Parameter, hint: Any, description: str | None) -> _Parameter:
    default = parameter.default
    if type(default).__name__ == "FieldInfo" and hasattr(default, "is_required"):
        # `size: int = Field(3, ge=1)`, of pydantic, says it all in the place of the default.
        hint = typing.Annotated[hint, default]
        required = default.is_required()
        default = parameter.empty if required else default.get_default(call_default_factory=True)
    hint = translate(hint)
    if default is None:
        hint = _with_none(hint)
    return _Parameter(parameter.name, describe(hint, description) if description else hint, default)


def _with_none(hint: Any) -> Any:
    """`size: int = None` means that None is fine."""
    inner = get_args(hint)[0] if get_origin(hint) is typing.Annotated else hint
    if inner is Any or type(None) in get_args(inner):
        return hint
    if inner is hint:
        return hint | None
    # Constraints are about the value, but notes are about the parameter, None included.
    constraints = [meta for meta in hint.__metadata__ if not _is_note(meta)]
    notes = [meta for meta in hint.__metadata__ if _is_note(meta)]
    constrained: Any = typing.Annotated[(inner, *constraints)] if constraints else inner
    return typing.Annotated[(constrained | None, *notes)] if notes else constrained | None


def _is_note(meta: msgspec.Meta) -> bool:
    return meta.title is not None or meta.description is not None or meta.examples is not None


def _arguments(parameters: list[_Parameter], rest: Any, reserved: set[str]) -> Schema:
    fields: list[Any] = []
    for parameter in parameters:
        field, default = (parameter.name, parameter.hint), parameter.default
        if default is inspect.Parameter.empty:
            fields.append(field)
        elif type(default) in _PLAIN:
            fields.append((*field, default))
        else:
            # The very object that Python would pass, whatever it is.
            fields.append((*field, msgspec.field(default_factory=_constant(default))))
    try:
        struct = msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=rest is None, gc=False
        )
        if "__post_init__" in struct.__struct_fields__:
            raise TypeError("'__post_init__' cannot be the name of a parameter")
    except (TypeError, ValueError) as error:
        raise SchemaError(str(error)) from error
    generated = generate(struct, "input", name="Arguments")
    schema = require_object(generated.json_schema)
    for parameter in parameters:
        _show_default(schema["properties"][parameter.name], parameter.default)
    says_more, incomplete = generated.says_more, generated.incomplete
    if rest is not None:
        others = generate(rest, "input")
        schema = _opened(schema, others.json_schema)
        says_more, incomplete = says_more or others.says_more, incomplete or others.incomplete
    known = Typed(
        struct,
        schema,
        finish=cast("Callable[[Any], Any]", msgspec.structs.asdict),
        check="text" if says_more else None,
        incomplete=incomplete,
    )
    if rest is None:
        return known.schema(spread=True)
    others = Typed(dict[str, rest], schema, incomplete=incomplete)
    return _open_arguments(known, others, {p.name for p in parameters}, reserved)


def _with_parameter(error: SchemaError, parameters: list[_Parameter], where: str) -> SchemaError:
    """The error with the parameter that causes it, found by trying each alone."""
    for parameter in parameters:
        try:
            _arguments([parameter], None, set())
        except SchemaError as own:
            return SchemaError(f"parameter {parameter.name!r} of {where}: {own}")
    return SchemaError(f"{where}: {error}")


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _show_default(property_schema: Any, default: Any) -> None:
    property_schema.pop("default", None)
    if default is inspect.Parameter.empty:
        return
    try:
        shown = msgspec.json.decode(to_json(default))
    except (ValidationError, msgspec.DecodeError):
        return  # a default without a JSON form is not shown
    if shown is not None or default is None:
        property_schema["default"] = shown


def _opened(schema: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    definitions = {**others.pop("$defs", {}), **schema.pop("$defs", {})}
    schema = {**schema, "additionalProperties": others or True}
    return {**schema, "$defs": definitions} if definitions else schema


def _open_arguments(known: Typed, rest: Typed, names: set[str], reserved: set[str]) -> Schema:
    """The arguments of a function with `**kwargs`: named ones, and any others."""
    refused = reserved - names

    def parse(data: bytes | msgspec.Raw) -> Any:
        arguments: dict[str, Any] = known.parse(data)
        entries: dict[str, msgspec.Raw] = read_json(data, dict[str, msgspec.Raw])
        if taken := refused.intersection(entries):
            raise invalid(
                [Mismatch(name, "is not an argument of this tool") for name in sorted(taken)]
            )
        others = {name: raw for name, raw in entries.items() if name not in names}
        if others:
            arguments.update(rest.parse(msgspec.json.encode(others)))
        return arguments

    return Schema(known.json_schema, parse, spread=True)


def _bound_names(function: Any, signature: inspect.Signature) -> set[str]:
    """Parameters that a bound method or a partial fills already, which callers must not pass."""
    try:
        parameters = inspect.signature(innermost(function)).parameters.values()
    except (TypeError, ValueError):
        return set()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = {parameter.name for parameter in parameters if parameter.kind in by_name}
    return names - set(signature.parameters)


def _name(function: Any) -> str:
    return f"{getattr(function, '__name__', type(function).__name__)}()"
