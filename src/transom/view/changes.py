"""Telling the host that the tools have changed, once in a turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

__all__ = ["ListChanges"]


class ListChanges:
    """Gathers changes and tells of them together."""

    def __init__(self, send: Callable[[], object]) -> None:
        self._send = send
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: asyncio.Handle | None = None

    @staticmethod
    def declared(capabilities: Mapping[str, Any]) -> bool:
        """Whether these capabilities say that the tools can change."""
        tools: object = capabilities.get("tools")
        if not isinstance(tools, Mapping):
            return False
        return bool(cast("Mapping[str, object]", tools).get("listChanged"))

    def attach(self) -> None:
        """Note the event loop of the connection."""
        self._loop = asyncio.get_running_loop()

    def tell_soon(self) -> None:
        """Tell at the end of this turn, if it is not to be told already."""
        if self._due is not None or self._loop is None:
            return
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._due = self._loop.call_soon(self.tell)
        else:  # a handler in a thread changed a tool
            self._due = self._loop.call_soon_threadsafe(self.tell)

    def tell(self) -> None:
        """Tell now."""
        self.forget()
        self._send()

    def tell_if_due(self) -> None:
        """Tell now what is to be told at the end of this turn."""
        if self._due is not None:
            self.tell()

    def forget(self) -> None:
        """There is nothing to tell, or nobody to tell it to."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
