"""JSON Schema as it goes on the wire: one plain object that model APIs accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from transom.errors import SchemaError
from transom.schema.problems import shorten

__all__ = [
    "MANY",
    "MAX_DEPTH",
    "NAMED",
    "ONE",
    "Json",
    "copy_document",
    "deeper_than",
    "describes_object",
    "refers_to_itself",
    "require_object",
    "walk",
    "wrap_other",
]

MAX_BYTES = 1_000_000
MAX_DEPTH = 128

# Where schemas are found inside a schema. Everything else is data: a property named "$ref" or a
# default that looks like a schema is left alone.
ONE = frozenset({
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
    "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
NAMED = frozenset({
    "$defs", "definitions", "dependentSchemas", "patternProperties", "properties",
})  # fmt: skip
_OBJECT_KEYWORDS = frozenset({
    "additionalProperties", "dependentRequired", "dependentSchemas", "maxProperties",
    "minProperties", "patternProperties", "properties", "propertyNames", "required",
    "unevaluatedProperties",
})  # fmt: skip

Json = dict[str, Any]


def copy_document(source: Mapping[str, Any]) -> Json:
    """Copy a JSON Schema that somebody handed us, as JSON would.

    Raises:
        SchemaError: it is not JSON, or too large or too deep to be a sensible schema.
    """
    try:
        data = msgspec.json.encode(source if isinstance(source, dict) else dict(source))
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"the schema is not plain JSON: {shorten(str(error))}") from error
    if len(data) > MAX_BYTES:
        raise SchemaError(f"the schema has {len(data)} bytes; at most {MAX_BYTES} are allowed")
    document: Json = msgspec.json.decode(data)
    if deeper_than(document, MAX_DEPTH):
        raise SchemaError(f"the schema is nested more than {MAX_DEPTH} levels deep")
    return document


def deeper_than(value: object, limit: int) -> bool:
    """Whether a value is nested more than `limit` levels deep. A cycle is endlessly deep."""
    level: list[Any] = [value] if _is_container(value) else []
    for _ in range(limit):
        # By identity, so that a list that holds itself twice does not double at each level.
        children: dict[int, Any] = {
            id(child): child
            for node in level
            for child in cast("Any", node.values() if isinstance(node, dict) else node)
            if _is_container(child)
        }
        if not children:
            return False
        level = list(children.values())
    return bool(level)


def _is_container(value: object) -> bool:
    return isinstance(value, dict | list | tuple)


def describes_object(schema: Mapping[str, Any]) -> bool:
    """Whether a schema accepts JSON objects and nothing else, as far as its outside tells."""
    kind = schema.get("type")
    if kind is not None:
        return kind in ("object", ["object"])
    if not _OBJECT_KEYWORDS.isdisjoint(schema):
        return True
    if any(describes_object(part) for part in _schemas(schema.get("allOf"))):
        return True
    alternatives = [*_schemas(schema.get("anyOf")), *_schemas(schema.get("oneOf"))]
    return bool(alternatives) and all(describes_object(part) for part in alternatives)


def require_object(schema: Json) -> Json:
    """Make sure that tool arguments can be described by this schema, and say so in it.

    Raises:
        SchemaError: it describes something other than an object.
    """
    if not describes_object(schema):
        kind = schema.get("type")
        what = f"type {kind!r}" if kind is not None else "no type"
        raise SchemaError(
            f"an input schema must describe an object, for tools take named arguments; got {what}"
        )
    rest = {key: value for key, value in schema.items() if key not in {"type", "properties"}}
    return {"type": "object", "properties": schema.get("properties", {}), **rest}


def wrap_other(schema: Json) -> tuple[Json, bool]:
    """Make any schema describe an object, and tell whether that took wrapping.

    What is no object is wrapped: the result describes `{"result": value}`.
    """
    if describes_object(schema):
        return {**schema, "type": "object"}, False
    definitions = schema.pop("$defs", None)
    wrapper: Json = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return ({**wrapper, "$defs": definitions} if definitions else wrapper), True


def refers_to_itself(schema: Json) -> bool:
    """Whether a schema still has references: after `inline`, they lead in circles (or to much)."""
    return any("$ref" in node for node in walk(schema))


def walk(schema: Any) -> Iterator[Json]:
    """Go through each schema object inside a schema, itself included."""
    todo = [schema]
    while todo:
        node = todo.pop()
        if not isinstance(node, dict):
            continue
        yield cast("Json", node)
        for key, value in cast("Json", node).items():
            if key in NAMED and isinstance(value, dict):
                todo.extend(cast("Json", value).values())
            elif key in MANY and isinstance(value, list):
                todo.extend(cast("list[Any]", value))
            elif key in ONE:
                todo.append(value)


def _schemas(value: object) -> list[Json]:
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Json", entry) for entry in entries if isinstance(entry, dict)]
