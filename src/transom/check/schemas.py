"""JSON Schemas from strangers: judged and applied without fetching anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import jsonschema_rs

from transom.errors import Problem
from transom.json_values import Json, JsonObject, depth_exceeds

__all__ = ["fits", "problems_of", "schema_problem"]

MAX_DEPTH = 64
_DIALECTS = (
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)


def schema_problem(schema: JsonObject) -> str | None:
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


def problems_of(value: Json, schema: JsonObject, limit: int = 5) -> list[Problem]:
    """Where `value` does not fit `schema`, the first few places.

    Raises:
        ValueError: the schema cannot be used.
    """
    if depth_exceeds(schema, MAX_DEPTH) or depth_exceeds(value, MAX_DEPTH * 4):
        raise ValueError("nests too deep")
    try:
        validator = jsonschema_rs.validator_for(_known_dialect(schema), retriever=_refuse)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise ValueError(str(error).splitlines()[0]) from error
    found: list[Problem] = []
    for error in _errors(validator, value):
        found.append(Problem(_path(error.instance_path), error.message))
        if len(found) == limit:
            break
    return found


def fits(value: Json, schema: JsonObject) -> bool:
    """Whether `value` fits `schema`; `False` also when the schema cannot be used."""
    try:
        return not problems_of(value, schema, limit=1)
    except ValueError:
        return False


def _known_dialect(schema: JsonObject) -> JsonObject:
    """The schema without a `$schema` that would have to be fetched: MCP then means 2020-12."""
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and dialect.rstrip("#") in _DIALECTS:
        return schema
    return {key: value for key, value in schema.items() if key != "$schema"}


def _errors(
    validator: jsonschema_rs.Validator, value: Json
) -> Iterator[jsonschema_rs.ValidationError]:
    yield from validator.iter_errors(value)


def _refuse(uri: str) -> NoReturn:
    # A schema must not make the checker fetch what it names.
    raise ValueError(f"the schema refers to {uri}, which is not fetched")


def _path(parts: list[str | int]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text
