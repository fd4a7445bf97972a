"""Tool definitions in the formats of model APIs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from transom.errors import UsageError
from transom.types import Tool

__all__ = ["Api", "tools_for"]

Api = Literal["anthropic", "openai", "mcp"]

# Model APIs refuse a whole request if one schema has these at its top level. The tool's owner
# validates the arguments against the full schema in any case.
_NOT_AT_TOP = frozenset({"allOf", "anyOf", "enum", "not", "oneOf"})


def tools_for(api: str, tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Definitions for the API `anthropic` (Messages), `openai` (Chat Completions) or `mcp`.

    Raises:
        UsageError: there is no such API.
    """
    shape = _SHAPES.get(api)
    if shape is None:
        raise UsageError(f"{api!r} is none of the known APIs: {', '.join(_SHAPES)}")
    return [shape(tool) for tool in tools]


def _schema(tool: Tool) -> dict[str, Any]:
    schema = tool.input_schema
    if schema.get("type") == "object" and "properties" in schema and not _NOT_AT_TOP & set(schema):
        return schema
    kept = {key: value for key, value in schema.items() if key not in _NOT_AT_TOP}
    return {"properties": {}, **kept, "type": "object"}


def _anthropic(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description or "",
        "input_schema": _schema(tool),
    }


def _openai(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": _schema(tool),
    }
    return {"type": "function", "function": function}


def _mcp(tool: Tool) -> dict[str, Any]:
    # A schema equal to the default would be left out, and the protocol wants it there.
    return {**msgspec.to_builtins(tool), "inputSchema": tool.input_schema}


_SHAPES: dict[str, Callable[[Tool], dict[str, Any]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "mcp": _mcp,
}
