"""Schemas from Python types, read by msgspec in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_origin

import msgspec

from transom.errors import SchemaError, ValidationError
from transom.schema.checker import MAX_LISTED_BYTES, Checker, make_checker
from transom.schema.document import require_object, wrap_other
from transom.schema.encoding import to_json
from transom.schema.generate import generate, settle, unsupported
from transom.schema.hints import is_pydantic, translate
from transom.schema.problems import invalid, problem_from_error
from transom.schema.pydantics import read_pydantic

__all__ = ["Typed", "typed_input", "typed_output"]


_decode_plain = msgspec.json.Decoder().decode


class Typed:
    """A schema whose values msgspec decodes and validates at once.

    Args:
        hint: the type, translated.
        json_schema: what goes on the wire.
        finish: makes of a decoded value what callers want.
        check: hold values to the JSON Schema too, because it says more than msgspec knows: the
            text before msgspec reads it, or the finished value.
        incomplete: decoded values must be completed; see `settled`.
        spread: see `Schema`.
        wrapped: see `Schema`.
        exact: a struct whose own JSON is what `parse` would make of it, once it is valid.
    """

    __slots__ = (
        "_checker", "_decode", "_finish", "_first", "_incomplete", "_last", "exact", "json_bytes",
        "json_schema", "spread", "wrapped",
    )  # fmt: skip

    def __init__(
        self,
        hint: Any,
        json_schema: dict[str, Any],
        *,
        finish: Callable[[Any], Any] | None = None,
        check: Literal["text", "finished"] | None = None,
        incomplete: bool = False,
        spread: bool = False,
        wrapped: bool = False,
        exact: type[msgspec.Struct] | None = None,
    ) -> None:
        try:
            self._decode = msgspec.json.Decoder(hint, dec_hook=_decode_custom).decode
        except (TypeError, ValueError) as error:
            raise unsupported(error) from error
        self._finish = finish
        self._incomplete = incomplete
        self._checker = make_checker(json_schema) if check else None
        self._first = self._checker if check == "text" else None
        self._last = self._checker if check == "finished" else None
        self.json_schema = json_schema
        self.json_bytes = msgspec.Raw(msgspec.json.encode(json_schema))
        self.spread = spread
        self.wrapped = wrapped
        self.exact = exact

    def parse(self, data: bytes | msgspec.Raw) -> Any:
        """Read a value from JSON text."""
        try:
            if self._first is not None:
                _require(self._first, msgspec.json.decode(data), data)
            value = self._decode(data)
            if self._incomplete:
                settle(value)
            if self._finish is not None:
                value = self._finish(value)
            if self._last is not None:
                _require(self._last, value, data)
        except ValidationError:
            raise
        except Exception as error:
            raise self._explained(error, data) from error
        return value

    def validate(self, value: Any) -> Any:
        """Validate plain JSON values, or an instance."""
        return self.parse(to_json(value))

    def encode_exact(self, value: Any) -> bytes | None:
        """The JSON text of a valid value of exactly this type; None: it takes `parse`.

        Raises:
            ValidationError: it is of this type, but what it holds does not fit.
        """
        if type(value) is not self.exact:
            return None
        data = to_json(value)
        try:
            self._decode(data)
        except Exception as error:
            raise self._explained(error, data) from error
        return data

    def _explained(self, error: Exception, data: bytes | msgspec.Raw) -> ValidationError:
        """List all problems of a value of ordinary size: msgspec has stopped at the first."""
        if isinstance(error, msgspec.ValidationError) and len(bytes(data)) <= MAX_LISTED_BYTES:
            try:
                value = msgspec.json.decode(data)
                self._checker = self._checker or make_checker(self.json_schema)
            except (SchemaError, msgspec.DecodeError, UnicodeError, RecursionError):
                pass  # not JSON after all, or no validator to ask: one problem is better than none
            else:
                problems = self._checker.problems(value, data)
                if self._finish is _plain_values:
                    # In an output, what is missing may be filled in; msgspec knows, we do not.
                    problems = [found for found in problems if found.message != "is required"]
                if problems:
                    return invalid(problems)
        return invalid([problem_from_error(error)])


def _require(checker: Checker, value: object, data: bytes | msgspec.Raw) -> None:
    if problems := checker.problems(value, data):
        raise invalid(problems)


def typed_input(hint: Any) -> Typed:
    """Describe tool arguments by a class (one instance) or a TypedDict (keyword arguments).

    Raises:
        SchemaError: it is not made of JSON, or is no object.
    """
    translated = translate(hint)
    generated = generate(translated, "input", name=_name(hint))
    return Typed(
        translated,
        require_object(generated.json_schema),
        check="text" if generated.says_more else None,
        incomplete=generated.needs_settling,
        spread=_is_mapping(hint),
    )


def typed_output(hint: Any) -> Typed:
    """Describe what a tool answers by a type. What is no object gets wrapped.

    Raises:
        SchemaError: it is not made of JSON.
    """
    translated = translate(hint)
    generated = generate(translated, "output", name=_name(hint))
    schema, wrapped = wrap_other(generated.json_schema)
    if wrapped:
        translated = msgspec.defstruct("Result", [("result", translated)])
    if generated.uses_pydantic:
        # A model may write what it would not read, so the JSON Schema alone decides.
        return Typed(dict[str, Any], schema, check="finished", wrapped=wrapped)
    return Typed(
        translated,
        schema,
        finish=_plain_values,
        check="finished" if generated.says_more else None,
        incomplete=generated.needs_settling,
        wrapped=wrapped,
        exact=_exact(hint, translated, plain=not (generated.says_more or generated.needs_settling)),
    )


def _exact(hint: Any, translated: Any, *, plain: bool) -> type[msgspec.Struct] | None:
    if plain and translated is hint and isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint
    return None


def _plain_values(value: Any) -> Any:
    return _decode_plain(to_json(value))


def _decode_custom(cls: type, value: Any) -> Any:
    if is_pydantic(cls):
        return read_pydantic(cls, value)
    raise NotImplementedError(f"type {cls.__name__} is not supported")


def _is_mapping(hint: Any) -> bool:
    cls = get_origin(hint) or hint
    return isinstance(cls, type) and issubclass(cls, dict)


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", "")
