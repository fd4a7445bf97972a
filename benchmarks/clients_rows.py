"""What the flood of one HTTP client of a gateway costs another.

Two clients with sessions of their own: one calls a tool now and then, and one floods on several
connections. That is a process that sends what it has made before, and reads answers without looking
at them, so that the gateway is what it keeps busy.

    python -m benchmarks.clients_rows
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from typing import Any

from benchmarks.client import HELLO
from benchmarks.flooding import compare, started
from benchmarks.http_rows import ECHO, GATEWAY, Caller, free_port, served
from benchmarks.page import print_lines

__all__ = ["measure"]

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


async def _measure(seconds: float) -> list[tuple[Any, ...]]:
    port = free_port()
    async with (
        served([*GATEWAY, "--http", str(port), "--", *ECHO], port),
        started("clients_rows", "--flood", str(port)) as tell,
    ):
        caller = await Caller.connect(port)

        async def calls() -> list[float]:
            taken: list[float] = []
            until = time.perf_counter() + max(seconds, 1.0)  # longer than the burst that is free
            while (began := time.perf_counter()) < until or len(taken) < 10:
                await caller.call(len(taken) + 2)
                taken.append((time.perf_counter() - began) * 1e6)
                await asyncio.sleep(PAUSE)
            return taken

        await calls()
        lines = await compare("HTTP client", FLOODS, calls, tell, max(seconds / 2, 0.5))
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
