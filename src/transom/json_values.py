"""Untrusted JSON: reading it without trusting its shape, and cleaning its text.

1. `members` and `member` read raw JSON one level at a time. What they do not read
   stays raw, so it can be passed on unchanged.
2. `as_object` and the like read JSON that was decoded already.
3. In the brackets `⟦ ⟧` the host tells a model where a text comes from. Texts of Views and servers
   lose them: in `clean`, which makes one line of visible text, or, for data, in `without_marks`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw

from transom.protocol import wire

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"


def as_object(value: object) -> JsonObject:
    """`value` if it is an object, else an empty one: for looking things up."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Json]:
    """`value` if it is a list, else an empty one."""
    return cast("list[Json]", value) if isinstance(value, list) else []


_TYPE_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}


def type_name(value: object) -> str:
    """The JSON name of the type of `value`; Python's where JSON has none."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def size_of(value: Json) -> int:
    """How many bytes `value` takes as JSON."""
    return len(msgspec.json.encode(value))


def depth_exceeds(value: object, limit: int) -> bool:
    """Whether `value` nests deeper than `limit`. Never recurses; a cycle is endlessly deep."""
    level: list[Any] = [value] if _is_container(value) else []
    for _ in range(limit):
        # By identity, so that a list that holds itself twice does not double at each level.
        deeper: dict[int, Any] = {
            id(child): child
            for node in level
            for child in cast("Any", node.values() if isinstance(node, dict) else node)
            if _is_container(child)
        }
        if not deeper:
            return False
        level = list(deeper.values())
    return bool(level)


def _is_container(value: object) -> bool:
    return isinstance(value, dict | list | tuple)


# --- raw JSON --------------------------------------------------------------------------------

Members = dict[str, Raw]
"""The members of an object, their values unread."""

_read = msgspec.json.Decoder(Members).decode
_read_any = msgspec.json.Decoder().decode


def members(value: Raw | bytes | None) -> Members:
    """The members of an object; empty if it is not an object."""
    if value is None:
        return {}
    try:
        return _read(value)
    except msgspec.DecodeError:
        return {}


def member(value: Raw | bytes | None, *path: str) -> Any:
    """One value inside an object; None if it is absent, or Python cannot represent it."""
    for key in path:
        value = members(value).get(key)
        if value is None:
            return None
    try:
        return None if value is None else _read_any(value)
    except msgspec.DecodeError:
        return None  # a number such as 1e999 is valid JSON


def has_word(value: Raw | bytes, word: str) -> bool:
    """Whether a string is somewhere in JSON, as a key or value, however it is spelled there."""
    data, quoted = bytes(value), f'"{word}"'.encode()
    if b"\\u" not in data:
        return quoted in data
    try:
        return quoted in msgspec.json.encode(msgspec.json.decode(data))
    except RecursionError:  # too deep to be looked through
        return True


def with_member(value: Raw | bytes | None, key: str, member: object) -> bytes:
    """An object with another value for one of its members."""
    return wire.encode({**members(value), key: Raw(wire.encode(member))})


def with_entries(value: Raw | bytes, key: str, entries: Sequence[Raw | bytes]) -> bytes:
    """An object with these entries as its array `key`."""
    given = members(value)
    given[key] = Raw(b"[" + b",".join(bytes(entry) for entry in entries) + b"]")
    return wire.encode(given)


# --- text ------------------------------------------------------------------------------------

# Invisible characters that Python calls printable: the default-ignorable code points of Unicode
# that count as letters or marks, and the empty Braille pattern. And the host's brackets.
_UNSEEN = (  # compiled when it is first used: that takes a millisecond, and few need it
    "[⟦⟧\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff]"
)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_OPENING, _CLOSING = "⟦".encode(), "⟧".encode()
_ESCAPED_BRACKET = rb"(?<!\\)((?:\\\\)*)\\u27[eE]([67])"


def is_clean(text: str) -> bool:
    """Whether it is one line of visible text without the host's brackets."""
    return text.isprintable() and (text.isascii() or re.search(_UNSEEN, text) is None)


def clean(text: str, limit: int) -> str:
    """One line of visible text, at most `limit` characters long, without the host's brackets."""
    if len(text) <= limit and is_clean(text):
        return text
    text = text[: 4 * limit]
    if not is_clean(text):
        text = "".join(_visible(char) for char in re.sub(_UNSEEN, "", text))
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def sendable(text: str) -> str:
    """The same text without lone surrogates, which cannot be sent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def visible_json(value: object) -> str:
    """Its JSON, with an escape for every character that is not seen or turns text around."""
    return visible(msgspec.json.encode(value).decode())


def visible(text: str) -> str:
    """A text with an escape for every character that is not seen or turns text around."""
    if is_clean(text):
        return text
    return "".join(char if is_clean(char) else _escape(char) for char in text)


def spelled_name(name: str) -> str:
    """A name to be shown, with an escape for what looks like other letters or like a sentence.

    Names of tools are letters, digits and `_ - . /` by the specification.
    """
    return "".join(each if re.match(r"[A-Za-z0-9_./-]", each) else _escape(each) for each in name)


def _escape(char: str) -> str:
    code = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))


def _visible(char: str) -> str:
    import unicodedata  # noqa: PLC0415 - few texts need it

    if char.isspace():
        return " "
    return "" if unicodedata.category(char) in _INVISIBLE else char


def without_marks(data: bytes) -> bytes:
    """JSON with plain brackets in place of the host's own, `⟦ ⟧`.

    They are replaced, not removed: what surrounds one could join to form another.
    """
    if not data.isascii():  # far quicker than a search for the brackets
        data = data.replace(_OPENING, b"[").replace(_CLOSING, b"]")
    if data.count(rb"\u27"):  # `in` is slower
        data = re.sub(_ESCAPED_BRACKET, _plain_bracket, data)
    return data


def _plain_bracket(found: re.Match[bytes]) -> bytes:
    return found[1] + (b"[" if found[2] == b"6" else b"]")
