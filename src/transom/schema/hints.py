"""Type hints as msgspec understands them.

msgspec reads constraints and descriptions from `msgspec.Meta` alone. Here the other ways of writing
them are translated: a plain string, `Doc(...)`, `annotated_types`, `pydantic.Field`. They are known
by their attributes, so nothing has to be imported.
"""

from __future__ import annotations

import datetime as dt
import re
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec

from transom.errors import SchemaError

_NUMERIC = ("ge", "gt", "le", "lt", "multiple_of")
_LENGTH = ("min_length", "max_length")
_CONSTRAINTS = (*_NUMERIC, *_LENGTH, "pattern", "tz")
_NOTES = ("title", "description", "examples", "extra_json_schema")
_WRAPPERS = ("Required", "NotRequired", "ReadOnly", "Final")
# What classes with fields have: structs, dataclasses, attrs, TypedDict, NamedTuple.
_MARKS = (
    "__struct_fields__",
    "__dataclass_fields__",
    "__attrs_attrs__",
    "__required_keys__",
    "_fields",
)
# Code that checks a value. msgspec would not run it, so it is refused rather than skipped.
_VALIDATORS = frozenset({
    "AfterValidator", "BeforeValidator", "PlainValidator", "Predicate", "WrapValidator",
})  # fmt: skip


def translate(hint: Any) -> Any:
    """Rewrite a type hint so that msgspec understands all of it."""
    try:
        return _translate(hint)
    except RecursionError:
        raise SchemaError(f"{hint} refers to itself: use a class instead of an alias") from None


def _translate(hint: Any) -> Any:
    if hint is object:
        return Any
    if hint is dt.datetime:
        # msgspec also takes times without a zone, so it does not say this by itself.
        return Annotated[hint, msgspec.Meta(extra_json_schema={"format": "date-time"})]
    origin, arguments = get_origin(hint), get_args(hint)
    if type(alias := origin or hint).__name__ == "TypeAliasType":  # typing's, or the older one's
        value = alias.__value__
        return _translate(value[arguments] if arguments else value)
    if origin is Annotated:
        return _annotate(arguments[0], _flatten(hint.__metadata__))
    if origin is Union or origin is types.UnionType:
        return _union(_translate(argument) for argument in arguments)
    if origin is None or origin is typing.Literal or not arguments:
        return hint
    if str(origin).rpartition(".")[2] in _WRAPPERS:
        return _translate(arguments[0])
    translated = tuple(_translate_argument(argument) for argument in arguments)
    return hint if translated == arguments else origin[translated]


def describe(hint: Any, description: str) -> Any:
    """Add a description to a hint that has none."""
    if get_origin(hint) is Annotated:
        for meta in reversed(hint.__metadata__):
            if isinstance(meta, msgspec.Meta) and meta.description is not None:
                return hint
    return Annotated[hint, msgspec.Meta(description=description)]


def _translate_argument(argument: Any) -> Any:
    kept = argument is Ellipsis or isinstance(argument, list)
    return cast("Any", argument) if kept else _translate(argument)


def _union(members: Iterable[Any]) -> Any:
    return Union[tuple(members)]  # noqa: UP007  (the members are known at run time only)


# --- Annotated -------------------------------------------------------------------------------


def _flatten(metadata: Iterable[Any]) -> Iterator[Any]:
    """`Field(ge=1)` and `Interval(ge=1, lt=5)` are groups of single statements."""
    for entry in metadata:
        yield entry
        group = getattr(entry, "metadata", None)
        if isinstance(group, list | tuple):
            yield from _flatten(cast("Iterable[Any]", group))
        elif getattr(entry, "__is_annotated_types_grouped_metadata__", False):
            yield from _flatten(entry)


