"""Configuration files as text: one entry is added or removed, every other character stays.

The new text is parsed to verify the change; otherwise nothing is changed. Comments are never lost.
"""

from __future__ import annotations

import io
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from transom.errors import UsageError
from transom.gateway.configuration import jsonc
from transom.json_values import as_object

Object = dict[str, Any]
_Parts = tuple[Object, list[tuple[str, Any]]]
"""The entries of a section, and everything else in a file."""


class TextFormat(msgspec.Struct, frozen=True):
    """How files of one format are read and changed. The last argument is the file's name."""

    read: Callable[[str, str], Object]
    insert: Callable[[str, str, str, Any, str], str]
    """The text with an entry in it: text, section, name and value."""
    delete: Callable[[str, str, str, str], str]
    """The text without one that is there: text, section and name."""
    entry: Callable[[str, str, Any], str]
    """An entry alone: section, name and value."""

    def entries(self, text: str, section: str, where: str) -> Object:
        """The entries of a section."""
        return self._parts(text, section, where)[0]

    def put(self, text: str, section: str, name: str, value: Any, where: str) -> str:
        """The text with an entry in it, and everything else as it was; it may replace another."""
        entries, others = self._parts(text, section, where)
        changed = self.insert(text, section, name, value, where)
        return self._checked(changed, section, name, ({**entries, name: value}, others), where)

    def remove(self, text: str, section: str, name: str, where: str) -> str:
        """The text without an entry that is there, and everything else as it was."""
        entries, others = self._parts(text, section, where)
        del entries[name]
        changed = self.delete(text, section, name, where)
        return self._checked(changed, section, name, (entries, others), where)

    def _parts(self, text: str, section: str, where: str) -> _Parts:
        values = self.read(text, where) if text.strip() else {}
        entries = as_object(values.pop(section, None))
        return entries, list(values.items())

    def _checked(self, changed: str, section: str, name: str, wanted: _Parts, where: str) -> str:
        try:
            right = self._parts(changed, section, where) == wanted
        except UsageError:
            right = False
        if not right:
            raise UsageError(
                f"{where}: {name!r} cannot be changed there without changing more than that"
            )
        return changed


def _trimmed(lines: Sequence[str], start: int, end: int) -> int:
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip()[0] == "#"):
        end -= 1
    return end


# --- TOML ------------------------------------------------------------------------------------

TomlValue = str | Sequence[str] | Mapping[str, str]

_TOML_TEXT = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'{3}.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)


def _read_toml(text: str, where: str) -> Object:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{where}: this TOML is nested too deep") from None
    except ValueError:  # Python's limit of 4,300
        raise UsageError(f"{where}: this TOML has a number with too many digits") from None


def toml_table(section: str, name: str, values: Mapping[str, TomlValue]) -> str:
    """The table `[section.name]` as text."""
    head = f"[{_toml_key(section)}.{_toml_key(name)}]\n"
    return head + "".join(f"{_toml_key(key)} = {_toml(value)}\n" for key, value in values.items())


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: TomlValue) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inner = (f"{_toml_key(key)} = {_toml(text)}" for key, text in value.items())
        return f"{{{', '.join(inner)}}}"
    return f"[{', '.join(map(_toml, value))}]"


def put_table(
    text: str, section: str, name: str, values: Mapping[str, TomlValue], where: str
) -> str:
    """The text with the table `[section.name]` in it.

    A new table is appended, an existing one is replaced. A file that writes it in another way
    (inline tables, dotted keys) is refused.
    """
    entries = as_object(_read_toml(text, where).get(section))
    newline = jsonc.newline_of(text)
    table = toml_table(section, name, values).replace("\n", newline)
    if name in entries:
        lines, start, end = _table_lines(text, [section, name], where)
        header = lines[start].rstrip("\r\n") + newline  # as it is spelled
        lines[start:end] = [header, *[*io.StringIO(table)][1:]]
        return "".join(lines)
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text.strip() else "") + table


def remove_table(text: str, section: str, name: str, where: str) -> str:
    """The text without the table `[section.name]` and its sub-tables."""
    lines, start, end = _table_lines(text, [section, name], where)
    if start and end == len(lines) and not lines[start - 1].strip():
        start -= 1  # the empty line before it
    del lines[start:end]
    return "".join(lines)


def _table_lines(text: str, keys: list[str], where: str) -> tuple[list[str], int, int]:
    """All lines of a text, and which of them are a table with its sub-tables."""
    lines = [*io.StringIO(text)]
    # Without strings, in which anything may look like a table or a comment.
    bare = [*io.StringIO(_TOML_TEXT.sub(_blanked_string, text))]
    heads = [(n, _keys_of(lines[n])) for n, line in enumerate(bare) if line.lstrip()[:1] == "["]
    own = [n for n, found in heads if found is not None and found[: len(keys)] == keys]
    name = ".".join(keys)
    if not own:
        raise UsageError(f"{where}: {name} is there, but not as a [{name}] table")
    start = own[0]
    others = (n for n, found in heads if n > start and found is not None and n not in own)
    end = _trimmed(lines, start, next(others, len(lines)))
    if any("#" in line for line in bare[start:end]):
        raise UsageError(f"{where}: [{name}] has comments in it that would be lost")
    return lines, start, end


