"""Schemas from a JSON Schema, and from objects that describe and validate values themselves."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from inspect import iscoroutinefunction
from typing import Any, Protocol, cast

import msgspec

from transom.errors import SchemaError, ValidationError
from transom.schema.checker import make_checker
from transom.schema.document import copy_document, inline, require_object, wrap_other
from transom.schema.problems import invalid, problem_from_error, shorten
from transom.schema.schema import Direction, Schema


class Validator(Protocol):
    """The Python counterpart of Standard Schema: any object with these two methods will do.

    It may also have an attribute `spread`: False says that `validate` returns one object for the
    handler, and not a mapping of keyword arguments.
    """

    def json_schema(self) -> Mapping[str, Any]:
        """Describe the values that fit, as JSON Schema."""
        ...

    def validate(self, value: Any) -> Any:
        """Return the value as the handler wants it; raise ValueError when it does not fit."""
        ...


def from_document(source: Mapping[str, Any], direction: Direction) -> Schema:
    """Compile a JSON Schema. Outermost properties that are absent get their `default`."""
    emitted, wrapped = _emit(source, direction)
    checker = make_checker(emitted)
    properties: dict[str, Any] = emitted.get("properties", {})
    defaults: dict[str, Any] = {
        name: entry["default"]
        for name, entry in properties.items()
        if entry is not True and entry is not False and "default" in entry
    }

    def parse(data: bytes | msgspec.Raw) -> Any:
        value = _decode(data)
        if problems := checker.problems(value, data):
            raise invalid(problems)
        for name, default in defaults.items():
            if name not in value:
                value[name] = copy.deepcopy(default)
        return value

    return Schema(emitted, parse, spread=direction == "input", wrapped=wrapped)


def from_validator(source: Validator, direction: Direction) -> Schema:
    """Compile an object that describes and validates values itself."""
    if iscoroutinefunction(source.validate):
        raise SchemaError("validate() of a schema object must not be async")
    try:
        description = source.json_schema()
    except Exception as error:
        raise SchemaError(f"json_schema() failed: {shorten(str(error))}") from error
    if not isinstance(cast("object", description), Mapping):
        raise SchemaError(f"json_schema() must return a dict, not {type(description).__name__}")
    emitted, wrapped = _emit(description, direction)
    spread = direction == "input" and getattr(source, "spread", True) is not False

    def parse(data: bytes | msgspec.Raw) -> Any:
        value = _decode(data)
        try:
            validated: Any = source.validate(value["result"] if wrapped else value)
        except ValidationError:
            raise
        except Exception as error:
            raise invalid([problem_from_error(error)]) from error
        if spread and not isinstance(cast("object", validated), Mapping):
            raise SchemaError(
                f"validate() returned {type(validated).__name__}, but arguments are a mapping; set "
                "spread = False on the schema object if the handler takes this one object"
            )
        return {"result": validated} if wrapped else validated

    return Schema(emitted, parse, spread=spread, wrapped=wrapped)


def _decode(data: bytes | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(data)
    except Exception as error:
        raise invalid([problem_from_error(error)]) from error


def _emit(source: Mapping[str, Any], direction: Direction) -> tuple[dict[str, Any], bool]:
    """The wire form of a JSON Schema, and whether its values are wrapped."""
    emitted = inline(copy_document(source))
    if direction == "input":
        # An empty schema allows everything, but arguments are always an object.
        return require_object(emitted or {"type": "object"}), False
    return wrap_other(emitted)
