"""Untrusted JSON Schemas: checked, applied, and used to make example arguments.

1. A schema never makes the checker fetch anything: references are followed inside it only.
2. Depth is limited, and so is the number of values made for one schema: a few references that lead
   back to the root would otherwise grow with every level.
3. Arguments that were made are validated against the schema before they are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import NoReturn

import jsonschema_rs
import msgspec

from transom.errors import Mismatch
from transom.json_values import Json, JsonObject, as_list, as_object, depth_exceeds, size_of
from transom.schema.checker import MAX_BACKTRACKING

MAX_DEPTH = 64
MAX_MADE_DEPTH = 12
MAX_STEPS = 20_000
MAX_TRIED = 50
# Validating compares, at worst, each part of the schema with each part of the value. In bytes:
MAX_WORK = 10**10
MANY_MISMATCHES = 10**8
MAX_VISITS = 100_000
_DIALECTS = (
    *(f"http://json-schema.org/draft-0{number}/schema" for number in (4, 6, 7)),
    *(f"https://json-schema.org/draft/{date}/schema" for date in ("2019-09", "2020-12")),
)


def schema_error(schema: JsonObject) -> str | None:
    """Why `schema` is not a JSON Schema that can be used, or `None` if it is."""
    if depth_exceeds(schema, MAX_DEPTH):
        return f"it nests deeper than {MAX_DEPTH} levels"
    try:
        jsonschema_rs.meta.validate(_known_dialect(schema))
    except jsonschema_rs.ValidationError as error:
        at = _path(error.instance_path)
        return f"{error.message} at {at}" if at else error.message
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        return str(error)
    return None


def mismatches_of(value: Json, schema: JsonObject, limit: int = 5) -> list[Mismatch]:
    """Where `value` does not fit `schema`, the first few places; `ValueError` if it is unusable."""
    validator = _validator(schema)
    if depth_exceeds(value, MAX_DEPTH * 4):
        raise ValueError("the value nests too deep")
    work = size_of(schema) * size_of(value)
    if work > MAX_WORK or _multiplies(schema, value):
        raise ValueError("validating would take too long")
    errors: Iterable[jsonschema_rs.ValidationError] = ()
    if work < MANY_MISMATCHES:
        errors = islice(iter(validator.iter_errors(value)), limit)
    else:  # all mismatches of a large value are slow to describe
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            errors = (error,)
    return [Mismatch(_path(error.instance_path), error.message) for error in errors]


def fits(value: Json, schema: JsonObject) -> bool:
    """Whether `value` fits `schema`; `False` also when the schema cannot be used."""
    try:
        return not mismatches_of(value, schema, limit=1)
    except ValueError:
        return False


def _multiplies(root: JsonObject, value: Json) -> bool:
    """Whether references lead a validator to far more places than the value has.

    Two references to a schema that has two references, and so on, double with each step.
    """
    if b"Ref" not in (text := msgspec.json.encode(root)) and b'"$ref"' not in text:
        return False
    waiting: list[tuple[JsonObject, Json, int]] = [(root, value, 0)]
    visits, limit = 0, MAX_VISITS + 2 * size_of(value)
    while waiting and visits < limit:
        schema, place, hops = waiting.pop()
        found: list[tuple[Json, Json, int]] = []
        if hops < MAX_DEPTH:
            here = [p for key in ("allOf", "anyOf", "oneOf") for p in as_list(schema.get(key))]
            here += [schema.get(key) for key in ("not", "if", "then", "else")]
            # A reference by name or address could lead anywhere.
            here += [_at(root, schema[k]) or root for k in ("$ref", "$dynamicRef") if k in schema]
            found = [(part, place, hops + 1) for part in here]
        if isinstance(place, dict):
            named = as_object(schema.get("properties"))
            others = as_object(schema.get("patternProperties")).values()
            below = [schema.get("additionalProperties"), *others]
            for name, inner in place.items():
                found += [(part, inner, 0) for part in (named.get(name), *below)]
        elif isinstance(place, list):
            for position, inner in enumerate(place):
                parts = as_list(schema.get("prefixItems"))[position : position + 1]
                parts += [schema.get("items"), schema.get("contains")]
                found += [(part, inner, 0) for part in parts]
        reached = [(part, inner, far) for part, inner, far in found if isinstance(part, dict)]
        visits += 1 + len(reached)
        waiting += reached
    return bool(waiting)


def _known_dialect(schema: JsonObject) -> JsonObject:
    """The schema without a `$schema` that would have to be fetched; MCP's default is 2020-12."""
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and dialect.rstrip("#") in _DIALECTS:
        return schema
    return {key: value for key, value in schema.items() if key != "$schema"}


