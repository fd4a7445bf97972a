"""A View's tool definitions, read as what they are: text from a stranger.

One that cannot be used is left out, with a reason; the others are not affected. What was read
before is recognised by its bytes and not read again.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from transom.errors import InvalidResult
from transom.host.policy import Limits
from transom.protocol.methods import describe
from transom.types import Tool

__all__ = ["Definitions", "Listing", "Page", "read_page"]

_MAX_NAME = 128
_MAX_TITLE = 256


class Page(msgspec.Struct, rename="camel"):
    """One page of `tools/list`, its tools still unread."""

    tools: list[Raw]
    next_cursor: str | None = None


_decode_page = msgspec.json.Decoder(Page).decode
_decode_tool = msgspec.json.Decoder(Tool).decode


def read_page(raw: Raw) -> Page:
    """Read one page.

    Raises:
        InvalidResult: it is not a page of tools at all.
    """
    try:
        return _decode_page(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InvalidResult(f"Invalid result for tools/list: {describe(error)}") from None


class Listing:
    """One listing under way: the tools taken so far and those left out, with the reason."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.left_out: dict[str, str] = {}
        self.seen: set[str] = set()
        self.number = 0

    def leave_out(self, name: str, reason: str) -> None:
        """Note a tool that is not taken. Only so many are noted one by one."""
        if len(self.left_out) < 100:
            self.left_out.setdefault(name, reason)


class Definitions:
    """Reads definitions within the limits, and remembers the last ones by their bytes."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[bytes, Tool] = {}
        self._next: dict[bytes, Tool] = {}

    def take(self, listing: Listing, page: Page) -> bool:
        """Add a page to a listing. False: there is no room for more."""
        for raw in page.tools:
            if len(listing.tools) >= self._limits.max_tools:
                return False
            listing.number += 1
            data = bytes(raw)
            tool = self._known.get(data)
            if tool is None:
                tool = self._read(listing, data)
                if tool is None:
                    continue
            if tool.name in listing.tools:
                listing.leave_out(tool.name, "listed twice; the first counts")
                continue
            self._next[data] = listing.tools[tool.name] = tool
        return True

    def finish(self) -> None:
        """Forget what the listing did not have."""
        self._known, self._next = self._next, {}

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
    level: list[object] = [value]
    for _ in range(limit + 1):
        below: list[object] = []
        for entry in level:
            if isinstance(entry, dict):
                below += entry.values()  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            elif isinstance(entry, list):
                below += entry  # pyright: ignore[reportUnknownArgumentType]
        if not below:
            return False
        level = below
    return True
