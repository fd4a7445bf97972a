"""Configuration files as text: one entry is added or removed, every other character stays.

The new text is parsed to verify the change; otherwise nothing is changed. Comments are never lost.
"""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
import tomlkit
import tomlkit.exceptions
import tomlkit.items

from transom.errors import UsageError
from transom.gateway.configuration import jsonc

Object = dict[str, Any]


class TextFormat(msgspec.Struct, frozen=True):
    """How files of one format are read and changed. The last argument is the file's name."""

    read: Callable[[str, str], Object]
    put: Callable[[str, str, str, Any, str], str]
    """Text, section, name and value."""
    remove: Callable[[str, str, str, str], str]
    """Text, section and name of an existing entry."""
    entry: Callable[[str, str, Any], str]
    """An entry alone: section, name and value."""


def _checked(
    text: str, wanted: Object, read: Callable[[str, str], Object], what: str, where: str
) -> str:
    try:
        right = read(text, where) == wanted
    except UsageError:
        right = False
    if not right:
        raise UsageError(f"{where}: {what} cannot be changed there without changing more than that")
    return text


def _without(values: Object, key: str) -> Object:
    return {name: value for name, value in values.items() if name != key}


def _trimmed(lines: Sequence[str], start: int, end: int) -> int:
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip()[0] == "#"):
        end -= 1
    return end


# --- TOML ------------------------------------------------------------------------------------

TomlValue = str | Sequence[str] | Mapping[str, str]

_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'{3}.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)


def _read_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{where}: this TOML is nested too deep") from None
    except ValueError:  # Python's limit of 4,300
        raise UsageError(f"{where}: this TOML has a number with too many digits") from None


def toml_table(section: str, name: str, values: Mapping[str, TomlValue]) -> str:
    """The table `[section.name]` as text."""
    document = tomlkit.document()
    document.add(tomlkit.key(section), outer := tomlkit.table(is_super_table=True))
    outer.add(tomlkit.key(name), _new_table(values, "\n"))
    return tomlkit.dumps(document)


def put_table(
    text: str, section: str, name: str, values: Mapping[str, TomlValue], where: str
) -> str:
    """The text with the table `[section.name]` in it, and everything else as it was.

    A new table is appended, an existing one is replaced. A file that writes it in another way
    (inline tables, dotted keys) is refused.
    """
    before = _read_toml(text, where)
    found: object = before.get(section, {})
    others = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    newline = "\r\n" if "\r\n" in text else "\n"
    if name in others:
        changed = _with_replaced(text, section, name, _new_table(values, newline), where)
    else:
        gap = "" if not text.strip("\ufeff \t\r\n") else newline
        if text and not text.endswith("\n"):
            gap += newline
        changed = text + gap + toml_table(section, name, values).replace("\n", newline)
    wanted = {**before, section: {**others, name: dict(values)}}
    return _checked(changed, wanted, _read_toml, f"[{section}.{name}]", where)


def _new_table(values: Mapping[str, TomlValue], newline: str) -> tomlkit.items.Table:
    table = tomlkit.table()
    for key, value in values.items():
        item: tomlkit.items.Item
        if isinstance(value, Mapping):
            item = inline = tomlkit.inline_table()
            for name, text in value.items():
                inline.add(tomlkit.key(name), tomlkit.item(text))
        else:
            item = tomlkit.item(value if isinstance(value, str) else list(value))
        item.trivia.trail = newline
        table.add(tomlkit.key(key), item)
    return table


def _with_replaced(
    text: str, section: str, name: str, table: tomlkit.items.Table, where: str
) -> str:
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    try:
        document = tomlkit.parse(text.removeprefix(mark))
    except tomlkit.exceptions.TOMLKitError as error:
        raise UsageError(f"{where} cannot be changed: {error}") from None
    outer: Any = document[section]
    old: object = outer[name]
    if not isinstance(old, tomlkit.items.Table) or old.is_super_table():
        raise UsageError(
            f"{where}: {section}.{name} is there, but not as a [{section}.{name}] table"
        )
    own, following = _split(old)
    if any(_has_comment(item) for item in own):
        raise UsageError(f"{where}: [{section}.{name}] has comments in it that would be lost")
    table.trivia.indent, table.trivia.trail = old.trivia.indent, old.trivia.trail
    for item in following:
        table.add(item)
    outer[name] = table
    return mark + tomlkit.dumps(document)


