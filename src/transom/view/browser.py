"""The channel of a View that runs in a browser, under Pyodide: its parent window.

Messages are posted as structured values, as other Views do it, and taken from the parent alone.
"""

from __future__ import annotations

import asyncio
import importlib
from collections import deque
from typing import Any

from transom.channel import Channel
from transom.errors import ChannelClosed, UsageError

__all__ = ["parent_channel"]


def parent_channel() -> Channel:
    """A Channel to `window.parent`.

    Raises:
        UsageError: this Python does not run in a browser.
    """
    try:
        js: Any = importlib.import_module("js")
        ffi: Any = importlib.import_module("pyodide.ffi")
    except ImportError:
        raise UsageError(
            "connect() needs a channel outside a browser: connect(transom.channel.lines(...))"
        ) from None
    return _ParentChannel(js, ffi)


class _ParentChannel:
    def __init__(self, js: Any, ffi: Any) -> None:
        self._js = js
        self._ffi = ffi
        self._messages: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._closed = False
        self._listener = ffi.create_proxy(self._on_message)
        js.window.addEventListener("message", self._listener)

    def _on_message(self, event: Any) -> None:
        if event.source != self._js.window.parent:
            return
        text = self._js.JSON.stringify(event.data)
        if isinstance(text, str) and len(self._messages) < 4096:
            self._messages.append(text.encode())
            self._arrived.set()

    async def send(self, data: bytes) -> None:
        if self._closed:
            raise ChannelClosed("The channel is closed")
        value = self._js.JSON.parse(data.decode())
        self._js.window.parent.postMessage(value, "*")

    async def receive(self) -> bytes:
        while not self._messages:
            if self._closed:
                raise ChannelClosed("The channel is closed")
            self._arrived.clear()
            await self._arrived.wait()
        return self._messages.popleft()

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._js.window.removeEventListener("message", self._listener)
            self._listener.destroy()
            self._arrived.set()
