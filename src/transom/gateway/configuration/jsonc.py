"""JSON as people write it: with comments and trailing commas.

1. Comments and trailing commas are replaced by blanks, so every offset, line and column stays the
   same.
2. The rest is read by the standard library, which also reports errors with their position.
3. `put_member` and `remove_member` change one member of one section and no other character.
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


def newline_of(text: str) -> str:
    """How the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def put_member(text: str, section: str, name: str, value: object, where: str) -> str:
    """The text with `{section: {name: value}}` in it."""
    if not text.strip():
        return (rendered({section: {name: value}}) + "\n").replace("\n", newline_of(text))
    root = _Section(text, where)
    found = root.member(section)
    if found is None:
        return root.with_member(section, {name: value})
    if text[found.value] != "{":
        raise UsageError(f"{where}: {section!r} is not a JSON object there")
    inner = _Section(text, where, found.value)
    entry = inner.member(name)
    return inner.with_member(name, value) if entry is None else inner.with_value(entry, value)


def remove_member(text: str, section: str, name: str, where: str) -> str:
    """The text without the member of a section."""
    found = _Section(text, where).member(section)
    return text if found is None else _Section(text, where, found.value).without(name)


# --- reading ---------------------------------------------------------------------------------


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda found: _blanked(found[0]) if found[0][0] == "/" else found[0], text)


def _plain(text: str) -> str:
    bare = _without_comments(text)
    return _COMMA.sub(lambda found: " " if found[0] == "," else found[0], bare)


def _blanked(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


# --- writing ---------------------------------------------------------------------------------


class _Member(msgspec.Struct, frozen=True):
    key: str
    start: int
    value: int
    end: int


class _Section:
    """One object in a text: where its members are, and how it looks with one more."""

    def __init__(self, text: str, where: str, at: int = 0) -> None:
        plain = _plain(text)
        self._text = text
        self._where = where
        self._bare = _without_comments(text)
        indented = _INDENTED.search(self._bare)
        self._unit = indented[1] if indented else "  "
        self._newline = newline_of(text)
        self._opening = plain.index("{", at)
        self._members: list[_Member] = []
        self._closing = self._walk(plain, self._opening + 1)

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

    def member(self, key: str) -> _Member | None:
        found = [member for member in self._members if member.key == key]
        if len(found) > 1:
            raise UsageError(f"{self._where}: {key!r} is there {len(found)} times")
        return found[0] if found else None

    def with_value(self, member: _Member, value: object) -> str:
        text = self._text
        self._refuse_comments(text[member.value : member.end], member.key)
        multi = "\n" in text[self._opening : self._closing]
        new = self._lines(value, self._indent_at(member.start)) if multi else rendered(value, None)
        return text[: member.value] + new + text[member.end :]

    def with_member(self, key: str, value: object) -> str:
        text, opened = self._text, self._opening + 1
        before, inside, after = text[:opened], text[opened : self._closing], text[self._closing :]
        outer = inner = self._indent_at(self._opening)
        if self._members:
            inner, end = self._indent_at(self._members[0].start), self._members[-1].end
            comma = "" if self._bare[end : self._closing].strip() else ","
            inside = text[opened:end] + comma + text[end : self._closing]
            if "\n" not in inside and "//" not in inside:
                kept = inside.rstrip()
                member = f" {rendered(key)}: {rendered(value, None)}"
                return f"{before}{kept}{member}{inside[len(kept) :]}{after}"
        if inner == outer:
            inner += self._unit
        member = f"{self._newline}{inner}{rendered(key)}: {self._lines(value, inner)}"
        return f"{before}{inside.rstrip()}{member}{self._newline}{outer}{after}"

    def without(self, key: str) -> str:
        member = self.member(key)
        if member is None:
            return self._text
        text, bare = self._text, self._bare
        self._refuse_comments(text[member.start : member.end], key)
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

    def _refuse_comments(self, text: str, key: str) -> None:
        if _without_comments(text) != text:
            raise UsageError(f"{self._where}: {key!r} has comments in it that would be lost")

    def _lines(self, value: object, indent: str) -> str:
        return rendered(value, self._unit).replace("\n", self._newline + indent)

    def _indent_at(self, at: int) -> str:
        """The indentation of the line at that offset."""
        start = self._text.rfind("\n", 0, at) + 1
        line = self._text[start:at]
        return line[: len(line) - len(line.lstrip())]
