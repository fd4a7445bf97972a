"""Parameters that are msgspec structs, told to frameworks that only know pydantic."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast, get_args

import msgspec
from pydantic import PlainValidator, WithJsonSchema

from transom.errors import RegistrationError, SchemaError
from transom.schema import from_signature

__all__ = ["without_circles", "without_structs"]


def without_structs(
    tool: str, handler: Callable[..., Any], signature: inspect.Signature
) -> inspect.Signature:
    """Return the signature with each struct in it spelt for pydantic.

    Raises:
        RegistrationError: such a parameter has no JSON form.
    """
    ours = [p.name for p in signature.parameters.values() if _has_struct(p.annotation)]
    if not ours:
        return signature
    others = [name for name in signature.parameters if name not in ours]
    try:
        schema = from_signature(handler, skip=others).json_schema
    except SchemaError as error:
        raise RegistrationError(f"tool {tool}: {error}.") from error
    properties = without_circles(schema)["properties"]
    parameters = [
        parameter.replace(annotation=_spelt(parameter.annotation, properties[name]))
        if name in ours
        else parameter
        for name, parameter in signature.parameters.items()
    ]
    return signature.replace(parameters=parameters)


def without_circles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without references; where a type holds itself again, anything goes.

    pydantic cannot publish references that it has not made.
    """
    definitions = cast("Mapping[str, Any]", schema.get("$defs", {}))

    def spelt(node: Any, inside: frozenset[str]) -> Any:
        if isinstance(node, list):
            return [spelt(part, inside) for part in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        entries = cast("dict[str, Any]", node)
        if not isinstance(ref := entries.get("$ref"), str):
            return {key: spelt(part, inside) for key, part in entries.items()}
        name = ref.removeprefix("#/$defs/")
        return {} if name in inside else spelt(definitions[name], inside | {name})

    outside = {key: part for key, part in schema.items() if key != "$defs"}
    return cast("dict[str, Any]", spelt(outside, frozenset()))


def _has_struct(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return True
    return any(_has_struct(argument) for argument in get_args(hint))


def _spelt(hint: Any, schema: Any) -> Any:
    def read(value: object) -> Any:
        try:
            return msgspec.convert(value, hint)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error

    return Annotated[Any, PlainValidator(read), WithJsonSchema(schema)]
