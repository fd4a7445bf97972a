"""Our values <-> the official SDK's `mcp.types`, and the names MCP Apps adds to MCP.

Only `host`, `server`, `gateway` and `check` may import this: it imports `mcp`.

1. What comes from the SDK has been validated by it, so reading never fails. A
   `structuredContent` that is not an object (2026-07-28 allows it) becomes `{"result": ...}`.
2. The SDK drops the keys it does not model before we see them. Of what it adds for one hop,
   `resultType`, `ttlMs` and `cacheScope` are dropped too; all else a struct has no field for
   goes into `extra` where there is one (see `transom.types`).
3. What goes to the SDK may come from a hostile View. Writing validates, and raises
   `ValidationError` with the path of each problem. `extra` has no place there and is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar, cast

import mcp.types as mcp
import msgspec
import pydantic
from mcp.client.extension import ClientExtension, advertise
from mcp.shared.exceptions import MCPError

from transom.errors import Problem, ProtocolError, ValidationError
from transom.protocol.extension import LEGACY_URI_KEY, UI_EXTENSION, VIEW_MIME_TYPE
from transom.types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ReadResourceResult,
    Resource,
    ResourceContents,
    ResourceLink,
    TextContent,
    Tool,
    ToolResult,
)

__all__ = [
    "LEGACY_URI_KEY",
    "UI_EXTENSION",
    "VIEW_MIME_TYPE",
    "content_from_mcp",
    "content_to_mcp",
    "error_from_mcp",
    "error_to_mcp",
    "read_result_from_mcp",
    "read_result_to_mcp",
    "resource_from_mcp",
    "resource_to_mcp",
    "result_from_mcp",
    "result_to_mcp",
    "supports_views",
    "tool_from_mcp",
    "tool_to_mcp",
    "ui_extension",
]

_HOP_KEYS: Final = ("resultType", "ttlMs", "cacheScope")
_MAX_PROBLEMS: Final = 8

Model = TypeVar("Model", bound=pydantic.BaseModel)


def ui_extension() -> ClientExtension:
    """What a client passes in `mcp.Client(extensions=[...])` to say that it shows Views."""
    return advertise(UI_EXTENSION, {"mimeTypes": [VIEW_MIME_TYPE]})


def supports_views(capabilities: mcp.ClientCapabilities | Mapping[str, Any] | None) -> bool:
    """Whether these client capabilities list the View type in the extension's `mimeTypes`."""
    if isinstance(capabilities, mcp.ClientCapabilities):
        extensions: object = capabilities.extensions
    else:
        extensions = (capabilities or {}).get("extensions")
    settings = _get(extensions, UI_EXTENSION)
    types = _get(settings, "mimeTypes")
    return isinstance(types, list | tuple) and VIEW_MIME_TYPE in cast("Iterable[object]", types)


# --- tools -----------------------------------------------------------------------------------


def tool_from_mcp(tool: mcp.Tool) -> Tool:
    """Read a tool definition."""
    return msgspec.convert(_dump(tool), Tool)


def tool_to_mcp(tool: Tool) -> mcp.Tool:
    """Write a tool definition.

    Raises:
        ValidationError: a part of it has a type that MCP does not allow.
    """
    # Set apart from the dump: a schema equal to our default is still required there.
    return _load(mcp.Tool, {**msgspec.to_builtins(tool), "inputSchema": tool.input_schema})


def result_from_mcp(result: mcp.CallToolResult) -> ToolResult:
    """Read what a tool answered."""
    wire = _dump(result)
    for key in _HOP_KEYS:
        wire.pop(key, None)
    structured = wire.get("structuredContent")
    if structured is not None and not isinstance(structured, dict):
        wire["structuredContent"] = {"result": structured}
    return ToolResult.from_wire(wire)


def result_to_mcp(result: ToolResult) -> mcp.CallToolResult:
    """Write what a tool answered.

    Raises:
        ValidationError: a content block does not fit MCP.
    """
    content = [_block(block, f"content[{i}]") for i, block in enumerate(result.content)]
    return mcp.CallToolResult(
        content=content,
        structured_content=result.structured_content,
        is_error=result.is_error,
        _meta=result.meta,
    )


