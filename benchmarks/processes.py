"""What processes there are and what they hold, from /proc. Linux alone has it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "Held",
    "command_of",
    "held_by",
    "held_by_descendants",
    "marked",
    "parent_of",
    "processor_time",
    "share_of_memory",
    "zombies_of",
]

_PROC = Path("/proc")


class Held(NamedTuple):
    """What a process holds."""

    rss: int
    """Kilobytes of memory."""
    fds: int
    """Open files, of which"""
    sockets: int
    """are sockets."""
    threads: int


def held_by(pid: int) -> Held:
    """What a process holds now.

    Raises:
        FileNotFoundError: it is gone.
    """
    status = dict(
        line.split(":", 1) for line in (_PROC / str(pid) / "status").read_text().splitlines()
    )
    fds = sockets = 0
    for fd in (_PROC / str(pid) / "fd").iterdir():
        with suppress(FileNotFoundError):
            fds += 1
            sockets += fd.readlink().name.startswith("socket:")
    return Held(int(status["VmRSS"].split()[0]), fds, sockets, int(status["Threads"]))


def marked(mark: str) -> list[int]:
    """The processes that were started with NAME=VALUE in their environment, and all theirs.

    Chromium's processes lose their environment to their titles: they are found by their parents.
    """
    wanted, found = mark.encode(), set[int]()
    parents: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            pid = int(entry.name)
            if (parent := parent_of(pid)) is None:
                continue
            parents[pid] = parent
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def held_by_descendants(pid: int) -> int:
    """Kilobytes that the processes below one hold, what they share counted by shares (PSS)."""
    parents = {
        int(entry.name): parent_of(int(entry.name))
        for entry in _PROC.iterdir()
        if entry.name.isdecimal()
    }
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sum(share_of_memory(child) for child in found - {pid})


def share_of_memory(pid: int) -> int:
    """Kilobytes that a process holds, what it shares counted by shares; 0 for one that is gone."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def parent_of(pid: int) -> int | None:
    """Who started it; None for one that is gone or a zombie."""
    try:
        rest = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if rest[0] == "Z" else int(rest[1])


def command_of(pid: int) -> list[str]:
    """The words it was started with; none for one that is gone."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def zombies_of(pid: int) -> int:
    """How many processes it started that have ended and that it has not waited for."""
    found = 0
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                rest = (entry / "stat").read_text().rpartition(")")[2].split()
                found += rest[0] == "Z" and int(rest[1]) == pid
    return found


def processor_time(pid: int) -> float:
    """Seconds that the first thread of a process has been on a processor."""
    return int((_PROC / str(pid) / "schedstat").read_text().split()[0]) / 1e9
