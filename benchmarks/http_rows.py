"""What a gateway costs over HTTP: a call of one client, and of 20 and 100 that call all the time.

The client is nothing but bytes on a socket, so that what is measured is the other side. The same
client calls a bare Starlette endpoint that returns the same JSON, the gateway, and FastMCP's own
HTTP proxy with JSON answers; gateway and proxy have the same server behind them. By turns; the best
round counts, the others tell what else the machine did.

    python -m benchmarks.http_rows
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from benchmarks.client import HELLO, client_of
from benchmarks.page import print_lines
from benchmarks.processes import held_by

__all__ = ["measure"]

HERE = Path(__file__).parent / "servers"
ECHO = [sys.executable, str(HERE / "echo.py")]
GATEWAY = [sys.executable, "-m", "transom", "gateway", "--no-open", "--max-clients", "1000"]
PEER = "FastMCP's proxy"
BARE = "bare Starlette"
SIZE = 10
CROWDS = (20, 100)
ROUNDS = 3

Line = tuple[Any, ...]


class Caller:
    """One client with one connection for a row of calls."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._headers = f"host: 127.0.0.1:{port}\r\naccept: application/json, text/event-stream\r\n"

    @classmethod
    async def connect(cls, port: int) -> Caller:
        """A client that has introduced itself."""
        caller = cls(port)
        await caller.open()
        headers, _ = await caller.post({"id": 1, "method": "initialize", "params": HELLO})
        if (session := headers.get("mcp-session-id")) is not None:
            version = HELLO["protocolVersion"]
            caller._headers += f"mcp-session-id: {session}\r\nmcp-protocol-version: {version}\r\n"
        await caller.post({"method": "notifications/initialized"})
        return caller

    async def open(self) -> None:
        """Open a connection."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def post(self, message: dict[str, Any]) -> tuple[dict[str, str], bytes]:
        """Send a message; the headers and the body of the answer."""
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        head = f"POST /mcp HTTP/1.1\r\n{self._headers}content-type: application/json\r\n"
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        assert status.startswith("HTTP/1.1 20"), status
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        if "content-length" in headers:
            return headers, await self._reader.readexactly(int(headers["content-length"]))
        whole = b""
        while headers.get("transfer-encoding") == "chunked":
            size = int(await self._reader.readline(), 16)
            whole += (await self._reader.readexactly(size + 2))[:-2]
            if not size:
                break
        return headers, whole

    async def call(self, id: int) -> None:
        """Call the server's tool."""
        params = {"name": "echo", "arguments": {"size": SIZE}}
        _, body = await self.post({"id": id, "method": "tools/call", "params": params})
        assert b"x" * SIZE in body, body

    async def calling(self, until: float) -> list[float]:
        """Call until then; the seconds that each took."""
        self.close()
        await self.open()  # idle since the last round, it may have been closed by the other side
        times: list[float] = []
        while time.perf_counter() < until or len(times) < 3:
            began = time.perf_counter()
            await self.call(len(times) + 2)
            times.append(time.perf_counter() - began)
        return times

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


@asynccontextmanager
async def served(command: Sequence[str], port: int) -> AsyncIterator[int]:
    """A process that serves HTTP on a port; its id."""
    async with client_of(command) as client:
        async with asyncio.timeout(60):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    break
        yield client.process.pid
        client.process.terminate()
        await client.process.wait()


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Found(NamedTuple):
    """How one contender does with so many clients."""

    latency: float
    """Microseconds of a call, the median."""
    rate: float
    """Calls per second of all clients together."""


async def _crowd(callers: Sequence[Caller], seconds: float) -> Found:
    began = time.perf_counter()
    times = await asyncio.gather(*(each.calling(began + seconds) for each in callers))
    took = time.perf_counter() - began
    every = [one for each in times for one in each]
    return Found(median(every) * 1e6, len(every) / took)


async def _measure(seconds: float) -> list[Line]:
    ports = {name: free_port() for name in (BARE, "gateway", PEER)}
    commands = {
        BARE: [sys.executable, str(HERE / "bare_http.py"), str(ports[BARE])],
        "gateway": [*GATEWAY, "--http", str(ports["gateway"]), "--", *ECHO],
        PEER: [sys.executable, str(HERE / "fastmcp_proxy.py"), "--http", str(ports[PEER]), *ECHO],
    }
    best: dict[tuple[str, int], Found] = {}
    async with AsyncExitStack() as stack:
        pids = {
            name: await stack.enter_async_context(served(command, ports[name]))
            for name, command in commands.items()
        }
        callers = {name: [await Caller.connect(port)] for name, port in ports.items()}
        for each in callers.values():
            await each[0].calling(time.perf_counter() + seconds / 5)
        memory = held_by(pids["gateway"]).rss
        began = time.perf_counter()
        more = (Caller.connect(ports["gateway"]) for _ in range(CROWDS[-1] - 1))
        callers["gateway"] += await asyncio.gather(*more)
        ready = time.perf_counter() - began
        memory = (held_by(pids["gateway"]).rss - memory) / (CROWDS[-1] - 1)
        for name in (BARE, PEER):
            more = (Caller.connect(ports[name]) for _ in range(CROWDS[-1] - 1))
            callers[name] += await asyncio.gather(*more)
        for count in (1, *CROWDS):
            for _ in range(ROUNDS):
                for name, each in callers.items():
                    found = await _crowd(each[:count], seconds / 2)
                    known = best.get((name, count), Found(1e12, 0))
                    best[name, count] = Found(
                        min(known.latency, found.latency), max(known.rate, found.rate)
                    )
        for each in callers.values():
            for caller in each:
                caller.close()
    one = {name: best[name, 1] for name in commands}
    ratio = one["gateway"].latency / one[BARE].latency
    lines: list[Line] = [
        ("HTTP call", one["gateway"].latency, "us", BARE, one[BARE].latency, ratio, "<= 3x",
         ratio <= 3),
    ]  # fmt: skip
    for count in (1, *CROWDS):
        rate, peer = best["gateway", count].rate, best[PEER, count].rate
        clients = "1 HTTP client" if count == 1 else f"{count} HTTP clients"
        lines.append(
            (f"calls of {clients}", rate, "/s", PEER, peer, rate / peer, ">= 3x", rate >= 3 * peer)
        )
    return [
        *lines,
        (f"{CROWDS[-1]} HTTP clients are there", ready, "s", "", None, None, "", None),
        ("memory of an HTTP client", memory, "KB", "", None, None, "", None),
    ]


def measure(seconds: float = 1.0) -> list[Line]:
    """The rows of `make bench`."""
    return asyncio.run(_measure(seconds))


if __name__ == "__main__":
    print_lines(measure())
