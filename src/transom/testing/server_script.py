"""Servers that a test makes slow, or makes fail: their answers to calls of tools are replaced.

The messages between a host and its server pass through a `ScriptedChannel`, which delays the calls
that the script names, or answers them itself.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from transom.background import Background, ignore
from transom.channel import Channel
from transom.connections.connection import Connect
from transom.errors import SERVER_ERROR, ChannelClosed
from transom.protocol import wire
from transom.protocol.messages import ToolOutcome, result_json

_MAX_UNREAD = 1000


class ScriptedCall(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the calls of one tool."""

    delay: float = 0.0
    """Seconds before the server gets it."""
    fails: str | None = None
    """The text of the error that is the answer, in place of the server's."""
    returns: ToolOutcome | None = None
    """The result, in place of the server's."""


class ServerScript:
    """What becomes of the calls of some tools."""

    def __init__(self) -> None:
        self.calls: dict[str, ScriptedCall] = {}
        """By tool."""
        self.followed: set[str] = set()
        """The tools that were called."""

    def find(self, message: dict[str, Any]) -> ScriptedCall | None:
        """What becomes of a request, if it is a call that is scripted."""
        if message.get("method") != "tools/call":
            return None
        tool = message["params"].get("name")
        self.followed.add(tool)
        return self.calls.get(tool)


def scripted(connect: Connect, script: ServerScript) -> Connect:
    """Connects as `connect` does, to a server that follows the script."""

    async def connect_scripted() -> Channel:
        return ScriptedChannel(await connect(), script)

    return connect_scripted


class ScriptedChannel:
    """A Channel to a server, some of whose answers are scripted."""

    def __init__(self, channel: Channel, script: ServerScript) -> None:
        self._channel = channel
        self._script = script
        self._arrived: asyncio.Queue[bytes | ChannelClosed] = asyncio.Queue(_MAX_UNREAD)
        self._tasks = Background(ignore)
        self._tasks.start(self._read())

    async def _read(self) -> None:
        try:
            while True:
                await self._arrived.put(await self._channel.receive())
        except ChannelClosed as closed:
            await self._arrived.put(closed)

    async def receive(self) -> bytes:
        """The next message, of the server or of the script."""
        message = await self._arrived.get()
        if isinstance(message, bytes):
            return message
        self._arrived.put_nowait(message)  # for whoever asks again
        raise message

    async def send(self, data: bytes) -> None:
        """Send a message, later or never if the script says so."""
        id, call = self._scripted(data)
        if call is None:
            await self._channel.send(data)
        else:
            self._tasks.start(self._follow(id, call, data))

    def _scripted(self, data: bytes) -> tuple[Any, ScriptedCall | None]:
        if not self._script.calls or b"tools/call" not in data:
            return None, None
        message: dict[str, Any] = msgspec.json.decode(data)
        return message.get("id"), self._script.find(message)

    async def _follow(self, id: Any, call: ScriptedCall, data: bytes) -> None:
        await asyncio.sleep(call.delay)
        if call.fails is not None:
            error = {"code": SERVER_ERROR, "message": call.fails}
            await self._arrived.put(wire.encode({"jsonrpc": "2.0", "id": id, "error": error}))
        elif call.returns is not None:
            result = msgspec.Raw(result_json(call.returns))
            await self._arrived.put(wire.encode({"jsonrpc": "2.0", "id": id, "result": result}))
        else:
            with suppress(ChannelClosed):
                await self._channel.send(data)

    async def aclose(self) -> None:
        """Close the channel."""
        self._tasks.cancel()
        await self._channel.aclose()
        await self._tasks.aclose()
