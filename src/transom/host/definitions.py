"""A View's tool definitions, read as what they are: text from a stranger.

One that cannot be used is left out, with a reason; the others are not affected. What was read
before, for this View or another, is recognised by its bytes and not read or kept again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, cast
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw

from transom.errors import InvalidResult
from transom.host.policy import Limits
from transom.protocol import wire
from transom.protocol.methods import describe
from transom.types import Tool

__all__ = ["Definitions", "Listing"]

_MAX_NAME = 128
_MAX_TITLE = 256
_MAX_NOTED = 100
_MAX_CURSOR = 4096
_LOOKED_AT = 10  # how many definitions are read, bad ones included, for each that may be kept


class _Page(msgspec.Struct, rename="camel"):
    """One page of `tools/list`, its tools still unread."""

    tools: list[Raw]
    next_cursor: str | None = None


_decode_page = msgspec.json.Decoder(_Page).decode
_decode_tool = msgspec.json.Decoder(Tool).decode


def _read_page(raw: Raw) -> _Page:
    """Read one page.

    Raises:
        InvalidResult: it is not a page of tools at all.
    """
    try:
        return _decode_page(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InvalidResult(f"Invalid result for tools/list: {describe(error)}") from None


class _Known:
    """A definition that was read, kept as long as some View lists it."""

    __slots__ = ("__weakref__", "data", "tool")

    def __init__(self, data: bytes, tool: Tool) -> None:
        self.data = data
        self.tool = tool


@lru_cache(maxsize=16)
def _known_under(limits: Limits) -> WeakValueDictionary[bytes, _Known]:
    """What any View lists: the same limits make the same of the same bytes."""
    del limits
    return WeakValueDictionary()


class Listing:
    """One listing: the tools that were taken, and those left out with the reason."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.left_out: dict[str, str] = {}
        self.known: dict[bytes, _Known] = {}
        self.number = 0

    def leave_out(self, name: str, reason: str) -> None:
        """Note a tool that is not taken, or "" for many. Only so many are noted one by one."""
        if not name or len(self.left_out) < _MAX_NOTED:
            self.left_out.setdefault(name, reason)


class Definitions:
    """Reads definitions within the limits, and remembers the last ones by their bytes."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[bytes, _Known] = {}
        self._shared = _known_under(limits)

    async def list_all(self, ask: Callable[[bytes], Awaitable[Raw]]) -> Listing:
        """List, page by page, but no more pages or tools than the limits allow.

        Args:
            ask: takes the params of `tools/list`, returns its result.

        Raises:
            InvalidResult: the answer is not a page of tools at all.
        """
        limits, listing = self._limits, Listing()
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(limits.max_pages):
            params = b"{}" if cursor is None else wire.encode({"cursor": cursor})
            page = _read_page(await ask(params))
            if not self._take(listing, page):
                listing.leave_out("", f"the View has more than {limits.max_tools} tools")
                break
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in seen or len(cursor) > _MAX_CURSOR:
                listing.leave_out("", "the View's list of tools goes round in circles")
                break
            seen.add(cursor)
        else:
            listing.leave_out("", f"the View's list has more than {limits.max_pages} pages")
        self._known = listing.known
        return listing

    def _take(self, listing: Listing, page: _Page) -> bool:
        """Add a page to a listing. False: there is no room for more."""
        limit = self._limits.max_tools
        for raw in page.tools:
            if len(listing.tools) >= limit or listing.number >= _LOOKED_AT * limit:
                return False
            listing.number += 1
            data = bytes(raw)
            known = self._known.get(data) or self._shared.get(data)
            if known is None:
                tool = self._read(listing, data)
                if tool is None:
                    continue
                known = self._shared[data] = _Known(data, tool)
            name = known.tool.name
            if name in listing.tools:
                listing.leave_out(name, "listed twice; the first counts")
                continue
            listing.known[known.data] = known
            listing.tools[name] = known.tool
        return True

    def _read(self, listing: Listing, data: bytes) -> Tool | None:
        limits, unnamed = self._limits, f"tool {listing.number}"
        if len(data) > limits.max_definition_bytes:
            size = f"{len(data)} bytes is over the limit of {limits.max_definition_bytes}"
            listing.leave_out(unnamed, f"a definition of {size}")
            return None
        try:
            tool = _decode_tool(data)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            listing.leave_out(unnamed, describe(error))
            return None
        problem = self._problem(tool)
        if problem is not None:
            name = tool.name if tool.name.isprintable() else unnamed
            listing.leave_out(name[:_MAX_NAME] or unnamed, problem)
            return None
        return self._shortened(tool)

    def _problem(self, tool: Tool) -> str | None:
        if not tool.name or len(tool.name) > _MAX_NAME or not tool.name.isprintable():
            return f"a name has 1 to {_MAX_NAME} printable characters"
        depth = self._limits.max_schema_depth
        for word, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            if schema is not None and schema.get("type") != "object":
                return f"its {word} schema is not of type object"
            if schema is not None and _deeper(schema, depth):
                return f"its {word} schema is nested deeper than {depth}"
        if _deeper(tool.meta, depth):
            return f"its metadata is nested deeper than {depth}"
        return None

    def _shortened(self, tool: Tool) -> Tool:
        limit = self._limits.max_description
        if tool.description is not None and len(tool.description) > limit:
            cut = tool.description[:limit] + "… (cut)"
            tool = msgspec.structs.replace(tool, description=cut)
        if tool.title is not None and len(tool.title) > _MAX_TITLE:
            tool = msgspec.structs.replace(tool, title=tool.title[:_MAX_TITLE] + "…")
        return tool


def _deeper(value: object, limit: int) -> bool:
    """Whether `value` nests deeper than `limit`: one level of it at a time."""
    level: list[Any] = [value]
    for _ in range(limit + 1):
        below: list[Any] = []
        for entry in level:
            if isinstance(entry, dict):
                below += cast("dict[str, Any]", entry).values()
            elif isinstance(entry, list):
                below += cast("list[Any]", entry)
        if not below:
            return False
        level = below
    return True
