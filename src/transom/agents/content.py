"""What a model reads of a tool's result, and what an application gets beside it.

1. If a View shows the result, the model reads `content`; the structured content is for the View. Of
   any other result it reads both, but not twice: a text often repeats the structured content.
2. A View or a server can send anything as an image. What model APIs refuse becomes a note, because
   it would end the run.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec

from transom.errors import InvalidResult
from transom.host.asking.policy import ApprovalRequest
from transom.host.views.ui_resource import view_uri
from transom.types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    Tool,
    ToolResult,
)

_IMAGES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})


class Image(msgspec.Struct, frozen=True):
    """An image that model APIs take; `data` is base64."""

    data: str
    mime_type: str

    @property
    def bytes(self) -> bytes:
        """The image itself."""
        return base64.b64decode(self.data)


Part = str | Image | dict[str, Any]
"""A piece of a result: a text, an image, or structured content."""


def linked_view(tool: Tool) -> str | None:
    """The resource that a tool's View shows; None if it links none."""
    try:
        return view_uri(tool)
    except InvalidResult:
        return None


def parts_of(content: Iterable[ContentBlock]) -> list[Part]:
    """What the model reads of content."""
    return [_part(block) for block in content]


def parts_for_model(result: ToolResult) -> list[Part]:
    """What the model reads; there is at least one part."""
    parts, structured = parts_of(result.content), result.structured_content
    if structured is None or (parts and (open_view(result) or result.is_error)):
        return parts or [""]
    others = [part for part in parts if not _repeats(part, structured)]
    if set(structured) == {"result"} and len(others) < len(parts):
        return parts  # a wrapped plain value: the text is the value itself
    return [*others, structured]


def _repeats(part: Part, structured: dict[str, Any]) -> bool:
    if not isinstance(part, str):
        return False
    said: list[Any] = [part]
    with suppress(msgspec.DecodeError, RecursionError):
        said.append(msgspec.json.decode(part))
    return structured in said or structured.get("result", said) in said


def error_for_model(result: ToolResult) -> str:
    """What the model reads of a result that is an error."""
    texts = [as_text(part) for part in parts_for_model(result) if not isinstance(part, Image)]
    return "\n".join(texts) or "The tool failed, and did not say why"


def as_text(part: str | dict[str, Any]) -> str:
    """A text, or structured content as JSON."""
    return part if isinstance(part, str) else msgspec.json.encode(part).decode()


def beside_result(result: ToolResult) -> dict[str, Any]:
    """What an application gets of a result, and the model does not read."""
    beside: dict[str, Any] = {}
    if result.structured_content is not None:
        beside["structured_content"] = result.structured_content
    if (view := (result.meta or {}).get("transom/view")) is not None:
        beside["view"] = view
    return beside


def open_view(result: ToolResult) -> str | None:
    """The id of the View that shows a result; None if there is none, or it could not be opened.

    One that waits counts: a page may give it a place when it gets the result.
    """
    note: dict[str, Any] = (result.meta or {}).get("transom/view", {})
    return note.get("id") if note.get("state") in ("live", "busy", "waiting") else None


def question_about(request: ApprovalRequest) -> dict[str, Any]:
    """What a framework needs to ask the user."""
    asked = {"question": request.question(), "view": request.view_id, "server": request.server}
    return {**asked, **request.shown()}


def _part(block: ContentBlock) -> Part:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=mime_type):
            return _image(data, mime_type)
        case AudioContent(mime_type=mime_type):
            return _note(mime_type)
        case ResourceLink(uri=uri, name=name):
            return f"{name}: {uri}"
        case EmbeddedResource(resource=ResourceContents(text=str(text))):
            return text
        case EmbeddedResource(resource=resource):
            return _image(resource.blob or "", resource.mime_type or "")


def _image(data: str, mime_type: str) -> Image | str:
    mime_type = mime_type.lower()
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return _note(mime_type)
    return Image(data, mime_type) if mime_type in _IMAGES and data else _note(mime_type)


def _note(mime_type: str) -> str:
    return f"[{mime_type[:100] or 'data of an unknown kind'}: not shown]"
