"""The files that a server and its pages are made of, and when they change."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType]

from transom.check.positions import Position, find_position

# Not .json, .toml and the like: servers keep their data in such files, and write them when called.
_SUFFIXES = {".py", ".html", ".htm", ".js", ".mjs", ".ts", ".jsx", ".tsx", ".css", ".svg"}
_NAMES = {"package.json", "pyproject.toml"}
_SKIPPED = re.compile(r"\..*|__pycache__|node_modules|venv")
_MOST = 5000  # files, and folders
_SETTLES_WITHIN = 15  # milliseconds between two events of one save


def source_files(folder: Path) -> Iterator[Path]:
    """The files in a folder that a server or its pages are made of; not those of its packages."""
    count = 0
    for where, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if not _SKIPPED.fullmatch(each)]
        for name in files:
            if _is_source(Path(name)):
                count += 1
                if count > _MOST:
                    return
                yield Path(where, name)


def find_in_files(page: str, line: int, column: int, folder: Path | None) -> Position | None:
    """Find a place of a View's page, in a file of this folder if one alone has such a line.

    The path of the file is relative to the current folder where it can be. None if the page has no
    such line.
    """
    files = () if folder is None else source_files(folder)
    found = find_position(page, line, column, files)
    if found is not None and Path(found.file).is_relative_to(Path.cwd()):
        file = str(Path(found.file).relative_to(Path.cwd()))
        found = msgspec.structs.replace(found, file=file)
    return found


async def watch_files(folder: Path) -> AsyncIterator[list[Path]]:
    """The files that changed, whenever some of these did."""
    while True:
        # Each folder by itself: a tree with its packages can have more than the system watches.
        folders = _folders(folder)
        async for changes in awatch(
            *folders,
            watch_filter=_is_of_interest,
            debounce=10 * _SETTLES_WITHIN,
            step=_SETTLES_WITHIN,
            recursive=False,
        ):
            files = sorted({Path(path) for _, path in changes if _is_source(Path(path))})
            if files:
                yield files
            if _folders(folder) != folders:
                break


def _is_of_interest(change: Change, path: str) -> bool:
    found = Path(path)
    if _SKIPPED.fullmatch(found.name):
        return False
    return _is_source(found) or change is Change.deleted or found.is_dir()


def _is_source(file: Path) -> bool:
    return file.suffix in _SUFFIXES or file.name in _NAMES


def _folders(folder: Path) -> list[Path]:
    found: list[Path] = []
    for where, folders, _ in os.walk(folder):
        folders[:] = sorted(each for each in folders if not _SKIPPED.fullmatch(each))
        found.append(Path(where))
        if len(found) >= _MOST:
            break
    return found
