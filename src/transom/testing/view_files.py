"""Where a test finds its files: servers beside it, its snapshots, and what it leaves behind."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

_MAX_NAME = 100


class ViewFiles:
    """The files of one test.

    Args:
        file: the test's own.
        id: what pytest calls the test: its path, classes, name and parameters.
        output: finds the folder for what failed tests leave, which may not be there yet.
        update: whether snapshots are written rather than compared.
    """

    def __init__(
        self, file: Path, id: str, output: Callable[[], Path], *, update: bool = False
    ) -> None:
        self.update = update
        self._file = file
        place, _, name = id.partition("::")
        self._folder = _file_name(place.removesuffix(".py").replace("/", "-"))
        self._name = _file_name(name)
        self._output = output
        self._failure: Path | None = None

    def beside(self, name: str) -> str:
        """A file that the test names: beside the test if it is there, otherwise as it is."""
        beside = self._file.parent / name.partition(".py:")[0]
        return str(self._file.parent / name) if _is_there(beside, name) else name

    def snapshot(self, kind: str, name: str | None) -> Path:
        """The file of a snapshot."""
        stem = self._name if name is None else f"{self._name}.{_file_name(name)}"
        return self._file.parent / "__views__" / self._file.stem / f"{stem}.{kind}"

    def failure(self) -> Path:
        """A folder, which is made, and was emptied at first, for what a failed test leaves."""
        if self._failure is None:
            self._failure = self._output() / self._folder / self._name
            shutil.rmtree(self._failure, ignore_errors=True)
            self._failure.mkdir(parents=True)
        return self._failure


def _file_name(text: str) -> str:
    """A name for a file: never a path, and another one for another text."""
    usual = text.replace("::", "-").replace("[", "-").removesuffix("]")
    name = re.sub(r"[^\w.-]+", "-", usual, flags=re.ASCII).strip("-.")
    if name == usual and len(name) <= _MAX_NAME:
        return name
    return f"{name[:_MAX_NAME]}-{sha256(text.encode()).hexdigest()[:8]}"


def _is_there(beside: Path, name: str) -> bool:
    with_suffix = Path(f"{beside}.py") if ".py:" in name else beside
    return " " not in name and (with_suffix.is_file() or beside.is_file())