def _blanked_string(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == "#" else re.sub(r"[^\n]", " ", found[0])


def _keys_of(line: str) -> list[str] | None:
    """The keys in the header of a table, none in one of an array; None if a line is no header."""
    try:
        value: Any = tomllib.loads(line.strip())
    except tomllib.TOMLDecodeError:
        return None
    keys: list[str] = []
    while value and isinstance(value, dict):
        [(key, value)] = cast("Object", value).items()
        keys.append(key)
    return keys if value == {} else []


# --- YAML ------------------------------------------------------------------------------------


def _yaml(**options: Any) -> Any:
    from ruamel.yaml import YAML  # noqa: PLC0415 - for goose alone

    made = YAML(**options)
    made.width = 1_000_000
    return made


def _read_yaml(text: str, where: str, *, kind: str = "safe") -> Object:
    try:
        value: object = _yaml(typ=kind, pure=True).load(text)
    except RecursionError:
        raise UsageError(f"{where}: this YAML is nested too deep") from None
    except Exception as error:  # noqa: BLE001 - all that its many parts raise
        first = " ".join(str(error).split())[:200]
        raise UsageError(f"{where} is not YAML: {first}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"{where} is not a YAML mapping")
    return cast("Object", value)


def yaml_entry(section: str, name: str, value: Any) -> str:
    """The entry below its section, as text."""
    out = io.StringIO()
    _yaml(typ="rt", pure=True).dump({section: {name: value}}, out)
    return out.getvalue()


def put_yaml(text: str, section: str, name: str, value: Any, where: str) -> str:
    """The text with the entry in it; a new one goes to the end of the section."""
    before = _read_yaml(text, where)
    entries: object = before.get(section)
    if entries is not None and not isinstance(entries, dict):
        raise UsageError(f"{where}: {section!r} is not a mapping there")
    newline = jsonc.newline_of(text)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    heading, *new = yaml_entry(section, name, value).splitlines()
    if section not in before:
        return "".join([*lines, *(each + newline for each in (heading, *new))])
    place = _YamlSection(text, section, where)
    if not entries:  # nothing, or {}
        lines[place.line] = heading + newline
        start = end = place.line + 1
    elif name in entries:
        start, end = place.lines_of(name)
    else:
        start = end = place.end
    indent = " " * (place.column - 2)
    lines[start:end] = [indent + each + newline for each in new]
    return "".join(lines)


def remove_yaml(text: str, section: str, name: str, where: str) -> str:
    """The text without the entry."""
    place = _YamlSection(text, section, where)
    lines = text.splitlines(keepends=True)
    start, end = place.lines_of(name)
    del lines[start:end]
    if place.names == [name]:
        lines[place.line] = f"{section}: {{}}{jsonc.newline_of(text)}"
    return "".join(lines)


class _YamlSection:
    """Where the entries of a section are."""

    def __init__(self, text: str, section: str, where: str) -> None:
        root: Any = _read_yaml(text, where, kind="rt")
        self._where = where
        self._lines = text.splitlines(keepends=True)
        entries: Any = root[section] or {}
        try:
            self.line: int = root.lc.key(section)[0]
            following = [root.lc.key(key)[0] for key in root]
            at: dict[str, tuple[int, int]] = {key: tuple(entries.lc.key(key)) for key in entries}
        except (KeyError, TypeError):  # what `<<` merges is written somewhere else
            raise UsageError(f"{where}: {section!r} has entries of another mapping") from None
        self._end = min((n for n in following if n > self.line), default=len(self._lines))
        self._at = {key: line for key, (line, _) in at.items()}
        self.column = next((column for _, column in at.values()), 2)
        if self.line in self._at.values():
            raise UsageError(f"{where}: {section!r} is written in one line and is left to you")

    @property
    def names(self) -> list[str]:
        """The names of the entries."""
        return list(self._at)

    @property
    def end(self) -> int:
        """The line after the last entry."""
        return _trimmed(self._lines, max(self._at.values()), self._end)

    def lines_of(self, name: str) -> tuple[int, int]:
        """The lines of an entry, without what follows it."""
        start = self._at[name]
        end = min((line for line in self._at.values() if line > start), default=self._end)
        end = _trimmed(self._lines, start, end)
        if any("#" in line for line in self._lines[start:end]):
            raise UsageError(f"{self._where}: {name!r} has comments in it that would be lost")
        return start, end


FORMATS: Mapping[str, TextFormat] = {
    "json": TextFormat(
        jsonc.read_object,
        jsonc.put_member,
        jsonc.remove_member,
        lambda section, name, value: jsonc.rendered({section: {name: value}}) + "\n",
    ),
    "toml": TextFormat(_read_toml, put_table, remove_table, toml_table),
    "yaml": TextFormat(_read_yaml, put_yaml, remove_yaml, yaml_entry),
}
