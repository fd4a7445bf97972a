"""The tools that a View lists, read within the limits.

Tool definitions are untrusted. One that cannot be used is left out, with a reason; the others are
not affected. Definitions are cached by their bytes, so one that was read before, for this View or
another, is neither decoded nor stored again. A listing of one page that is the same as the last one
is not read at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw

from transom.host.limits import Limits
from transom.json_values import as_object, depth_exceeds
from transom.protocol import wire
from transom.protocol.messages import ListToolsResult
from transom.protocol.methods import describe, read_result
from transom.protocol.pagination import Pagination
from transom.types import DisabledTool, Tool

_MAX_NAME = 128
_MAX_TITLE = 256
_MAX_REASONS = 100  # reasons stored for tools that are left out
_MAX_CURSOR = 4096
_MAX_READ = 10  # definitions that are read, bad ones included, for each that is allowed


class _ToolPage(msgspec.Struct, rename="camel"):
    """One page of `tools/list`, its tools still unread."""

    tools: list[Raw]
    next_cursor: str | None = None
    meta: Any = msgspec.field(name="_meta", default=None)


_decode_tool = msgspec.json.Decoder(Tool).decode


class _Definition(msgspec.Struct, frozen=True, weakref=True):
    """A decoded definition, cached as long as some View lists it."""

    data: bytes
    tool: Tool


@lru_cache(maxsize=16)
def _shared_definitions(*limits: int) -> WeakValueDictionary[bytes, _Definition]:
    """The cache of all Views' definitions that were read with these limits, by their bytes."""
    del limits
    return WeakValueDictionary()


class ToolListing(msgspec.Struct):
    """One listing: the tools that can be used, and those left out with the reason."""

    tools: dict[str, Tool] = {}
    left_out: dict[str, str] = {}
    disabled: dict[str, DisabledTool] = {}
    lazy: bool = False
    known: dict[bytes, _Definition] = {}
    number: int = 0

    def leave_out(self, name: str, reason: str) -> None:
        """Record why a tool, or with "" several tools, were left out; up to a number of reasons."""
        if not name or len(self.left_out) < _MAX_REASONS:
            self.left_out.setdefault(name, reason)


class _NameOnly(msgspec.Struct):
    name: str


def _name_in(data: bytes) -> str | None:
    """The name of a tool whose definition is not read; None if it is not fit to be shown."""
    try:
        name = msgspec.json.decode(data, type=_NameOnly).name
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    return name if 0 < len(name) <= _MAX_NAME and name.isprintable() else None


class ToolDefinitions:
    """Reads definitions within the limits, and caches the last ones by their bytes."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last: tuple[bytes, ToolListing] | None = None  # by the digest of its only page
        self._known: dict[bytes, _Definition] = {}
        self.shared = _shared_definitions(
            limits.max_definition_bytes, limits.max_schema_depth, limits.max_description
        )
        """The definitions of all Views with these limits."""

    async def list_all(self, request: Callable[[bytes], Awaitable[Raw]]) -> ToolListing:
        """List, page by page, but no more pages or tools than the limits allow.

        `request` sends `tools/list` with these params, and returns its result.
        """
        limits, listing = self._limits, ToolListing()
        pages, digest = Pagination(limits.max_pages), b""
        while True:
            first_page = pages.cursor is None
            result = await request(b"{}" if first_page else wire.encode({"cursor": pages.cursor}))
            if first_page:
                digest = blake2b(result, digest_size=16).digest()
                if self._last is not None and self._last[0] == digest:
                    return self._last[1]
            page: _ToolPage = read_result("tools/list", _ToolPage, result)
            if first_page:
                first = ListToolsResult(meta=as_object(page.meta))
                listing.disabled = {t.name: t for t in first.disabled if t.name.isprintable()}
                listing.lazy = first.lazy
            if (rest := self._add_page(listing, page)) > 0:
                more = "at least " if page.next_cursor else ""
                text = f"the View has more than {limits.max_tools} tools (max_tools)"
                listing.leave_out("", f"{text}: {more}{rest} left out")
                break
            if len(page.next_cursor or "") > _MAX_CURSOR:
                listing.leave_out("", "the View's list has a cursor that is too long")
                break
            if not pages.follow(page.next_cursor):
                break
        if pages.failure is not None:
            listing.leave_out("", f"the View's list {pages.failure}")
        self._known = listing.known
        only_page = pages.cursor is None and pages.failure is None
        self._last = (digest, listing) if only_page else None
        return listing

    def _add_page(self, listing: ToolListing, page: _ToolPage) -> int:
        """Add a page to a listing; how many of its tools there is no room for."""
        limit = self._limits.max_tools
        for index, raw in enumerate(page.tools):
            if len(listing.tools) >= limit or listing.number >= _MAX_READ * limit:
                return len(page.tools) - index
            listing.number += 1
            data = bytes(raw)
            known = self._known.get(data) or self.shared.get(data)
            if known is None:
                tool = self._read(listing, data)
                if tool is None:
                    continue
                known = self.shared[data] = _Definition(data, tool)
            name = known.tool.name
            if name in listing.tools:
                listing.leave_out(name, "listed twice; the first counts")
                continue
            listing.lazy = listing.lazy or known.tool.lazy
            listing.known[known.data] = known
            listing.tools[name] = known.tool
        return 0

    def _read(self, listing: ToolListing, data: bytes) -> Tool | None:
        limits, unnamed = self._limits, f"tool {listing.number}"
        if len(data) > limits.max_definition_bytes:
            size = f"{len(data)} bytes is over the limit of {limits.max_definition_bytes}"
            text = f"a definition of {size} (max_definition_bytes)"
            listing.leave_out(_name_in(data) or unnamed, text)
            return None
        try:
            tool = _decode_tool(data)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            listing.leave_out(unnamed, describe(error))
            return None
        reason = self._why_left_out(tool)
        if reason is not None:
            name = tool.name if tool.name.isprintable() else unnamed
            listing.leave_out(name[:_MAX_NAME] or unnamed, reason)
            return None
        return self._shortened(tool)

    def _why_left_out(self, tool: Tool) -> str | None:
        if not tool.name or len(tool.name) > _MAX_NAME or not tool.name.isprintable():
            return f"a name has 1 to {_MAX_NAME} printable characters"
        depth = self._limits.max_schema_depth
        for word, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            if schema is not None and schema.get("type") != "object":
                return f"its {word} schema is not of type object"
            if schema is not None and depth_exceeds(schema, depth):
                return f"its {word} schema is nested deeper than {depth} (max_schema_depth)"
        if depth_exceeds(tool.meta, depth):
            return f"its metadata is nested deeper than {depth} (max_schema_depth)"
        return None

    def _shortened(self, tool: Tool) -> Tool:
        limit = self._limits.max_description
        if tool.description is not None and len(tool.description) > limit:
            cut = tool.description[:limit] + "… (cut)"
            tool = msgspec.structs.replace(tool, description=cut)
        if tool.title is not None and len(tool.title) > _MAX_TITLE:
            tool = msgspec.structs.replace(tool, title=tool.title[:_MAX_TITLE] + "…")
        return tool
