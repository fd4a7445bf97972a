"""What a compiled schema is, and how the values it describes become JSON text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, cast

import msgspec

from transom.errors import Problem, ValidationError
from transom.schema.problems import shorten

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
    return ValidationError([Problem("", f"cannot be sent as JSON: {why}")])


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
