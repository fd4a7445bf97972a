"""What a Host costs: functions that measure and return numbers, for `make bench`.

Each builds what it needs, runs, and closes it. Times are in seconds, rates per second.

    python -m benchmarks.host_rows
"""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any

import msgspec
from mcp.server.mcpserver import MCPServer

from transom import App, Bridge, Host, InProcessRenderer, Limits, Policy
from transom.channel import memory_pair
from transom.host.audit import AuditLog
from transom.server.views import Views
from transom.types import Tool, ToolAnnotations

__all__ = [
    "audit_cost",
    "bridge_calls_per_second",
    "change_among",
    "host_calls_per_second",
    "lazy_among",
    "measure",
    "memory_per_view",
    "surface_bytes",
]

URI = "ui://bench/page.html"
PAGE = "<!doctype html><html><head><title>bench</title></head><body></body></html>"


def bench_server() -> MCPServer:
    """A server with one tool that opens a View."""
    views = Views()
    page = views.add(URI, html=PAGE)

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def show() -> str:
        """Open a View."""
        return "shown"

    return MCPServer("bench", extensions=[views])


def bench_app() -> App:
    """A View with one tool, made from its type hints."""
    app = App("bench", "1.0")

    @app.tool(annotations={"readOnlyHint": True})
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return app


NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


def definitions(tools: int, version: int = 0) -> list[Tool]:
    """So many definitions; the first one says which version it is."""
    return [
        Tool(
            name=f"add{number}",
            description=f"Add two numbers, the way of number {number}.{version or number}",
            input_schema=NUMBERS,
            annotations=ToolAnnotations(read_only_hint=True),
        )
        for number in range(tools)
    ]


def listing_app(offered: list[Tool]) -> App:
    """A View that offers what is in a list, and adds two numbers whatever is called.

    Thousands of these are made, so no schema is compiled for them.
    """
    app = App("bench", "1.0")
    app.on_list_tools = lambda: offered
    app.on_call_tool = lambda _, arguments: str(arguments["a"] + arguments["b"])
    return app


@asynccontextmanager
async def bench_host(
    views: int, make: Any, *, audit: Any = None, **limits: Any
) -> AsyncIterator[Host]:
    """A host with so many live Views."""
    allowed = Limits(max_live_views=views + 1, relist_interval=0.0, **limits)
    renderer = InProcessRenderer({URI: make})
    async with Host(
        renderer=renderer, policy=Policy(), limits=allowed, audit=audit, open_timeout=120
    ) as host:
        await host.add_server("bench", bench_server())
        for _ in range(0, views, 50):
            wanted = min(50, views - len(host.views))
            await asyncio.gather(*(host.call_tool("show") for _ in range(wanted)))
        yield host


async def _rate(call: Any, seconds: float) -> float:
    """Calls per second of the event loop's own time, one after the other; the best of five.

    The loop's thread is timed, not the clock on the wall: what else the machine does, and what the
    audit's thread does meanwhile, is not the call's.
    """
    best = 0.0
    for _ in range(5):
        count, began = 0, time.thread_time()
        while (spent := time.thread_time() - began) < seconds / 5:
            for _ in range(100):
                await call()
            count += 100
        best = max(best, count / spent)
    return best


async def bridge_calls_per_second(seconds: float = 1.0) -> float:
    """`Bridge.call_tool` alone: the measure for the Host's."""
    ours, theirs = memory_pair()
    async with Bridge(ours, host_info={"name": "bench", "version": "1"}) as bridge:
        await bench_app().connect(theirs)
        await bridge.initialized()
        return await _rate(lambda: bridge.call_tool("add", {"a": 1, "b": 2}), seconds)


async def host_calls_per_second(seconds: float = 1.0, *, audit: Any = ":memory:") -> float:
    """`Host.call_tool` of a View's tool: name, policy, limits, audit, then the Bridge."""
    async with bench_host(1, bench_app, audit=audit) as host:
        return await _rate(lambda: host.call_tool("bench-1__add", {"a": 1, "b": 2}), seconds)