def _validator(schema: JsonObject) -> jsonschema_rs.Validator:
    if depth_exceeds(schema, MAX_DEPTH):
        raise ValueError(f"the schema nests deeper than {MAX_DEPTH} levels")
    try:
        return jsonschema_rs.validator_for(
            _known_dialect(schema),
            retriever=_refuse,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKING),
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise ValueError(str(error).splitlines()[0]) from error


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"the schema refers to {uri}, which is not fetched")


def _path(parts: list[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


# --- example arguments -----------------------------------------------------------------------

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
    """The required arguments, at their defaults or examples; `None` if none could be made."""
    made = ExampleMaker(schema).make(schema)
    return made if isinstance(made, dict) and fits(made, schema) else None


def unfitting_arguments(schema: JsonObject) -> JsonObject | None:
    """Arguments that do not fit, by the type of one property; `None` when none are known."""
    base = fitting_arguments(schema) or {}
    try:
        validator = _validator(schema)
    except ValueError:
        return None  # nothing can be validated against a schema that cannot be used
    for name in islice(as_object(schema.get("properties")), MAX_TRIED):
        for wrong in _WRONG:
            candidate: JsonObject = {**base, name: wrong}
            if _multiplies(schema, candidate):
                return None
            if not validator.is_valid(candidate):
                return candidate
    return None


class ExampleMaker:
    """Makes a value that fits a schema; `steps` counts what it looked at."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self.steps = 0

    def make(self, schema: Json, depth: int = 0) -> Json:
        """The smallest value that should fit; `None` when it would nest or grow too far."""
        found = self._resolve(as_object(schema), depth)
        if depth > MAX_MADE_DEPTH or self.steps > MAX_STEPS:
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
        if not isinstance(kind, str):
            kind = "object" if "properties" in found else "string" if "format" in found else ""
        match kind:
            case "object":
                properties = as_object(found.get("properties"))
                names = (name for name in as_list(found.get("required")) if isinstance(name, str))
                return {name: self.make(properties.get(name, {}), depth + 1) for name in names}
            case "array":
                wanted = found.get("minItems")
                count = min(wanted, 10) if isinstance(wanted, int) else 0
                parts = as_list(found.get("prefixItems"))[:10]
                parts += [found.get("items", {})] * (count - len(parts))
                return [self.make(part, depth + 1) for part in parts]
            case "string":
                return _string(found)
            case "integer" | "number":
                return _number(found)
            case _:
                return False if kind == "boolean" else None

    def _resolve(self, schema: JsonObject, depth: int) -> JsonObject:
        """The schema with its reference followed and its `allOf` merged in."""
        self.steps += 1 + len(as_object(schema.get("properties")))
        self.steps += len(as_list(schema.get("required")))
        for _ in range(MAX_MADE_DEPTH):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                break
            rest = {k: v for k, v in schema.items() if k != "$ref"}
            schema = {**_at(self._root, reference), **rest}
        for part in as_list(schema.get("allOf")) if depth <= MAX_MADE_DEPTH else []:
            if self.steps > MAX_STEPS:
                break
            schema = _merged(schema, self._resolve(as_object(part), depth + 1))
        return schema


def _at(root: JsonObject, reference: Json) -> JsonObject:
    """The schema that a reference inside `root` names; an empty one if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    place: Json = root
    for step in reference.lstrip("#/").split("/") if reference.strip("#/") else []:
        place = as_object(place).get(step.replace("~1", "/").replace("~0", "~"))
    return as_object(place)


def _string(schema: JsonObject) -> Json:
    made = _FORMATS.get(str(schema.get("format")), "example")
    shortest, longest = schema.get("minLength"), schema.get("maxLength")
    if isinstance(shortest, int) and len(made) < shortest <= 10_000:
        made = made.ljust(shortest, "x")
    if isinstance(longest, int) and longest >= 0:
        made = made[:longest]
    return made


def _number(schema: JsonObject) -> Json:
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
    if step := _bound(schema, "multipleOf"):
        made = math.ceil(made / step) * step
    return int(made) if float(made).is_integer() else made


def _bound(schema: JsonObject, key: str) -> float | None:
    value = schema.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and abs(value) < 1e15 else None


def _merged(one: JsonObject, other: JsonObject) -> JsonObject:
    """One schema for two that must both hold: their properties and requirements together."""
    merged: JsonObject = {**other, **one}
    if properties := {**as_object(one.get("properties")), **as_object(other.get("properties"))}:
        merged["properties"] = properties
    if required := [*as_list(one.get("required")), *as_list(other.get("required"))]:
        merged["required"] = required
    return merged
