"""A list of tools for a model, and its form for each model API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, overload

import msgspec

from transom.errors import UsageError
from transom.types import Tool

ModelApi = Literal["anthropic", "openai", "mcp"]
"""Whose form the definitions of tools have."""

# Model APIs refuse a whole request if one schema has these at its top level. The tool's owner
# validates the arguments against the full schema in any case.
_NOT_AT_TOP = frozenset({"allOf", "anyOf", "enum", "not", "oneOf"})


class ToolList(Sequence[Tool]):
    """Tools, to be read like any list; it never changes. `list(tools)` makes a list of it."""

    __slots__ = ("_flat", "_parts")

    def __init__(self, parts: Sequence[tuple[Tool, ...]]) -> None:
        self._parts = parts
        self._flat: list[Tool] | None = None

    def _all(self) -> list[Tool]:
        if self._flat is None:
            self._flat = list(chain.from_iterable(self._parts))
        return self._flat

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Tool]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tool]: ...
    def __getitem__(self, index: int | slice) -> Tool | list[Tool]:
        return self._all()[index]

    def __add__(self, other: Iterable[Tool]) -> list[Tool]:
        return [*self, *other]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ToolList | list | tuple):
            return self._all() == list(other)  # pyright: ignore[reportUnknownArgumentType]
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())


def tools_for(api: str, tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Definitions for the API `anthropic` (Messages), `openai` (Chat Completions) or `mcp`."""
    match api:
        case "anthropic":
            return [{**_described(tool), "input_schema": _schema(tool)} for tool in tools]
        case "openai":
            functions = [{**_described(tool), "parameters": _schema(tool)} for tool in tools]
            return [{"type": "function", "function": function} for function in functions]
        case "mcp":
            # A schema equal to the default would be left out, and the protocol wants it there.
            return [{**msgspec.to_builtins(t), "inputSchema": t.input_schema} for t in tools]
        case _:
            raise UsageError(f"{api!r} is not a known API: use anthropic, openai or mcp")


def _described(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description or ""}


def _schema(tool: Tool) -> dict[str, Any]:
    schema = tool.input_schema
    if schema.get("type") == "object" and "properties" in schema and not _NOT_AT_TOP & set(schema):
        return schema
    kept = {key: value for key, value in schema.items() if key not in _NOT_AT_TOP}
    return {"properties": {}, **kept, "type": "object"}
