"""Schemas: what tool arguments and results must look like, and validating values against it.

A schema may come from type hints, a class (msgspec struct, dataclass, TypedDict, pydantic model), a
JSON Schema dict, or any object with `json_schema()` and `validate(value)`. All become a `Schema`.

Decisions that users notice:

1. Types are strict JSON: neither `"1"` nor `1.0` is an integer. (pydantic models decide for
   themselves.)
2. Unknown arguments are refused where a function's signature is the schema. Classes and JSON
   Schemas decide for themselves.
3. Defaults are filled in, those of a JSON Schema's outermost properties too.
4. In the output direction a field with a default is required, and what is not an object is sent
   as `{"result": value}`, in schema and value alike.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast, get_origin

import msgspec

from transom.errors import SchemaError
from transom.schema.hints import is_pydantic
from transom.schema.schema import (
    Direction,
    Schema,
    Validator,
    cannot_send,
    from_document,
    from_validator,
    to_json,
)
from transom.schema.signature import from_return, from_signature
from transom.schema.typed import model_input, model_output, typed_input, typed_output

__all__ = [
    "Schema",
    "Validator",
    "cannot_send",
    "from_return",
    "from_signature",
    "input_schema",
    "is_lazy",
    "output_schema",
    "to_json",
]

_MAX_CACHED_BYTES = 32_768


def input_schema(source: object) -> Schema:
    """Compile a schema for tool arguments."""
    return _compile(source, "input")


def output_schema(source: object) -> Schema:
    """Compile a schema for what a tool answers."""
    return _compile(source, "output")


def is_lazy(source: object) -> bool:
    """Whether this is a function that returns a schema, rather than a schema."""
    return (
        callable(source)
        and not isinstance(source, type)
        and not _is_type_hint(source)
        and not _is_validator(source)
    )


def _compile(source: object, direction: Direction) -> Schema:
    if isinstance(source, Mapping):
        return _from_mapping(cast("Mapping[str, Any]", source), direction)
    if isinstance(source, type):
        # Classes are compiled once, because a lazy schema may return the same one at every call.
        return _from_class(source, direction)
    if isinstance(source, Schema):
        return source
    if _is_validator(source):
        return from_validator(source, direction)
    if _is_type_hint(source):
        return _from_type(source, direction)
    if callable(source):
        raise SchemaError("a lazy schema must be called first; its result is the schema")
    raise SchemaError(
        "a schema is a JSON Schema dict, a type, or an object with json_schema() and "
        f"validate(value); got {type(source).__name__}"
    )


def _from_mapping(source: Mapping[str, Any], direction: Direction) -> Schema:
    # A lazy schema mostly returns what it returned last time: no need to compile that again.
    try:
        data = msgspec.json.encode(source)
    except (TypeError, ValueError, RecursionError):
        data = b""
    if not data or len(data) > _MAX_CACHED_BYTES:
        return from_document(source, direction)
    return _from_json(data, direction)


@lru_cache(maxsize=256)
def _from_json(data: bytes, direction: Direction) -> Schema:
    return from_document(msgspec.json.decode(data), direction)


@lru_cache(maxsize=256)
def _from_class(source: type, direction: Direction) -> Schema:
    if is_pydantic(source) or hasattr(source, "__pydantic_validator__"):
        return model_input(source) if direction == "input" else model_output(source)
    if _is_validator(source):
        return from_validator(source, direction)
    return _from_type(source, direction)


def _from_type(source: Any, direction: Direction) -> Schema:
    return typed_input(source) if direction == "input" else typed_output(source)


def _is_type_hint(source: object) -> bool:
    return (
        source in (None, Any)
        or get_origin(source) is not None
        or isinstance(source, typing.NewType | typing.TypeVar)
        or hasattr(source, "__value__")
    )


def _is_validator(source: object) -> typing.TypeGuard[Validator]:
    return callable(getattr(source, "json_schema", None)) and callable(
        getattr(source, "validate", None)
    )
