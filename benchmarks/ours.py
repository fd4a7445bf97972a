"""What Transom does in a second: `App` and `Bridge` in memory, JSON both ways, all checked."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from transom import App, Bridge, Limits
from transom.channel import memory_pair

Once = Callable[[], Awaitable[object]]

FIELDS = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "limit": {"type": "integer"},
        "exact": {"type": "boolean"},
    },
    "required": ["id", "limit", "exact"],
}


class Echo(msgspec.Struct):
    """What the measured tool returns."""

    echo: str
    n: float


def echoing() -> App:
    app = App("bench", "1.0.0")

    @app.tool
    def echo(text: str, count: int) -> Echo:
        return Echo(text, count)

    return app


def listing(count: int, lazy: int = 0) -> App:
    app = App("bench", "1.0.0", page_size=max(count, 1))
    for number in range(count):
        schema: Any = (lambda: FIELDS) if number < lazy else FIELDS
        app.register_tool(
            f"tool_{number}",
            lambda **_: "",
            description=f"Tool number {number}",
            input_schema=schema,
        )
    return app


@asynccontextmanager
async def bridged(app: App) -> AsyncIterator[Bridge]:
    view, host = memory_pair()
    info = {"name": "bench", "version": "1.0.0"}
    async with Bridge(host, host_info=info, limits=Limits(max_tools=1000)) as bridge:
        await app.connect(view)
        await bridge.initialized()
        yield bridge
    await app.close()


def _call(bridge: Bridge) -> Once:
    return lambda: bridge.call_tool("echo", {"text": "hello", "count": 3})


ROWS: dict[str, tuple[Callable[[], App], Callable[[Bridge], Once]]] = {
    "ping": (echoing, lambda bridge: bridge.ping),
    "call": (echoing, _call),
    "list50": (lambda: listing(50), lambda bridge: bridge.list_tools),
    "list50-one-lazy": (lambda: listing(50, 1), lambda bridge: bridge.list_tools),
    "list50-all-lazy": (lambda: listing(50, 50), lambda bridge: bridge.list_tools),
    "list1000": (lambda: listing(1000), lambda bridge: bridge.list_tools),
}


class Rate(NamedTuple):
    """How often something is done in a second of the clock, and in one of the processor."""

    wall: float
    processor: float


async def per_second(row: str, mode: str, seconds: float) -> Rate:
    """How often a row is done in a second, one after the other or with 100 in flight."""
    make, prepare = ROWS[row]
    async with bridged(make()) as bridge:
        return await rate_of(prepare(bridge), mode, seconds)


async def rate_of(once: Once, mode: str, seconds: float) -> Rate:
    """How often `once` is done in a second, after a little warming up."""
    await _run(once, mode, seconds / 4)
    return await _run(once, mode, seconds)


async def _run(once: Once, mode: str, seconds: float) -> Rate:
    busy, started = time.process_time(), time.perf_counter()
    done = 0
    while (passed := time.perf_counter() - started) < seconds:
        if mode == "inflight":
            await asyncio.gather(*(once() for _ in range(100)))
            done += 100
        else:
            for _ in range(10):
                await once()
            done += 10
    return Rate(done / passed, done / (time.process_time() - busy))
