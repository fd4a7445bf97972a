"""What the flood of one side costs the calls of another: for users_rows and clients_rows.

Calls are measured by turns while the other side is quiet, and while it sends as fast as it can from
a process of its own. The median of the rounds counts.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["Tell", "compare", "started"]

ROUNDS = 5
BUDGET = 3.0

Tell = Callable[[str], Awaitable[None]]
"""Says to a process with what to flood, or with nothing to be quiet; returns when it does."""


@asynccontextmanager
async def started(module: str, *arguments: str) -> AsyncGenerator[Tell]:
    """The process of a module of benchmarks, which prints a line when it is ready."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"benchmarks.{module}", *arguments),
        cwd=Path(__file__).parents[1],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    reader, writer = process.stdout, process.stdin
    assert reader is not None
    assert writer is not None

    async def tell(kind: str) -> None:
        writer.write(f"{kind}\n".encode())
        assert await reader.readline() == b"done\n"

    try:
        assert await reader.readline() == b"ready\n"
        yield tell
    finally:
        process.kill()
        await process.wait()


async def compare(
    who: str,
    floods: Iterable[str],
    calls: Callable[[], Awaitable[list[float]]],
    tell: Tell,
    pause: float,
) -> list[tuple[Any, ...]]:
    """The rows of `make bench`.

    Args:
        who: whose calls are measured.
        floods: the kinds of them.
        calls: makes some, and returns how many microseconds each took.
        tell: to the process that floods.
        pause: seconds until what a flood has begun ends.
    """
    lines: list[tuple[Any, ...]] = []
    for kind in floods:
        alone: list[float] = []
        beside: list[float] = []
        for _ in range(ROUNDS):
            alone.append(median(await calls()))
            await tell(kind)
            beside.append(median(await calls()))
            await tell("")
            await asyncio.sleep(pause)
        ratio = median(flooded / quiet for quiet, flooded in zip(alone, beside, strict=True))
        what = f"another {who}'s call, one floods with {kind}, p50"
        figures = median(beside), "us", "without the flood", median(alone), ratio
        lines.append((what, *figures, f"<= {BUDGET:g}x", ratio <= BUDGET))
    return lines
