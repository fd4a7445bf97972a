"""The files that a server and its pages are made of, and when they change."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType]

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
