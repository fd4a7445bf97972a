"""Our values as the official SDK's `mcp.types`, and what clients say about MCP Apps.

Only `servers`, `host`, `server`, `gateway` and `check` may import this: it imports `mcp`.

Results that go to the SDK may come from a hostile View. They are validated, and refused with a
`ValidationError` that has the path of each mismatch. Keys in `extra` are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast, get_args

import mcp.types as mcp
import msgspec
import pydantic
from mcp.client.extension import ClientExtension, advertise
from mcp.shared.exceptions import MCPError

from transom.errors import Mismatch, ProtocolError, ValidationError
from transom.protocol.messages import UI_EXTENSION, VIEW_MIME_TYPE
from transom.types import ContentBlock, EmbeddedResource, ResourceContents, ToolResult

_MAX_MISMATCHES: Final = 8
# By kind, not by the SDK's union: that would report a mismatch once for each of its members.
_MODELS: Final[dict[type, Any]] = {
    kind: getattr(mcp, kind.__name__) for kind in get_args(ContentBlock)
}


def ui_extension() -> ClientExtension:
    """What a client passes in `mcp.Client(extensions=[...])` to say that it shows Views."""
    return advertise(UI_EXTENSION, {"mimeTypes": [VIEW_MIME_TYPE]})


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


def error_from_mcp(error: MCPError) -> ProtocolError:
    """The JSON-RPC error that the other side answered with."""
    return ProtocolError(error.code, error.message, error.data)


def error_to_mcp(error: ProtocolError) -> MCPError:
    """A JSON-RPC error, to raise in a handler of the SDK."""
    return MCPError(error.code, error.message, error.data)


def result_to_mcp(result: ToolResult) -> mcp.CallToolResult:
    """A tool's result."""
    return mcp.CallToolResult(
        content=[content_to_mcp(block, f"content[{i}]") for i, block in enumerate(result.content)],
        structured_content=result.structured_content,
        is_error=result.is_error,
        _meta=result.meta,
    )


def content_to_mcp(block: ContentBlock, at: str = "") -> mcp.ContentBlock:
    """One content block; `at` is its path in what it is part of."""
    wire = msgspec.to_builtins(block)
    if isinstance(block, EmbeddedResource):
        wire["resource"] = _contents(block.resource, f"{at}.resource" if at else "resource")
    return _load(_MODELS[type(block)], wire, at)


def _contents(part: ResourceContents, at: str) -> Any:
    if (part.text is None) == (part.blob is None):
        raise ValidationError([Mismatch(at, "needs either text or blob")])
    model = mcp.BlobResourceContents if part.text is None else mcp.TextResourceContents
    return _load(model, msgspec.to_builtins(part), at)


def _load(model: Any, wire: Mapping[str, Any], at: str) -> Any:
    try:
        return model.model_validate(wire)
    except pydantic.ValidationError as error:
        # The refused values are untrusted: the error has the path, never the value.
        found = error.errors(include_url=False, include_context=False, include_input=False)
        mismatches = [Mismatch(_path(at, entry["loc"]), entry["msg"]) for entry in found]
        raise ValidationError(mismatches[:_MAX_MISMATCHES]) from None


def _path(at: str, loc: tuple[int | str, ...]) -> str:
    path = at
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
