"""What users hand over, as JSON: structs, or plain mappings that go out as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from transom.protocol import wire
from transom.types import Open, TextContent, ToolResult

__all__ = ["ToolOutcome", "object_json", "result_json"]

ToolOutcome = ToolResult | Mapping[str, Any] | str
"""A tool's result: a struct, a mapping with wire names, or just its text."""


def object_json(value: object) -> bytes:
    """A struct or a mapping as a JSON object.

    Raises:
        TypeError: it is neither, or holds something that JSON cannot.
    """
    if isinstance(value, Open):
        return value.to_wire()
    if isinstance(value, dict | msgspec.Struct):
        return wire.encode(value)
    if isinstance(value, Mapping):
        return wire.encode(dict(value))  # pyright: ignore[reportUnknownArgumentType]
    raise TypeError(f"Expected a struct or a mapping, not {type(value).__name__}")


def result_json(value: ToolOutcome) -> bytes:
    """A tool's result as JSON. `content` is always there."""
    if isinstance(value, str):
        return ToolResult(content=[TextContent(value)]).to_wire()
    if isinstance(value, Mapping) and "content" not in value:
        return wire.encode({"content": [], **value})
    return object_json(value)
