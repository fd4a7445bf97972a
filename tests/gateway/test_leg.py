import asyncio
import logging
from typing import Any

import pytest

from transom.channel import Channel, memory_pair
from transom.gateway.leg import Leg
from transom.protocol import wire


class Clumsy:
    """Listens to a server, and fails at one of its messages."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    def server_said(self, leg: Leg, message: wire.Message, data: bytes) -> None:
        assert isinstance(message, wire.Notification)
        if message.method == "notifications/odd":
            raise RuntimeError("odd")
        self.heard.put_nowait(message.method)

    async def room_for(self, leg: Leg) -> None: ...
    def server_lost(self, leg: Leg, reason: str) -> None: ...
    def server_back(self, leg: Leg) -> None: ...


async def nothing(leg: Leg) -> None: ...


async def test_a_message_that_cannot_be_handled_does_not_cut_off_those_after_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, server = memory_pair()

    async def connect() -> Channel:
        return here

    clumsy: Any = Clumsy()
    leg = Leg("shop", connect, clumsy, nothing)
    await leg.start()
    with caplog.at_level(logging.ERROR, "transom.gateway"):
        for method in ("notifications/odd", "notifications/message"):
            await server.send(wire.encode_notification(method, None))
        assert await clumsy.heard.get() == "notifications/message"
    assert "a message of server shop was lost" in caplog.text
    await leg.aclose()
