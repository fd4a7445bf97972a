"""A server behind the gateway that is reached by streamable HTTP, as a Channel.

1. Messages pass as they are. The SDK's transport carries them; here it gets the headers which the
   SDK's session would have given it.
2. Before the first message one `ping` goes out, to tell a server from whatever else may listen.
3. A request that fails with an HTTP status is answered with an error.
4. What cannot be reached any more, or has forgotten the session, is gone: `receive` raises, and
   whoever holds the channel connects anew. A slow answer is no such thing: nothing here times out,
   but the operating system probes idle connections, so that a dead network is noticed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError

from transom.channel import memory_pair
from transom.errors import INVALID_REQUEST, ChannelClosed, NotConnected
from transom.gateway.http_client import MAX_BYTES, Watched, knock, options_for, shown, words
from transom.gateway.stamps import Stamps
from transom.protocol import wire

__all__ = ["HttpServer"]

_LEAVE_WITHIN = 2.0


class HttpServer:
    """A Channel to a URL. Make it with `connect`."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._client = Watched(self._lost, headers=dict(headers), **options_for(url))
        self._stamps = Stamps()
        self._ours, self._theirs = memory_pair(capacity=64)
        self._write: Any = None
        self._reason: str | None = None
        self._open = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def connect(cls, url: str, *, headers: Mapping[str, str] | None = None) -> HttpServer:
        """Reach a server.

        Args:
            url: the endpoint, such as `https://example.com/mcp`.
            headers: sent with every request, such as `Authorization`.

        Raises:
            NotConnected: nothing answers there, or not with MCP; the text says what to do.
        """
        try:
            server = cls(url, headers or {})
        except (httpx2.InvalidURL, ValueError) as error:
            raise NotConnected(f"{shown(url)} cannot be used: {error}") from error
        try:
            await knock(server._client, url)
        except BaseException:
            await server._client.aclose()
            raise
        server._task = asyncio.create_task(server._run(), name=f"transom-http-{shown(url)}")
        await server._open.wait()
        return server

    async def send(self, data: bytes) -> None:
        """Send one message.

        Raises:
            ChannelClosed: the server is gone.
        """
        if self._reason is not None:
            raise ChannelClosed(self._reason)
        try:
            message: JSONRPCMessage = jsonrpc_message_adapter.validate_json(data, by_name=False)
        except ValidationError:
            await self._refuse(data)
            return
        headers = self._stamps.headers(message)
        metadata = ClientMessageMetadata(headers=headers) if headers else None
        try:
            await self._write.send(SessionMessage(message, metadata))
        except Exception as error:
            raise ChannelClosed(self._reason or "the connection is closed") from error

    async def _refuse(self, data: bytes) -> None:
        """Answer what cannot be put into a request: nobody must wait for it."""
        id = wire.refused_id(data, max_bytes=MAX_BYTES)
        if id is not None:
            text = "This message cannot be sent to an HTTP server"
            await self._theirs.send(wire.encode_error(id, INVALID_REQUEST, text))

    async def receive(self) -> bytes:
        """The next message.

        Raises:
            ChannelClosed: the server is gone; the text says why.
        """
        try:
            return await self._ours.receive()
        except ChannelClosed:
            raise ChannelClosed(self._reason or "the connection was closed") from None

    async def aclose(self) -> None:
        """End the session and the connections. Safe to repeat."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._reason is None:
            self._reason = "this side closed the connection"
            with suppress(Exception):
                async with asyncio.timeout(_LEAVE_WITHIN):
                    await self._client.leave(self._url)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _lost(self, reason: str) -> None:
        if self._reason is None:
            self._reason = reason
            if self._task is not None:
                self._task.cancel()

    async def _run(self) -> None:
        try:
            async with (
                aclosing(self._client),
                streamable_http_client(
                    self._url,
                    http_client=self._client,
                    terminate_on_close=False,  # see `leave`
                    max_sse_event_size=MAX_BYTES,
                ) as (read, write),
            ):
                self._write = write
                self._open.set()
                async for item in read:
                    # What the transport makes of the end is not the server's word.
                    if self._reason is None and isinstance(item, SessionMessage):
                        self._stamps.heard(item.message)
                        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                        await self._theirs.send(text.encode())
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection is over
            self._lost(words(error))
        finally:
            self._reason = self._reason or "the connection was closed"
            self._open.set()
            await self._theirs.aclose()
