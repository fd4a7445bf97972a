"""A server as Views and hosts use it, and what every implementation of it shares."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Protocol, runtime_checkable

import msgspec
from msgspec import Raw

from transom.connections.relisting import Relisting
from transom.connections.versions import (
    as_handshake_task,
    is_complete,
    is_task,
    request_task,
    wants_task,
    without_hop_keys,
)
from transom.errors import METHOD_NOT_FOUND, InvalidResult, ProtocolError
from transom.json_values import as_object, has_word, member, members
from transom.protocol import wire
from transom.protocol.pagination import Pagination
from transom.session import OnProgress
from transom.types import Tool

TOOLS_CHANGED: Final = "notifications/tools/list_changed"

_HEADER_MISMATCH: Final = -32020
_MAX_ROUNDS: Final = 10  # of asking for input in one request
_MAX_PAGES: Final = 200
_MAX_ENTRIES: Final = 10_000

Params = Mapping[str, Any] | bytes | None
"""The params of a request: values, or JSON already."""
Observer = Callable[[str], object]
"""Called with the method of a `list_changed`."""


@runtime_checkable
class Server(Protocol):
    """An MCP server, as a host and the Views of that server use it."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server can do, as on the wire: `{"tools": {"listChanged": true}}`."""
        ...

    @property
    def current(self) -> bool:
        """Whether the cached tools are up to date, as far as that can be known."""
        ...

    async def tools(self) -> Mapping[str, Tool]:
        """All tools of the server by name. Cached until the server says that they changed.

        Raises:
            ProtocolError: the server's error.
            InvalidResult: the server's answer is not a list of tools.
            ConnectionClosed: the server is gone.
        """
        ...

    async def tool(self, name: str) -> Tool | None:
        """One of them. Lists again, at most once a second, before it returns None."""
        ...

    async def request(
        self, method: str, params: Params = None, *, on_progress: OnProgress | None = None
    ) -> bytes:
        """Send a request; the result as JSON. Cancelling it cancels the server's work.

        Raises:
            ProtocolError: the server's error, unchanged.
            InputRequired: the server asks for input that cannot be given here.
            InvalidResult: the server's answer is not what the method promises.
            ConnectionClosed: the server is gone.
        """
        ...

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with the method of each `list_changed`; returns a function to stop it."""
        ...


class InputRequired(ProtocolError):
    """A 2026-07-28 server needs input from the user first; `result` says which."""

    def __init__(self, result: bytes) -> None:
        super().__init__(
            -32600, "The server wants input from the user, which cannot be asked for here"
        )
        self.result = result


async def list_all(
    send: Callable[[bytes | None], Awaitable[bytes]], method: str, key: str
) -> list[Raw]:
    """All entries of a list, from all pages, unread; `send` requests a page."""
    entries: list[Raw] = []
    pages = Pagination(_MAX_PAGES)
    while True:
        page = members(await send(pages.cursor and b'{"cursor":%b}' % pages.cursor))
        try:
            entries += msgspec.json.decode(page.get(key, b""), type=list[Raw])
        except msgspec.DecodeError:
            raise InvalidResult(f"Invalid result for {method} from the server") from None
        cursor = bytes(page.get("nextCursor", b"null"))
        following = None if cursor == b"null" else cursor
        if len(entries) > _MAX_ENTRIES or not pages.follow(following):
            return entries[:_MAX_ENTRIES]


def announced_lists(capabilities: Mapping[str, Any]) -> list[str]:
    """The lists for which a server declares `listChanged`: "tools", "resources" ..."""
    kinds = ("tools", "resources", "prompts")
    return [kind for kind in kinds if as_object(capabilities.get(kind)).get("listChanged") is True]


class ToolCache:
    """A cache of the tools of one server, valid until the server announces a change.

    If the server does not announce all changes, tools are cached for one second.
    """

    def __init__(
        self,
        list_tools: Callable[[], Awaitable[Iterable[Raw]]],
        *,
        announced: Callable[[], bool] = lambda: True,
    ) -> None:
        self._list_tools = list_tools
        self._announced = announced
        self._tools: dict[str, Tool] = {}
        self._mirrored: set[str] = set()
        self._relisting = Relisting(self._list)

    @property
    def current(self) -> bool:
        """Whether the cache is up to date, as far as that can be known."""
        return self._relisting.current and (self._announced() or not self._relisting.old)

    def known(self, name: str) -> Tool | None:
        """A tool, if it is cached and up to date."""
        return self._tools.get(name) if self._relisting.current else None

    def mirrors_arguments(self, name: str | None) -> bool:
        """Whether arguments of a tool are repeated in HTTP headers (`x-mcp-header`)."""
        return name in self._mirrored

    def invalidate(self) -> None:
        """The tools may have changed: list them again when they are next needed."""
        self._relisting.invalidate()

    def fill(self, entries: Iterable[Raw]) -> None:
        """Fill the cache with a complete listing."""
        self._store(entries)
        self._relisting.listed()

    async def tools(self) -> Mapping[str, Tool]:
        """All of them by name. Raises what listing them raises."""
        if not self._announced() and self._relisting.old:
            self.invalidate()
        await self._relisting.wait_current()
        return self._tools

    async def relist(self) -> None:
        """List them now."""
        self.invalidate()
        await self.tools()

    async def tool(self, name: str) -> Tool | None:
        """One of them. Lists again, at most once a second, before it returns None."""
        found = (await self.tools()).get(name)
        if found is None and await self._relisting.search_again():
            found = self._tools.get(name)
        return found

    async def _list(self) -> None:
        self._store(await self._list_tools())

    def _store(self, entries: Iterable[Raw]) -> None:
        found: dict[str, Tool] = {}
        mirrored: set[str] = set()
        for entry in entries:
            try:
                tool = msgspec.json.decode(entry, type=Tool)
            except msgspec.DecodeError:
                continue  # it has no name to call it by
            if found.setdefault(tool.name, tool) is tool and has_word(entry, "x-mcp-header"):
                mirrored.add(tool.name)
        self._tools, self._mirrored = found, mirrored


class CachingServer:
    """The shared part of `Server` implementations: cached tools, observers, and whole requests.

    Observers are debounced: once per list and turn of the event loop.
    """

    def __init__(self) -> None:
        self.tool_cache = ToolCache(self._list_tools, announced=self._announces_tools)
        self._capabilities: Mapping[str, Any] = {}
        self._observers: list[Observer] = []
        self._changed: set[str] = set()

    @abstractmethod
    async def _send(
        self, method: str, params: bytes | None, on_progress: OnProgress | None = None
    ) -> bytes:
        """Send one request; returns the raw result."""

    async def _list_page(self, method: str, params: bytes | None) -> bytes:
        return await self._send(method, params)

    async def _answer_input(self, result: bytes) -> dict[str, Any]:
        """The `inputResponses` for a result that requires input."""
        raise InputRequired(result)

    def _announces_tools(self) -> bool:
        return True

    def _has_tasks_by_extension(self) -> bool:
        """Whether the server has tasks in the form of the 2026-07-28 extension."""
        return False

    # --- as a `Server` -----------------------------------------------------------------------

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """See `Server`."""
        return self._capabilities

    @property
    def current(self) -> bool:
        """See `Server`."""
        return self.tool_cache.current

    async def tools(self) -> Mapping[str, Tool]:
        """See `Server`."""
        return await self.tool_cache.tools()

    async def tool(self, name: str) -> Tool | None:
        """See `Server`."""
        return await self.tool_cache.tool(name)

    async def request(
        self, method: str, params: Params = None, *, on_progress: OnProgress | None = None
    ) -> bytes:
        """See `Server`."""
        given = params if params is None or isinstance(params, bytes) else wire.encode(params)
        if method.startswith("tasks/") and self._has_tasks_by_extension():
            return await self._request_task(method, member(given, "taskId"))
        try:
            result = await self._send(method, given, on_progress)
        except ProtocolError as error:
            if error.code != _HEADER_MISMATCH or method != "tools/call":
                raise
            # HTTP headers of a call come from the tool's schema, which was outdated.
            await self.tool_cache.relist()
            result = await self._send(method, given, on_progress)
        for attempt in range(_MAX_ROUNDS):
            if is_task(result):
                task = as_handshake_task(members(result))
                if wants_task(method, given):
                    return wire.encode({"task": task})
                return await self._request_task("tasks/result", member(result, "taskId"))
            if is_complete(result):
                return without_hop_keys(method, result)
            required, again = members(result), members(given)
            if members(required.get("inputRequests")):
                again["inputResponses"] = Raw(wire.encode(await self._answer_input(result)))
            else:
                await asyncio.sleep(min(0.05 * 2**attempt, 0.25))  # the server is not ready yet
            if "requestState" in required:
                again["requestState"] = required["requestState"]
            result = await self._send(method, wire.encode(again), on_progress)
        raise InvalidResult(f"{method}: the server asked for input {_MAX_ROUNDS} times")

    async def _request_task(self, method: str, id: object) -> bytes:
        if method not in ("tasks/get", "tasks/result", "tasks/cancel") or not isinstance(id, str):
            raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method[:200]}")
        return await request_task(self._send, self._answer_input, method, id)

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """See `Server`."""
        self._observers.append(observer)

        def unsubscribe() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return unsubscribe

    # --- lists -------------------------------------------------------------------------------

    async def list_all(self, method: str, key: str) -> list[Raw]:
        """All entries of a list, from all pages, unread; raises as `request` does."""
        return await list_all(lambda params: self._list_page(method, params), method, key)

    async def _list_tools(self) -> list[Raw]:
        if self._capabilities.get("tools") is None:
            return []
        return await self.list_all("tools/list", "tools")

    def _list_changed(self, method: str) -> None:
        if method == TOOLS_CHANGED:
            self.tool_cache.invalidate()
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._notify_observers)
        self._changed.add(method)

    def _notify_observers(self) -> None:
        changed, self._changed = self._changed, set()
        for method in sorted(changed):
            for observer in list(self._observers):
                observer(method)