def _annotate(base: Any, metadata: Iterable[Any]) -> Any:
    constraints: dict[str, Any] = {}
    notes: dict[str, Any] = {}
    for entry in metadata:
        if isinstance(entry, str):
            notes["description"] = entry
            continue
        if type(entry).__name__ in _VALIDATORS:
            raise SchemaError(
                f"{type(entry).__name__} in a type hint is not run: check the value in the "
                "function, or take a pydantic model"
            )
        documentation = getattr(entry, "documentation", None)
        if isinstance(documentation, str):
            notes["description"] = documentation
        extra = getattr(entry, "json_schema_extra", None)
        if isinstance(extra, dict):
            notes["extra_json_schema"] = extra
        for names, found in ((_CONSTRAINTS, constraints), (_NOTES, notes)):
            for name in names:
                value = getattr(entry, name, None)
                if value is not None and not callable(value):
                    found[name] = getattr(value, "pattern", value)  # of a compiled pattern
    hint = _constrain(_translate(base), constraints) if constraints else _translate(base)
    return Annotated[hint, _meta(notes)] if notes else hint


def _constrain(hint: Any, constraints: dict[str, Any]) -> Any:
    origin = get_origin(hint)
    if origin is not Union and origin is not types.UnionType:
        return Annotated[hint, _meta(constraints)]
    # In `Annotated[int | None, Ge(0)]` the int is meant: msgspec wants the constraint there.
    left = dict(constraints)
    members: list[Any] = []
    for member in get_args(hint):
        fitting = {name: constraints[name] for name in _fitting(member) if name in constraints}
        members.append(Annotated[member, _meta(fitting)] if fitting else member)
        left = {name: value for name, value in left.items() if name not in fitting}
    if left:
        raise SchemaError(f"{', '.join(left)} fits no member of {hint}")
    return _union(members)


def _fitting(member: Any) -> tuple[str, ...]:
    while get_origin(member) is Annotated:
        member = get_args(member)[0]
    kind = get_origin(member) or member
    if kind in {int, float}:
        return _NUMERIC
    if kind is str:
        return (*_LENGTH, "pattern")
    if kind in {dt.datetime, dt.time}:
        return ("tz",)
    sized = isinstance(kind, type) and hasattr(kind, "__len__")
    return _LENGTH if sized else ()


def _meta(values: dict[str, Any]) -> msgspec.Meta:
    try:
        return msgspec.Meta(**values)
    except (TypeError, ValueError, re.error) as error:
        raise SchemaError(f"cannot use {values} in a type hint: {error}") from error


# --- classes ---------------------------------------------------------------------------------


def is_pydantic(hint: Any) -> bool:
    """Whether pydantic must read this type: a model, or a type that brings its own validation."""
    return isinstance(hint, type) and hasattr(hint, "__get_pydantic_core_schema__")


def reachable_classes(hint: Any) -> list[Any]:
    """All classes with fields that a hint leads to, each once."""
    found: list[Any] = []
    todo = [hint]
    while todo:
        node = todo.pop(0)
        if hasattr(node, "__pydantic_validator__") and not is_pydantic_model(node):
            raise SchemaError(
                f"{node.__name__} is a pydantic dataclass, which cannot be used inside type hints: "
                "use a pydantic model or a plain dataclass"
            )
        if get_origin(node) is typing.Literal or is_pydantic(node):
            continue
        if has_fields(node) and node not in found:
            found.append(node)
            todo.extend(field_hints(node).values())
        for argument in get_args(node):  # a list has the parameters of a Callable
            todo += cast("list[Any]", argument) if isinstance(argument, list) else [argument]
    return found


def has_fields(hint: Any) -> bool:
    """Whether msgspec reads this class field by field."""
    cls = get_origin(hint) or hint
    return isinstance(cls, type) and any(hasattr(cls, mark) for mark in _MARKS)


def is_pydantic_model(hint: Any) -> bool:
    """Whether this is a subclass of `pydantic.BaseModel`."""
    return isinstance(hint, type) and hasattr(hint, "model_validate_json")


def field_hints(hint: Any) -> dict[str, Any]:
    """The hints of a class's fields as it declares them, by the fields' names on the wire."""
    cls = get_origin(hint) or hint
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        raise SchemaError(
            f"cannot resolve the annotations of {cls.__name__}: {error}. Define what they name at "
            "module level, where it can be found"
        ) from error
    if issubclass(cls, msgspec.Struct):
        fields = msgspec.structs.fields(cls)
        return {field.encode_name: hints[field.name] for field in fields if field.name in hints}
    return hints