def content_from_mcp(block: mcp.ContentBlock) -> ContentBlock:
    """Read one content block."""
    # A union with tags: msgspec picks the struct, which a type checker cannot follow.
    return cast("ContentBlock", msgspec.convert(_dump(block), cast("Any", ContentBlock)))


def content_to_mcp(block: ContentBlock) -> mcp.ContentBlock:
    """Write one content block.

    Raises:
        ValidationError: it does not fit MCP.
    """
    return _block(block, "")


# --- resources -------------------------------------------------------------------------------


def resource_from_mcp(resource: mcp.Resource) -> Resource:
    """Read a resource as a server lists it."""
    return msgspec.convert(_dump(resource), Resource)


def resource_to_mcp(resource: Resource) -> mcp.Resource:
    """Write a resource as a server lists it.

    Raises:
        ValidationError: it does not fit MCP.
    """
    return _load(mcp.Resource, {**msgspec.to_builtins(resource), "name": resource.name})


def read_result_from_mcp(result: mcp.ReadResourceResult) -> ReadResourceResult:
    """Read the answer to `resources/read`."""
    wire = _dump(result)
    for key in _HOP_KEYS:
        wire.pop(key, None)
    return ReadResourceResult.from_wire(wire)


def read_result_to_mcp(result: ReadResourceResult) -> mcp.ReadResourceResult:
    """Write the answer to `resources/read`.

    Raises:
        ValidationError: a part has neither or both of `text` and `blob`, or does not fit MCP.
    """
    contents = [_contents(part, f"contents[{i}]") for i, part in enumerate(result.contents)]
    return mcp.ReadResourceResult(contents=contents, _meta=result.meta)


# --- errors ----------------------------------------------------------------------------------


def error_from_mcp(error: MCPError) -> ProtocolError:
    """Read a JSON-RPC error the other side answered with."""
    return ProtocolError(error.code, error.message, error.data)


def error_to_mcp(error: ProtocolError) -> MCPError:
    """Write a JSON-RPC error, to raise in a handler of the SDK."""
    return MCPError(error.code, error.message, error.data)


# --- the work --------------------------------------------------------------------------------


def _get(value: object, key: str) -> object:
    return cast("Mapping[str, object]", value).get(key) if isinstance(value, Mapping) else None


def _dump(model: pydantic.BaseModel) -> dict[str, Any]:
    # `exclude_none` leaves out unset fields only: nulls inside a user's own JSON stay.
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _block(block: ContentBlock, at: str) -> mcp.ContentBlock:
    # By kind, not by the SDK's union: one that does not fit would be told once for each member.
    match block:
        case TextContent():
            return _load(mcp.TextContent, msgspec.to_builtins(block), at)
        case ImageContent():
            return _load(mcp.ImageContent, msgspec.to_builtins(block), at)
        case AudioContent():
            return _load(mcp.AudioContent, msgspec.to_builtins(block), at)
        case ResourceLink():
            return _load(mcp.ResourceLink, msgspec.to_builtins(block), at)
        case EmbeddedResource():
            resource = _contents(block.resource, f"{at}.resource" if at else "resource")
            return _load(
                mcp.EmbeddedResource, {**msgspec.to_builtins(block), "resource": resource}, at
            )


def _contents(
    part: ResourceContents, at: str
) -> mcp.TextResourceContents | mcp.BlobResourceContents:
    if (part.text is None) == (part.blob is None):
        raise ValidationError([Problem(at, "needs either text or blob")])
    wire = msgspec.to_builtins(part)
    if part.text is not None:
        return _load(mcp.TextResourceContents, wire, at)
    return _load(mcp.BlobResourceContents, wire, at)


def _load(model: type[Model], wire: Mapping[str, Any], at: str = "") -> Model:
    try:
        return model.model_validate(wire)
    except pydantic.ValidationError as error:
        # The rejected values are the peer's: only where and what is told, never the input.
        found = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [Problem(_path(at, entry["loc"]), entry["msg"]) for entry in found]
        raise ValidationError(problems[:_MAX_PROBLEMS]) from None


def _path(at: str, loc: tuple[int | str, ...]) -> str:
    path = at
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
