"""How fast the official Python SDK is: `mcp.Client` and `MCPServer`, joined in memory.

    python benchmarks/python_sdk.py [--rows ping,call,list50] [--seconds 1] [--repeats 5]
                                    [--warmup 1] [--inflight 100] [--connect auto,legacy]

Rows, each sequential and with many requests in flight:

- ``ping``: round trip of ``ping`` (legacy connections only: newer ones have no such request)
- ``call``: ``Client.call_tool``, input ``{text, count}`` and output ``{echo, n}`` checked
- ``list50``: ``Client.list_tools`` of 50 tools with three properties each, never from the cache

Prints one JSON object a line: ``{"peer", "version", "row", "mode", "connect", "per_second",
"per_cpu_second", "repeats"}``; ``per_second`` is the median of the repeats, ``per_cpu_second`` the
median by the processor time of the process, which a busy machine disturbs less.

``connect`` is the SDK's word for how client and server meet: ``auto``, its default, calls straight
into the server with no messages at all; ``legacy`` sends message objects through memory streams.
Neither makes JSON text of them. The tools are ``async def``, in the SDK's favour: it runs others in
a thread each.
"""

import argparse
import asyncio
import json
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from statistics import median
from typing import NamedTuple

from mcp import Client
from mcp.server import MCPServer
from mcp.shared.exceptions import MCPDeprecationWarning
from pydantic import BaseModel

Row = tuple[MCPServer, Callable[[Client], Awaitable[None]]]


class Echo(BaseModel):
    """What the measured tool returns."""

    echo: str
    n: float


def ping_row() -> Row:
    async def once(client: Client) -> None:
        await client.send_ping()

    return MCPServer("ping"), once


def call_row() -> Row:
    server = MCPServer("call")

    @server.tool()
    async def echo(text: str, count: int) -> Echo:
        """Echo a text."""
        return Echo(echo=text, n=count)

    async def once(client: Client) -> None:
        result = await client.call_tool("echo", {"text": "hello", "count": 3})
        assert result.structured_content == {"echo": "hello", "n": 3}

    return server, once


def list_row() -> Row:
    server = MCPServer("list50")

    async def found(id: str, limit: int, exact: bool) -> str:
        return f"{id} {limit} {exact}"

    for n in range(50):
        description = f"Tool number {n}"
        server.add_tool(found, name=f"tool_{n}", description=description, structured_output=False)

    async def once(client: Client) -> None:
        assert len((await client.list_tools()).tools) == 50

    return server, once


ROWS = {"ping": ping_row, "call": call_row, "list50": list_row}
CONNECTIONS = ("auto", "legacy")


class Rate(NamedTuple):
    """Requests finished a second, of the clock and of the processor."""

    wall: float
    cpu: float


async def measured(work: Callable[[], Awaitable[None]], workers: int, seconds: float) -> Rate:
    """Measure `workers` loops that each wait for their answer before they ask again."""
    cpu = time.process_time()
    begin = time.perf_counter()
    end = begin + seconds
    done = 0

    async def loop() -> None:
        nonlocal done
        while time.perf_counter() < end:
            await work()
            done += 1

    await asyncio.gather(*(loop() for _ in range(workers)))
    elapsed = time.perf_counter() - begin
    return Rate(done / elapsed, done / (time.process_time() - cpu))


async def measure(row: str, connect: str, options: argparse.Namespace) -> None:
    """Measure one row over one kind of connection and print both of its modes."""
    server, once = ROWS[row]()
    # Without a cache every listing reaches the server.
    async with Client(server, mode=connect, cache=None) as client:
        modes = {"sequential": 1, f"inflight{options.inflight}": options.inflight}
        for mode, workers in modes.items():
            if options.warmup:
                await measured(lambda: once(client), workers, options.warmup)
            rates = [
                await measured(lambda: once(client), workers, options.seconds)
                for _ in range(options.repeats)
            ]
            report = {
                "peer": "mcp",
                "version": version("mcp"),
                "row": row,
                "mode": mode,
                "connect": connect,
                "per_second": round(median(rate.wall for rate in rates), 1),
                "per_cpu_second": round(median(rate.cpu for rate in rates), 1),
                "repeats": [round(rate.wall, 1) for rate in rates],
            }
            print(json.dumps(report), flush=True)


def chosen(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """A parser of comma-separated choices."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown} not among {list(known)}")
        return names

    return parse


def positive(text: str) -> float:
    """A parser of numbers above zero."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return value


def count(text: str) -> int:
    """A parser of whole numbers above zero."""
    return int(positive(str(int(text))))


async def main(arguments: list[str]) -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description="Measure the official Python SDK in memory.")
    parser.add_argument("--rows", type=chosen(tuple(ROWS)), default=list(ROWS))
    parser.add_argument("--connect", type=chosen(CONNECTIONS), default=list(CONNECTIONS))
    parser.add_argument("--seconds", type=positive, default=1, help="length of one repeat")
    parser.add_argument("--repeats", type=count, default=5)
    parser.add_argument("--warmup", type=float, default=1, help="seconds before the first repeat")
    parser.add_argument("--inflight", type=count, default=100, help="requests at a time")
    options = parser.parse_args(arguments)
    # The SDK warns at every ping that newer connections have none.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    for row in options.rows:
        for connect in options.connect:
            if row != "ping" or connect == "legacy":
                await measure(row, connect, options)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
