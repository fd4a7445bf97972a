"""The files that a View offers to the user, under safe names.

A file gets the name a View asked for, without anything that could lead out of a folder, hide its
type, or name a device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

import msgspec

from transom.types import EmbeddedResource, ResourceLink

_MAX_NAME = 128
# Control characters, characters special to file systems, and bidirectional marks.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|\u200e\u200f\u202a-\u202e\u2066-\u2069]')
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}
)


class Download(msgspec.Struct, frozen=True):
    """A file that a View offers to the user."""

    name: str
    """A harmless file name, from the last part of the resource's URI."""
    content: EmbeddedResource | ResourceLink
    """The file itself, or where it can be read."""


def safe_filenames(uris: Iterable[str]) -> list[str]:
    """Safe, distinct file names, from the last part of each file's URI.

    Names that differ only in case count as equal, as they are on some file systems. The work is
    linear in the number of files, whatever their names.
    """
    taken: set[str] = set()
    numbers: dict[str, int] = {}  # the number to try next for a name that is taken
    names: list[str] = []
    for uri in uris:
        stem, ending = _harmless(uri)
        name = first = f"{stem}{ending}"
        while name.lower() in taken:
            number = numbers.get(first.lower(), 2)
            numbers[first.lower()] = number + 1
            name = f"{stem} ({number}){ending}"
        taken.add(name.lower())
        names.append(name)
    return names


def _harmless(uri: str) -> tuple[str, str]:
    """The last part of a URI as a file name, and its extension, such as `.txt`."""
    path = re.split(r"[?#]", uri, maxsplit=1)[0]
    last = unquote(path.rstrip("/").rpartition("/")[2])
    name = _UNSAFE.sub("_", last).strip(". ") or "download"
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > 16:
        stem, dot, suffix = name, "", ""
    if stem.partition(".")[0].strip().lower() in _DEVICES:
        stem = f"_{stem}"
    return stem[: _MAX_NAME - len(dot + suffix)].rstrip(". "), f"{dot}{suffix}"
