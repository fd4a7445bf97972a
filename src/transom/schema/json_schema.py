"""Schemas given as JSON Schema, and schemas given as objects that validate by themselves."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from inspect import iscoroutinefunction
from typing import Any, Protocol, cast

import msgspec

from transom.errors import SchemaError, ValidationError
from transom.schema.checker import make_checker
from transom.schema.document import copy_document, inline, require_object, wrap_other
from transom.schema.encoding import to_json
from transom.schema.problems import invalid, problem_from_error, shorten
from transom.schema.schema import Direction

__all__ = ["Custom", "Document", "Validator"]


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


class Document:
    """A JSON Schema, held to by a validator.

    Properties of the outermost object that are absent and have a `default` get it.
    """

    __slots__ = ("_checker", "_defaults", "json_bytes", "json_schema", "spread", "wrapped")

    def __init__(self, source: Mapping[str, Any], direction: Direction) -> None:
        emitted, self.wrapped = _emit(source, direction)
        self.json_schema = emitted
        self.json_bytes = msgspec.Raw(msgspec.json.encode(emitted))
        self.spread = direction == "input"
        self._checker = make_checker(emitted)
        properties: dict[str, Any] = emitted.get("properties", {})
        self._defaults: dict[str, Any] = {
            name: entry["default"]
            for name, entry in properties.items()
            if entry is not True and entry is not False and "default" in entry
        }

    def parse(self, data: bytes | msgspec.Raw) -> Any:
        """Read a value from JSON text."""
        try:
            value = msgspec.json.decode(data)
        except Exception as error:
            raise invalid([problem_from_error(error)]) from error
        if problems := self._checker.problems(value, data):
            raise invalid(problems)
        for name, default in self._defaults.items():
            if name not in value:
                value[name] = copy.deepcopy(default)
        return value

    def validate(self, value: Any) -> Any:
        """Validate plain JSON values."""
        return self.parse(to_json(value))


class Custom:
    """An object that describes and validates values itself."""

    __slots__ = ("_source", "json_bytes", "json_schema", "spread", "wrapped")

    def __init__(self, source: Validator, direction: Direction) -> None:
        if iscoroutinefunction(source.validate):
            raise SchemaError("validate() of a schema object must not be async")
        try:
            description = source.json_schema()
        except Exception as error:
            raise SchemaError(f"json_schema() failed: {shorten(str(error))}") from error
        if not isinstance(cast("object", description), Mapping):
            raise SchemaError(f"json_schema() must return a dict, not {type(description).__name__}")
        self.json_schema, self.wrapped = _emit(description, direction)
        self.json_bytes = msgspec.Raw(msgspec.json.encode(self.json_schema))
        self.spread = direction == "input" and getattr(source, "spread", True) is not False
        self._source = source

    def parse(self, data: bytes | msgspec.Raw) -> Any:
        """Read a value from JSON text."""
        try:
            value = msgspec.json.decode(data)
        except Exception as error:
            raise invalid([problem_from_error(error)]) from error
        return self.validate(value)

    def validate(self, value: Any) -> Any:
        """Validate plain JSON values."""
        try:
            inner = value["result"] if self.wrapped else value
            validated: Any = self._source.validate(inner)
        except ValidationError:
            raise
        except Exception as error:
            raise invalid([problem_from_error(error)]) from error
        if self.spread and not isinstance(cast("object", validated), Mapping):
            raise SchemaError(
                f"validate() returned {type(validated).__name__}, but arguments are a mapping; set "
                "spread = False on the schema object if the handler takes this one object"
            )
        return {"result": validated} if self.wrapped else validated


def _emit(source: Mapping[str, Any], direction: Direction) -> tuple[dict[str, Any], bool]:
    """Make the wire form of a JSON Schema, and tell whether its values get wrapped."""
    emitted = inline(copy_document(source))
    if direction == "input":
        # An empty schema allows everything, and of that only objects can come.
        return require_object(emitted or {"type": "object"}), False
    return wrap_other(emitted)
