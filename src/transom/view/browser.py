"""The channel of a View that runs in a browser, under Pyodide: its parent window.

1. Messages are posted as structured values, as other Views do it.
2. Only messages from the parent that are marked as JSON-RPC are read; pages post each other all
   kinds of messages.
3. No message is dropped: if too many wait unread, the connection is closed.
"""

from __future__ import annotations

import asyncio
import importlib
from collections import deque
from typing import Any

from transom.channel import Channel
from transom.errors import ChannelClosed, UsageError

_MAX_UNREAD = 4096


def parent_channel() -> Channel:
    """A Channel to `window.parent`."""
    try:
        js: Any = importlib.import_module("js")
        ffi: Any = importlib.import_module("pyodide.ffi")
    except ImportError:
        raise UsageError(
            "connect() needs a channel outside a browser: connect(transom.channel.lines(...))"
        ) from None
    window: Any = getattr(js, "window", None)
    if window is None or window.parent == window:
        raise UsageError("connect() needs a host: this page is not inside another one")
    return _ParentChannel(js, ffi)


class _ParentChannel:
    def __init__(self, js: Any, ffi: Any) -> None:
        self._json = js.JSON
        self._window = js.window
        self._parent = js.window.parent
        self._messages: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._closed: str | None = None
        self._listener = ffi.create_proxy(self._on_message)
        self._window.addEventListener("message", self._listener)

    def _on_message(self, event: Any) -> None:
        if self._closed is not None or event.source != self._parent:
            return
        if getattr(event.data, "jsonrpc", None) != "2.0":
            return
        if len(self._messages) >= _MAX_UNREAD:
            self._close(f"{_MAX_UNREAD} messages of the host wait unread")
            return
        self._messages.append(self._json.stringify(event.data).encode())
        self._arrived.set()

    async def send(self, data: bytes) -> None:
        if self._closed is not None:
            raise ChannelClosed(self._closed)
        self._parent.postMessage(self._json.parse(data.decode()), "*")

    async def receive(self) -> bytes:
        while not self._messages:
            if self._closed is not None:
                raise ChannelClosed(self._closed)
            self._arrived.clear()
            await self._arrived.wait()
        return self._messages.popleft()

    async def aclose(self) -> None:
        if self._closed is None:
            self._messages.clear()
            self._close("The channel is closed")

    def _close(self, why: str) -> None:
        self._closed = why
        self._window.removeEventListener("message", self._listener)
        self._listener.destroy()
        self._arrived.set()
