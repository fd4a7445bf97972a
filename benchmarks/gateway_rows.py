"""What a gateway costs on standard input and output: a call through it, and its start.

Calls and starts are measured with the same client, by turns: the server alone, the gateway before
it, and FastMCP's own proxy before it. Of calls the best round counts, since the others tell what
else the machine did; of starts the median. The server is as quick as can be, so that what is
measured is what stands before it. Processor time is that of the process before the server alone,
and hardly depends on what else runs.

    python -m benchmarks.gateway_rows
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.client import Client, client_of
from benchmarks.page import print_lines
from benchmarks.processes import processor_time

__all__ = ["calls", "measure", "start"]

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent / "servers"
PACKAGES = ROOT / "tests" / "servers" / "node_modules" / "@modelcontextprotocol"
ECHO = [sys.executable, str(HERE / "echo.py")]
ORDERS = [sys.executable, str(ROOT / "examples" / "orders.py")]
EVERYTHING = ["node", str(PACKAGES / "server-everything" / "dist" / "index.js"), "stdio"]
GATEWAY = [sys.executable, "-m", "transom", "gateway", "--no-open"]
PEER = "FastMCP's proxy"
SMALL, LARGE = 10, 100_000
IN_FLIGHT = 100
ROUNDS = 5
START_BUDGET = 1.5
ADDED_BUDGET = 300  # microseconds, for a small result

Line = tuple[Any, ...]


def contenders(server: Sequence[str]) -> dict[str, list[str]]:
    """What is measured, by name: the same server alone, and with something before it."""
    return {
        "direct": [*server],
        "gateway": [*GATEWAY, "--", *server],
        PEER: [sys.executable, str(HERE / "fastmcp_proxy.py"), *server],
    }


# --- a call ----------------------------------------------------------------------------------


class Called(NamedTuple):
    """How one contender does with one size of results."""

    latency: float
    """Microseconds of a call with nothing else under way."""
    rate: float
    """Calls per second with a hundred in flight."""
    busy: float
    """Microseconds of processor time in the process that is called, for one call."""


async def calls(seconds: float = 1.0) -> dict[tuple[str, int], Called]:
    """Calls of a server's tool, by contender and size of the result."""
    found: dict[tuple[str, int], Called] = {}
    async with AsyncExitStack() as stack:
        clients: dict[str, Client] = {}
        for name, command in contenders(ECHO).items():
            client = await stack.enter_async_context(client_of(command))
            await client.initialize()
            await client.ask("tools/list")
            clients[name] = client
        for size in (SMALL, LARGE):
            for client in clients.values():
                await _some(client, size, seconds / 5)
            rounds = [
                (name, *(await _some(client, size, seconds / 5)), await _many(client, size))
                for _ in range(ROUNDS)
                for name, client in clients.items()
            ]
            for name in clients:
                latencies, busy, rates = zip(*(e[1:] for e in rounds if e[0] == name), strict=True)
                found[name, size] = Called(min(latencies), max(rates), min(busy))
    return found


async def _some(client: Client, size: int, seconds: float) -> tuple[float, float]:
    """Microseconds of a call, and of the processor's time for it."""
    times: list[float] = []
    before = processor_time(client.process.pid)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(times) < 20:
        began = time.perf_counter()
        await _call(client, size)
        times.append(time.perf_counter() - began)
    busy = processor_time(client.process.pid) - before
    return median(times) * 1e6, busy / len(times) * 1e6


async def _many(client: Client, size: int) -> float:
    began = time.perf_counter()
    await asyncio.gather(*(_call(client, size) for _ in range(IN_FLIGHT)))
    return IN_FLIGHT / (time.perf_counter() - began)


async def _call(client: Client, size: int) -> None:
    result = await client.call("echo", {"size": size})
    assert len(result) > size, result[:200]


# --- the start -------------------------------------------------------------------------------


async def start(server: Sequence[str], rounds: int = 10) -> dict[str, float]:
    """Milliseconds from starting a process to its answer to `initialize`, by contender."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, command in contenders(server).items():
            began = time.perf_counter()
            async with client_of(command) as client:
                await client.initialize()
                times.setdefault(name, []).append((time.perf_counter() - began) * 1000)
    return {name: median(each) for name, each in times.items()}


# --- all of them -----------------------------------------------------------------------------


def measure(seconds: float = 1.0) -> list[Line]:
    """The rows of `make bench`."""
    return asyncio.run(_measure(seconds))


async def _measure(seconds: float) -> list[Line]:
    lines: list[Line] = []
    found = await calls(seconds)
    for size, results in ((SMALL, "small results"), (LARGE, "results of 100 KB")):
        ours = found["gateway", size]
        direct = found["direct", size]
        peer = found[PEER, size]
        added, theirs = ours.latency - direct.latency, peer.latency - direct.latency
        budget, ok = ("<= 0.3 ms", added <= ADDED_BUDGET) if size == SMALL else ("", None)
        lines += [
            (f"added to a server's call, {results}", added, "us", "direct takes", direct.latency,
             added / direct.latency, budget, ok),
            (f"added to a server's call, {results}", added, "us", PEER, theirs, added / theirs,
             "", None),
            (f"processor time of a call, {results}", ours.busy, "us", PEER, peer.busy,
             ours.busy / peer.busy, "", None),
            (f"calls with 100 in flight, {results}", ours.rate, "/s", "direct", direct.rate,
             ours.rate / direct.rate, "", None),
            (f"calls with 100 in flight, {results}", ours.rate, "/s", PEER, peer.rate,
             ours.rate / peer.rate, "", None),
        ]  # fmt: skip
    for server, name in ((ORDERS, "a Python server"), (EVERYTHING, "a Node server")):
        times = await start(server)
        for against in ("direct", PEER):
            ratio = times["gateway"] / times[against]
            ok = ratio <= START_BUDGET if against == "direct" else None
            budget = f"<= {START_BUDGET:g}x" if against == "direct" else ""
            other = "the server alone" if against == "direct" else against
            lines.append(
                (f"start before {name}", times["gateway"], "ms", other, times[against], ratio,
                 budget, ok)
            )  # fmt: skip
    return lines


if __name__ == "__main__":
    print_lines(measure())
