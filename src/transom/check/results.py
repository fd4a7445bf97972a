"""Questions about a tool's result, asked by more than one rule."""

from __future__ import annotations

from collections.abc import Iterator

from transom.json_values import Json, JsonObject, as_list, as_object

__all__ = ["failed", "has_content", "has_text", "text_length", "texts"]


def texts(result: JsonObject) -> Iterator[str]:
    """Every text a model would read: text blocks and the text of embedded resources."""
    for block in as_list(result.get("content")):
        yield from _texts(as_object(block))


def _texts(block: JsonObject) -> Iterator[str]:
    inner = as_object(block.get("resource")) if block.get("type") == "resource" else block
    text: Json = inner.get("text")
    if isinstance(text, str):
        yield text


def has_text(result: JsonObject) -> bool:
    """Whether there is at least one text that is not blank."""
    return any(text.strip() for text in texts(result))


def has_content(result: JsonObject) -> bool:
    """Whether there is something for a model: text that is not blank, or another kind of block."""
    kinds = [as_object(block).get("type") for block in as_list(result.get("content"))]
    others = ("image", "audio", "resource", "resource_link")
    return has_text(result) or any(kind in others for kind in kinds)


def text_length(result: JsonObject) -> int:
    """How many characters of text there are."""
    return sum(len(text) for text in texts(result))


def failed(result: JsonObject) -> bool:
    """Whether the tool said that it failed."""
    return result.get("isError") is True
