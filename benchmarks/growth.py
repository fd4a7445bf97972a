"""How costs grow: with 1, 10, 100 and 1,000 live Views, and with as many tools in one View.

Views are in memory, so that what is measured is the host. Each figure is the best of several.

    python -m benchmarks.growth
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.host_rows import bench_host, definitions, listing_app

__all__ = ["measure"]

VIEWS = (1, 10, 100, 1000)
TOOLS = (10, 100, 1000)


async def _best(once: Callable[[], Awaitable[object]], *, batch: int, rounds: int = 7) -> float:
    """Microseconds of one; the best round of several."""
    best = float("inf")
    gc.collect()
    gc.disable()  # its work depends on what else is in memory
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(batch):
            await once()
        best = min(best, (time.perf_counter() - began) / batch)
    gc.enable()
    return best * 1e6


async def _with_views(count: int) -> dict[str, float]:
    async with bench_host(count, lambda: listing_app(definitions(5))) as host:
        arguments: dict[str, Any] = {"a": 1, "b": 2}
        tool = f"{next(iter(host.views))}__add0"

        async def open_one() -> None:
            await host.call_tool("show")

        found = {
            "a call, so many Views": await _best(
                lambda: host.call_tool(tool, arguments), batch=100
            ),
            "a listing, so many Views": await _best(host.list_tools, batch=10),
        }
        host._views.max_live = count + 100  # nothing is closed to make room
        found["an opening, so many Views"] = await _best(open_one, batch=5)
        return found


async def _with_tools(count: int) -> dict[str, float]:
    make = lambda: listing_app(definitions(count))  # noqa: E731
    async with bench_host(1, make, max_tools=1000) as host:
        [view] = host.views.values()
        assert len(view.tools) == count
        tool = f"{view.id}__add0"
        return {
            "a call, so many tools": await _best(
                lambda: host.call_tool(tool, {"a": 1, "b": 2}), batch=100
            ),
            "a listing, so many tools": await _best(host.list_tools, batch=10),
        }


def measure() -> dict[str, dict[int, float]]:
    """Microseconds of each thing, by how many Views or tools there are."""
    found: dict[str, dict[int, float]] = {}
    for counts, run in ((VIEWS, _with_views), (TOOLS, _with_tools)):
        for count in counts:
            for what, took in asyncio.run(run(count)).items():
                found.setdefault(what, {})[count] = took
    return found


def main() -> None:
    """Print them all."""
    for what, figures in measure().items():
        print(f"{what:<28}" + "".join(f"{n:>8,}: {took:10,.1f} us" for n, took in figures.items()))


if __name__ == "__main__":
    main()
