"""The `transom` command, in a process that says what it holds when it gets SIGUSR1.

    python -m benchmarks.probed FILE gateway ...

It collects garbage, gives back to the system what is free, and writes what is left to FILE. What a
gateway keeps of closed Views has a small bound here, which is reached after a minute: what grows
after that grows for good. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

import transom.gateway.eras as gateway_eras
from transom.cli.main import main
from transom.host import open_views

__all__ = ["Probe"]

_MAX_CLOSED = 20


class Probe(msgspec.Struct):
    """What a process holds after a garbage collection, in KB and in numbers of objects."""

    rss: int
    """Of its own: files that it has mapped are not counted."""
    trimmed: int
    """The same, once what is free was given back."""
    used: int
    """In use of it: what the C library and Python's own allocator have given out."""
    types: dict[str, int]


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def _rss() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0


def _small_objects() -> int:
    """Bytes of Python's small objects, which it says on standard error alone."""
    with TemporaryFile() as file:
        stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        file.seek(0)
        found = re.search(rb"# bytes in allocated blocks\s*=\s*([0-9,]+)", file.read())
    return 0 if found is None else int(found[1].replace(b",", b""))


def probe() -> Probe:
    """What this process holds."""
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = _Mallinfo
    while gc.collect():
        pass
    types = Counter(
        f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects()
    )
    rss, malloc = _rss(), library.mallinfo2()
    used = malloc.uordblks + malloc.hblkhd + _small_objects()
    library.malloc_trim(0)
    return Probe(rss, _rss(), used // 1024, types)


def _write(file: Path) -> None:
    beside = file.with_suffix(".new")
    beside.write_bytes(msgspec.json.encode(probe()))
    beside.replace(file)


if __name__ == "__main__":
    answer = Path(sys.argv.pop(1))
    open_views._MAX_CLOSED = gateway_eras._MAX_HANDLES = _MAX_CLOSED  # type: ignore[attr-defined]
    signal.signal(signal.SIGUSR1, lambda *_: _write(answer))
    main()
