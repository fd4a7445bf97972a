"""What users, Views, calls and frames of pages cost the workers of a fleet, and their Redis.

    python -m benchmarks.fleet [--users 200] [--views 5] [--messages 2000] [--json FILE]

Two workers (two `Bus`es) in this process, and a Redis of their own. What Redis says of itself
(`INFO`) gives commands, bytes and processor time on its side; the processor time of this process,
which is that of both workers, is divided by two. A frame is one message of a page on a WebSocket
that one worker forwards to the other; a call is a request of one worker to a user's Host on the
other, and its answer. Memory is the resident size of this process before and after.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from redis.asyncio import Redis
from rich.console import Console
from rich.table import Table

from benchmarks.bus_rows import serve, session_of
from benchmarks.host_rows import URI, bench_server, definitions, listing_app
from benchmarks.processes import held_by
from tests.redis_server import RedisServer
from transom import Host, InProcessRenderer, Policy
from transom.bus import Bus, forward, serve_forwarded
from transom.session import Session

IDLE_FOR = 6.0
RESULT = 1000  # bytes of the answer to a call, and of what its params hold
FRAME = 300  # bytes of a page's frame
RATE = 2000  # frames in a second, of all pages together


class Cost(NamedTuple):
    """What one of something costs."""

    commands: float
    """Commands of Redis, those that its scripts run included."""
    redis_in: float
    redis_out: float
    """Bytes."""
    redis_cpu: float
    worker_cpu: float
    """Microseconds of a processor."""
    socket: float = 0.0
    """Bytes on the page's own connection."""


class Meter:
    """What happened in Redis and in this process meanwhile."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def _read(self) -> tuple[float, ...]:
        info: dict[str, Any] = await self._redis.info("all")
        return (
            info["total_commands_processed"],
            info["total_net_input_bytes"],
            info["total_net_output_bytes"],
            (info["used_cpu_user"] + info["used_cpu_sys"]) * 1e6,
            time.process_time() * 1e6,
        )

    @asynccontextmanager
    async def each(
        self, count: float, found: list[Cost], socket: float = 0.0
    ) -> AsyncIterator[None]:
        """What it costs, for each of so many."""
        own = [b - a for a, b in zip(await self._read(), await self._read(), strict=True)]
        before = await self._read()
        yield
        after = await self._read()
        spent = [(b - a - o) / count for a, b, o in zip(before, after, own, strict=True)]
        *redis, worker = spent
        found.append(Cost(*redis, worker / 2, socket))


async def _app(_scope: Any, receive: Any, send: Any) -> None:
    """Answers each frame of a page with one of the same size."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def _frames(bus: Bus, user: str, count: int, pause: float = 0.0) -> None:
    """A page that sends so many frames, each a pause after the answer to the last."""
    answered = asyncio.Event()
    left = count
    frame = {"type": "websocket.receive", "text": "x" * FRAME}
    first = True

    async def receive() -> dict[str, Any]:
        nonlocal left, first
        if first:
            first = False
            return {"type": "websocket.connect"}
        await answered.wait()
        answered.clear()
        left -= 1
        if pause and left >= 0:
            await asyncio.sleep(random.uniform(0, 2 * pause))
        return frame if left >= 0 else {"type": "websocket.disconnect", "code": 1000}

    async def send(_: Any) -> None:
        answered.set()

    scope = {"type": "websocket", "path": "/", "headers": []}
    await forward(bus, user, scope, receive, send)


async def measure(users: int, views: int, messages: int, idle: float = IDLE_FOR) -> dict[str, Any]:
    """All figures."""
    with RedisServer() as server:
        url = server.database()
        async with (
            Redis.from_url(url) as redis,
            Bus(url) as owner,
            Bus(url) as other,
            AsyncExitStack() as stack,
        ):
            meter = Meter(redis)
            owner.on_open("rpc", serve)
            owner.on_open("asgi", serve_forwarded(_app))
            found: list[Cost] = []
            await _host(stack, views)  # what is loaded once is not a user's
            gc.collect()
            memory, redis_memory = held_by(os.getpid()).rss, (await redis.info())["used_memory"]
            for number in range(users):
                host = await _host(stack, views)
                lease = await owner.claim(f"user-{number}", bool)
                assert lease is not None
                await lease.write({"host": msgspec.msgpack.encode(host.records())})
            gc.collect()
            memory = (held_by(os.getpid()).rss - memory) / users
            redis_memory = ((await redis.info())["used_memory"] - redis_memory) / users
            remote = await stack.enter_async_context(session_of(await other.open("user-0", "rpc")))
            params = json.dumps({"text": "x" * RESULT}).encode()
            await remote.request("warm")
            async with meter.each(messages, found):
                for _ in range(messages):
                    await remote.request("call", params)
            crowd = [
                await stack.enter_async_context(session_of(await other.open(f"user-{n}", "rpc")))
                for n in range(users)
            ]
            share = max(messages // users, 10)

            async def call_on(session: Session) -> None:
                for _ in range(share):
                    await session.request("call", params)

            async with meter.each(share * users, found):
                await asyncio.gather(*(call_on(each) for each in crowd))
            # A frame there and its answer: two messages; a header of a WebSocket has 4 or 8 bytes.
            async with meter.each(messages, found, 2 * FRAME + 12):
                await _frames(other, "user-0", messages)
            async with meter.each(share * users, found, 2 * FRAME + 12):
                await asyncio.gather(*(_frames(other, f"user-{n}", share) for n in range(users)))
            paced = (_frames(other, f"user-{n}", share, users / RATE) for n in range(users))
            async with meter.each(share * users, found, 2 * FRAME + 12):
                await asyncio.gather(*paced)
            async with meter.each(2 * idle, found):  # two workers
                await asyncio.sleep(idle)
    names = (
        *("a call, one at a time", "a call, all users at once"),
        *("a frame and its answer, one page", "a frame and its answer, all pages at once"),
        f"the same, at most {RATE:,} in a second",
        "a worker that has nothing to do, each second",
    )
    return {
        "users": users,
        "views of a user": views,
        "KB of a worker, for a user": memory,
        "KB of Redis, for a user": redis_memory / 1024,
        "costs": {name: cost._asdict() for name, cost in zip(names, found, strict=True)},
    }


async def _host(stack: AsyncExitStack, views: int) -> Host:
    """A Host with so many Views."""
    renderer = InProcessRenderer({URI: lambda: listing_app(definitions(5))})
    host = await stack.enter_async_context(Host(renderer=renderer, policy=Policy.trusting()))
    await host.add_server("bench", bench_server())
    for _ in range(views):
        await host.call_tool("show", {})
    return host


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--views", type=int, default=5)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    found = asyncio.run(measure(options.users, options.views, options.messages))
    table = Table("what", "commands", "to Redis", "from Redis", "Redis", "a worker", "socket")
    for name, cost in found["costs"].items():
        table.add_row(
            name,
            f"{cost['commands']:.2f}",
            *(f"{cost[key]:,.0f} B" for key in ("redis_in", "redis_out")),
            *(f"{cost[key]:,.0f} us" for key in ("redis_cpu", "worker_cpu")),
            f"{cost['socket']:,.0f} B",
        )
    console = Console(width=130)
    console.print(table)
    for name in ("KB of a worker, for a user", "KB of Redis, for a user"):
        console.print(f"{name} with {found['views of a user']} Views: {found[name]:,.1f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
