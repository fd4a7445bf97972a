"""What a Host costs: functions that measure and return numbers, for `make bench`.

Each builds what it needs, runs, and closes it. Times are in seconds, rates per second.
"""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer

from transom import App, Bridge, Host, InProcessRenderer, Limits, Policy
from transom.channel import memory_pair
from transom.host.audit import AuditLog
from transom.server.views import Views

__all__ = [
    "audit_cost",
    "bridge_calls_per_second",
    "change_among",
    "host_calls_per_second",
    "memory_per_view",
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


def bench_app(tools: int = 1) -> App:
    """A View with so many tools."""
    app = App("bench", "1.0")
    for number in range(tools):

        def add(a: int, b: int) -> int:
            return a + b

        app.register_tool(
            f"add{number}",
            add,
            description=f"Add two numbers, the way of number {number}.",
            annotations={"readOnlyHint": True},
        )
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
    """Calls per second, one after the other; the best of five stretches."""
    best = 0.0
    for _ in range(5):
        count, began = 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds / 5:
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
        return await _rate(lambda: bridge.call_tool("add0", {"a": 1, "b": 2}), seconds)


async def host_calls_per_second(seconds: float = 1.0, *, audit: Any = ":memory:") -> float:
    """`Host.call_tool` of a View's tool: name, policy, limits, audit, then the Bridge."""
    async with bench_host(1, bench_app, audit=audit) as host:
        return await _rate(lambda: host.call_tool("bench-1__add0", {"a": 1, "b": 2}), seconds)


async def audit_cost(seconds: float = 2.0, *, path: str = ":memory:") -> float:
    """How much longer a call takes with an audit to SQLite: 0.05 is five percent."""
    async with bench_host(1, bench_app, audit=None) as host:
        kept = AuditLog(path)
        nothing, best = host.audit, {"on": 0.0, "off": 0.0}

        def call() -> Any:
            return host.call_tool("bench-1__add0", {"a": 1, "b": 2})

        # By turns, so that whatever else the machine does hits both alike.
        for _ in range(10):
            for name, log in (("off", nothing), ("on", kept)):
                _use(host, log)
                best[name] = max(best[name], await _rate(call, seconds / 20))
                await log.flush()
        await kept.aclose()
        _use(host, nothing)
        return best["off"] / best["on"] - 1


def _use(host: Host, log: AuditLog) -> None:
    """Put another audit under a running host: its Views share one `record`."""
    host.audit.record = log.record  # type: ignore[method-assign]


async def change_among(views: int, *, tools: int = 20, rounds: int = 40) -> float:
    """Seconds from a View's change until `list_tools` shows it, among so many Views; the median."""
    apps: list[App] = []

    def make() -> App:
        apps.append(bench_app(tools))
        return apps[-1]

    async with bench_host(views, make) as host:
        changed = asyncio.Event()
        host.on_tools_changed = changed.set
        await host.list_tools()
        gc.collect()
        gc.disable()
        times: list[float] = []
        try:
            for turn in range(rounds):
                app = apps[turn % min(len(apps), 10)]
                changed.clear()
                began = time.perf_counter()
                app.update_tool("add0", description=f"Version {turn}")
                await changed.wait()
                await host.list_tools()
                times.append(time.perf_counter() - began)
        finally:
            gc.enable()
        return sorted(times)[len(times) // 2]


async def memory_per_view(views: int = 1000, *, tools: int = 20) -> dict[str, float]:
    """Bytes that an idle View costs: in the host's own modules, and all in all with its App.

    What the View's own side allocates (`transom.view`, `transom.schema`) would be in a browser.
    """
    made: list[App] = []

    def make() -> App:
        made.append(bench_app(tools))
        return made[-1]

    async with bench_host(10, make, max_tools=tools) as warm:
        await warm.list_tools()
    made.clear()
    gc.collect()
    tracemalloc.start(12)
    try:
        before = tracemalloc.take_snapshot()
        async with bench_host(views, make) as host:
            await host.list_tools()
            await asyncio.sleep(0)
            gc.collect()
            after = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    total = host_side = 0
    for entry in after.compare_to(before, "traceback"):
        total += entry.size_diff
        files = [frame.filename for frame in entry.traceback]
        if not any("/transom/view/" in name or "/transom/schema/" in name for name in files):
            host_side += entry.size_diff
    return {"host": host_side / views, "all": total / views}
