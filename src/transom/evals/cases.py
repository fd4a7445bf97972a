"""The file of `transom eval`: its cases and variants, with the line of every mistake in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from transom.errors import UsageError
from transom.testing.model import Call

_MAX_BYTES = 1024 * 1024
_MAX_VALUES = 100_000
_PLACE = re.compile(r"(?: - at `(?P<path>[^`]*)`)?$")
_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]")
_UNKNOWN = re.compile(r"unknown field `(.+?)`")

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Count = Annotated[int, Meta(ge=1, le=1000)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]
Turn = Call | list[Call] | str
"""What a scripted model does in a turn: a call, several at once, or a text."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the file: what it does not know is a mistake."""


class After(_Part, frozen=True, kw_only=True):
    """A tool of a View that is called when the model is done, and what it has to answer."""

    tool: Name
    arguments: dict[str, Any] = {}
    contains: str | list[str]


class Expected(_Part, frozen=True, kw_only=True):
    """What makes a run pass."""

    calls: list[Call] = []
    """Calls that have to be made, and succeed; the arguments given here have to be equal."""
    any_order: bool = False
    only: bool = False
    """Whether no other call may be made."""
    never: list[str] = []
    answer: str | list[str] = []
    results: dict[str, str | list[str]] = {}
    page: str | list[str] = []
    snapshot: str | None = None
    after: list[After] = []


class EvalCase(_Part, frozen=True, kw_only=True):
    """One instruction, and what has to come of it."""

    name: Name
    ask: Name | Annotated[str, Meta(max_length=100_000)]
    open: Call | None = None
    """What is called before the model begins, so that a View is open."""
    script: list[Turn] = []
    expect: Expected = Expected()
    evaluators: list[Any] = []
    """Those of pydantic-evals, in its own form."""


class Variant(_Part, frozen=True, kw_only=True):
    """What a model is told otherwise."""

    descriptions: dict[str, str] = {}
    """By tool, in place of the description that its server or View gives it."""
    instructions: str | None = None


class EvalFile(_Part, frozen=True, kw_only=True):
    """A file of cases."""

    server: Name
    cases: Annotated[list[EvalCase], Meta(min_length=1, max_length=1000)]
    model: str | list[str] = []
    instructions: str | None = None
    runs: Count = 5
    timeout: Seconds = 120.0
    approve: bool = True
    """Whether the user allows calls of tools that are not read-only."""
    variants: dict[Name, Variant] = {}


def read_cases(path: Path) -> EvalFile:
    """Read a file of cases.

    Raises:
        UsageError: it cannot be read; the text has the line.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path} is larger than {_MAX_BYTES} bytes")
        with path.open(encoding="utf-8") as file:
            parser: Any = YAML(typ="rt")
            tree = parser.load(file)
        plain = _plain(tree, count(1))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text") from None
    except MarkedYAMLError as error:
        found: Any = error
        line = "" if found.problem_mark is None else f", line {found.problem_mark.line + 1}"
        problem = str(found.problem or found.context).split("\n")[0]
        raise UsageError(f"{path}{line}: this is not YAML: {problem}") from None
    except (YAMLError, ValueError) as error:
        raise UsageError(f"{path} cannot be used: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply") from None
    try:
        cases = msgspec.convert(plain, EvalFile)
    except msgspec.ValidationError as error:
        raise _mistake(path, tree, str(error)) from None
    _check(path, tree, cases)
    return cases


def _plain(value: Any, number: count[int]) -> Any:
    """What YAML has as values of Python's own types; an alias may stand for very many."""
    if next(number) > _MAX_VALUES:
        raise ValueError(f"it has more than {_MAX_VALUES} values")
    match value:
        case Mapping():
            items = cast("Mapping[Any, Any]", value).items()
            return {str(key): _plain(each, number) for key, each in items}
        case list():
            return [_plain(each, number) for each in cast("list[Any]", value)]
        case bool() | None:
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case _:
            return str(value)


def _mistake(path: Path, tree: Any, text: str) -> UsageError:
    place = _PLACE.search(text)
    where = place["path"] if place is not None and place["path"] else "$"
    keys: list[str | int] = [
        step["key"] if step["index"] is None else int(step["index"])
        for step in _STEP.finditer(where)
    ]
    problem = _PLACE.sub("", text)
    if unknown := _UNKNOWN.search(text):
        keys.append(unknown[1])
        problem = f"there is no field {unknown[1]} here"
    named = "" if where == "$" else f"{where.removeprefix('$.')}: "
    return UsageError(f"{path}, line {_line(tree, keys)}: {named}{problem}")


def _line(tree: Any, keys: list[str | int]) -> int:
    """The line of a part of the file, or of what it is in."""
    line = 0
    for key in keys:
        try:
            position = tree.lc.key(key) if isinstance(key, str) else tree.lc.item(key)
            line, tree = position[0], tree[key]
        except (AttributeError, LookupError, TypeError):
            break
    return line + 1


def _check(path: Path, tree: Any, found: EvalFile) -> None:
    """Find what no type says."""
    seen: set[str] = set()
    for index, case in enumerate(found.cases):
        where = f"{path}, line {_line(tree, ['cases', index])}: case {case.name!r}"
        if case.name in seen:
            raise UsageError(f"{where} is there twice")
        seen.add(case.name)
        snapshot = Path(case.expect.snapshot or "")
        if snapshot.is_absolute() or ".." in snapshot.parts:
            raise UsageError(f"{where}: the snapshot {snapshot} is not below the file's folder")
        if case.expect == Expected() and not case.evaluators:
            raise UsageError(f"{where} expects nothing, so every run would pass")


def as_list(value: str | list[str]) -> list[str]:
    """One text, or several."""
    return [value] if isinstance(value, str) else value
