"""What Transom does in a second: `App` and `Bridge` in memory, JSON both ways, all checked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from benchmarks.rates import Once, Rate, rate_of
from transom import App, Bridge, Limits
from transom.channel import memory_pair

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


def waiting() -> App:
    app = App("bench", "1.0.0")

    @app.tool
    async def echo(text: str, count: int) -> Echo:
        await asyncio.sleep(0)
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
    "wait": (waiting, _call),
    "list50": (lambda: listing(50), lambda bridge: bridge.list_tools),
    "list50-one-lazy": (lambda: listing(50, 1), lambda bridge: bridge.list_tools),
    "list50-all-lazy": (lambda: listing(50, 50), lambda bridge: bridge.list_tools),
    "list1000": (lambda: listing(1000), lambda bridge: bridge.list_tools),
}


async def per_second(row: str, callers: int, seconds: float) -> Rate:
    """How often a row is done in a second by so many callers."""
    make, prepare = ROWS[row]
    async with bridged(make()) as bridge:
        return await warm_rate_of(prepare(bridge), callers, seconds)


async def warm_rate_of(once: Once, callers: int, seconds: float) -> Rate:
    """How often `once` is done in a second, after a little warming up."""
    await rate_of(once, callers, seconds / 4)
    return await rate_of(once, callers, seconds)
