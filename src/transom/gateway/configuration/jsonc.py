"""JSON as people write it: with comments and trailing commas.

1. Comments and trailing commas are replaced by blanks, so every offset, line and column stays the
   same.
2. The rest is read by the standard library, which also reports errors with their position.
3. `put_member` and `remove_member` change one member of one section and no other character. Their
   result is parsed again; if it is not as expected, nothing is changed.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

import msgspec

from transom.errors import UsageError

Object = dict[str, Any]

_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|[\[{{:,]\s*,|,(?=\s*[}}\]])", re.DOTALL)
_SPACE = re.compile(r"\s*")
_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)


def read_object(text: str, where: str) -> Object:
    """Read one JSON object; comments and trailing commas are allowed."""
    try:
        value: object = json.loads(_plain(text))
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{where}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise UsageError(f"{where}: this JSON is nested too deep") from None
    except ValueError:  # Python's limit of 4,300
        raise UsageError(f"{where}: this JSON has a number with too many digits") from None
    if not isinstance(value, dict):
        raise UsageError(f"{where}:1:1: this must be a JSON object, in {{}}")
    return cast("Object", value)


def rendered(value: object, indent: str | None = "  ") -> str:
    """The value as JSON, without escaping non-ASCII letters."""
    return json.dumps(value, indent=indent, ensure_ascii=False)


def put_member(text: str, section: str, name: str, value: object, where: str) -> str:
    """The text with `{section: {name: value}}` in it, and everything else as it was."""
    style = _Style.of(text)
    if not text.strip("\ufeff \t\r\n"):
        return style.lines(rendered({section: {name: value}}, style.unit)) + style.newline
    before = read_object(text, where)
    root = _Section(text, _SPACE.match(_plain(text)).end(), style)  # pyright: ignore[reportOptionalMemberAccess]
    found = root.member(section, where)
    if found is None:
        changed = root.with_member(section, {name: value})
    elif not isinstance(before[section], dict):
        raise UsageError(f"{where}: {section!r} is not a JSON object there")
    else:
        inner = _Section(text, found.value, style)
        entry = inner.member(name, where)
        if entry is None:
            changed = inner.with_member(name, value)
        elif _without_comments(text[entry.value : entry.end]) != text[entry.value : entry.end]:
            raise UsageError(f"{where}: {name!r} has comments in it that would be lost")
        else:
            changed = inner.with_value(entry, value)
    wanted = {**before, section: {**before.get(section, {}), name: value}}
    after = read_object(changed, where)
    if after != wanted or list(after) != list(wanted):
        raise UsageError(f"{where}: it cannot be changed without changing more than {name!r}")
    return changed


def remove_member(text: str, section: str, name: str, where: str) -> str:
    """The text without the member of a section, and everything else as it was."""
    before = read_object(text, where)
    style = _Style.of(text)
    root = _Section(text, _SPACE.match(_plain(text)).end(), style)  # pyright: ignore[reportOptionalMemberAccess]
    found = root.member(section, where)
    changed = "" if found is None else _Section(text, found.value, style).without(name, where)
    kept = {key: value for key, value in before[section].items() if key != name}
    if read_object(changed, where) != {**before, section: kept}:
        raise UsageError(f"{where}: it cannot be changed without changing more than {name!r}")
    return changed


# --- reading ---------------------------------------------------------------------------------


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda found: _blanked(found[0]) if found[0][0] == "/" else found[0], text)


def _plain(text: str) -> str:
    bare = _without_comments(text)
    if bare.startswith("\ufeff"):
        bare = " " + bare[1:]
    return _COMMA.sub(lambda found: " " if found[0] == "," else found[0], bare)


def _blanked(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


# --- writing ---------------------------------------------------------------------------------


class _Style(msgspec.Struct, frozen=True):
    """How a text is laid out."""

    unit: str
    newline: str

    @classmethod
    def of(cls, text: str) -> _Style:
        found = _INDENTED.search(_without_comments(text))
        return cls(found[1] if found else "  ", "\r\n" if "\r\n" in text else "\n")

    def lines(self, text: str, indent: str = "") -> str:
        return text.replace("\n", self.newline + indent)


class _Member(msgspec.Struct, frozen=True):
    key: str
    start: int
    value: int
    end: int


class _Section:
    """One object in a text: where its members are, and how it looks with one more."""

    def __init__(self, text: str, opening: int, style: _Style) -> None:
        self._text = text
        self._bare = _without_comments(text)
        self._style = style
        self._opening = opening
        self._members: list[_Member] = []
        self._closing = self._walk(_plain(text), opening + 1)

    def _walk(self, plain: str, at: int) -> int:
        decode = json.JSONDecoder().raw_decode

        def skip(at: int) -> int:
            return _SPACE.match(plain, at).end()  # pyright: ignore[reportOptionalMemberAccess]

        at = skip(at)
        while plain[at] != "}":
            start = at
            key, at = decode(plain, at)
            value = skip(skip(at) + 1)
            _, end = decode(plain, value)
            self._members.append(_Member(key, start, value, end))
            at = skip(end)
            if plain[at] == ",":
                at = skip(at + 1)
        return at

    def member(self, key: str, where: str) -> _Member | None:
        found = [member for member in self._members if member.key == key]
        if len(found) > 1:
            raise UsageError(f"{where}: {key!r} is there {len(found)} times")
        return found[0] if found else None

    def with_value(self, member: _Member, value: object) -> str:
        text = self._text
        multi = "\n" in text[self._opening : self._closing]
        new = rendered(value, self._style.unit if multi else None)
        new = self._style.lines(new, self._indent_at(member.start))
        return text[: member.value] + new + text[member.end :]

    def with_member(self, key: str, value: object) -> str:
        text, style = self._text, self._style
        outer = self._indent_at(self._opening)
        kept = text[self._opening + 1 : self._closing].rstrip()
        if self._members:
            last = self._members[-1]
            inner = self._indent_at(self._members[0].start)
            comma = "," if not self._bare[last.end : self._closing].strip() else ""
            kept = text[self._opening + 1 : last.end] + comma + text[last.end : self._closing]
            if "\n" not in kept and "//" not in kept:
                member = f"{rendered(key)}: {rendered(value, None)}"
                padding = kept[len(kept.rstrip()) :]
                kept = f"{kept.rstrip()} {member}{padding}"
                return text[: self._opening + 1] + kept + text[self._closing :]
            kept = kept.rstrip()
            if inner == outer:
                inner = outer + style.unit
        else:
            inner = outer + style.unit
        member = f"{rendered(key)}: {style.lines(rendered(value, style.unit), inner)}"
        kept = f"{kept}{style.newline}{inner}{member}{style.newline}{outer}"
        return text[: self._opening + 1] + kept + text[self._closing :]

    def without(self, key: str, where: str) -> str:
        member = self.member(key, where)
        if member is None:
            return self._text
        text, bare = self._text, self._bare
        if bare[member.start : member.end] != text[member.start : member.end]:
            raise UsageError(f"{where}: {key!r} has comments in it that would be lost")
        at = self._members.index(member)
        before = self._members[at - 1].end if at else self._opening + 1
        after = self._members[at + 1].start if at + 1 < len(self._members) else self._closing
        start, end = len(text[: member.start].rstrip()), member.end
        comma = bare.find(",", end, after)
        end = max(comma + 1, end)
        if text[start - 1] != bare[start - 1] and text[end:].partition("\n")[0].strip():
            # The comment before it ends with its line, and must not take in what follows.
            start = text.find("\n", start, member.start) + 1 or start
        kept = text[self._opening : start]
        if comma < 0 and at:
            comma = bare.index(",", before, start)
            kept = text[self._opening : comma] + text[comma + 1 : start]
        kept += text[end : self._closing]
        if not kept[1:].strip():
            kept = kept[:1]
        return text[: self._opening] + kept + text[self._closing :]

    def _indent_at(self, at: int) -> str:
        """The indentation of the line at that offset."""
        start = self._text.rfind("\n", 0, at) + 1
        line = self._text[start:at]
        return line[: len(line) - len(line.lstrip())].lstrip("\ufeff")
