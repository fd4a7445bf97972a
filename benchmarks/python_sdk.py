"""How fast the official Python SDK is: `mcp.Client` and `MCPServer`, joined in memory.

    echo "call 1 1" | python -m benchmarks.python_sdk

Each line of standard input is a row, how many callers there are, and for how many seconds. The
answer is one JSON object a line: `{"per_second", "per_cpu_second"}`, by the clock and by the
processor time of the process. Each caller waits for its answer before it calls again.

- `ping`: round trip of `ping`
- `call`: `Client.call_tool`, input `{text, count}` and output `{echo, n}` checked
- `wait`: the same with a tool that awaits once before it returns
- `list50`: `Client.list_tools` of 50 tools with three properties each, never from the cache

A client and a server of the SDK meet in two ways: `auto`, its default, calls straight into the
server with no messages at all; `legacy` sends message objects through memory streams. Neither makes
JSON of them. A row is warmed up in both ways when it is first measured, and the quicker one is used
from then on (`ping` has only the second). The tools are `async def`, in the SDK's favour: it runs
others in a thread each.
"""

import asyncio
import json
import sys
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from mcp import Client
from mcp.server import MCPServer
from mcp.shared.exceptions import MCPDeprecationWarning
from pydantic import BaseModel

from benchmarks.rates import Once, rate_of

Row = tuple[MCPServer, Callable[[Client], Awaitable[None]]]


class Echo(BaseModel):
    """What the measured tool returns."""

    echo: str
    n: float


def ping_row() -> Row:
    async def once(client: Client) -> None:
        await client.send_ping()

    return MCPServer("ping"), once


async def _called(client: Client) -> None:
    result = await client.call_tool("echo", {"text": "hello", "count": 3})
    assert result.structured_content == {"echo": "hello", "n": 3}


def call_row() -> Row:
    server = MCPServer("call")

    @server.tool()
    async def echo(text: str, count: int) -> Echo:
        """Echo a text."""
        return Echo(echo=text, n=count)

    return server, _called


def wait_row() -> Row:
    server = MCPServer("wait")

    @server.tool()
    async def echo(text: str, count: int) -> Echo:
        """Echo a text."""
        await asyncio.sleep(0)
        return Echo(echo=text, n=count)

    return server, _called


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


ROWS = {"ping": ping_row, "call": call_row, "wait": wait_row, "list50": list_row}
CONNECTIONS = {"ping": ["legacy"]}  # newer connections have no such request


async def quickest(row: str, stack: AsyncExitStack) -> Once:
    """What makes one request, over the connection that is quicker."""
    rates: dict[float, Once] = {}
    for connect in CONNECTIONS.get(row, ["auto", "legacy"]):
        server, once = ROWS[row]()
        # Without a cache every listing reaches the server.
        client = await stack.enter_async_context(Client(server, mode=connect, cache=None))

        work = partial(once, client)
        rates[(await rate_of(work, 1, 0.5)).wall] = work
    return rates[max(rates)]


async def main() -> None:
    # The SDK warns at every ping that newer connections have none.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    warm: dict[str, Once] = {}
    async with AsyncExitStack() as stack:
        while line := await asyncio.to_thread(sys.stdin.readline):
            row, callers, seconds = line.split()
            if row not in warm:
                warm[row] = await quickest(row, stack)
            rate = await rate_of(warm[row], int(callers), float(seconds))
            found = {"per_second": rate.wall, "per_cpu_second": rate.processor}
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
