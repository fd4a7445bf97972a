"""A Host under load: many Views, many callers, and Views that are killed at random.

    python -m benchmarks.load_host                # 1,000 Views, 100 callers, 30 seconds
    python -m benchmarks.load_host --views 50 --callers 20 --seconds 2

Every call must end exactly once, with a result or with one of the named errors. What is printed:
calls, errors by kind, and how long calls took.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from benchmarks.host_rows import URI, bench_server, definitions, listing_app
from transom import App, Channel, Host, InProcessRenderer, Limits, Policy
from transom.errors import TransomError, ViewClosed
from transom.host.views.ui_resource import UIResource
from transom.types import Tool

__all__ = ["Report", "run"]


@dataclass
class Report:
    """What came of it."""

    views: int
    callers: int
    killed: int = 0
    started: int = 0
    results: int = 0
    wrong: int = 0
    errors: Counter[str] = field(default_factory=Counter[str])
    unnamed: list[str] = field(default_factory=list[str])
    times: list[float] = field(default_factory=list[float])
    seconds: float = 0.0

    @property
    def ended(self) -> int:
        """Calls that ended, one way or the other."""
        return self.results + sum(self.errors.values())

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.ended / max(self.seconds, 1e-9)

    @property
    def ok(self) -> bool:
        """Whether every call ended once, with the right result or a named error."""
        return self.ended == self.started and not self.wrong and not self.unnamed

    def percentile(self, part: float) -> float:
        """How many milliseconds so large a part of the calls took at most."""
        ordered = sorted(self.times)
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1000 if ordered else 0.0

    def text(self) -> str:
        """All of it, to be printed."""
        kinds = ", ".join(f"{kind} {number}" for kind, number in self.errors.most_common())
        return "\n".join(
            [
                f"views     {self.views:,}, of which {self.killed:,} were killed",
                f"callers   {self.callers:,}",
                f"calls     {self.started:,} in {self.seconds:.1f} s, {self.rate:,.0f}/s",
                f"results   {self.results:,}, {self.wrong:,} of them wrong",
                f"errors    {kinds or 'none'}",
                f"p50       {self.percentile(0.50):.2f} ms",
                f"p99       {self.percentile(0.99):.2f} ms",
                f"verdict   {'every call ended once' if self.ok else 'FAILED'}",
                *(f"unnamed   {each}" for each in self.unnamed[:10]),
            ]
        )


def _worker(offered: list[Tool], chance: random.Random) -> App:
    """A View whose tools take their time every other call, so that calls are under way."""
    app = listing_app(offered)

    async def work(_: str, arguments: dict[str, Any]) -> str:
        if chance.random() < 0.5:
            await asyncio.sleep(chance.random() / 100)
        return str(arguments["a"] + arguments["b"])

    app.on_call_tool = work
    return app


class _Renderer(InProcessRenderer):
    """Keeps the pipes, so that Views can be killed without a word."""

    def __init__(self, make: Callable[[], App]) -> None:
        super().__init__({URI: make})
        self.pipes: dict[str, Channel] = {}

    async def open(self, page: UIResource) -> Channel:
        channel = self.pipes[page.view_id] = await super().open(page)
        return channel


@asynccontextmanager
async def _crowd(views: int, tools: int, seed: int) -> AsyncIterator[tuple[Host, _Renderer]]:
    offered, chance = definitions(tools), random.Random(seed)
    renderer = _Renderer(lambda: _worker(offered, chance))
    limits = Limits(max_live_views=views + 1)
    policy = Policy()  # the tools say that they only read
    async with Host(renderer=renderer, policy=policy, limits=limits, open_timeout=300) as host:
        await host.add_server("load", bench_server())
        while len(host.views) < views:
            wanted = min(25, views - len(host.views))
            await asyncio.gather(*(host.call_tool("show") for _ in range(wanted)))
        yield host, renderer


async def run(
    *,
    views: int = 1000,
    tools: int = 20,
    callers: int = 100,
    seconds: float = 30.0,
    kill: float = 0.01,
    seed: int = 1,
) -> Report:
    """Let `callers` call tools of random Views while a part of these, `kill`, is killed."""
    report = Report(views=views, callers=callers)
    chance = random.Random(seed)
    async with _crowd(views, tools, seed) as (host, renderer):
        ids = list(host.views)
        doomed = chance.sample(ids, max(1, int(views * kill)))
        over = asyncio.Event()
        began = time.perf_counter()
        jobs = [
            asyncio.create_task(_call(host, ids, tools, report, random.Random(seed + n), over))
            for n in range(callers)
        ]
        await _kill(renderer, doomed, 0.8 * seconds, report)
        await asyncio.sleep(0.2 * seconds)
        over.set()
        await asyncio.gather(*jobs)
        report.seconds = time.perf_counter() - began
        for view_id in doomed:
            if view_id in host.views:
                report.unnamed.append(f"{view_id} was killed and is still there")
        listed = {tool.name.partition("__")[0] for tool in await host.list_tools()}
        if listed & set(doomed) or len(listed) != views - len(doomed) + 1:
            report.unnamed.append("the surface shows tools of Views that were killed")
    return report


async def _call(
    host: Host,
    ids: Sequence[str],
    tools: int,
    report: Report,
    chance: random.Random,
    over: asyncio.Event,
) -> None:
    while not over.is_set():
        a, b = chance.randrange(1000), chance.randrange(1000)
        name = f"{chance.choice(ids)}__add{chance.randrange(tools)}"
        report.started += 1
        began = time.perf_counter()
        try:
            result = await host.call_tool(name, {"a": a, "b": b})
        except ViewClosed as error:
            report.errors["ViewClosed"] += 1
            if error.view_id not in name:
                report.unnamed.append(f"{name}: {error}")
        except TransomError as error:
            report.errors[type(error).__name__] += 1
        except Exception as error:  # noqa: BLE001 - what this looks for
            report.errors[type(error).__name__] += 1
            report.unnamed.append(f"{name}: {type(error).__name__}: {error}")
        else:
            report.results += 1
            report.wrong += result.text != str(a + b)
        report.times.append(time.perf_counter() - began)
        await asyncio.sleep(0)  # callers do other things too


async def _kill(renderer: _Renderer, doomed: Sequence[str], seconds: float, report: Report) -> None:
    pause = seconds / len(doomed)
    for view_id in doomed:
        await asyncio.sleep(pause)
        with suppress(TransomError):
            await renderer.pipes[view_id].aclose()
        report.killed += 1


def main() -> int:
    """Run it with what the command line says; 1 when a call did not end as it should."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--views", type=int, default=1000)
    parser.add_argument("--tools", type=int, default=20, help="tools of each View")
    parser.add_argument("--callers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--kill", type=float, default=0.01, help="the part of Views to kill")
    parser.add_argument("--seed", type=int, default=1)
    report = asyncio.run(run(**vars(parser.parse_args())))
    print(report.text())
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
