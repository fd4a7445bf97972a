"""Listing tools: enabled registered ones first, then what `on_list_tools` adds, page by page.

1. A name that is registered, enabled or not, is never taken from `on_list_tools`.
2. A tool whose lazy schema cannot be made, or that `on_list_tools` got wrong, is left out and
   reported; the others are not affected.
3. A cursor says where the next page begins: after a registered tool, by its name, so that changes
   between two pages neither repeat nor lose tools that stay; or at an offset of what
   `on_list_tools` gave for a cursor of its own.
4. Pages of tools that did not change are encoded once.
5. The first page has the disabled tools in its `_meta`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from typing import Any, cast

import msgspec

from transom.errors import INVALID_PARAMS, ProtocolError, SchemaError
from transom.events import Slot, is_awaitable
from transom.protocol.messages import DISABLED_TOOLS, LAZY, MAX_DISABLED, ListToolsResult
from transom.types import Tool
from transom.view.invoke import ReportProblem
from transom.view.tools import RegisteredTool, Registry, Unavailable


class _Cursor(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Where a page begins. `after`: the registered tool before it; else in `on_list_tools`."""

    after: str | None = None
    index: int = 0
    more: bool = False
    cursor: str | None = None


def _decode_cursor(text: str | None) -> _Cursor:
    if text is None:
        return _Cursor()
    try:
        cursor = msgspec.json.decode(base64.urlsafe_b64decode(text.encode()), type=_Cursor)
        if cursor.index < 0 or (cursor.after is None and not cursor.more):
            raise ValueError(text)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise ProtocolError(INVALID_PARAMS, "Invalid cursor") from None
    return cursor


def _encode_cursor(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode()


def _page(entries: Iterable[bytes], next_cursor: _Cursor | None, meta: bytes = b"") -> bytes:
    following = b""
    if next_cursor is not None:
        following = b',"nextCursor":"%b"' % _encode_cursor(next_cursor).encode()
    return b'{"tools":[%b]%b%b}' % (b",".join(entries), following, meta)


class _Plan(msgspec.Struct):
    """A page of registered tools: static ones as they are sent, and lazy ones between them."""

    parts: list[bytes | RegisteredTool]
    count: int
    following: _Cursor | None
    meta: bytes

    def entries(self) -> list[bytes]:
        """The tools as JSON; one whose schema cannot be made has reported why."""
        found: list[bytes] = []
        for part in self.parts:
            if isinstance(part, bytes):
                found.append(part)
            else:
                with suppress(Unavailable):
                    found.append(part.encoded())
        return found


class Listing:
    """Answers `tools/list` for one registry."""

    def __init__(
        self,
        registry: Registry,
        page_size: int,
        handler: Slot,
        report: ReportProblem,
    ) -> None:
        self._registry = registry
        self._page_size = page_size
        self._handler = handler
        self._report = report
        self._version = -1
        self._plans: dict[str | None, _Plan] = {}

    def list_page(self, cursor: str | None) -> bytes | Awaitable[bytes]:
        """One page, as the JSON of the result."""
        handler = self._handler or None
        if self._version != self._registry.version:
            self._version = self._registry.version
            self._plans.clear()
        plan = self._plans.get(cursor)
        if plan is None:
            start = _decode_cursor(cursor)
            if start.more:
                nothing = _Plan([], 0, None, b"")
                return _page((), None) if handler is None else self._ask(handler, nothing, start)
            plan = self._plan(start, b"" if cursor else self._meta())
            if len(self._plans) < 1024:
                self._plans[cursor] = plan
        following = plan.following
        if following is None and handler is not None:
            following = _Cursor(more=True)
            if plan.count < self._page_size:
                return self._ask(handler, plan, following)
        return _page(plan.entries(), following, plan.meta)

    def _plan(self, start: _Cursor, meta: bytes) -> _Plan:
        tools = list(self._registry)
        index = start.index
        if start.after is not None:
            names = [tool.name for tool in tools]
            index = names.index(start.after) + 1 if start.after in names else start.index
        places = [place for place in range(index, len(tools)) if tools[place].enabled]
        following = None
        if len(places) > self._page_size:
            place = places[self._page_size]
            following = _Cursor(after=tools[place - 1].name, index=place)
        shown = [tools[place] for place in places[: self._page_size]]
        parts: list[bytes | RegisteredTool] = []
        for lazy, group in groupby(shown, key=lambda tool: tool.lazy):
            neighbours = list(group)
            parts += neighbours if lazy else [b",".join(tool.encoded() for tool in neighbours)]
        return _Plan(parts, len(shown), following, meta)

    def _meta(self) -> bytes:
        meta: dict[str, object] = {}
        if any(tool.lazy and tool.enabled for tool in self._registry):
            meta[LAZY] = True
        if disabled := [tool.as_disabled() for tool in self._registry if not tool.enabled]:
            meta[DISABLED_TOOLS] = disabled[:MAX_DISABLED]
        return b',"_meta":' + msgspec.json.encode(meta) if meta else b""

    async def _ask(self, handler: Slot, plan: _Plan, start: _Cursor) -> bytes:
        """A page that ends with what `on_list_tools` adds."""
        entries = plan.entries()
        returned = handler.ask(start.cursor) if handler else None  # it may have been removed
        if is_awaitable(returned):
            returned = await returned
        tools, theirs = _tools_of(returned)
        room = self._page_size - plan.count
        kept = [entry for tool in tools if (entry := self._entry(tool)) is not None]
        entries += kept[start.index : start.index + room]
        if start.index + room < len(kept):
            following = _Cursor(more=True, index=start.index + room, cursor=start.cursor)
            return _page(entries, following, plan.meta)
        if isinstance(theirs, str):
            return _page(entries, _Cursor(more=True, cursor=theirs), plan.meta)
        if theirs is not None:
            kind = type(theirs).__name__
            self._report(TypeError(f"on_list_tools: nextCursor is text, not {kind}"))
        return _page(entries, None, plan.meta)

    def _entry(self, tool: object) -> bytes | None:
        """The entry of a tool that `on_list_tools` added, or None if it cannot be listed."""
        try:
            encoded = msgspec.json.encode(Tool(tool) if isinstance(tool, str) else tool)
            checked = msgspec.json.decode(encoded, type=Tool)
            if checked.input_schema.get("type") != "object":
                raise SchemaError(f"Tool {checked.name}: inputSchema must have type 'object'")
        except Exception as error:  # noqa: BLE001 - it may be anything
            self._report(error)
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
    if isinstance(returned, str):
        raise TypeError("on_list_tools returns a list of tools, not a text")
    return list(cast("Iterable[object]", returned)), None
