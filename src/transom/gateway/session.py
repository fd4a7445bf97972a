"""One client of the gateway, and the servers behind it: every message goes through here.

1. With one server, what the gateway has no part in passes as it came, byte for byte and in order
   (`single`). With several they look like one (`several`).
2. Every request of the client is answered once, whatever becomes of the servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from transom.channel import Channel
from transom.errors import ChannelClosed, MessageRefused
from transom.gateway.front import Front
from transom.gateway.leg import Connect
from transom.gateway.several import Several
from transom.gateway.single import Single
from transom.gateway.views import ClientViews
from transom.protocol import wire

__all__ = ["Connect", "Session"]

_MAX_BYTES = 32 * 1024 * 1024
_MAX_DEPTH = 200


class _Back(Protocol):
    """What stands behind the gateway."""

    async def start(self) -> None: ...
    async def room(self) -> None: ...
    async def aclose(self) -> None: ...
    def asked(self, request: wire.Request, data: bytes) -> None: ...
    def noted(self, notification: wire.Notification, data: bytes) -> None: ...
    def answered(self, message: wire.Response | wire.ErrorResponse, data: bytes) -> None: ...


class Session:
    """Serves one client. `run` returns when the client is gone.

    Args:
        channel: the client.
        servers: the servers behind the gateway: a name, and what starts each of them.
        views: shows Views, and has their tools.
    """

    def __init__(
        self, channel: Channel, servers: Sequence[tuple[str, Connect]], views: ClientViews
    ) -> None:
        self.closing = False
        """Whether everything is being put away: it is best let alone then."""
        self._channel = channel
        self._views = views
        self._front = Front(channel)
        self._back: _Back
        if len(servers) == 1:
            self._back = Single(self._front, servers[0], views)
        else:
            self._back = Several(self._front, servers, views)

    async def run(self) -> None:
        """Start the servers and serve the client until it is gone.

        Raises:
            NotConnected: a server cannot be started; of several, none of them can.
        """
        try:
            await self._back.start()
            while True:
                try:
                    data = await self._channel.receive()
                except ChannelClosed:
                    return
                self._client_said(data)
                await self._back.room()
                await self._front.room()
        finally:
            self.closing = True
            await self._close()

    async def _close(self) -> None:
        await self._front.aclose()
        await asyncio.gather(self._views.aclose(), self._back.aclose())
        await self._channel.aclose()

    def _client_said(self, data: bytes) -> None:
        try:
            message = wire.decode(data, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
        except MessageRefused as refusal:
            id = wire.refused_id(data, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
            if id is not None:
                self._front.post(wire.encode_error(id, refusal.code, str(refusal)))
            return
        match message:
            case wire.Request():
                self._back.asked(message, data)
            case wire.Notification():
                self._back.noted(message, data)
            case _:
                if message.id is not None and not self._front.answered(message):
                    self._back.answered(message, data)
