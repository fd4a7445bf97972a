"""Put one table into a TOML file and leave every other character alone.

A table `[section.name]` is appended, or replaced where it stands together with its sub-tables. The
result is read again; if it is not what was asked for, nothing is changed. A file that says the same
in another way (inline tables, dotted keys) is left to its owner.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from transom.errors import UsageError

__all__ = ["put_table", "read_table", "table"]

Value = str | Sequence[str] | Mapping[str, str]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'{3}.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_HEADER = re.compile(r"[ \t]*\[.*")
_REMARK = re.compile(r"\s*(#.*)?")


def read_table(text: str, where: str) -> dict[str, Any]:
    """Read TOML.

    Raises:
        UsageError: it is none; the text says where.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{where}: this TOML is nested too deep") from None


def table(section: str, name: str, values: Mapping[str, Value]) -> str:
    """A table as text."""
    lines = [f"[{_key(section)}.{_key(name)}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def put_table(text: str, section: str, name: str, values: Mapping[str, Value], where: str) -> str:
    """The text with the table `[section.name]` in it, and everything else as it was.

    Raises:
        UsageError: the text is not TOML, or this cannot be done without loss.
    """
    before = read_table(text, where)
    inside: object = before.get(section, {})
    newline = "\r\n" if "\r\n" in text else "\n"
    new = table(section, name, values).replace("\n", newline)
    if isinstance(inside, dict) and name in inside:
        changed = _replaced(text, section, name, new, where)
    else:
        gap = "" if not text.strip("\ufeff \t\r\n") else newline
        if text and not text.endswith("\n"):
            gap += newline
        changed = text + gap + new
    others = cast("dict[str, Any]", inside) if isinstance(inside, dict) else {}
    try:
        right = read_table(changed, where) == {**before, section: {**others, name: dict(values)}}
    except UsageError:
        right = False
    if not right:
        raise UsageError(
            f"{where}: [{section}.{name}] cannot be put there without changing more than that"
        )
    return changed


# --- the tables of a text --------------------------------------------------------------------


class _Part(msgspec.Struct, frozen=True):
    """From the header of a table to its last value."""

    keys: tuple[str, ...]
    start: int
    end: int


def _replaced(text: str, section: str, name: str, new: str, where: str) -> str:
    mine = [part for part in _parts(text) if part.keys[:2] == (section, name)]
    for part in mine:
        if "#" in _STRING.sub("", text[part.start : part.end]):
            raise UsageError(f"{where}: [{section}.{name}] has comments in it that would be lost")
    if not mine or mine[0].keys != (section, name):
        raise UsageError(
            f"{where}: {section}.{name} is there, but not as a [{section}.{name}] table"
        )
    for part in reversed(mine[1:]):
        text = text[: part.start] + text[part.end :].lstrip("\r\n")
    return text[: mine[0].start] + new + text[mine[0].end :]


def _parts(text: str) -> list[_Part]:
    headers = list(_headers(text))
    ends = [*(start for start, _ in headers), len(text)][1:]
    return [
        _Part(keys, start, _last_value(text, start, end))
        for (start, keys), end in zip(headers, ends, strict=True)
    ]


def _headers(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    at = 0
    for line in _LINE.findall(text):
        # What stands before a real header is TOML by itself; in an open string or list it is not.
        if _HEADER.match(line) and _is_whole(text[:at]):
            yield at, _keys(line)
        at += len(line)


def _is_whole(text: str) -> bool:
    try:
        read_table(text, "")
    except UsageError:
        return False
    return True


def _keys(header: str) -> tuple[str, ...]:
    """The keys of a header, as TOML reads them."""
    value: object = read_table(header, "")
    keys: list[str] = []
    while isinstance(value, list | dict) and value:
        if isinstance(value, list):
            value = cast("list[object]", value)[0]
        else:
            key, value = next(iter(cast("dict[str, object]", value).items()))
            keys.append(key)
    return tuple(keys)


def _last_value(text: str, start: int, end: int) -> int:
    """Where the table ends, without the empty lines and remarks that introduce the next one."""
    lines: list[str] = _LINE.findall(text[start:end])
    while len(lines) > 1 and _REMARK.fullmatch(lines[-1].rstrip("\r\n")):
        end -= len(lines.pop())
    return end


# --- values ----------------------------------------------------------------------------------


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _value(value: Value) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        members = value.items()
        return "{ " + ", ".join(f"{_key(key)} = {_string(text)}" for key, text in members) + " }"
    return "[" + ", ".join(_string(text) for text in value) + "]"


def _string(text: str) -> str:
    # A JSON string is a TOML one, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
