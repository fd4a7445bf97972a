"""What a model reads of a result, whatever a View or a server puts into it."""

from typing import Any

import pytest

from transom.agents.content import Image, error_for_model, open_view, parts_for_model
from transom.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolResult,
)

SHOWN = {"transom/view": {"id": "shop-1", "state": "live"}}
NOT_SHOWN = {"transom/view": {"id": "shop-1", "state": "failed", "error": "no page"}}


def result(*texts: str, structured: dict[str, Any] | None = None, **members: Any) -> ToolResult:
    content = [TextContent(text) for text in texts]
    return ToolResult(content=content, structured_content=structured, **members)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (result("hello"), ["hello"]),
        (result(), [""]),
        (result(structured={"a": 1}), [{"a": 1}]),
        (result('{"a": 1}', structured={"a": 1}), [{"a": 1}]),
        (result("One a.", structured={"a": 1}), ["One a.", {"a": 1}]),
        (result("hello", structured={"result": "hello"}), ["hello"]),
        (result("[1,2]", structured={"result": [1, 2]}), ["[1,2]"]),
        (result("Two.", structured={"result": [1, 2]}), ["Two.", {"result": [1, 2]}]),
        (result("null", structured={"a": None}), ["null", {"a": None}]),
        (result("One a.", structured={"a": 1}, meta=SHOWN), ["One a."]),
        (result(structured={"a": 1}, meta=SHOWN), [{"a": 1}]),
        (result("One a.", structured={"a": 1}, meta=NOT_SHOWN), ["One a.", {"a": 1}]),
        (result("It failed.", structured={"a": 1}, is_error=True), ["It failed."]),
    ],
)
def test_texts_and_structured_content_are_read_each_once(given: ToolResult, read: list[Any]):
    assert parts_for_model(given) == read


def test_what_is_no_text_is_an_image_or_a_note():
    blocks = [
        ImageContent("aGk=", "IMAGE/PNG"),
        AudioContent("aGk=", "audio/wav"),
        ResourceLink("file:///a", "a"),
        EmbeddedResource(ResourceContents("file:///a", text="inside")),
        EmbeddedResource(ResourceContents("file:///a", mime_type="image/webp", blob="aGk=")),
        EmbeddedResource(ResourceContents("file:///a", blob="aGk=")),
    ]
    assert parts_for_model(ToolResult(content=blocks)) == [
        Image("aGk=", "image/png"),
        "[audio/wav: not shown]",
        "a: file:///a",
        "inside",
        Image("aGk=", "image/webp"),
        "[data of an unknown kind: not shown]",
    ]


def test_a_failure_always_has_words():
    assert error_for_model(result(is_error=True)) == "The tool failed, and did not say why"
    assert error_for_model(result(structured={"a": 1}, is_error=True)) == '{"a":1}'


def test_a_view_is_named_when_it_is_open():
    assert open_view(result(meta=SHOWN)) == "shop-1"
    assert open_view(result(meta=NOT_SHOWN)) is None
    assert open_view(result()) is None
