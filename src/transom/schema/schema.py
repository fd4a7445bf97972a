"""A compiled schema, and how the values it describes become JSON text.

Here it is compiled from a JSON Schema, or an object that describes and validates values itself; see
`typed` and `signature` for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from inspect import iscoroutinefunction
from typing import Any, Literal, Protocol, cast

import msgspec

from transom.errors import Mismatch, SchemaError, ValidationError
from transom.schema.checker import Checker
from transom.schema.document import copy_document, inline, require_object, wrap_other
from transom.schema.mismatches import invalid, mismatch_from_error, shorten

Direction = Literal["input", "output"]
"""Whether a schema describes what a tool takes or what it returns.

The same class may differ between the two: a field with a default may be left out of an input, but
is always there in an output.
"""

Parse = Callable[[bytes | msgspec.Raw], Any]


class Schema:
    """One compiled schema.

    Both `parse` and `validate` take what `json_schema` describes. In the input direction they
    return what the handler gets; in the output direction they return plain JSON values, ready to
    be sent as `structuredContent`. Both raise `ValidationError` when the value does not fit.

    Args:
        json_schema: a plain JSON Schema 2020-12 object. Treat it as frozen.
        parse: reads a value from JSON text and validates it.
        encode_exact: the JSON text of a valid value of exactly the schema's type, or None if the
            value has to be encoded and parsed.
        spread: the value is a mapping of keyword arguments, and not one object.
        wrapped: the value is sent as `{"result": value}`, because it is not a JSON object itself.
    """

    __slots__ = ("encode_exact", "json_bytes", "json_schema", "parse", "spread", "wrapped")

    def __init__(
        self,
        json_schema: dict[str, Any],
        parse: Parse,
        *,
        encode_exact: Callable[[Any], bytes | None] | None = None,
        spread: bool = False,
        wrapped: bool = False,
    ) -> None:
        self.json_schema = json_schema
        self.json_bytes = msgspec.Raw(msgspec.json.encode(json_schema))
        """The same, encoded once. `msgspec.json.encode` puts it into a message as it is."""
        self.parse = parse
        self.encode_exact = encode_exact
        self.spread = spread
        self.wrapped = wrapped

    def validate(self, value: object) -> Any:
        """Validate a value that is in memory already: plain JSON values, or an instance."""
        return self.parse(to_json(value))


def to_json(value: object) -> bytes:
    """Write a value as JSON.

    Beyond what msgspec knows (structs, dataclasses, dates, UUIDs, enums, sets ...) pydantic models
    and any mapping, set or sequence will do. NaN and the infinities, which JSON lacks, become
    null, as they do in a browser.
    """
    try:
        return _encode(value)
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise cannot_send(error) from error


def cannot_send(error: Exception) -> ValidationError:
    """Say why an encoder gave up."""
    match error:
        case RecursionError():
            why = "it contains itself, or is nested too deeply"
        case UnicodeEncodeError():
            why = "it holds text that is not Unicode (a lone surrogate)"
        case _:
            why = shorten(str(error), 150)
    return ValidationError([Mismatch("", f"cannot be sent as JSON: {why}")])


def _as_encodable(value: Any) -> Any:
    """Turn a value that msgspec does not know into one that it does."""
    if isinstance(value, dict | list | tuple | set | frozenset):
        # msgspec knows these, so it met one where only text or a number can be.
        raise TypeError(f"a {type(cast('object', value)).__name__} cannot be a key")
    # pydantic is never imported for this: if there is a model, it is loaded already.
    dump = getattr(value, "model_dump_json", None)
    if dump is not None and not isinstance(value, type):
        # No warnings about values that do not fit the model: a schema will refuse them.
        return msgspec.Raw(dump(by_alias=True, warnings=False).encode())
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, AbstractSet | Sequence):
        return list(cast("Sequence[Any]", value))
    raise TypeError(f"there is no JSON for an object of type {type(value).__name__}")


_encode = msgspec.json.Encoder(enc_hook=_as_encodable).encode


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
    checker = Checker(emitted)
    properties: dict[str, Any] = emitted.get("properties", {})
    defaults: dict[str, Any] = {
        name: entry["default"]
        for name, entry in properties.items()
        if entry is not True and entry is not False and "default" in entry
    }

    def parse(data: bytes | msgspec.Raw) -> Any:
        value = read_json(data)
        checker.require(value, data)
        for name, default in defaults.items():
            if name not in value:
                value[name] = msgspec.to_builtins(default)  # a copy
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
        value = read_json(data)
        try:
            validated: Any = source.validate(value["result"] if wrapped else value)
        except ValidationError:
            raise
        except Exception as error:
            raise invalid([mismatch_from_error(error)]) from error
        if spread and not isinstance(cast("object", validated), Mapping):
            raise SchemaError(
                f"validate() returned {type(validated).__name__}, but arguments are a mapping; set "
                "spread = False on the schema object if the handler takes this one object"
            )
        return {"result": validated} if wrapped else validated

    return Schema(emitted, parse, spread=spread, wrapped=wrapped)


def read_json(data: bytes | msgspec.Raw, type: Any = Any) -> Any:
    """Read JSON; plain values unless a type is given."""
    try:
        return msgspec.json.decode(data, type=type)
    except Exception as error:
        raise invalid([mismatch_from_error(error)]) from error


def _emit(source: Mapping[str, Any], direction: Direction) -> tuple[dict[str, Any], bool]:
    """The wire form of a JSON Schema, and whether its values are wrapped."""
    emitted = inline(copy_document(source))
    if direction == "input":
        # An empty schema allows everything, but arguments are always an object.
        return require_object(emitted or {"type": "object"}), False
    return wrap_other(emitted)
