"""The tools of one View: its listings, read within the limits, and when it is listed again.

1. Tool definitions are untrusted. One that cannot be used is left out, with a reason; the others
   are not affected.
2. Definitions are cached by their bytes, so one that was read before, for this View or another, is
   neither decoded nor stored again. A listing of one page that is the same as the last one is not
   read at all.
3. A View is listed again when it announces a change; one that never announces changes, after each
   call; one with lazy schemas, whose every listing may differ, also for each model that lists.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw

from transom.host.limits import Limits
from transom.host.tools.refresh import Refresh, wait_refreshed
from transom.host.tools.tool_visibility import model_may_call
from transom.json_values import as_object, depth_exceeds
from transom.protocol import wire
from transom.protocol.messages import ListToolsResult
from transom.protocol.methods import describe, read_result
from transom.protocol.pagination import Pagination
from transom.types import AppCapabilities, DisabledTool, Tool

_MAX_NAME = 128
_MAX_TITLE = 256
_MAX_REASONS = 100  # reasons stored for tools that are left out
_MAX_CURSOR = 4096
_MAX_READ = 10  # definitions that are read, bad ones included, for each that is allowed
_FIRST_LISTING = 3.0  # seconds
_MAX_LEFT_OUT = 5  # tools named in a report of those that are left out
_MAX_REPORTS = 20  # texts about tools that are left out, for one View


class _ToolPage(msgspec.Struct, rename="camel"):
    """One page of `tools/list`, its tools still unread."""

    tools: list[Raw]
    next_cursor: str | None = None
    meta: Any = msgspec.field(name="_meta", default=None)


_decode_tool = msgspec.json.Decoder(Tool).decode


@lru_cache(maxsize=16)
def _shared_tools(*limits: int) -> WeakValueDictionary[bytes, Tool]:
    """The tools of all Views that were read with these limits, by the bytes of their definitions.

    Each as long as some View lists it.
    """
    del limits
    return WeakValueDictionary()


class ToolListing(msgspec.Struct):
    """One listing: the tools that can be used, and those left out with the reason."""

    tools: dict[str, Tool] = {}
    left_out: dict[str, str] = {}
    disabled: dict[str, DisabledTool] = {}
    lazy: bool = False
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
    """Reads definitions within the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last: tuple[bytes, ToolListing] | None = None  # by the digest of its only page
        self.shared = _shared_tools(
            limits.max_definition_bytes, limits.max_schema_depth, limits.max_description
        )
        """The tools of all Views with these limits."""

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
            tool = self.shared.get(data)
            if tool is None:
                tool = self._read(listing, data)
                if tool is None:
                    continue
                self.shared[data] = tool
            if tool.name in listing.tools:
                listing.leave_out(tool.name, "listed twice; the first counts")
                continue
            listing.lazy = listing.lazy or tool.lazy
            listing.tools[tool.name] = tool
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


class KnownTools:
    """One View's tools.

    Args:
        refresh: lists the View again.
        pulled: the lists of the host that are listed again for each model that lists tools.
    """

    def __init__(self, refresh: Refresh, pulled: set[Refresh]) -> None:
        self.by_name: dict[str, Tool] = {}
        self.for_model: dict[str, Tool] = {}
        """Those that a model may call."""
        self.left_out = ""
        """Which tools no model can call, and why."""
        self._announces_changes = True
        self._reported: set[str] = set()
        self._pulled = pulled
        self._refresh = refresh

    @property
    def may_differ(self) -> bool:
        """Whether every listing may differ."""
        return self._refresh in self._pulled

    @property
    def pulling(self) -> bool:
        """Whether the running listing is only for a model that lists, not for a change."""
        return self._refresh.pulling

    def update(self, listed: Iterable[Tool], *, may_differ: bool) -> None:
        """Replace them by those of a new listing."""
        self.by_name = {tool.name: tool for tool in listed}
        self.for_model = {name: t for name, t in self.by_name.items() if model_may_call(t)}
        (self._pulled.add if may_differ else self._pulled.discard)(self._refresh)

    def changed(self, app: AppCapabilities | None) -> None:
        """List the View, which declares these capabilities now, again soon."""
        tools = None if app is None else app.tools
        self._announces_changes = tools is None or tools.list_changed is True
        self._refresh.trigger()

    def called(self) -> None:
        """One of them was called, which may have changed them."""
        if not self._announces_changes:
            self._refresh.trigger()

    def report_once(self, text: str) -> bool:
        """Whether what is wrong with the listing was not reported before."""
        if text in self._reported or len(self._reported) >= _MAX_REPORTS:
            return False
        self._reported.add(text)
        return True

    async def wait_first(self) -> None:
        """Wait for the first listing: no earlier one can be used, so it may take longer."""
        await wait_refreshed([self._refresh], _FIRST_LISTING)

    async def refreshed(self, seconds: float, *, list_again: bool = False) -> None:
        """Wait briefly for a pending listing, or for the one that a lazy schema needs.

        With `list_again`, it is listed now if no listing is pending, as often as the rate allows.
        """
        if self.may_differ:
            self._refresh.pull()
        elif list_again and self._refresh.listing(seconds) is None:
            self._refresh.trigger()
        await wait_refreshed([self._refresh], seconds, slow_ones=True)

    def close(self) -> None:
        """The View has ended: it has no tools, and is not listed again."""
        self._refresh.stop()
        self.update((), may_differ=False)


def describe_left_out(reasons: Mapping[str, str]) -> str:
    """Which tools no model can call, and why; "" if there are none."""
    told = [f"{name}: {why}" if name else why for name, why in reasons.items()]
    more = len(told) - _MAX_LEFT_OUT
    text = "; ".join(told[:_MAX_LEFT_OUT]) + (f"; and {more} more" if more > 0 else "")
    if any("(max_" in reason for reason in reasons.values()):
        text += ". Limits(...), or --limit NAME=NUMBER of the gateway, raises a limit"
    return text