def remove_table(text: str, section: str, name: str, where: str) -> str:
    """The text without the table `[section.name]` and its sub-tables, and everything else there."""
    before = _read_toml(text, where)
    lines = text.splitlines(keepends=True)
    quoted = "|".join(re.escape(each) for each in (name, f'"{name}"', f"'{name}'"))
    header = re.compile(rf"\s*\[\s*{re.escape(section)}\s*\.\s*(?:{quoted})\s*[.\]]")
    start = next((n for n, line in enumerate(lines) if header.match(line)), len(lines))
    end = start + 1
    while end < len(lines) and (
        header.match(lines[end]) or not lines[end].lstrip().startswith("[")
    ):
        end += 1
    end = _trimmed(lines, start, end)
    if any("#" in line for line in lines[start:end]):
        raise UsageError(f"{where}: [{section}.{name}] has comments in it that would be lost")
    if start and end == len(lines) and not lines[start - 1].strip():
        start -= 1  # the empty line before it
    others = _without(before[section], name)
    wanted = {**before, section: others} if others else _without(before, section)
    del lines[start:end]
    return _checked("".join(lines), wanted, _read_toml, f"[{section}.{name}]", where)


def _has_comment(item: tomlkit.items.Item) -> bool:
    if isinstance(item, tomlkit.items.Whitespace):
        return False
    if isinstance(item, tomlkit.items.Comment) or item.trivia.comment:
        return True
    return isinstance(item, tomlkit.items.Array) and "#" in _STRING.sub("", item.as_string())


def _split(
    table: tomlkit.items.Table,
) -> tuple[list[tomlkit.items.Item], list[Any]]:
    """All items of a table and its sub-tables; and the empty lines and comments after the last.

    Those comments belong to the next table.
    """
    own: list[tomlkit.items.Item] = [table]
    following: list[Any] = []
    for _, item in table.value.body:
        if isinstance(item, tomlkit.items.Whitespace | tomlkit.items.Comment):
            following.append(item)
            continue
        own += [*following, item]
        following = []
        if isinstance(item, tomlkit.items.Table):
            inner, following = _split(item)
            own += inner
    return own, following


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
    others = cast("Object", entries or {})
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    heading, *new = yaml_entry(section, name, value).splitlines()
    if section not in before:
        lines += [each + newline for each in (heading, *new)]
    else:
        place = _YamlSection(text, section, where)
        column = place.column or 2
        fresh = [" " * (column - 2) + each + newline for each in new]
        if not others:  # nothing, or {}
            lines[place.line] = heading + newline
            start = end = place.line + 1
        elif name in others:
            start, end = place.span(name)
            if any("#" in line for line in lines[start:end]):
                raise UsageError(f"{where}: {name!r} has comments in it that would be lost")
        else:
            start = end = place.span(list(others)[-1])[1]
        lines[start:end] = fresh
    wanted = {**before, section: {**others, name: value}}
    return _checked("".join(lines), wanted, _read_yaml, f"{section}.{name}", where)


def remove_yaml(text: str, section: str, name: str, where: str) -> str:
    """The text without the entry."""
    before = _read_yaml(text, where)
    others = _without(before[section], name)
    place = _YamlSection(text, section, where)
    lines = text.splitlines(keepends=True)
    newline = "\r\n" if "\r\n" in text else "\n"
    start, end = place.span(name)
    if any("#" in line for line in lines[start:end]):
        raise UsageError(f"{where}: {name!r} has comments in it that would be lost")
    del lines[start:end]
    if not others:
        lines[place.line] = f"{section}: {{}}{newline}"
    wanted = {**before, section: others}
    return _checked("".join(lines), wanted, _read_yaml, f"{section}.{name}", where)


class _YamlSection:
    """Where the entries of a section are."""

    def __init__(self, text: str, section: str, where: str) -> None:
        root: Any = _read_yaml(text, where, kind="rt")
        self._lines = text.splitlines(keepends=True)
        self.line: int = root.lc.key(section)[0]
        following = [root.lc.key(key)[0] for key in root]
        self._end = min((n for n in following if n > self.line), default=len(self._lines))
        entries: Any = root[section] or {}
        self._at: dict[str, tuple[int, int]] = {key: entries.lc.key(key) for key in entries}
        self.column = next((column for _, column in self._at.values()), 0)
        if any(line == self.line for line, _ in self._at.values()):
            raise UsageError(f"{where}: {section!r} is written in one line and is left to you")

    def span(self, name: str) -> tuple[int, int]:
        """The lines of an entry, without what follows it."""
        start = self._at[name][0]
        end = min((line for line, _ in self._at.values() if line > start), default=self._end)
        return start, _trimmed(self._lines, start, end)


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
