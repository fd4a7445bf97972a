"""Where in its author's files a line of a View's page was written.

A browser counts the lines of the page that it was given. That page may be a file, a text inside a
program, or made of several files; so a line is searched for by what it says.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

_WRITTEN = {".html", ".htm", ".py", ".js", ".mjs", ".ts", ".jsx", ".tsx", ".vue", ".svelte"}
_MAX_BYTES = 1024 * 1024
_MAX_LINE = 300  # characters of what a person writes in one line; more is a program's work
_SHOWN = 60  # characters shown before and after the place in a longer line


class Position(msgspec.Struct, frozen=True):
    """A place in a page, or in the file that it was written in."""

    line: int
    column: int
    text: str
    """The line there, or the part of it around the place."""
    file: str = ""
    """Its path; "" if it is not known, and the line is that of the page."""


def find_position(page: str, line: int, column: int, files: Iterable[Path]) -> Position | None:
    """Find a place of a page, in one of these files if one of them alone has such a line.

    Returns:
        None if the page has no such line.
    """
    lines = page.splitlines()
    if not 0 < line <= len(lines):
        return None
    text = lines[line - 1]
    if len(text) > _MAX_LINE:
        return Position(line, column, text[max(column - _SHOWN, 0) : column + _SHOWN])
    around = [each.strip() for each in lines[max(line - 2, 0) : line + 1]]
    found: list[tuple[bool, int, Position]] = []
    for file in files:
        for at, known in enumerate(_lines_of(file) if text.strip() else ()):
            if known.strip() == text.strip():
                there = _lines_of(file)[max(at - 1, 0) : at + 2]
                shift = len(known) - len(known.lstrip()) - (len(text) - len(text.lstrip()))
                position = Position(at + 1, column + shift, known.strip(), str(file))
                same = [each.strip() for each in there] == around
                found.append((same, int(at + 1 == line), position))
    found.sort(key=lambda each: each[:2], reverse=True)
    if found and (len(found) == 1 or found[0][:2] > found[1][:2]):
        return found[0][2]
    return Position(line, column, text.strip())


def _lines_of(file: Path) -> list[str]:
    if file.suffix in _WRITTEN:
        with suppress(OSError, UnicodeDecodeError):
            if file.stat().st_size <= _MAX_BYTES:
                return file.read_text("utf-8").splitlines()
    return []
