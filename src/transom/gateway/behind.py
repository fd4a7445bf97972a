"""A server behind the gateway, as the gateway's host reaches it: an `Upstream` over a `Leg`.

The tools are what the client was last listed, or are asked for; they are kept until the server says
that they changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Self

import msgspec
from msgspec import Raw

from transom.errors import InvalidResult, ProtocolError
from transom.gateway.adding import is_complete, members, with_envelope
from transom.gateway.leg import Leg, Relay
from transom.protocol import wire
from transom.types import Tool

__all__ = ["Behind", "Carried", "InputWanted"]

_HOP_KEYS: Final = ("resultType", "ttlMs", "cacheScope")
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_ASK_AGAIN: Final = 1.0
_MAX_PAGES: Final = 200
_MAX_TOOLS: Final = 10_000


class InputWanted(ProtocolError):
    """A 2026-07-28 server wants input first: `result` says which."""

    def __init__(self, result: bytes) -> None:
        super().__init__(
            -32600, "The server wants input from the user, which cannot be asked for here"
        )
        self.result = result


class Carried:
    """A call of the client's that a host makes: sent and answered as it is on the wire.

    While its block runs, the host's call of this tool carries these params; `result` has what the
    server answered. When there is a result already, the call gets that, and the server nothing.
    """

    def __init__(self, name: str, params: bytes | None) -> None:
        self.name = name
        self.params = params
        self.result: bytes | None = None
        self.begun = False

    def __enter__(self) -> Self:
        self._before = _carried.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _carried.reset(self._before)

    def begin(self, name: object) -> bool:
        """Whether a call of the tool `name` is this one; it is once."""
        if self.begun or name != self.name:
            return False
        self.begun = True
        return True


_carried: ContextVar[Carried | None] = ContextVar("carried", default=None)


class _Page(msgspec.Struct, rename="camel"):
    tools: list[Raw]
    next_cursor: str | None = None


class Behind:
    """One server.

    Args:
        leg: the way to it.
        capabilities: what it said that it can do.
        envelope: what the client says about itself with each request, if it does.
    """

    def __init__(
        self,
        leg: Leg,
        capabilities: Mapping[str, Any],
        envelope: Callable[[], Mapping[str, Raw] | None],
    ) -> None:
        self.leg = leg
        self.capabilities = capabilities
        self._envelope = envelope
        self._tools: dict[str, Tool] | None = None
        self._listed_at = 0.0
        self._listing: asyncio.Task[None] | None = None
        self._version = 0
        self._observers: list[Callable[[str], object]] = []

    # --- tools -------------------------------------------------------------------------------

    @property
    def current(self) -> bool:
        """Whether the tools that are kept are the server's, as far as it would have said so."""
        return self._tools is not None

    def known(self, name: str) -> Tool | None:
        """A tool among those that are kept."""
        return None if self._tools is None else self._tools.get(name)

    def learned(self, entries: list[Raw]) -> None:
        """All tools, as they were just listed to the client."""
        self._tools = _tools(entries)
        self._listed_at = asyncio.get_running_loop().time()

    def heard(self, method: str) -> None:
        """The server sent a `list_changed`."""
        if method == _TOOLS_CHANGED:
            self._tools = None
            self._version += 1
        for observer in list(self._observers):
            observer(method)

    async def tools(self) -> Mapping[str, Tool]:
        """All tools of the server by name.

        Raises:
            ProtocolError: the server's error.
            ConnectionClosed: it is gone.
        """
        while self._tools is None:
            if self._listing is None:
                self._listing = asyncio.ensure_future(self._list())
                self._listing.add_done_callback(self._listed)
            # Shared by all who wait, so one who gives up must not end it for the others.
            await asyncio.shield(self._listing)
        return self._tools

    async def tool(self, name: str) -> Tool | None:
        """One of them; asks the server again, but not all the time, before it says no."""
        found = (await self.tools()).get(name)
        age = asyncio.get_running_loop().time() - self._listed_at
        if found is None and age >= _ASK_AGAIN:
            self._tools = None
            found = (await self.tools()).get(name)
        return found

    def _listed(self, task: asyncio.Task[None]) -> None:
        self._listing = None
        if not task.cancelled():
            task.exception()  # whoever waited has it

    async def _list(self) -> None:
        if self.capabilities.get("tools") is None:
            self._tools = {}
            return
        version = self._version
        entries: list[Raw] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MAX_PAGES):
            params = wire.encode({} if cursor is None else {"cursor": cursor})
            raw = await self.leg.ask("tools/list", with_envelope(params, self._envelope()))
            try:
                page = msgspec.json.decode(raw, type=_Page)
            except msgspec.DecodeError as error:
                raise InvalidResult("Invalid result for tools/list from the server") from error
            entries += page.tools
            cursor = page.next_cursor
            if cursor is None or cursor in seen or len(entries) > _MAX_TOOLS:
                break
            seen.add(cursor)
        if version == self._version:
            self.learned(entries)
        # else it changed meanwhile: whoever waits asks again

    # --- everything else ---------------------------------------------------------------------

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: Relay | None = None
    ) -> bytes:
        """Ask the server; the result as JSON.

        Raises:
            ProtocolError: the server's error.
            ConnectionClosed: it is gone.
        """
        carried = _carried.get()
        if method == "tools/call" and carried is not None and carried.begin(params.get("name")):
            if carried.result is None:
                carried.result = await self.pass_on(method, carried.params)
            result = carried.result
        else:
            result = await self.pass_on(method, wire.encode(params), on_progress=on_progress)
        given = members(result)
        for key in _HOP_KEYS:
            given.pop(key, None)
        structured = given.get("structuredContent")
        if method == "tools/call" and structured and not bytes(structured).startswith(b"{"):
            given["structuredContent"] = Raw(wire.encode({"result": structured}))
        return wire.encode(given)

    async def pass_on(
        self, method: str, params: bytes | None, *, on_progress: Relay | None = None
    ) -> bytes:
        """The same with params and result as they are on the wire.

        Raises:
            InputWanted: the server wants input first.
        """
        stamped = with_envelope(params, self._envelope())
        result = await self.leg.ask(method, stamped, on_progress=on_progress)
        if not is_complete(result):
            raise InputWanted(result)
        return result

    def subscribe(self, observer: Callable[[str], object]) -> Callable[[], None]:
        """Call `observer` with the method of each `list_changed`. Returns how to stop that."""
        self._observers.append(observer)

        def stop() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return stop


def _tools(entries: list[Raw]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for entry in entries:
        try:
            tool = msgspec.json.decode(entry, type=Tool)
        except msgspec.DecodeError:
            continue
        found.setdefault(tool.name, tool)
    return found
