"""A server in memory that answers raw JSON as a test tells it to, in either protocol era."""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp_types import DiscoverResult, ServerCapabilities

from tests.gateway.chatty import streams
from transom.channel import Channel, memory_pair
from transom.connections.connection import ServerConnection, ServerListener
from transom.errors import ChannelClosed, NotConnected

Object = dict[str, Any]

ANNOUNCING = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True},
    "prompts": {"listChanged": True},
}


class Listener(ServerListener):
    """A listener that has these functions as its methods."""

    def __init__(self, **methods: Any) -> None:
        vars(self).update(methods)


class ScriptedServer:
    """Keeps what it is sent. Answers by method: a result, an error, or a function of the params.

    An error is `{"error": {...}}`. A function may be async; the client's cancelling cancels it.
    None is no answer. `connect` is what a connection takes; each use of it starts the server
    again, without what it knew.
    """

    def __init__(
        self,
        answers: Object | None = None,
        *,
        capabilities: Object | None = None,
        modern: bool = False,
    ) -> None:
        self.capabilities = ANNOUNCING if capabilities is None else capabilities
        self.answers: Object = {"tools/list": {"tools": []}, "initialize": self._initialize}
        if modern:
            self.answers["server/discover"] = self._discover
        self.answers.update(answers or {})
        self.received: list[Object] = []
        self.broken = False
        self.starts = 0
        self._changed = asyncio.Event()
        self._end: Channel | None = None
        self._running: dict[Any, asyncio.Task[None]] = {}
        self._serving: set[asyncio.Task[None]] = set()

    def _initialize(self, _: Object) -> Object:
        return {
            "protocolVersion": "2025-11-25",
            "serverInfo": {"name": "scripted", "version": "1"},
            "capabilities": self.capabilities,
        }

    def _discover(self, _: Object) -> Object:
        versions = {"supportedVersions": ["2026-07-28"], "resultType": "complete"}
        return {**versions, "capabilities": self.capabilities}

    # --- connections -------------------------------------------------------------------------

    async def connect(self) -> Channel:
        if self.broken:
            raise NotConnected("it is broken")
        self.starts += 1
        self.received = []
        ours, self._end = memory_pair()
        task = asyncio.create_task(self._serve(self._end))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return ours

    @asynccontextmanager
    async def connection(
        self, *, reconnect: bool = False, **listener: Any
    ) -> AsyncIterator[ServerConnection]:
        """A connection to this server, before the handshake; `listener` has its methods."""
        listening = Listener(**listener)
        connection = ServerConnection("shop", self.connect, listening, reconnect=reconnect)
        await connection.start()
        try:
            yield connection
        finally:
            await connection.aclose()

    @asynccontextmanager
    async def negotiated(self, **options: Any) -> AsyncIterator[ServerConnection]:
        """A connection to this server, after the handshake."""
        async with self.connection(**options) as connection:
            await connection.negotiate()
            yield connection

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        """A client of the SDK that is connected to this server, in the handshake era."""
        transport = streams(await self.connect())
        async with Client(transport, mode="legacy", **options) as client:
            yield client

    @asynccontextmanager
    async def modern_client(self, **options: Any) -> AsyncIterator[Client]:
        """A client of the SDK that speaks 2026-07-28 with this server."""
        known = DiscoverResult(
            supported_versions=["2026-07-28"],
            capabilities=ServerCapabilities.model_validate(self.capabilities),
        )
        transport = streams(await self.connect())
        async with Client(transport, mode="2026-07-28", prior_discover=known, **options) as client:
            yield client

    # --- in and out --------------------------------------------------------------------------

    async def _serve(self, end: Channel) -> None:
        try:
            while True:
                message = json.loads(await end.receive())
                self.received.append(message)
                self._changed.set()
                if message.get("method") == "notifications/cancelled":
                    running = self._running.get(message["params"]["requestId"])
                    if running is not None:
                        running.cancel()
                elif "method" in message and "id" in message:
                    self._begin(message)
        except ChannelClosed:
            for task in list(self._running.values()):
                task.cancel()

    def _begin(self, message: Object) -> None:
        task = asyncio.create_task(self._answer(message))
        self._running[message["id"]] = task
        task.add_done_callback(lambda _: self._running.pop(message["id"], None))

    async def _answer(self, message: Object) -> None:
        missing = {"error": {"code": -32601, "message": "Method not found"}}
        answer = self.answers.get(message["method"], missing)
        if callable(answer):
            answer = answer(message.get("params") or {})
            if inspect.isawaitable(answer):
                answer = await answer
        if answer is not None:
            outcome = answer if set(answer) == {"error"} else {"result": answer}
            await self.say({"id": message["id"], **outcome})

    async def say(self, message: Object) -> None:
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def write(self, line: bytes) -> None:
        assert self._end is not None
        await self._end.send(line)

    async def notify(self, method: str, params: Object | None = None) -> None:
        await self.say({"method": method, "params": params or {}})

    async def kill(self) -> None:
        assert self._end is not None
        await self._end.aclose()

    # --- what it was sent --------------------------------------------------------------------

    def sent(self, method: str) -> list[Object]:
        """The messages of this method so far."""
        return [each for each in self.received if each.get("method") == method]

    def asked(self, method: str) -> list[Object]:
        """The params of every such request so far."""
        return [each.get("params") or {} for each in self.sent(method)]

    @property
    def last_id(self) -> Any:
        """The id of the last request."""
        return [each["id"] for each in self.received if "method" in each and "id" in each][-1]

    async def has(self, method: str, times: int = 1) -> Object:
        """Wait for such a message; the last one."""
        await self.until(lambda: len(self.sent(method)) >= times)
        return self.sent(method)[-1]

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()
