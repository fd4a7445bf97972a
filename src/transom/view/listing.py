"""Listing tools: enabled registered ones first, then what `on_list_tools` adds, page by page.

1. A name that is registered, enabled or not, is never taken from `on_list_tools`.
2. A tool whose lazy schema cannot be made, or that `on_list_tools` got wrong, is left out and
   reported; the others are not affected.
3. A cursor says where the next page begins: after a registered tool, by its name, so that changes
   between two pages neither repeat nor lose tools that stay; or at an offset of what
   `on_list_tools` gave for a cursor of its own.
4. Pages of tools that did not change are encoded once.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from transom.errors import INVALID_PARAMS, ProtocolError, SchemaError
from transom.events import Slot, is_awaitable
from transom.protocol.messages import ListToolsResult
from transom.types import Tool
from transom.view.tools import Registry, Unavailable


class _Cursor(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Where a page begins. `after`: the registered tool before it; else in `on_list_tools`."""

    after: str | None = None
    index: int = 0
    more: bool = False
    cursor: str | None = None


_read_cursor = msgspec.json.Decoder(_Cursor).decode


def _decode_cursor(text: str | None) -> _Cursor:
    if text is None:
        return _Cursor()
    try:
        cursor = _read_cursor(base64.urlsafe_b64decode(text.encode()))
        if cursor.index < 0 or (cursor.after is None and not cursor.more):
            raise ValueError(text)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise ProtocolError(INVALID_PARAMS, "Invalid cursor") from None
    return cursor


def _encode_cursor(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode()


def _page(entries: Iterable[bytes], next_cursor: _Cursor | None) -> bytes:
    body = b",".join(entries)
    if next_cursor is None:
        return b'{"tools":[%b]}' % body
    return b'{"tools":[%b],"nextCursor":"%b"}' % (body, _encode_cursor(next_cursor).encode())


class Listing:
    """Answers `tools/list` for one registry.

    Args:
        registry: the registered tools.
        page_size: how many tools a page has at most.
        handler: the App's `on_list_tools`.
        on_problem: called with the reason when a tool is left out.
    """

    def __init__(
        self,
        registry: Registry,
        page_size: int,
        handler: Slot,
        on_problem: Callable[[BaseException], object],
    ) -> None:
        self._registry = registry
        self._page_size = page_size
        self._handler = handler
        self._on_problem = on_problem
        self._cached_version = -1
        self._cached: dict[str | None, bytes] = {}

    def page(self, cursor: str | None) -> bytes | Awaitable[bytes]:
        """One page, as the JSON of the result.

        Raises:
            ProtocolError: -32602, the cursor is not one of ours.
        """
        handler = self._handler or None
        if self._cached_version != self._registry.version:
            self._cached_version = self._registry.version
            self._cached.clear()
        elif handler is None and cursor in self._cached:
            return self._cached[cursor]
        start = _decode_cursor(cursor)
        if start.more:
            if handler is None:
                return _page((), None)
            return self._from_handler(handler, [], start)
        entries, following, lazy = self._registered(start)
        if following is None and handler is not None:
            if len(entries) < self._page_size:
                return self._from_handler(handler, entries, _Cursor(more=True))
            following = _Cursor(more=True)
        answer = _page(entries, following)
        if handler is None and not lazy and len(self._cached) < 1024:
            self._cached[cursor] = answer
        return answer

    def _registered(self, start: _Cursor) -> tuple[list[bytes], _Cursor | None, bool]:
        """Entries of one page of registered tools, where the next begins, and if any are lazy."""
        tools = list(self._registry)
        index = start.index
        if start.after is not None:
            names = [tool.name for tool in tools]
            index = names.index(start.after) + 1 if start.after in names else start.index
        entries: list[bytes] = []
        lazy = False
        for place in range(index, len(tools)):
            tool = tools[place]
            if not tool.enabled:
                continue
            if len(entries) == self._page_size:
                return entries, _Cursor(after=tools[place - 1].name, index=place), lazy
            lazy = lazy or tool.lazy
            try:
                entries.append(tool.encoded())
            except Unavailable:
                continue  # the tool has reported the reason
        return entries, None, lazy

    async def _from_handler(self, handler: Slot, entries: list[bytes], start: _Cursor) -> bytes:
        returned = handler.ask(start.cursor) if handler else None  # it may be gone by now
        if is_awaitable(returned):
            returned = await returned
        tools, theirs = _tools_of(returned)
        room = self._page_size - len(entries)
        kept = [entry for tool in tools if (entry := self._entry(tool)) is not None]
        entries = entries + kept[start.index : start.index + room]
        if start.index + room < len(kept):
            return _page(entries, _Cursor(more=True, index=start.index + room, cursor=start.cursor))
        if isinstance(theirs, str):
            return _page(entries, _Cursor(more=True, cursor=theirs))
        if theirs is not None:
            kind = type(theirs).__name__
            self._on_problem(TypeError(f"on_list_tools: nextCursor is text, not {kind}"))
        return _page(entries, None)

    def _entry(self, tool: object) -> bytes | None:
        """The entry of a tool that `on_list_tools` added, or None if it cannot be listed."""
        try:
            encoded = msgspec.json.encode(tool)
            checked = msgspec.json.decode(encoded, type=Tool)
            if checked.input_schema.get("type") != "object":
                raise SchemaError(f"Tool {checked.name}: inputSchema must have type 'object'")
        except Exception as error:  # noqa: BLE001 - it may be anything
            self._on_problem(error)
            return None
        return None if checked.name in self._registry else encoded


def _tools_of(returned: object) -> tuple[list[object], object]:
    """The tools in whatever `on_list_tools` returned: a list, or a result with a cursor."""
    if isinstance(returned, ListToolsResult):
        return list(returned.tools), returned.next_cursor
    if isinstance(returned, Mapping):
        result = cast("Mapping[str, Any]", returned)
        return list(result.get("tools", ())), result.get("nextCursor")
    if returned is None:
        return [], None
    return list(cast("Iterable[object]", returned)), None
