"""A server object of the official SDK or of FastMCP, which runs in this process, over a Channel."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, cast

import anyio
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from transom.background import retrieve, stop
from transom.errors import INVALID_REQUEST, ChannelClosed
from transom.protocol import wire

_LEAVES_WITHIN = 2.0
_CLOSED = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)


def lowlevel_server(server: object) -> Server[Any] | None:
    """The low-level server of an `MCPServer` or a `FastMCP`; None: it is no server object."""
    # Both wrap a low-level server in an attribute that is not public.
    inner = getattr(server, "_lowlevel_server", None) or getattr(server, "_mcp_server", None)
    for candidate in (server, inner):
        if isinstance(candidate, Server):
            return cast("Server[Any]", candidate)
    return None


async def connect_in_memory(server: Server[Any]) -> InMemoryChannel:
    """Run a server object for one client."""
    stack = AsyncExitStack()
    ours, theirs = await stack.enter_async_context(create_client_server_memory_streams())
    running = asyncio.create_task(
        server.run(*theirs, server.create_initialization_options()),
        name=f"transom-server-{server.name}",
    )
    return InMemoryChannel(ours, theirs[1], running, stack)


class InMemoryChannel:
    """A Channel to a server object. Make it with `connect_in_memory`."""

    def __init__(
        self, streams: Any, answers: Any, running: asyncio.Task[None], stack: AsyncExitStack
    ) -> None:
        self._read, self._write = streams
        self._answers = answers
        self._running = running
        self._stack = stack
        self._closing: asyncio.Task[None] | None = None
        running.add_done_callback(self._ended)

    def _ended(self, running: asyncio.Task[None]) -> None:
        retrieve(running)  # a failed server counts as one that closed the connection
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())

    async def send(self, data: bytes) -> None:
        """Send one message."""
        to = self._write
        try:
            message: Any = jsonrpc_message_adapter.validate_json(data, by_name=False)
        except ValidationError:
            if (id := wire.id_of_request(data)) is None:
                return
            error = ErrorData(code=INVALID_REQUEST, message="This message cannot be sent")
            to, message = self._answers, JSONRPCError(jsonrpc="2.0", id=id, error=error)
        try:
            await to.send(SessionMessage(message))
        except _CLOSED:
            raise ChannelClosed("the server closed the connection") from None

    async def receive(self) -> bytes:
        """The next message."""
        try:
            item = await self._read.receive()
        except _CLOSED:
            raise ChannelClosed("the server closed the connection") from None
        return item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()

    async def aclose(self) -> None:
        """End the server. Safe to repeat."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._write.aclose()  # the end of its input ends a server
        if not self._running.done():
            await asyncio.wait([self._running], timeout=_LEAVES_WITHIN)
        if not self._running.done():
            await stop(self._running)
        await self._stack.aclose()
