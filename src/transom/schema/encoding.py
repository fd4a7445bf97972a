"""Python values as JSON text, for whatever a handler may return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast

import msgspec

from transom.errors import Problem, ValidationError
from transom.schema.problems import shorten

__all__ = ["cannot_send", "to_json"]


def to_json(value: object) -> bytes:
    """Write a value as JSON.

    Beyond what msgspec knows (structs, dataclasses, dates, UUIDs, enums, sets ...) pydantic models
    and any mapping, set or sequence will do. NaN and the infinities, which JSON lacks, become
    null, as they do in a browser.

    Raises:
        ValidationError: some part of it has no JSON form, or it contains itself.
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
    # pydantic is never imported for this: whoever has a model has it already.
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
