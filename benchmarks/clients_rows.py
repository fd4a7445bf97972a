"""What the flood of one HTTP client of a gateway costs another.

Two clients with sessions of their own. One calls a tool now and then: by turns while the other is
quiet, and while that one sends as fast as it can on several connections. The median of the rounds
counts. The client that floods is a process that sends what it has made before, and reads
answers without looking at them, so that the gateway is what it keeps busy.

    python -m benchmarks.clients_rows
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.client import HELLO
from benchmarks.http_rows import ECHO, GATEWAY, Caller, free_port, served
from benchmarks.page import print_lines

__all__ = ["measure"]

ROUNDS = 5
BUDGET = 3.0
CONNECTIONS = 4  # of the client that floods
PAUSE = 0.01  # seconds between two calls of the other, which takes less than its share then
LARGE = 1_000_000
FLOODS: dict[str, dict[str, Any]] = {
    "lists": {"id": 1, "method": "tools/list"},
    "notifications": {"method": "notifications/roots/list_changed"},
    "results of 1 MB": {
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"size": LARGE}},
    },
    "arguments of 1 MB": {
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"size": 10, "more": "x" * LARGE}},
    },
}


class FloodingClient:
    """One connection of the client that floods."""

    def __init__(self, port: int, session: str = "") -> None:
        self._head = (
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\n"
        )
        if session:
            version = HELLO["protocolVersion"]
            self._head += f"mcp-session-id: {session}\r\nmcp-protocol-version: {version}\r\n"
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._buffer = memoryview(bytearray(4 * LARGE))

    def request(self, message: dict[str, Any]) -> bytes:
        """The bytes of a request."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return f"{self._head}content-length: {len(body)}\r\n\r\n".encode() + body

    def post(self, request: bytes) -> bytes:
        """Send a request, read its whole answer, and return the head of that."""
        self._socket.sendall(request)
        size, head, ends = 0, b"", -1
        while not head or (size < ends if ends >= 0 else not self._chunked_end(size)):
            read = self._socket.recv_into(self._buffer[size:])
            if not read:
                raise ConnectionError("The gateway has closed the connection")
            size += read
            if not head:
                start, found, _ = bytes(self._buffer[: min(size, 4096)]).partition(b"\r\n\r\n")
                if found:
                    head = start.lower()
                    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
                    ends = len(start) + 4 + int(length) if length else -1
                    if not length and b"chunked" not in head:
                        ends = size  # an answer without a body
        return head

    def _chunked_end(self, size: int) -> bool:
        return bytes(self._buffer[max(size - 5, 0) : size]) == b"0\r\n\r\n"


def _flood(port: int) -> None:
    """The process of the client that floods, as it is told on standard input."""
    first = FloodingClient(port)
    head = first.post(first.request({"id": 0, "method": "initialize", "params": HELLO})).decode()
    session = head.partition("mcp-session-id:")[2].partition("\r\n")[0].strip()
    clients = [FloodingClient(port, session) for _ in range(CONNECTIONS)]
    clients[0].post(clients[0].request({"method": "notifications/initialized"}))
    requests = {name: clients[0].request(message) for name, message in FLOODS.items()}
    told, kind = threading.Event(), [""]

    def run(client: FloodingClient) -> None:
        while told.wait():
            client.post(requests[kind[0]])

    for client in clients:
        threading.Thread(target=run, args=[client], daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        kind[0] = line.strip() or kind[0]
        (told.set if line.strip() else told.clear)()
        print("done", flush=True)


@asynccontextmanager
async def _flooding(port: int) -> AsyncGenerator[Callable[[str], Awaitable[None]]]:
    """The client that floods; tells it with what, or to be quiet."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.clients_rows", "--flood", str(port)),
        cwd=Path(__file__).parents[1],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    reader, writer = process.stdout, process.stdin
    assert reader is not None
    assert writer is not None

    async def tell(kind: str) -> None:
        writer.write(f"{kind}\n".encode())
        assert await reader.readline() == b"done\n"

    try:
        assert await reader.readline() == b"ready\n"
        yield tell
    finally:
        process.kill()
        await process.wait()


async def _measure(seconds: float) -> list[tuple[Any, ...]]:
    port = free_port()
    lines: list[tuple[Any, ...]] = []
    async with (
        served([*GATEWAY, "--http", str(port), "--", *ECHO], port),
        _flooding(port) as tell,
    ):
        caller = await Caller.connect(port)

        async def call() -> float:
            taken: list[float] = []
            until = time.perf_counter() + max(seconds, 1.0)  # longer than the burst that is free
            while (began := time.perf_counter()) < until or len(taken) < 10:
                await caller.call(len(taken) + 2)
                taken.append(time.perf_counter() - began)
                await asyncio.sleep(PAUSE)
            return median(taken) * 1e6

        await call()
        for kind in FLOODS:
            alone: list[float] = []
            beside: list[float] = []
            for _ in range(ROUNDS):
                alone.append(await call())
                await tell(kind)
                beside.append(await call())
                await tell("")
                await asyncio.sleep(max(seconds / 2, 0.5))  # what the flood has begun ends
            ratio = median(flooded / quiet for quiet, flooded in zip(alone, beside, strict=True))
            what = f"another HTTP client's call, one floods with {kind}, p50"
            figures = median(beside), "us", "without the flood", median(alone), ratio
            lines.append((what, *figures, f"<= {BUDGET:g}x", ratio <= BUDGET))
        caller.close()
    return lines


def measure(seconds: float = 1.0) -> list[tuple[Any, ...]]:
    """The rows of `make bench`."""
    return asyncio.run(_measure(seconds))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--flood"]:
        _flood(int(sys.argv[2]))
    else:
        print_lines(measure())
