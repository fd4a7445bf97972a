"""What the flood of one user costs another, in a web application with both on one worker.

Two users have pages in processes of their own, without a browser, so that this process does what a
worker does and nothing else. The pages of the first flood; an agent calls a tool of the second
user's View, one call after the other. In a chain, each answer starts the next call.

    python -m benchmarks.users_rows
"""

from __future__ import annotations

import asyncio
import json
import re
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from websockets.sync.client import ClientConnection, connect

from benchmarks.flooding import compare, started
from benchmarks.page import print_lines
from tests.web.browser import play
from tests.web.site import UserPage, site

__all__ = ["measure"]

PAGES = 3  # of the user who floods
BATCH = 100  # frames that are sent at once
AHEAD = 500  # frames that may not have arrived yet, so that a flood ends when it is stopped
FLOODS = {
    "requests": '{{"jsonrpc":"2.0","id":{},"method":"ping"}}',
    "notifications": '{{"jsonrpc":"2.0","method":"notifications/message","params":'
    '{{"level":"info","data":"{}"}}}}',
    "calls of its server": '{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":'
    '{{"name":"song","arguments":{{}}}}}}',
    "its page's messages": '{{"do":"surroundings","value":{{"theme":"dark","locale":"{}"}}}}',
}
CHAINS = {f"{n} chain{'s'[: n > 1]} of calls": n for n in (1, 4, 16, 64)}
ANSWER = re.compile(r'\{"jsonrpc":"2.0","id":(-\d+),"result"')
CALL = FLOODS["calls of its server"]
INTRODUCTION = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "ui/initialize",
    "params": {
        "protocolVersion": "2026-01-26",
        "appInfo": {"name": "flood", "version": "1"},
        "appCapabilities": {},
    },
}


class FloodingPage:
    """A page of the user who floods: bytes on a socket, so that the worker is what is slow."""

    def __init__(self, origin: str, session: str) -> None:
        self._socket: ClientConnection = connect(
            origin.replace("http", "ws", 1) + "/transom/socket",
            origin=origin,  # type: ignore[arg-type]
            additional_headers={"Cookie": f"session={session}"},
            compression=None,
            ping_interval=None,
        )
        self._socket.send('{"token":"","page":null,"received":0}')
        self._socket.recv()
        self._writing = threading.Lock()
        self._counting = threading.Lock()
        self.sent = 0
        self.arrived = threading.Condition()
        self.acknowledged = 0
        self.view = ""
        self.kind = ""
        self.told = threading.Event()

    def _send(self, view: str, message: Any) -> None:
        self.sent += 1
        self._socket.send(f"{self.sent} {view}\n{json.dumps(message)}")

    def show(self) -> None:
        """Show the View that is offered, until it is initialised."""
        while not self.view:
            head, _, text = str(self._socket.recv()).partition("\n")
            view, message = head.partition(" ")[2], json.loads(text or "{}")
            if message.get("do") == "offer":
                self._send("-", {"do": "place", "view": message["view"], "value": "take"})
            elif message.get("do") == "mount":
                self._send(message["view"], INTRODUCTION)
            elif message.get("id") == "first":
                self.view = view
                self._send(view, {"jsonrpc": "2.0", "method": "ui/notifications/initialized"})

    def read(self) -> None:
        """Acknowledge what arrives."""
        received = acknowledged = 0
        for text in self._socket:
            head, newline, message = str(text).partition("\n")
            number = int(head.partition(" ")[0])
            if newline:
                received = number
                if self.kind in CHAINS and (answered := ANSWER.match(message)):
                    self._call(answered[1])
            else:
                with self.arrived:
                    self.acknowledged = number
                    self.arrived.notify_all()
            if received > acknowledged and (not newline or received % BATCH == 0):
                acknowledged = received
                self._write(str(received))

    def flood(self, view: Callable[[], str]) -> None:
        """Send while it is told to."""
        while self.told.wait():
            to = "-" if self.kind == "its page's messages" else view()
            text = FLOODS[self.kind]
            self.wait_for(self.sent - AHEAD)
            first, self.sent = self.sent + 1, self.sent + BATCH
            numbers = range(first, first + BATCH)
            self._write(*(f"{number} {to}\n{text.format(number)}" for number in numbers))

    def start_chains(self) -> None:
        """Begin that many calls; the answer of each starts the next one."""
        for number in range(CHAINS.get(self.kind, 0)):
            self._call(f"-{number + 1}")

    def _call(self, chain: str) -> None:
        with self._counting:
            self.sent += 1
            self._write(f"{self.sent} {self.view}\n{CALL.format(chain)}")

    def wait_for(self, number: int) -> None:
        """Wait until the worker has read that frame."""
        with self.arrived:
            self.arrived.wait_for(lambda: self.acknowledged >= number)

    def _write(self, *texts: str) -> None:
        frames = bytearray()
        for text in texts:
            size = len(text)
            length = (
                struct.pack("!B", size | 0x80) if size < 126 else struct.pack("!BH", 0xFE, size)
            )
            frames += b"\x81" + length + bytes(4) + text.encode()
        with self._writing:
            self._socket.socket.sendall(frames)


def _flood(origin: str, session: str) -> None:
    """The process of the user who floods, as it is told on standard input."""
    pages = [FloodingPage(origin, session) for _ in range(PAGES)]
    print("ready", flush=True)
    pages[0].show()
    for page in pages:
        threading.Thread(target=page.read, daemon=True).start()
        threading.Thread(target=page.flood, args=[lambda: pages[0].view], daemon=True).start()
    for line in sys.stdin:
        for page in pages:
            page.kind = line.strip()
            (page.told.set if page.kind in FLOODS else page.told.clear)()
        pages[0].start_chains()
        if not line.strip():
            for page in pages:
                page.wait_for(page.sent)
        print("done", flush=True)


async def _answer(origin: str, session: str) -> None:
    """The process of the user who calls."""
    async with UserPage(origin, session) as page:
        print("ready", flush=True)
        await page.over()


async def _measure(seconds: float) -> list[tuple[Any, ...]]:
    async with (
        site() as shop,
        started("users_rows", "--answer", shop.origin, shop.sign_in("ann")),
        started("users_rows", "--flood", shop.origin, shop.sign_in("eve")) as tell,
    ):
        host = await shop.views.host("ann")
        view = await play(host)  # type: ignore[arg-type]
        name = f"{view.id}__key"
        await play(await shop.views.host("eve"))  # type: ignore[arg-type]
        await tell("")

        async def calls() -> list[float]:
            taken: list[float] = []
            # longer than the burst that is free
            until = time.perf_counter() + max(seconds / 2, 0.5)
            while (began := time.perf_counter()) < until or len(taken) < 10:
                await host.call_tool(name, {})
                taken.append((time.perf_counter() - began) * 1e6)
            return taken

        return await compare("user", [*FLOODS, *CHAINS], calls, tell, max(seconds, 1.0))


def measure(seconds: float = 1.0) -> list[tuple[Any, ...]]:
    """The rows of `make bench`."""
    return asyncio.run(_measure(seconds))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        asyncio.run(_answer(*sys.argv[2:]))
    elif sys.argv[1:2] == ["--flood"]:
        _flood(*sys.argv[2:])
    else:
        print_lines(measure())
