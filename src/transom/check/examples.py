"""Arguments for a call, made from a tool's input schema: some that fit, and some that do not.

A schema is a stranger's: references are followed only inside it, and only so deep. What was made
is tried against the schema before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from transom.check.schemas import fits, problems_of
from transom.json_values import Json, JsonObject, as_list, as_object

__all__ = ["fitting_arguments", "unfitting_arguments"]

MAX_DEPTH = 12

_FORMATS = {
    "date": "2026-01-26",
    "date-time": "2026-01-26T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}
_WRONG: tuple[Json, ...] = ({"unexpected": True}, [], "not-a-valid-value", -1)


def fitting_arguments(schema: JsonObject) -> JsonObject | None:
    """Arguments that fit: the required ones, at their defaults or examples where there are any.

    `None` when none could be made.
    """
    made = _Maker(schema).make(schema, 0)
    return made if isinstance(made, dict) and fits(made, schema) else None


def unfitting_arguments(schema: JsonObject) -> JsonObject | None:
    """Arguments that do not fit, by the type of one property; `None` when none are known."""
    base = fitting_arguments(schema) or {}
    try:
        for name in as_object(schema.get("properties")):
            for wrong in _WRONG:
                candidate: JsonObject = {**base, name: wrong}
                if problems_of(candidate, schema, limit=1):
                    return candidate
    except ValueError:
        return None  # a schema that cannot be used says of nothing that it does not fit
    return None


class _Maker:
    def __init__(self, root: JsonObject) -> None:
        self._root = root

    def make(self, schema: Json, depth: int) -> Json:
        found = self._resolve(as_object(schema), depth)
        if depth > MAX_DEPTH:
            return None
        for key in ("default", "const"):
            if key in found:
                return found[key]
        for key in ("examples", "enum"):
            if choices := as_list(found.get(key)):
                return choices[0]
        for key in ("anyOf", "oneOf"):
            if branches := as_list(found.get(key)):
                rest = {k: v for k, v in found.items() if k != key}
                return self.make({**rest, **as_object(branches[0])}, depth + 1)
        kind = found.get("type")
        if isinstance(kind, list):
            kind = next((k for k in kind if k != "null"), "null")
        makers: dict[Json, Callable[[JsonObject, int], Json]] = {
            "object": self._object,
            "array": self._array,
            "string": _string,
            "integer": _number,
            "number": _number,
            "boolean": _boolean,
        }
        if not isinstance(kind, str):
            kind = "object" if "properties" in found else "string" if "format" in found else ""
        maker = makers.get(kind)
        return maker(found, depth) if maker else None

    def _resolve(self, schema: JsonObject, depth: int) -> JsonObject:
        """The schema with its reference followed and its `allOf` laid on top."""
        for _ in range(MAX_DEPTH):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                break
            rest = {k: v for k, v in schema.items() if k != "$ref"}
            schema = {**self._at(reference), **rest}
        for part in as_list(schema.get("allOf")) if depth <= MAX_DEPTH else []:
            schema = _merged(schema, self._resolve(as_object(part), depth + 1))
        return schema

    def _at(self, reference: str) -> JsonObject:
        if not reference.startswith("#"):
            return {}
        place: Json = self._root
        for step in reference.lstrip("#/").split("/") if reference.strip("#/") else []:
            place = as_object(place).get(step.replace("~1", "/").replace("~0", "~"))
        return as_object(place)

    def _object(self, schema: JsonObject, depth: int) -> Json:
        properties = as_object(schema.get("properties"))
        required = [name for name in as_list(schema.get("required")) if isinstance(name, str)]
        return {name: self.make(properties.get(name, {}), depth + 1) for name in required}

    def _array(self, schema: JsonObject, depth: int) -> Json:
        wanted = schema.get("minItems")
        count = min(wanted, 10) if isinstance(wanted, int) else 0
        prefix = as_list(schema.get("prefixItems"))
        items = [self.make(part, depth + 1) for part in prefix[:10]]
        while len(items) < count:
            items.append(self.make(schema.get("items", {}), depth + 1))
        return items


def _string(schema: JsonObject, depth: int) -> Json:
    del depth
    made = _FORMATS.get(str(schema.get("format")), "example")
    shortest, longest = schema.get("minLength"), schema.get("maxLength")
    if isinstance(shortest, int) and len(made) < shortest <= 10_000:
        made = made.ljust(shortest, "x")
    if isinstance(longest, int) and longest >= 0:
        made = made[:longest]
    return made


def _boolean(schema: JsonObject, depth: int) -> Json:
    del schema, depth
    return False


def _number(schema: JsonObject, depth: int) -> Json:
    del depth
    low, high = _bound(schema, "minimum"), _bound(schema, "maximum")
    above, below = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
    made: float = 1
    if low is not None:
        made = max(made, low)
    if above is not None and made <= above:
        made = above + 1
    if high is not None:
        made = min(made, high)
    if below is not None and made >= below:
        made = below - 1 if above is None else (above + below) / 2
    step = _bound(schema, "multipleOf")
    if step:
        made = math.ceil(made / step) * step
    return int(made) if float(made).is_integer() else made


def _bound(schema: JsonObject, key: str) -> float | None:
    value = schema.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and abs(value) < 1e15 else None


def _merged(one: JsonObject, other: JsonObject) -> JsonObject:
    """Two schemas that both hold; their properties and requirements add up."""
    properties = {**as_object(one.get("properties")), **as_object(other.get("properties"))}
    required = [*as_list(one.get("required")), *as_list(other.get("required"))]
    merged: JsonObject = {**other, **one}
    if properties:
        merged["properties"] = properties
    if required:
        merged["required"] = required
    return merged
