"""Which return annotations are worth a schema."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Union, cast, get_args, get_origin

from transom.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolResult,
)

__all__ = ["says_something"]

_CONTENT = (AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent, ToolResult)
_CONTENT_NAMES = frozenset({"CallToolResult", *(cls.__name__ for cls in _CONTENT)})
_SILENT = (Any, object, None, type(None), str, bytes, bytearray, memoryview, typing.NoReturn)


def says_something(hint: Any) -> bool:
    """Whether a return annotation promises structured content that a schema can describe."""
    return not _is_silent(hint) and not _has_content(hint)


def _is_silent(hint: Any) -> bool:
    if any(hint is silent for silent in _SILENT) or isinstance(hint, typing.TypeVar):
        return True
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _is_silent(arguments[0])
    if origin is Union or origin is types.UnionType:
        return all(_is_silent(argument) for argument in arguments)
    kind = origin or hint
    if kind is dict or kind is Mapping or kind is cast("Any", typing.Mapping):
        return len(arguments) < 2 or arguments[1] in {Any, object}
    return False


def _has_content(hint: Any) -> bool:
    """Content blocks and whole results, ours or the official SDK's, anywhere in a hint."""
    if isinstance(hint, type) and not get_args(hint):
        if hint in _CONTENT:
            return True
        return hint.__module__.partition(".")[0] in {"mcp", "mcp_types"} and (
            hint.__name__ in _CONTENT_NAMES
        )
    return any(_has_content(argument) for argument in get_args(hint))
