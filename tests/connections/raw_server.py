"""A server in memory that answers raw JSON as a test tells it to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from transom.channel import Channel, memory_pair
from transom.errors import ChannelClosed, NotConnected
from transom.servers.connection import ServerConnection

Object = dict[str, Any]

INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "raw", "version": "1"},
}
DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {"listChanged": True}, "prompts": {"listChanged": True}},
    "resultType": "complete",
}


def tool(name: str, **more: Any) -> Object:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


class RawServer:
    """Keeps what it is sent. Answers by method: a result, an error, or a function of the params.

    An error is `{"error": {...}}`. None, as an answer or from a function, is no answer. `connect`
    is what a connection takes; each use of it starts the server again, without what it knew.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers: Object = {"initialize": INITIALIZED, "tools/list": {"tools": [tool("add")]}}
        self.answers |= {key.replace("_", "/"): value for key, value in answers.items()}
        self.received: list[Object] = []
        self.broken = False
        self.starts = 0
        self._changed = asyncio.Event()
        self._end: Channel | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self) -> Channel:
        if self.broken:
            raise NotConnected("it is broken")
        self.starts += 1
        self.received = []
        ours, self._end = memory_pair()
        task = asyncio.create_task(self._serve(self._end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return ours

    async def _serve(self, end: Channel) -> None:
        try:
            while True:
                message = json.loads(await end.receive())
                self.received.append(message)
                self._changed.set()
                if "method" in message and "id" in message:
                    await self._answer(message)
        except ChannelClosed:
            pass

    async def _answer(self, message: Object) -> None:
        missing = {"error": {"code": -32601, "message": "Method not found"}}
        answer = self.answers.get(message["method"], missing)
        if callable(answer):
            answer = answer(message.get("params"))
        if answer is not None:
            outcome = answer if set(answer) == {"error"} else {"result": answer}
            await self.say({"id": message["id"], **outcome})

    async def say(self, message: Object) -> None:
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def write(self, line: bytes) -> None:
        assert self._end is not None
        await self._end.send(line)

    async def notify(self, method: str, params: Object | None = None) -> None:
        await self.say({"method": method, **({} if params is None else {"params": params})})

    async def kill(self) -> None:
        assert self._end is not None
        await self._end.aclose()

    def sent(self, method: str) -> list[Object]:
        """The messages of this method so far."""
        return [each for each in self.received if each.get("method") == method]

    async def has(self, method: str, times: int = 1) -> Object:
        """Wait for such a message; the last one."""
        await self.until(lambda: len(self.sent(method)) >= times)
        return self.sent(method)[-1]

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def connected(server: RawServer, **options: Any) -> AsyncIterator[ServerConnection]:
    """A connection to the server, without a handshake."""
    connection = ServerConnection("shop", server.connect, **options)
    await connection.start()
    try:
        yield connection
    finally:
        await connection.aclose()


@asynccontextmanager
async def negotiated(server: RawServer, **options: Any) -> AsyncIterator[ServerConnection]:
    """A connection to the server, after the handshake."""
    async with connected(server, **options) as connection:
        await connection.negotiate()
        yield connection
