"""Where a test finds its files: servers beside it, its snapshots, and what it leaves behind."""

from __future__ import annotations

import re
from pathlib import Path


class ViewFiles:
    """The files of one test.

    Args:
        file: the test's own.
        name: the test's name, with its parameters.
        output: the folder for what failed tests leave.
        update: whether snapshots are written rather than compared.
    """

    def __init__(self, file: Path, name: str, output: Path | str, *, update: bool = False) -> None:
        self.update = update
        self._file = file
        self._name = re.sub(r"[^\w.-]+", "-", name).strip("-")[:120]
        self._output = Path(output)

    def beside(self, name: str) -> str:
        """A file that the test names: beside the test if it is there, otherwise as it is."""
        beside = self._file.parent / name.partition(".py:")[0]
        return str(self._file.parent / name) if _is_there(beside, name) else name

    def snapshot(self, kind: str, name: str | None) -> Path:
        """The file of a snapshot."""
        stem = self._name if name is None else f"{self._name}.{name}"
        return self._file.parent / "__views__" / self._file.stem / f"{stem}.{kind}"

    def failure(self) -> Path:
        """A folder, which is made, for what a failed test leaves."""
        folder = self._output / self._file.stem / self._name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        return folder


def _is_there(beside: Path, name: str) -> bool:
    with_suffix = Path(f"{beside}.py") if ".py:" in name else beside
    return " " not in name and (with_suffix.is_file() or beside.is_file())
