"""pydantic models, for those who have them. Nothing is imported before the first one is seen."""

from __future__ import annotations

import functools
from typing import Any, cast

import msgspec

from transom.errors import SchemaError
from transom.schema.checker import Checker, make_checker
from transom.schema.document import inline, require_object, wrap_other
from transom.schema.encoding import to_json
from transom.schema.problems import invalid, problem_from_error, problems_from_pydantic, shorten
from transom.schema.schema import Direction

__all__ = ["ModelInput", "ModelOutput", "json_schema_of", "read_pydantic"]


def json_schema_of(
    source: Any, direction: Direction, ref_template: str = "#/$defs/{model}"
) -> dict[str, Any]:
    """Ask pydantic for the JSON Schema of a type.

    Raises:
        SchemaError: it has none.
    """
    try:
        if direction == "input":
            return _adapter(source).json_schema(ref_template=ref_template)
        return _adapter(source).json_schema(
            ref_template=ref_template, mode="serialization", schema_generator=_output_generator()
        )
    except Exception as error:
        raise SchemaError(
            f"pydantic cannot describe {source.__name__}: {shorten(str(error))}"
        ) from error


def read_pydantic(source: Any, value: Any) -> Any:
    """Make an instance of a pydantic type from plain JSON values.

    Raises:
        ValueError: the value does not fit; the text is short.
    """
    try:
        # As JSON, because a strict model takes a date from a JSON string but not from a Python one.
        return _adapter(source).validate_json(to_json(value))
    except ValueError as error:
        raise ValueError(str(invalid(problems_from_pydantic(error)))) from error


class ModelInput:
    """Tool arguments read by a pydantic model: one instance for the handler."""

    __slots__ = ("_adapter", "json_bytes", "json_schema", "spread", "wrapped")

    def __init__(self, source: Any) -> None:
        document = json_schema_of(source, "input")
        emitted = inline(document, generated=True, name=source.__name__)
        self.json_schema = require_object(emitted)
        self.json_bytes = msgspec.Raw(msgspec.json.encode(self.json_schema))
        self.spread = False
        self.wrapped = False
        self._adapter = _adapter(source)

    def parse(self, data: bytes | msgspec.Raw) -> Any:
        """Read an instance from JSON text."""
        try:
            return self._adapter.validate_json(bytes(data))
        except Exception as error:
            raise _explained(error) from error

    def validate(self, value: Any) -> Any:
        """Read an instance from plain JSON values, or check one."""
        if isinstance(value, dict | list | str | int | float | None):
            return self.parse(to_json(cast("Any", value)))
        try:
            return self._adapter.validate_python(value)
        except Exception as error:
            raise _explained(error) from error


class ModelOutput:
    """What a handler answers, described by a pydantic model."""

    __slots__ = ("_adapter", "_checker", "json_bytes", "json_schema", "spread", "wrapped")

    def __init__(self, source: Any) -> None:
        document = json_schema_of(source, "output")
        emitted = inline(document, generated=True, name=source.__name__)
        self.json_schema, self.wrapped = wrap_other(emitted)
        self.json_bytes = msgspec.Raw(msgspec.json.encode(self.json_schema))
        self.spread = False
        self._adapter = _adapter(source)
        self._checker: Checker | None = None

    def parse(self, data: bytes | msgspec.Raw) -> Any:
        """Check JSON text and return it as plain JSON values."""
        try:
            value = msgspec.json.decode(data)
        except Exception as error:
            raise _explained(error) from error
        checker = self._checker = self._checker or make_checker(self.json_schema)
        problems = checker.problems(value, data)
        if any(problem.message == "is required" for problem in problems):
            # It may be a mapping that relies on the model's defaults: let the model complete it.
            try:
                value = self._completed(value)
            except Exception as error:
                raise invalid(problems) from error
            problems = checker.problems(value, data)
        if problems:
            raise invalid(problems)
        return value

    def _completed(self, value: Any) -> Any:
        inner = value["result"] if self.wrapped else value
        instance = self._adapter.validate_json(msgspec.json.encode(inner))
        dumped = msgspec.json.decode(self._adapter.dump_json(instance, by_alias=True))
        return {"result": dumped} if self.wrapped else dumped

    def validate(self, value: Any) -> Any:
        """Check a value and return it as plain JSON values."""
        return self.parse(to_json(value))


@functools.cache
def _output_generator() -> Any:
    # Imported here for the same reason as below.
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415

    class WithDefaultsRequired(GenerateJsonSchema):
        """What goes out has every field, whether or not it has a default."""

        def field_is_required(self, field: Any, total: bool) -> bool:
            if field["type"] == "typed-dict-field":
                return super().field_is_required(field, total)
            return not (field.get("serialization_exclude") or field.get("serialization_exclude_if"))

    return WithDefaultsRequired


def _adapter(source: Any) -> Any:
    # Reached with a type of pydantic's only, so it is loaded already.
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(source)


def _explained(error: Exception) -> Exception:
    if hasattr(error, "errors"):
        return invalid(problems_from_pydantic(error))
    return invalid([problem_from_error(error)])
