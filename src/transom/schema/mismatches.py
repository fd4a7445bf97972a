"""Where a value does not fit its schema, in words: short, with a path, without echoing the value.

A model reads these texts and corrects its call, so they say what was expected. They never repeat
the value, which may be megabytes long, or an attack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from transom.errors import Mismatch, ValidationError

MAX_MISMATCHES = 10
MAX_MESSAGE = 200
MAX_PATH = 120
MAX_NAME = 60
MAX_CHOICES = 10
MAX_COUNTED = 1_000
MAX_READ = 1_000

# Compiled when they are first used.
_IDENTIFIER = r"[^\W\d][\w$-]*"
_FIELD_MESSAGE = r"(?s)Object (?P<what>missing required|contains unknown) field `(?P<name>.*)`"
_QUOTED_TYPE = r"`([^`]*)`"
_TYPE_NAMES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}


T = TypeVar("T")
Path = Sequence[str | int]
"""Where in a value something is: names of members, and indices."""


def shorten(text: str, limit: int = MAX_MESSAGE) -> str:
    """Cut a text to a length that is fit to read."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def place(path: Path) -> str:
    """Write a path as `items[2].id`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(_IDENTIFIER, name := shorten(step, MAX_NAME)):
            text += f".{name}" if text else name
        else:
            text += f"[{quoted(name)}]"
        if len(text) > MAX_PATH:
            return shorten(text, MAX_PATH)
    return text


def quoted(value: object) -> str:
    """Write a JSON value of a schema as it may appear in a message."""
    if isinstance(value, str):
        # Escapes what could break the line; repr also makes lone surrogates printable.
        return shorten(repr(value), MAX_NAME)
    return shorten(msgspec.json.encode(value).decode(), MAX_NAME)


def mismatch(path: Path, message: str) -> Mismatch:
    """Make a mismatch of a path and a message, both cut to size."""
    return Mismatch(place(path), shorten(message))


def invalid(mismatches: Iterable[Mismatch]) -> ValidationError:
    """Make the error to raise: each mismatch once, and not too many for a model to read."""
    unique = list(dict.fromkeys(mismatches))
    if len(unique) > MAX_MISMATCHES:
        rest = len(unique) - MAX_MISMATCHES
        unique = [*unique[:MAX_MISMATCHES], Mismatch("", f"and {rest} more")]
    return ValidationError(unique)


def choices(options: Sequence[T], write: Callable[[T], str] = quoted) -> str:
    """List what is allowed: `'a', 'b', ... (12 more)`."""
    shown = ", ".join(write(option) for option in options[:MAX_CHOICES])
    rest = len(options) - MAX_CHOICES
    return f"{shown}, ... ({rest} more)" if rest > 0 else shown


def mismatch_from_error(error: BaseException) -> Mismatch:
    """Describe the error of a decoder or validator.

    The texts of msgspec and of deliberate errors (ValueError and the like) are kept. Any other
    exception is a bug: its text is of no use to a model and is left out.
    """
    match error:
        case msgspec.ValidationError():
            return _mismatch_from_msgspec(str(error))
        case msgspec.DecodeError() | UnicodeError():
            return Mismatch("", "is not valid JSON")
        case RecursionError():
            return Mismatch("", "is nested too deeply")
        case ValueError() | TypeError() | AssertionError() if str(error):
            return Mismatch("", shorten(str(error)))
        case _:
            return Mismatch("", "could not be checked")


def _mismatch_from_msgspec(message: str) -> Mismatch:
    if len(message) > MAX_READ:  # it may quote a name as long as the message was
        message = message[: MAX_READ // 2] + "…" + message[-MAX_READ // 2 :]
    text, _, path = message.rpartition(" - at `") if " - at `" in message else (message, "", "")
    path = path.removesuffix("`").removeprefix("key in ").removeprefix("$").removeprefix(".")
    if about_field := re.fullmatch(_FIELD_MESSAGE, text):
        name = place([about_field["name"]])
        where = f"{path}.{name}" if path else name
        missing = about_field["what"] == "missing required"
        text = "is required" if missing else "is not expected"
        return Mismatch(shorten(where, MAX_PATH), text)
    if text.startswith("Invalid enum value"):
        text = "is not one of the allowed values"
    else:
        text = re.sub(_QUOTED_TYPE, _json_type_names, text)
        text = text[:1].lower() + text[1:]
    return Mismatch(shorten(path, MAX_PATH), shorten(text))


def _json_type_names(quoted_types: re.Match[str]) -> str:
    types = quoted_types[1].split(" | ")
    return " or ".join(_TYPE_NAMES.get(name, name) for name in types)


def mismatches_from_pydantic(error: Exception, at: Path = ()) -> list[Mismatch]:
    """Describe a `pydantic.ValidationError` about the value at this path."""
    count: int = cast("Any", error).error_count()
    if count > MAX_COUNTED:
        # Listing them could take more memory than the value did.
        return [mismatch(at, f"does not fit in {count} places")]
    errors = cast("Any", error).errors(
        include_url=False, include_context=False, include_input=False
    )
    found: list[Mismatch] = []
    for entry in errors:
        match entry["type"]:
            case "missing":
                message = "is required"
            case "extra_forbidden":
                message = "is not expected"
            case "json_invalid":
                message = "is not valid JSON"
            case _:
                text: str = entry["msg"].removeprefix("Value error, ")
                message = text[:1].lower() + text[1:]
        found.append(mismatch((*at, *entry["loc"]), message))
    return found
