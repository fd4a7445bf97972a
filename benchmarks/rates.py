"""How often something is done in a second, measured alike for us and the Python peers."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

Once = Callable[[], Awaitable[object]]


class Rate(NamedTuple):
    """How often something is done in a second of the clock, and in one of the processor."""

    wall: float
    processor: float


async def rate_of(once: Once, callers: int, seconds: float) -> Rate:
    """Each caller waits for its answer before it calls again."""
    busy, begin, done = time.process_time(), time.perf_counter(), 0

    async def call() -> None:
        nonlocal done
        while True:  # at least once, however slow the machine is
            await once()
            done += 1
            if time.perf_counter() - begin >= seconds:
                return

    await asyncio.gather(*(call() for _ in range(callers)))
    passed = time.perf_counter() - begin
    return Rate(done / passed, done / (time.process_time() - busy))
