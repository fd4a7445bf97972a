"""Pipes over the official SDK's transports: servers behind a URL, and servers in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import jsonrpc_message_adapter

from transom.check.connect import MAX_MESSAGE, Connect, Incoming, Noise, Pipe, PipeClosed
from transom.json_values import JsonObject

__all__ = ["in_process", "url"]


def url(address: str, *, timeout: float = 30, max_message: int = MAX_MESSAGE) -> Connect:
    """Connect over streamable HTTP. No answer may be longer than `max_message`."""

    @contextlib.asynccontextmanager
    async def connect() -> AsyncGenerator[Pipe, None]:
        client = httpx2.AsyncClient(transport=_Capped(max_message), timeout=timeout)
        opened = streamable_http_client(address, http_client=client, max_sse_event_size=max_message)
        try:
            async with client, opened as (read, write):
                yield _StreamPipe(read, write)
        except* (httpx2.HTTPError, httpx2.InvalidURL, OSError) as errors:
            raise PipeClosed(f"the server cannot be reached: {errors.exceptions[0]}") from errors

    return connect


def in_process(server: object) -> Connect:
    """Connect to a server object of the official SDK or of FastMCP, without a process of its own.

    Raises:
        TypeError: `server` is not one of them.
    """
    lowlevel = _lowlevel(server)

    @contextlib.asynccontextmanager
    async def connect() -> AsyncGenerator[Pipe, None]:
        options = lowlevel.create_initialization_options()
        async with create_client_server_memory_streams() as (ours, theirs):
            running = asyncio.create_task(lowlevel.run(*theirs, options))
            try:
                yield _StreamPipe(*ours)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    return connect


def _lowlevel(server: object) -> Server[Any]:
    # Both wrap a low-level server under a name of their own; neither publishes it.
    inner = getattr(server, "_lowlevel_server", None) or getattr(server, "_mcp_server", None)
    for candidate in (server, inner):
        if isinstance(candidate, Server):
            return cast("Server[Any]", candidate)
    raise TypeError(f"{type(server).__name__} is not an {MCPServer.__name__}, FastMCP or Server")


class _StreamPipe:
    def __init__(self, read: Any, write: Any) -> None:
        self._read = read
        self._write = write

    async def send(self, message: JsonObject, headers: Mapping[str, str]) -> None:
        metadata = ClientMessageMetadata(headers=dict(headers)) if headers else None
        envelope = jsonrpc_message_adapter.validate_python(message)
        try:
            await self._write.send(SessionMessage(envelope, metadata))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise PipeClosed("the server closed the connection") from error

    async def receive(self) -> Incoming:
        try:
            item = await self._read.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise PipeClosed("the server closed the connection") from error
        if isinstance(item, Exception):
            return Noise(str(item)[:200])
        dumped = item.message.model_dump(by_alias=True, exclude_unset=True, mode="json")
        return cast("JsonObject", dumped)


class _TooLong(httpx2.StreamError):
    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is longer than {limit // (1024 * 1024)} MB")


class _CappedBody(httpx2.AsyncByteStream):
    """A response body that gives up after `limit` bytes."""

    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self._inner = inner
        self._limit = limit

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        taken = 0
        async for chunk in self._inner:
            taken += len(chunk)
            if taken > self._limit:
                raise _TooLong(self._limit)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Capped(httpx2.AsyncHTTPTransport):
    """The usual transport, with JSON bodies of limited length.

    A stream of events may go on for ever; its events are limited one by one.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        events = response.headers.get("content-type", "").startswith("text/event-stream")
        if not events and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _CappedBody(response.stream, self._limit)
        return response
