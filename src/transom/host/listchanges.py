"""The `list_changed` notices of one client's server, for everyone who wants them.

1. The client's own handlers keep getting all they got.
2. A 2026-07-28 server tells its changes on a subscription: one is opened for all observers, and
   opened again when it is lost. An older server just sends them: they are seen on their way to the
   client's message handler.
3. However many come in one turn of the event loop, observers are called once for each kind.
4. Nothing is held open when nobody observes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, cast

import mcp.types as mcp
from mcp import Client, ClientSession
from mcp.client.session import IncomingMessage, MessageHandlerFnT
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    Subscription,
    SubscriptionLost,
    ToolsListChanged,
    listen,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

__all__ = ["ListChanges"]

_KINDS: Final = {
    "tools": "notifications/tools/list_changed",
    "resources": "notifications/resources/list_changed",
    "prompts": "notifications/prompts/list_changed",
}
_EVENTS: Final = {
    ToolsListChanged: _KINDS["tools"],
    ResourcesListChanged: _KINDS["resources"],
    PromptsListChanged: _KINDS["prompts"],
}
_NOTICES: Final = {
    mcp.ToolListChangedNotification: _KINDS["tools"],
    mcp.ResourceListChangedNotification: _KINDS["resources"],
    mcp.PromptListChangedNotification: _KINDS["prompts"],
}
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0


class ListChanges:
    """Hands out what the server says about its lists.

    Args:
        session: the client's session, connected.
        client: the client, if there is one over the session: its cache has to know first.
        capabilities: the server's, as on the wire; only lists that it announces are watched.
        on_stale: called before the observers, and also when a change may have been missed.
    """

    def __init__(
        self,
        session: ClientSession,
        client: Client | None,
        capabilities: Mapping[str, Any],
        on_stale: Callable[[str], object],
    ) -> None:
        self._session = session
        self._client = client
        self._watched = [
            kind
            for kind in _KINDS
            if cast("dict[str, Any]", capabilities.get(kind) or {}).get("listChanged") is True
        ]
        self._on_stale = on_stale
        self._observers: list[Callable[[str], object]] = []
        self._pending: set[str] = set()
        self._listener: asyncio.Task[None] | None = None
        self._passed_on: MessageHandlerFnT | None = None
        self._listening = False

    @property
    def watching(self) -> bool:
        """Whether every change is heard of. A server that announces none is taken at its word."""
        return not self._watched or self._listening or self._passed_on is not None

    def subscribe(self, observer: Callable[[str], object]) -> Callable[[], None]:
        """Call `observer` with the method of each change. Returns how to stop that."""
        self._observers.append(observer)
        if len(self._observers) == 1:
            self._begin()

        def unsubscribe() -> None:
            if observer in self._observers:
                self._observers.remove(observer)
                if not self._observers:
                    self._end()

        return unsubscribe

    def _begin(self) -> None:
        if not self._watched:
            return
        if self._session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            self._listener = asyncio.ensure_future(self._listen())
        elif self._passed_on is None:
            # The SDK has no way to add an observer to a connected session, only to replace the
            # one handler it was made with. That handler still gets everything, from ours.
            self._passed_on = cast("Any", self._session)._message_handler
            cast("Any", self._session)._message_handler = self._seen
            self._missed()

    def _end(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None
            self._listening = False
        if self._passed_on is not None and (
            cast("Any", self._session)._message_handler == self._seen
        ):
            cast("Any", self._session)._message_handler = self._passed_on
            self._passed_on = None

    async def _seen(self, message: IncomingMessage) -> None:
        method = _NOTICES.get(cast("Any", type(message)))
        if method is not None:
            self._announce(method)
        if self._passed_on is not None:
            await self._passed_on(message)

    async def _listen(self) -> None:
        pause, again = _FIRST_PAUSE, False
        while True:
            try:
                async with self._subscription() as subscription:
                    self._listening = True
                    self._missed()
                    if again:
                        for kind in self._watched:
                            self._announce(_KINDS[kind])
                    pause, again = _FIRST_PAUSE, True
                    async for event in subscription:
                        method = _EVENTS.get(cast("Any", type(event)))
                        if method is not None:
                            self._announce(method)
                return  # the server ended it
            except SubscriptionLost:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            except (MCPError, TimeoutError, RuntimeError):
                return  # closed, or the server does not offer it
            finally:
                self._listening = False

    def _subscription(self) -> AbstractAsyncContextManager[Subscription]:
        wanted = {f"{kind}_list_changed": True for kind in self._watched}
        if self._client is not None:
            return self._client.listen(**cast("Any", wanted))
        return listen(self._session, **cast("Any", wanted))

    def _missed(self) -> None:
        for kind in self._watched:
            self._on_stale(_KINDS[kind])

    def _announce(self, method: str) -> None:
        self._on_stale(method)
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._flush)
        self._pending.add(method)

    def _flush(self) -> None:
        pending, self._pending = self._pending, set()
        for method in sorted(pending):
            for observer in list(self._observers):
                observer(method)
