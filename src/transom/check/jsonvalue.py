"""JSON as it came off the wire, before anyone has looked at its shape."""

from __future__ import annotations

from typing import TypeAlias, cast

import msgspec

__all__ = ["Json", "JsonObject", "as_list", "as_object", "depth_exceeds", "size_of", "type_name"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"


def as_object(value: object) -> JsonObject:
    """`value` if it is an object, else an empty one: for looking things up."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Json]:
    """`value` if it is a list, else an empty one."""
    return cast("list[Json]", value) if isinstance(value, list) else []


def type_name(value: Json) -> str:
    """The JSON name of the type of `value`."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def size_of(value: Json) -> int:
    """How many bytes `value` takes as JSON."""
    return len(msgspec.json.encode(value))


def depth_exceeds(value: Json, limit: int) -> bool:
    """Whether `value` nests deeper than `limit`. Never recurses, so any depth is safe."""
    level: list[Json] = [value]
    for _ in range(limit):
        deeper: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(v for v in item.values() if isinstance(v, dict | list))
            elif isinstance(item, list):
                deeper.extend(v for v in item if isinstance(v, dict | list))
        if not deeper:
            return False
        level = deeper
    return True
