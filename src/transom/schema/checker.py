"""Values against a JSON Schema, with every problem found.

Rules:

1. The first of `jsonschema-rs` and `jsonschema` that can be imported does the work. Neither is
   loaded before a schema needs it; both are absent from many browsers.
2. A schema never makes us fetch or open anything.
3. A pattern cannot hang `jsonschema-rs`: its backtracking is counted. `jsonschema` uses `re`,
   which has no such guard, so there the author of a pattern must take care.
4. All problems are listed for values of ordinary size only. Collecting them costs the validator
   far more than finding the first one, so a large value gets told its first problem alone.
5. `format` is a note for the reader, as JSON Schema 2020-12 has it, and refuses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Protocol, cast

import msgspec

from transom.errors import Problem, SchemaError
from transom.schema.faults import Fault, describe
from transom.schema.plain import deeper_than, refers_to_itself, walk
from transom.schema.problems import shorten

__all__ = ["MAX_LISTED_BYTES", "Checker", "make_checker"]

MAX_LISTED_BYTES = 32_768
MAX_VALUE_DEPTH = 200
MAX_BACKTRACKING = 100_000


class Checker:
    """A JSON Schema that can be asked what is wrong with a value."""

    __slots__ = ("_engine", "_recursive")

    def __init__(self, engine: Engine, *, recursive: bool) -> None:
        self._engine = engine
        self._recursive = recursive

    def problems(self, value: object, data: bytes | msgspec.Raw) -> list[Problem]:
        """List what is wrong with a plain JSON value; nothing means that it fits.

        Args:
            value: what to check.
            data: the JSON text that it was read from.
        """
        # Only a schema that refers to itself can lead a validator as deep as the value goes.
        if self._recursive and _may_be_deep(bytes(data)) and deeper_than(value, MAX_VALUE_DEPTH):
            return [Problem("", "is nested too deeply")]
        try:
            if self._engine.fits(value):
                return []
            everything = memoryview(data).nbytes <= MAX_LISTED_BYTES
            faults = self._engine.faults(value, everything=everything)
            return list(describe(faults)) or [Problem("", "does not fit the schema")]
        except (TypeError, ValueError, RecursionError):
            # What the validators say of values that are nested beyond their limit.
            return [Problem("", "is nested too deeply")]


def _may_be_deep(data: bytes) -> bool:
    return data.count(b"[") + data.count(b"{") > MAX_VALUE_DEPTH


def make_checker(schema: dict[str, Any]) -> Checker:
    """Compile a JSON Schema that has no references to other documents.

    Raises:
        SchemaError: it is not valid JSON Schema, or there is no validator to use.
    """
    recursive = refers_to_itself(schema)
    # Imported here because most tools never need them, and a browser may not have them.
    try:
        import jsonschema_rs  # noqa: PLC0415
    except ImportError:
        pass
    else:
        return Checker(_RustEngine(jsonschema_rs, schema), recursive=recursive)
    try:
        import jsonschema  # noqa: PLC0415
    except ImportError:
        raise SchemaError(
            "checking values against JSON Schema needs the package jsonschema-rs or jsonschema; "
            "install one of them, or describe the tool with type hints"
        ) from None
    return Checker(_PythonEngine(jsonschema, schema), recursive=recursive)


class Engine(Protocol):
    """A validator package, seen alike."""

    def fits(self, value: object) -> bool:
        """Whether the value is valid. Fast."""
        ...

    def faults(self, value: object, *, everything: bool) -> Iterable[Fault]:
        """What is wrong with an invalid value, or only the first thing."""
        ...


# --- what the packages report ----------------------------------------------------------------


class _RustEngine:
    __slots__ = ("_schema", "_validator", "fits")

    def __init__(self, package: Any, schema: dict[str, Any]) -> None:
        self._schema = schema
        try:
            self._validator = package.Draft202012Validator(
                schema,
                retriever=_refuse_to_fetch,
                pattern_options=package.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKING),
            )
        except ValueError as error:
            raise _not_json_schema(error) from error
        self.fits = self._validator.is_valid

    def faults(self, value: object, *, everything: bool) -> Iterable[Fault]:
        if everything:
            return [self._fault(error) for error in self._validator.iter_errors(value)]
        try:
            self._validator.validate(value)
        except ValueError as error:
            if not hasattr(error, "kind"):
                raise
            return [self._fault(error)]
        return []

    def _fault(self, error: Any) -> Fault:
        kind = error.kind
        # `Required` in new releases, `ValidationErrorKind_Required` in old ones.
        name = type(kind).__name__.rpartition("_")[2]
        keyword, attribute = _RUST_KINDS.get(name, (name, ""))
        expected = getattr(kind, attribute, None) if attribute else None
        branches = getattr(kind, "context", ()) if keyword in {"anyOf", "oneOf"} else ()
        return Fault(
            keyword,
            expected,
            tuple(error.instance_path),
            error.instance,
            self._known(error.schema_path) if keyword == "additionalProperties" else (),
            tuple(tuple(self._fault(inner) for inner in branch) for branch in branches),
        )

    def _known(self, schema_path: Sequence[str | int]) -> tuple[str, ...]:
        node: Any = self._schema
        try:
            for step in schema_path[:-1]:
                node = node[step]
            return tuple(node["properties"])
        except (KeyError, IndexError, TypeError):
            return ()


_RUST_KINDS = {
    "AdditionalProperties": ("additionalProperties", "unexpected"),
    "AnyOf": ("anyOf", ""),
    "BacktrackLimitExceeded": ("backtracking", ""),
    "Constant": ("const", "expected_value"),
    "Contains": ("contains", ""),
    "Enum": ("enum", "options"),
    "ExclusiveMaximum": ("exclusiveMaximum", "limit"),
    "ExclusiveMinimum": ("exclusiveMinimum", "limit"),
    "FalseSchema": ("not", ""),
    "MaxItems": ("maxItems", "limit"),
    "MaxLength": ("maxLength", "limit"),
    "MaxProperties": ("maxProperties", "limit"),
    "Maximum": ("maximum", "limit"),
    "MinItems": ("minItems", "limit"),
    "MinLength": ("minLength", "limit"),
    "MinProperties": ("minProperties", "limit"),
    "Minimum": ("minimum", "limit"),
    "MultipleOf": ("multipleOf", "multiple_of"),
    "Not": ("not", ""),
    "OneOfMultipleValid": ("oneOf too often", ""),
    "OneOfNotValid": ("oneOf", ""),
    "Pattern": ("pattern", "pattern"),
    "PropertyNames": ("propertyNames", ""),
    "RegexEngineFailure": ("backtracking", ""),
    "Required": ("required", "property"),
    "Type": ("type", "types"),
    "UnevaluatedProperties": ("additionalProperties", "unexpected"),
    "UniqueItems": ("uniqueItems", ""),
}


class _PythonEngine:
    __slots__ = ("_validator", "fits")

    def __init__(self, package: Any, schema: dict[str, Any]) -> None:
        import referencing  # noqa: PLC0415  (comes with jsonschema, and only with it)

        try:
            package.Draft202012Validator.check_schema(schema)
            for node in walk(schema):
                for pattern in (node.get("pattern", ""), *node.get("patternProperties", ())):
                    re.compile(pattern)  # it would find out when it meets a value, too late
        except (package.SchemaError, RecursionError, re.error) as error:
            raise _not_json_schema(error) from error
        # An empty registry fetches nothing; the default one would.
        registry = cast("Any", referencing).Registry()
        self._validator = package.Draft202012Validator(schema, registry=registry)
        self.fits = self._validator.is_valid

    def faults(self, value: object, *, everything: bool) -> Iterable[Fault]:
        errors = self._validator.iter_errors(value)
        return [_python_fault(error) for error in (errors if everything else islice(errors, 1))]


def _python_fault(error: Any) -> Fault:
    keyword, expected, known = str(error.validator), error.validator_value, ()
    branches: dict[int, list[Fault]] = {}
    match keyword:
        case "required":
            expected = [name for name in expected if name not in error.instance]
        case "additionalProperties" | "unevaluatedProperties":
            keyword, known = "additionalProperties", tuple(error.schema.get("properties", ()))
            expected = [name for name in error.instance if name not in known]
        case "anyOf" | "oneOf":
            if keyword == "oneOf" and not error.context:
                keyword = "oneOf too often"
            for inner in error.context:
                branches.setdefault(inner.schema_path[0], []).append(_python_fault(inner))
        case "None":
            keyword = "not"
        case _:
            pass
    path = tuple(error.absolute_path)
    alternatives = tuple(tuple(branch) for branch in branches.values())
    return Fault(keyword, expected, path, error.instance, known, alternatives)


def _refuse_to_fetch(uri: str) -> object:
    raise SchemaError(f"a schema may not refer to another document: {shorten(uri)}")


def _not_json_schema(error: Exception) -> SchemaError:
    first_line = str(error).partition("\n")[0]
    return SchemaError(f"not a valid JSON Schema: {shorten(first_line)}")
