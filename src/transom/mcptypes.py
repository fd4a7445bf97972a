"""Our values as the official SDK's `mcp.types`, and what clients say about MCP Apps.

Only `connections`, `host`, `server`, `gateway` and `check` may import this: it imports `mcp`.

Results that go to the SDK are validated, and refused with a `ValidationError` that has the path of
each mismatch and never the value. Keys in `extra` are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast, get_args

import mcp.types as mcp
import msgspec
import pydantic

from transom.protocol.messages import UI_EXTENSION, VIEW_MIME_TYPE
from transom.schema.mismatches import Path, invalid, mismatch, mismatches_from_pydantic
from transom.types import ContentBlock, EmbeddedResource, ResourceContents, ToolResult

# By kind, not by the SDK's union: that would report a mismatch once for each of its members.
_MODELS: Final[dict[type, Any]] = {
    kind: getattr(mcp, kind.__name__) for kind in get_args(ContentBlock)
}


def supports_views(capabilities: mcp.ClientCapabilities | Mapping[str, Any] | None) -> bool:
    """Whether these client capabilities list the View type in the extension's `mimeTypes`."""
    if isinstance(capabilities, mcp.ClientCapabilities):
        extensions: object = capabilities.extensions
    else:
        extensions = (capabilities or {}).get("extensions")
    types = _get(_get(extensions, UI_EXTENSION), "mimeTypes")
    return isinstance(types, list | tuple) and VIEW_MIME_TYPE in cast("Iterable[object]", types)


def _get(value: object, key: str) -> object:
    return cast("Mapping[str, object]", value).get(key) if isinstance(value, Mapping) else None


def result_to_mcp(result: ToolResult) -> mcp.CallToolResult:
    """A tool's result."""
    return mcp.CallToolResult(
        content=[content_to_mcp(block, ("content", i)) for i, block in enumerate(result.content)],
        structured_content=result.structured_content,
        is_error=result.is_error,
        _meta=result.meta,
    )


def content_to_mcp(block: ContentBlock, at: Path = ()) -> mcp.ContentBlock:
    """One content block; `at` is its path in what it is part of."""
    wire = msgspec.to_builtins(block)
    if isinstance(block, EmbeddedResource):
        wire["resource"] = _contents(block.resource, (*at, "resource"))
    return _load(_MODELS[type(block)], wire, at)


def _contents(part: ResourceContents, at: Path) -> Any:
    if (part.text is None) == (part.blob is None):
        raise invalid([mismatch(at, "needs either text or blob")])
    model = mcp.BlobResourceContents if part.text is None else mcp.TextResourceContents
    return _load(model, msgspec.to_builtins(part), at)


def _load(model: Any, wire: Mapping[str, Any], at: Path) -> Any:
    try:
        return model.model_validate(wire)
    except pydantic.ValidationError as error:
        raise invalid(mismatches_from_pydantic(error, at)) from None