async def audit_cost(seconds: float = 2.0, *, path: str = ":memory:") -> float:
    """How much longer a call takes with an audit to SQLite: 0.05 is five percent."""
    async with bench_host(1, bench_app, audit=None) as host:
        kept = AuditLog(path)
        best = {"on": 0.0, "off": 0.0}
        recording = {"on": kept.record_call, "off": host.audit.record_call}

        def call() -> Any:
            return host.call_tool("bench-1__add", {"a": 1, "b": 2})

        # By turns, so that whatever else the machine does hits both alike.
        for _ in range(10):
            for name, record_call in recording.items():
                host.audit.record_call = record_call  # type: ignore[method-assign]
                best[name] = max(best[name], await _rate(call, seconds / 20))
                await kept.flush()
        await kept.aclose()
        return best["off"] / best["on"] - 1


async def change_among(*views: int, tools: int = 20, rounds: int = 40) -> list[float]:
    """Seconds from a View's change until `list_tools` shows it, among so many Views; the medians.

    The hosts are there at the same time, and measured by turns: whatever else the machine does, and
    whatever this process did before, hits all alike.
    """
    async with AsyncExitStack() as stack:
        changes = [await stack.enter_async_context(_changing(many, tools)) for many in views]
        times: list[list[float]] = [[] for _ in views]
        gc.collect()
        gc.disable()
        try:
            for turn in range(1, rounds + 1):
                for change, taken in zip(changes, times, strict=True):
                    taken.append(await change(turn))
        finally:
            gc.enable()
    return [sorted(taken)[rounds // 2] for taken in times]


@asynccontextmanager
async def _changing(views: int, tools: int) -> AsyncIterator[Callable[[int], Awaitable[float]]]:
    """A host with so many Views; what changes one of them, and returns the seconds it took."""
    apps: list[tuple[App, list[Tool]]] = []

    def make() -> App:
        offered = definitions(tools)
        apps.append((listing_app(offered), offered))
        return apps[-1][0]

    async with bench_host(views, make) as host:
        changed = asyncio.Event()
        host.on_tools_changed = changed.set
        await host.list_tools()

        async def change(turn: int) -> float:
            app, offered = apps[turn % min(len(apps), 10)]
            offered[0] = definitions(1, turn)[0]
            changed.clear()
            began = time.perf_counter()
            await app.send_tool_list_changed()
            await changed.wait()
            await host.list_tools()
            return time.perf_counter() - began

        yield change


async def lazy_among(
    views: int = 20, *, tools: int = 20, rounds: int = 200
) -> tuple[float, float, float]:
    """The surface over so many Views of which one has a lazy schema.

    Returns:
        How many Views are listed again for one `list_tools`, the seconds it takes, and the seconds
        it takes to list just that View.
    """
    listings = 0
    lazy = msgspec.structs.replace(definitions(1)[0], meta={"transom/lazy": True})

    def make() -> App:
        nonlocal first
        offered = [lazy if first else definitions(1)[0], *definitions(tools)[1:]]
        first = False

        def listed() -> list[Tool]:
            nonlocal listings
            listings += 1
            return offered

        app = App("bench", "1.0")
        app.on_list_tools = listed
        return app

    first = True
    async with bench_host(views, make) as host:
        [bridge] = [
            view.bridge
            for view in host.views.values()
            if any(tool.meta for tool in view.tools) and view.bridge is not None
        ]
        await host.list_tools()
        before = listings
        surface = [await _seconds(host.list_tools()) for _ in range(rounds)]
        per_listing = (listings - before) / rounds
        alone = [await _seconds(bridge.list_tools()) for _ in range(rounds)]
        return per_listing, sorted(surface)[rounds // 2], sorted(alone)[rounds // 2]


async def _seconds(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def surface_bytes(views: int, *, tools: int = 20) -> tuple[int, int]:
    """Bytes of what a model reads with so many Views open, and of the bare definitions."""
    offered = definitions(tools)
    async with bench_host(views, lambda: listing_app(offered)) as host:
        shown = list(await host.list_tools())
    servers = [tool for tool in shown if tool.name == "show"]
    return len(msgspec.json.encode(shown)), len(msgspec.json.encode(servers + offered * views))


async def memory_per_view(
    views: int = 1000, *, tools: int = 20, distinct: bool = False
) -> dict[str, float]:
    """Bytes that an idle View costs: on the host's side, and all in all with its App.

    Views of one resource mostly define the same tools; `distinct` ones define each its own.

    Whoever made the session, channel or message that an allocation is part of, it counts as theirs:
    the App's side would be in a browser.
    """
    offered, number = definitions(tools), count(1)

    def make() -> App:
        return listing_app(_own(offered, next(number)) if distinct else offered)

    async with bench_host(2, make) as warm:
        await warm.list_tools()
    async with bench_host(0, make) as host:
        host._views.max_live = views + 1  # nothing but Views comes after the start
        gc.collect()
        tracemalloc.start(8)
        try:
            for _ in range(0, views, 50):
                await asyncio.gather(*(host.call_tool("show") for _ in range(50)))
            await host.list_tools()
            gc.collect()
            taken = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        live = len(host.views)
    sizes = {"host": 0, "view": 0}
    for entry in taken.statistics("traceback"):
        sizes[_side(entry.traceback)] += entry.size
    return {"host": sizes["host"] / live, "all": (sizes["host"] + sizes["view"]) / live}


def _own(tools: list[Tool], number: int) -> list[Tool]:
    return [msgspec.structs.replace(tool, title=f"Of View {number}") for tool in tools]


def _side(trace: tracemalloc.Traceback) -> str:
    """Whose an allocation is: that of the innermost frame on either side."""
    for frame in reversed(trace):
        if "/transom/view/" in frame.filename or "/transom/schema/" in frame.filename:
            return "view"
        if "/transom/host/" in frame.filename or "/benchmarks/" in frame.filename:
            return "view" if "/benchmarks/" in frame.filename else "host"
    return "host"


def measure(seconds: float = 1.0) -> list[tuple[Any, ...]]:
    """The rows of `make bench`."""
    bridge = asyncio.run(bridge_calls_per_second(seconds))
    host = asyncio.run(host_calls_per_second(seconds))
    few, many = asyncio.run(change_among(10, 1000))
    listings, surface, alone = asyncio.run(lazy_among())
    size = asyncio.run(memory_per_view())["host"] / 1024
    within = many / few <= 1.5
    texts = {n: asyncio.run(surface_bytes(n)) for n in (1, 20)}
    return [
        ("Host.call_tool", host, "/s", "Bridge.call_tool", bridge, bridge / host, "", None),
        ("one of 1,000 Views changes", 1 / many, "/s", "one of 10", 1 / few, many / few,
         "<= 1.5x the time", within),
        ("list_tools, one of 20 Views lazy", 1 / surface, "/s", "that View alone", 1 / alone,
         surface / alone, "one round trip", listings == 1),
        ("memory of an idle View", size, "KB", "", None, None, "<= 64 KB", size <= 64),
        *((f"tools that a model reads, {'1 View' if n == 1 else f'{n} Views'}", shown / 1024, "KB",
           "bare definitions", bare / 1024, shown / bare, "<= 1.15x", shown / bare <= 1.15)
          for n, (shown, bare) in texts.items()),
    ]  # fmt: skip


async def main() -> None:
    """Print them all."""
    bridge, host = await bridge_calls_per_second(), await host_calls_per_second()
    print(f"Bridge.call_tool  {bridge:10,.0f}/s")
    print(f"Host.call_tool    {host:10,.0f}/s   {bridge / host:.2f}x the Bridge's time")
    print(f"audit             {await audit_cost():10.1%} of a call")
    few, many = await change_among(10, 1000)
    print(f"one change        {few * 1e6:10,.0f} us among 10 Views")
    print(f"                  {many * 1e6:10,.0f} us among 1,000   {many / few:.2f}x")
    listings, surface, alone = await lazy_among()
    print(f"one of 20 lazy    {surface * 1e6:10,.0f} us a list_tools, {listings:g} round trips")
    print(f"                  {alone * 1e6:10,.0f} us to list that View alone")
    for views in (1, 20):
        shown, bare = await surface_bytes(views)
        print(f"{views:2} Views' tools    {shown / 1024:10,.1f} KB, {shown / bare:.2f}x bare ones")
    memory = await memory_per_view()
    print(f"an idle View      {memory['host'] / 1024:10,.1f} KB in the host, 20 tools")
    print(f"                  {memory['all'] / 1024:10,.1f} KB with its App")


if __name__ == "__main__":
    asyncio.run(main())
