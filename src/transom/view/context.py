"""What a tool may use while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from transom.errors import NotConnected
from transom.types import LogLevel

if TYPE_CHECKING:
    from transom.view.app import App

__all__ = ["CallContext"]


class _Sent:
    """Awaiting it is allowed and costs nothing: the notice has gone out already."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class CallContext:
    """One call of one tool. A handler that has a parameter for it gets it.

    `progress` and `log` work in sync handlers, async ones and threads alike; awaiting them is
    optional. When the host cancels the call, an async handler gets `asyncio.CancelledError`; a
    handler in a thread looks at `cancelled` from time to time.
    """

    def __init__(self, app: App, tool: str, meta: Mapping[str, Any] | None = None) -> None:
        self.app = app
        """The App the tool is in."""
        self.tool = tool
        """The name it was called by."""
        self.meta: Mapping[str, Any] = meta or {}
        """The `_meta` of the call."""
        self.cancelled = False
        """Whether the host has given up on this call."""
        self.ended = False
        """Whether the call is over, so that there is no more progress to tell."""
        self._loop = asyncio.get_running_loop()

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Tell the host how far the work is.

        Nothing happens when it did not ask to know, or when the call is over.
        """
        token = self.meta.get("progressToken")
        if isinstance(token, int | str) and not (self.cancelled or self.ended):
            notice: dict[str, Any] = {"progressToken": token, "progress": progress}
            if total is not None:
                notice["total"] = total
            if message is not None:
                notice["message"] = message
            self._tell("notifications/progress", notice)
        return _Sent()

    def log(self, level: LogLevel, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message to the host."""
        notice: dict[str, Any] = {"level": level, "data": data}
        self._tell("notifications/message", notice | {"logger": logger or self.tool})
        return _Sent()

    def raise_if_cancelled(self) -> None:
        """Stop here if the host has given up; for handlers in threads.

        Raises:
            asyncio.CancelledError: it has.
        """
        if self.cancelled:
            raise asyncio.CancelledError

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        data = Raw(msgspec.json.encode(params))  # here, where whoever gave it sees that it fails
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._send(method, data)
        else:
            with suppress(RuntimeError):  # the event loop is over, and with it the connection
                self._loop.call_soon_threadsafe(self._send, method, data)

    def _send(self, method: str, params: Raw) -> None:
        with suppress(NotConnected):  # the call outlived the connection; there is nobody to tell
            self.app.notify(method, params)
