"""What a JSON Schema validator found wrong, and how to say it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from transom.errors import Problem
from transom.schema.problems import choices, json_type, names, problem, quoted

__all__ = ["Fault", "describe"]


class Fault(NamedTuple):
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


def describe(faults: Iterable[Fault]) -> Iterator[Problem]:
    """Put faults into words."""
    faults = list(faults)
    # Who is told which values are allowed need not be told their type.
    fixed = {fault.path for fault in faults if fault.keyword in {"const", "enum"}}
    for fault in faults:
        if fault.keyword != "type" or fault.path not in fixed:
            yield from _describe_one(fault)


def _describe_one(fault: Fault) -> Iterator[Problem]:
    keyword, expected, path = fault.keyword, fault.expected, fault.path
    match keyword:
        case "required":
            for name in _listed(expected):
                yield problem((*path, name), "is required")
        case "additionalProperties":
            hint = f"; known: {names(fault.known)}" if fault.known else ""
            for name in _listed(expected) or ["?"]:
                yield problem((*path, name), f"is not expected{hint}")
        case "type":
            yield _wrong_type(path, _listed(expected), fault.value)
        case "enum":
            yield problem(path, f"must be one of {choices(expected)}")
        case "anyOf" | "oneOf":
            yield from _describe_alternatives(fault)
        case _ if keyword in _LIMITS:
            yield problem(path, _LIMITS[keyword].format(quoted(expected)))
        case _:
            yield problem(path, _SENTENCES.get(keyword, f"does not fit ({keyword})"))


def _describe_alternatives(fault: Fault) -> Iterator[Problem]:
    """Speak of the alternative that was probably meant."""
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
            # None has the right tag, so say which tags there are.
            tags = [other.expected for b in close if (other := _tag(b)) and other.path == tag.path]
            options = [option for expected in tags for option in _options(expected)]
            yield problem(tag.path, f"must be one of {choices(options)}")
        else:
            yield from describe(meant)
    elif wrong_types:
        yield _wrong_type(fault.path, wrong_types, fault.value)
    else:
        yield problem(fault.path, "fits none of the alternatives")


def _tag(branch: Sequence[Fault]) -> Fault | None:
    """The fault which says that another alternative was meant: a fixed value that differs."""
    return next((fault for fault in branch if fault.keyword in {"const", "enum"}), None)


def _options(expected: object) -> list[object]:
    return cast("list[object]", expected) if isinstance(expected, list) else [expected]


def _wrong_type(path: Sequence[str | int], expected: Sequence[str], value: object) -> Problem:
    wanted = " or ".join(dict.fromkeys(expected))
    return problem(path, f"expected {wanted}, got {json_type(value)}")


def _listed(expected: object) -> list[str]:
    if isinstance(expected, str):
        return [expected]
    if isinstance(expected, Sequence | Mapping):
        return [str(entry) for entry in cast("Sequence[object]", expected)]
    return []
