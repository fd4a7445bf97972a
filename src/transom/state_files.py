"""State that a user's programs store between runs: the folder, its files, and locks on them."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def state_folder(name: str) -> Path:
    """The folder for the state of one part of Transom; RuntimeError if the user has no home."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    if given.is_absolute():
        base = given
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path.home() / ".local" / "state"
    return base / "transom" / name


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only this user can read, atomically."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)  # made with 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def open_lock(path: Path) -> int:
    """Open a lock file, creating it if needed; close it with `os.close`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed or the process ends; False if another process has it."""
    with suppress(OSError):
        _lock(descriptor)
        return True
    return False


def unlock(descriptor: int) -> None:
    """Unlock it, although a child of this process may have it open, too."""
    with suppress(OSError):
        _unlock(descriptor)
