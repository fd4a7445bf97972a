"""Validates values against a JSON Schema, and describes every mismatch in words.

1. The first of `jsonschema-rs` and `jsonschema` that can be imported does the work; both are absent
   from many browsers. Neither is loaded before a schema needs it. One that is plainly valid needs
   it for the first value: loading it takes longer than all that a View needs besides.
2. A schema never makes us fetch or open anything.
3. A pattern cannot hang `jsonschema-rs`: its backtracking is counted. `jsonschema` uses `re`,
   which has no such guard, so there the author of a pattern must take care.
4. All mismatches are listed for values of ordinary size only. Collecting them costs the validator
   far more than finding the first one, so for a large value only the first is listed.
5. `format` is an annotation, as in JSON Schema 2020-12, and is not enforced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal, cast

import msgspec

from transom.errors import Mismatch, SchemaError
from transom.json_values import depth_exceeds, type_name
from transom.schema.document import refers_to_itself, walk
from transom.schema.mismatches import MAX_NAME, choices, invalid, mismatch, quoted, shorten


class Fault(msgspec.Struct, frozen=True):
    """One keyword of a schema that a value breaks."""

    keyword: str
    expected: Any
    path: tuple[str | int, ...]
    value: Any
    known: tuple[str, ...] = ()
    branches: tuple[tuple[Fault, ...], ...] = ()


_LIMITS = {
    "minimum": "must be >= {}",
    "maximum": "must be <= {}",
    "exclusiveMinimum": "must be > {}",
    "exclusiveMaximum": "must be < {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} properties",
    "maxProperties": "must have at most {} properties",
    "const": "must be {}",
    "pattern": "must match the pattern {}",
}
_SENTENCES = {
    "not": "is not allowed",
    "uniqueItems": "must not hold the same item twice",
    "contains": "must hold an item that fits",
    "propertyNames": "has a property whose name is not allowed",
    "oneOf too often": "fits more than one alternative",
    "backtracking": "takes too long to match against its pattern",
}


def describe(faults: Iterable[Fault]) -> Iterator[Mismatch]:
    """Describe faults in words."""
    faults = list(faults)
    # The allowed values imply the type.
    fixed = {fault.path for fault in faults if fault.keyword in {"const", "enum"}}
    for fault in faults:
        if fault.keyword != "type" or fault.path not in fixed:
            yield from _describe_one(fault)


def _describe_one(fault: Fault) -> Iterator[Mismatch]:
    keyword, expected, path = fault.keyword, fault.expected, fault.path
    match keyword:
        case "required":
            for name in _listed(expected):
                yield mismatch((*path, name), "is required")
        case "additionalProperties":
            known = choices(fault.known, lambda name: shorten(name, MAX_NAME))
            hint = f"; known: {known}" if known else ""
            for name in _listed(expected) or ["?"]:
                yield mismatch((*path, name), f"is not expected{hint}")
        case "type":
            yield _wrong_type(path, _listed(expected), fault.value)
        case "enum":
            yield mismatch(path, f"must be one of {choices(expected)}")
        case "anyOf" | "oneOf":
            yield from _describe_alternatives(fault)
        case _ if keyword in _LIMITS:
            yield mismatch(path, _LIMITS[keyword].format(quoted(expected)))
        case _:
            yield mismatch(path, _SENTENCES.get(keyword, f"does not fit ({keyword})"))


def _describe_alternatives(fault: Fault) -> Iterator[Mismatch]:
    """Describe the mismatches of the alternative that was probably meant."""
    wrong_types: list[str] = []
    close: list[tuple[Fault, ...]] = []
    for branch in fault.branches:
        types = [inner for inner in branch if inner.keyword == "type" and inner.path == fault.path]
        if types:
            wrong_types += [name for inner in types for name in _listed(inner.expected)]
        elif branch:
            close.append(branch)
    if close:
        meant = min(close, key=lambda branch: (_tag(branch) is not None, len(branch)))
        if tag := _tag(meant):
            # No alternative has this tag, so list the tags that exist.
            tags = [other.expected for b in close if (other := _tag(b)) and other.path == tag.path]
            options = [option for expected in tags for option in _options(expected)]
            yield mismatch(tag.path, f"must be one of {choices(options)}")
        else:
            yield from describe(meant)
    elif wrong_types:
        yield _wrong_type(fault.path, wrong_types, fault.value)
    else:
        yield mismatch(fault.path, "fits none of the alternatives")


def _tag(branch: Sequence[Fault]) -> Fault | None:
    """The fault which says that another alternative was meant: a fixed value that differs."""
    return next((fault for fault in branch if fault.keyword in {"const", "enum"}), None)


def _options(expected: object) -> list[object]:
    return cast("list[object]", expected) if isinstance(expected, list) else [expected]


def _wrong_type(path: Sequence[str | int], expected: Sequence[str], value: object) -> Mismatch:
    wanted = " or ".join(dict.fromkeys(expected))
    return mismatch(path, f"expected {wanted}, got {type_name(value)}")


def _listed(expected: object) -> list[str]:
    if isinstance(expected, str):
        return [expected]
    if isinstance(expected, Sequence | Mapping):
        return [str(entry) for entry in cast("Sequence[object]", expected)]
    return []


MAX_LISTED_BYTES = 32_768
MAX_VALUE_DEPTH = 200
MAX_BACKTRACKING = 100_000


_Count = Annotated[int, msgspec.Meta(ge=0)]


class Checker:
    """Lists the mismatches of a value with a JSON Schema that refers to no other document.

    A `lazy` one loads a package when the first value comes, whatever the schema: it must be valid.
    """

    __slots__ = ("_loaded", "_recursive", "_schema")

    def __init__(self, schema: dict[str, Any], *, lazy: bool = False) -> None:
        self._schema = schema
        self._recursive = False
        self._loaded: _RustEngine | _PythonEngine | None = None
        if not (lazy or (_is_plain(schema) and _has_engine())):
            self._load()

    def _load(self) -> _RustEngine | _PythonEngine:
        self._recursive = refers_to_itself(self._schema)
        self._loaded = _load_engine(self._schema)
        return self._loaded

    def mismatches(self, value: object, data: bytes | msgspec.Raw) -> list[Mismatch]:
        """List what is wrong with a plain JSON value; nothing means that it fits."""
        engine = self._loaded or self._load()
        # Only a schema that refers to itself can lead a validator as deep as the value goes.
        if self._recursive and _may_be_deep(bytes(data)) and depth_exceeds(value, MAX_VALUE_DEPTH):
            return [Mismatch("", "is nested too deeply")]
        try:
            if engine.fits(value):
                return []
            everything = memoryview(data).nbytes <= MAX_LISTED_BYTES
            faults = engine.faults(value, everything=everything)
            return list(describe(faults)) or [Mismatch("", "does not fit the schema")]
        except (TypeError, ValueError, RecursionError):
            # The validators' errors for values that are nested beyond their limit.
            return [Mismatch("", "is nested too deeply")]

    def require(self, value: object, data: bytes | msgspec.Raw) -> None:
        """Raise `ValidationError` with what is wrong with a plain JSON value, if anything is."""
        if mismatches := self.mismatches(value, data):
            raise invalid(mismatches)


def _may_be_deep(data: bytes) -> bool:
    return data.count(b"[") + data.count(b"{") > MAX_VALUE_DEPTH


class _Plain(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A JSON Schema with such keywords, which no validator refuses."""

    type: Literal["array", "boolean", "integer", "null", "number", "object", "string"] = "object"
    title: str = ""
    description: str = ""
    default: Any = None
    enum: list[Any] = []
    format: str = ""
    minimum: float = 0
    maximum: float = 0
    min_length: _Count = 0
    max_length: _Count = 0
    items: _Plain | msgspec.UnsetType = msgspec.UNSET
    properties: dict[str, _Plain] = {}
    required: list[str] = []
    additional_properties: bool = True

    def __post_init__(self) -> None:
        if len(set(self.required)) < len(self.required):
            raise ValueError("a property is required twice")


