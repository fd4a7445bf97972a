"""Schemas from pydantic models. pydantic is not imported before there is such a model."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from transom.errors import SchemaError
from transom.schema.checker import make_checker
from transom.schema.document import inline, require_object, wrap_other
from transom.schema.problems import invalid, problem_from_error, problems_from_pydantic, shorten
from transom.schema.schema import Direction, Schema, to_json


def json_schema_of(
    source: Any, direction: Direction, ref_template: str = "#/$defs/{model}"
) -> dict[str, Any]:
    """Ask pydantic for the JSON Schema of a type."""
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
    """Make an instance of a pydantic type from plain JSON values."""
    try:
        # As JSON, because a strict model takes a date from a JSON string but not from a Python one.
        return _adapter(source).validate_json(to_json(value))
    except ValueError as error:
        raise ValueError(str(invalid(problems_from_pydantic(error)))) from error


def model_input(source: Any) -> Schema:
    """Compile tool arguments described by a pydantic model: one instance for the handler."""
    adapter = _adapter(source)
    document = json_schema_of(source, "input")
    emitted = require_object(inline(document, generated=True, name=source.__name__))

    def parse(data: bytes | msgspec.Raw) -> Any:
        try:
            return adapter.validate_json(bytes(data))
        except Exception as error:
            raise _explained(error) from error

    return Schema(emitted, parse)


def model_output(source: Any) -> Schema:
    """Compile what a handler returns, described by a pydantic model."""
    adapter = _adapter(source)
    document = json_schema_of(source, "output")
    emitted, wrapped = wrap_other(inline(document, generated=True, name=source.__name__))
    checker = functools.cache(lambda: make_checker(emitted))  # loaded when it is needed

    def complete(value: Any) -> Any:
        instance = adapter.validate_json(msgspec.json.encode(value["result"] if wrapped else value))
        dumped = msgspec.json.decode(adapter.dump_json(instance, by_alias=True))
        return {"result": dumped} if wrapped else dumped

    def parse(data: bytes | msgspec.Raw) -> Any:
        try:
            value = msgspec.json.decode(data)
        except Exception as error:
            raise _explained(error) from error
        problems = checker().problems(value, data)
        if any(problem.message == "is required" for problem in problems):
            # It may be a mapping that relies on the model's defaults: let the model complete it.
            try:
                value = complete(value)
            except Exception as error:
                raise invalid(problems) from error
            problems = checker().problems(value, data)
        if problems:
            raise invalid(problems)
        return value

    return Schema(emitted, parse, wrapped=wrapped)


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
