"""What a call costs more when it goes to another worker by way of Redis, on this machine.

The same session calls an echo in this process, and one in another process over the bus. Beside
that, the least that Redis can do: one entry there and one back, with redis-py alone, between the
same two processes. By turns; the best round counts. Redis is started for it and has no files.

    python -m benchmarks.bus_rows
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

from redis.asyncio import Redis

from benchmarks.page import print_lines
from tests.redis_server import RedisServer
from transom.bus import Bus
from transom.channel import Channel, memory_pair
from transom.session import Session

__all__ = ["measure"]

NAME = "bench"
THERE, BACK = "bench:there", "bench:back"
ROUNDS = 5
BUDGET = 2000.0  # microseconds
PARAMS = b'{"name":"echo","arguments":{"text":"%b"}}' % (b"x" * 100)

Call = Callable[[], Awaitable[object]]


def session_of(channel: Channel) -> Session:
    """A session that answers each request with its params."""
    return Session(
        channel, on_request=lambda request: bytes(request.params or b"{}"), on_notification=bool
    )


async def serve(_name: str, _hello: bytes, channel: Channel) -> None:
    """Answer a worker that called."""
    async with session_of(channel) as session:
        await session.wait_closed()


async def _owner(url: str) -> None:
    """The other process."""
    async with Bus(url) as bus, Redis.from_url(url, socket_timeout=None) as redis:
        bus.on_open("rpc", serve)
        await bus.claim(NAME, bool)
        print("ready", flush=True)
        last: Any = "0"
        while True:
            [[_, entries]] = await redis.execute_command(
                *("XREAD", "BLOCK", 0, "STREAMS", THERE, last)
            )
            for _, fields in entries:
                await redis.xadd(BACK, fields)
            last = entries[-1][0]


@asynccontextmanager
async def owner(url: str) -> AsyncIterator[None]:
    """Run the other process meanwhile."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.bus_rows", "--owner", url),
        cwd=Path(__file__).parents[1],
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        await process.wait()


async def _p50(call: Call, seconds: float) -> float:
    """Microseconds that a call takes, one after the other."""
    taken: list[float] = []
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until or len(taken) < 20:
        await call()
        taken.append(time.perf_counter() - began)
    return median(taken) * 1e6


async def _measure(seconds: float) -> list[tuple[Any, ...]]:
    with RedisServer() as server:
        url = server.database()
        async with owner(url), Bus(url) as bus, Redis.from_url(url, socket_timeout=None) as redis:
            here, there = memory_pair()
            last: Any = "0"

            async def bare() -> None:
                nonlocal last
                await redis.xadd(THERE, {"p": PARAMS})
                [[_, entries]] = await redis.execute_command(
                    *("XREAD", "BLOCK", 0, "STREAMS", BACK, last)
                )
                last = entries[-1][0]

            async with (
                session_of(there),
                session_of(here) as local,
                session_of(await bus.open(NAME, "rpc")) as remote,
            ):
                calls: dict[str, Call] = {
                    "here": lambda: local.request("echo", PARAMS),
                    "bus": lambda: remote.request("echo", PARAMS),
                    "bare": bare,
                }
                best = dict.fromkeys(calls, 1e12)
                for _ in range(ROUNDS):
                    for name, call in calls.items():
                        best[name] = min(best[name], await _p50(call, seconds / 4))
    added = best["bus"] - best["here"]
    name = "added to a call by the bus, p50"
    against = "bare redis-py, there and back"
    ratio = added / best["bare"]
    return [(name, added, "us", against, best["bare"], ratio, "<= 2 ms", added <= BUDGET)]


def measure(seconds: float = 1.0) -> list[tuple[Any, ...]]:
    """The rows of `make bench`."""
    return asyncio.run(_measure(seconds))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--owner"]:
        asyncio.run(_owner(sys.argv[2]))
    else:
        print_lines(measure())