def _is_plain(schema: dict[str, Any]) -> bool:
    try:
        msgspec.convert(schema, _Plain)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


def _has_engine() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - few need it

    try:
        return bool(find_spec("jsonschema_rs") or find_spec("jsonschema"))
    except ImportError:
        return False


def _load_engine(schema: dict[str, Any]) -> _RustEngine | _PythonEngine:
    # Imported here because most tools never need them, and a browser may not have them.
    try:
        import jsonschema_rs  # noqa: PLC0415
    except ImportError:
        pass
    else:
        return _RustEngine(jsonschema_rs, schema)
    try:
        import jsonschema  # noqa: PLC0415
    except ImportError:
        raise SchemaError(
            "checking values against JSON Schema needs the package jsonschema-rs or jsonschema; "
            "install one of them, or describe the tool with type hints"
        ) from None
    return _PythonEngine(jsonschema, schema)


# --- what the packages report ----------------------------------------------------------------

# Both have `fits`, which is fast, and `faults`: what is wrong with an invalid value, or only the
# first thing.


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
            return [self._fault(error)]
        return []

    def _fault(self, error: Any) -> Fault:
        kind = error.kind
        # `Required` in new releases, `ValidationErrorKind_Required` in old ones.
        name = type(kind).__name__.rpartition("_")[2]
        keyword = _RUST_KEYWORDS.get(name, name[:1].lower() + name[1:])
        expected = getattr(kind, _RUST_EXPECTED.get(keyword, "limit"), None)
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


# Kinds of jsonschema-rs that are not called like their keyword, and where they keep what was
# expected if that is not `limit`.
_RUST_KEYWORDS = {
    "BacktrackLimitExceeded": "backtracking",
    "Constant": "const",
    "FalseSchema": "not",
    "OneOfMultipleValid": "oneOf too often",
    "OneOfNotValid": "oneOf",
    "RegexEngineFailure": "backtracking",
    "UnevaluatedProperties": "additionalProperties",
}
_RUST_EXPECTED = {
    "additionalProperties": "unexpected",
    "const": "expected_value",
    "enum": "options",
    "multipleOf": "multiple_of",
    "pattern": "pattern",
    "required": "property",
    "type": "types",
}


class _PythonEngine:
    __slots__ = ("_validator", "fits")

    def __init__(self, package: Any, schema: dict[str, Any]) -> None:
        import referencing  # noqa: PLC0415  (comes with jsonschema, and only with it)

        try:
            package.Draft202012Validator.check_schema(schema)
            for node in walk(schema):
                for pattern in (node.get("pattern", ""), *node.get("patternProperties", ())):
                    re.compile(pattern)  # else it would fail only when it validates a value
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
