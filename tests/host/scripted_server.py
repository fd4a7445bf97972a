"""An MCP server that answers what a test tells it to, below the SDK's own server."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp_types import DiscoverResult, ServerCapabilities, jsonrpc_message_adapter

ANNOUNCING = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True},
    "prompts": {"listChanged": True},
}


class ScriptedServer:
    """Keeps what its client says. Answers by method: a result, an error, or a function of params.

    An error is `{"error": {...}}`. A function may be async; the client's cancelling cancels it.
    """

    def __init__(
        self, answers: dict[str, Any] | None = None, *, capabilities: dict[str, Any] | None = None
    ) -> None:
        self.answers = {"tools/list": {"tools": []}, **(answers or {})}
        self.capabilities = ANNOUNCING if capabilities is None else capabilities
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.ids: list[Any] = []
        self.notices: list[tuple[str, dict[str, Any]]] = []
        self._news = asyncio.Event()
        self._running: dict[Any, asyncio.Task[None]] = {}
        self._out: Any = None

    def asked(self, method: str) -> list[dict[str, Any]]:
        """The params of every such request so far."""
        return [params for name, params in self.requests if name == method]

    async def told(self, method: str) -> dict[str, Any]:
        """Wait for such a notice; its params."""
        while not (found := [params for name, params in self.notices if name == method]):
            self._news.clear()
            await self._news.wait()
        return found[0]

    async def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        await self._send({"method": method, "params": params or {}})

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        """A client that is connected to this server."""
        async with Client(self._transport(), mode="legacy", **options) as client:
            yield client

    @asynccontextmanager
    async def modern_client(self, **options: Any) -> AsyncIterator[Client]:
        """A client that speaks 2026-07-28 with this server."""
        known = DiscoverResult(
            supported_versions=["2026-07-28"],
            capabilities=ServerCapabilities.model_validate(self.capabilities),
        )
        async with Client(
            self._transport(), mode="2026-07-28", prior_discover=known, **options
        ) as client:
            yield client

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        to_client, client_reads = anyio.create_memory_object_stream[Any](100)
        client_writes, from_client = anyio.create_memory_object_stream[Any](100)
        self._out = to_client
        serving = asyncio.create_task(self._serve(from_client))
        try:
            yield client_reads, client_writes
        finally:
            serving.cancel()
            for task in list(self._running.values()):
                task.cancel()
            await asyncio.wait([serving, *self._running.values()])
            for stream in (to_client, client_reads, client_writes, from_client):
                stream.close()

    async def _serve(self, incoming: Any) -> None:
        async for wrapped in incoming:
            message = wrapped.message.model_dump(by_alias=True, exclude_unset=True)
            method, params = message.get("method"), message.get("params") or {}
            if "id" in message:
                self.requests.append((method, params))
                self.ids.append(message["id"])
                task = asyncio.create_task(self._answer(message["id"], method, params))
                self._running[message["id"]] = task
                task.add_done_callback(lambda _, id=message["id"]: self._running.pop(id))
            else:
                self.notices.append((method, params))
                if method == "notifications/cancelled" and params["requestId"] in self._running:
                    self._running[params["requestId"]].cancel()
            self._news.set()

    async def _answer(self, id: Any, method: str, params: dict[str, Any]) -> None:
        if method == "initialize":
            answer: Any = {
                "protocolVersion": "2025-11-25",
                "serverInfo": {"name": "scripted", "version": "1"},
                "capabilities": self.capabilities,
            }
        else:
            missing = {"error": {"code": -32601, "message": "Method not found"}}
            answer = self.answers.get(method, missing)
        if isinstance(answer, Callable):
            answer = answer(params)
            if inspect.isawaitable(answer):
                answer = await answer
        outcome = answer if set(answer) == {"error"} else {"result": answer}
        await self._send({"id": id, **outcome})

    async def _send(self, message: dict[str, Any]) -> None:
        parsed = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message})
        await self._out.send(SessionMessage(parsed))
