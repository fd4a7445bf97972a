"""Tool results from whatever a Python function returns.

| returned | result |
| --- | --- |
| `ToolResult`, or a mapping in its wire form (`{"content": [...], "isError": ...}`) | as it is |
| a content block, or a list of them with str and bytes between (structs or wire form) | content |
| `str` | text |
| `None` | the text "Done." |
| `bytes` | an image or a sound if it looks like one, else an embedded resource |
| mapping, dataclass, struct, pydantic model | structured content, and the same as JSON text |
| anything else that JSON can hold | structured content `{"result": value}`, and its JSON text |

With an output schema, whatever is not a result or content is structured content, text and None
included. What the handler returned is never changed or kept: a copy is sent.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeGuard, cast, get_args

import msgspec

from transom.errors import Mismatch, ValidationError
from transom.schema import Schema, cannot_send, to_json
from transom.types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    TextContent,
    ToolResult,
)

_BLOCKS: Final = frozenset(get_args(ContentBlock))
_BYTES: Final = (bytes, bytearray, memoryview)
_RESULT_KEYS: Final = frozenset({"_meta", "content", "isError", "structuredContent"})
_MARKS: Final = _RESULT_KEYS - {"_meta"}
# What a mapping needs, beside its `type`, to be a content block in wire form.
_BLOCK_KEYS: Final = {
    "text": {"text"},
    "image": {"data", "mimeType"},
    "audio": {"data", "mimeType"},
    "resource_link": {"uri", "name"},
    "resource": {"resource"},
}
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"%PDF-", "application/pdf"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def to_result(value: object, output: Schema | None = None) -> ToolResult:
    """Make a tool result of what a handler returned."""
    if output is None:  # the commonest first
        if isinstance(value, str):
            return ToolResult(content=[_text(value)])
        if value is None:
            return ToolResult(content=[TextContent("Done.")])
    if isinstance(value, ToolResult):
        return _checked(value, output)
    if _is_mapping(value):
        if is_result(value, output):
            return _checked(read_result(value), output)
        content = [_block(value)] if output is None and _is_wire_block(value) else None
    elif output is None or _is_content(value):
        content = _content(value)
    else:
        content = None
    if content is not None:
        return _checked(ToolResult(content=content), output)
    if output is not None:
        return _structured(value, output)
    data = to_json(value)
    wrapped = data[:1] != b"{"
    structured = msgspec.json.decode(b'{"result":' + data + b"}" if wrapped else data)
    return ToolResult(content=[TextContent(data.decode())], structured_content=structured)


def encode_result(value: object, output: Schema | None = None) -> bytes:
    """The same as JSON, in fewer steps where the value is of exactly the declared type."""
    encode = None if output is None else output.encode_exact
    if encode is not None and (data := encode(value)) is not None:
        text = msgspec.json.encode(data.decode())
        shown = b'{"content":[{"type":"text","text":%b}],"structuredContent":%b}'
        return shown % (text, data)
    return to_result(value, output).to_wire()


def content_from_bytes(data: bytes) -> ContentBlock:
    """Make content of bytes: an image or a sound if they look like one, else a resource."""
    encoded = b64encode(data).decode()
    mime_type = _sniffed(data)
    if mime_type.startswith("image/"):
        return ImageContent(data=encoded, mime_type=mime_type)
    if mime_type.startswith("audio/"):
        return AudioContent(data=encoded, mime_type=mime_type)
    resource = ResourceContents(uri="result:///data", mime_type=mime_type, blob=encoded)
    return EmbeddedResource(resource=resource)


def _structured(value: object, output: Schema) -> ToolResult:
    data = to_json(value)
    structured = output.parse(b'{"result":' + data + b"}" if output.wrapped else data)
    shown = structured["result"] if output.wrapped else structured
    text = shown if isinstance(shown, str) else to_json(shown).decode()
    return ToolResult(content=[TextContent(text)], structured_content=structured)


def _checked(result: ToolResult, output: Schema | None) -> ToolResult:
    """Validate a result that the handler made itself."""
    structured: Any = result.structured_content
    if output is not None and not result.is_error:
        if structured is None:
            why = "the tool has an output schema, so its result needs structured content"
            raise ValidationError([Mismatch("", why)])
        structured = output.parse(to_json(structured))
    elif structured is not None:
        structured = msgspec.json.decode(to_json(structured))
    if structured is not None:
        content = result.content or [TextContent(to_json(structured).decode())]
        result = msgspec.structs.replace(result, structured_content=structured, content=content)
    try:
        ToolResult.from_wire(result.to_wire())  # structs are not checked when they are made
    except msgspec.ValidationError as error:
        raise ValidationError([Mismatch("", f"is not a valid tool result: {error}")]) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise cannot_send(error) from error
    return result


# --- results and content in wire form --------------------------------------------------------


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return type(value) is dict or isinstance(value, Mapping)


def is_result(value: Mapping[str, Any], output: Schema | None) -> bool:
    """Whether it is a result in wire form, and not data that happens to have a key `content`."""
    if _MARKS.isdisjoint(value):
        return False
    if output is not None and "content" in output.json_schema.get("properties", ()):
        return False
    content = value.get("content")
    if isinstance(content, list) and content:
        return all(_is_block(block) for block in cast("list[object]", content))
    return _RESULT_KEYS.issuperset(value) and (content == [] or "content" not in value)


def read_result(value: Mapping[str, Any]) -> ToolResult:
    """A result in wire form as a struct."""
    for name, wire_name in (("is_error", "isError"), ("structured_content", "structuredContent")):
        if name in value:
            why = f"a result given as a mapping has wire names: {wire_name}, not {name}"
            raise ValidationError([Mismatch(name, why)])
    try:
        return ToolResult.from_wire(to_json(value))
    except msgspec.ValidationError as error:
        raise ValidationError([Mismatch("", f"is not a valid tool result: {error}")]) from error


def _is_block(value: object) -> bool:
    return type(value) in _BLOCKS or (_is_mapping(value) and _is_wire_block(value))


def _is_wire_block(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    needed = _BLOCK_KEYS.get(kind) if isinstance(kind, str) else None
    return needed is not None and needed <= value.keys()


def _is_content(value: object) -> bool:
    """Whether this is content, even where the tool has an output schema."""
    if isinstance(value, (list, tuple)) and value:
        return all(type(item) in _BLOCKS for item in cast("list[object]", value))
    return type(cast("object", value)) in _BLOCKS


def _content(value: object) -> list[ContentBlock] | None:
    if isinstance(value, _BYTES) or type(value) in _BLOCKS:
        return [_block(cast("object", value))]
    if not isinstance(value, (list, tuple)):
        return None
    items = cast("list[object]", value)
    if any(_is_block(item) for item in items) and all(
        _is_block(item) or isinstance(item, (str, *_BYTES)) for item in items
    ):
        return [_block(item) for item in items]
    return None


def _block(value: object) -> ContentBlock:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, _BYTES):
        return content_from_bytes(bytes(cast("Any", value)))
    if type(value) in _BLOCKS:
        return cast("ContentBlock", value)
    try:
        return msgspec.json.decode(to_json(value), type=ContentBlock)
    except msgspec.ValidationError as error:
        raise ValidationError([Mismatch("", f"is not a valid content block: {error}")]) from error


def _text(value: str) -> TextContent:
    text = str(value.value) if isinstance(value, Enum) else value
    if not text.isascii():
        to_json(text)  # a lone surrogate cannot be sent
    return TextContent(text)


def _sniffed(data: bytes) -> str:
    for start, mime_type in _BEGINNINGS:
        if data.startswith(start):
            return mime_type
    if data[:4] == b"RIFF" and data[8:12] in _RIFF:
        return _RIFF[data[8:12]]
    return "application/octet-stream"
