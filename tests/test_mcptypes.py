"""Values cross between our structs and the official SDK's without loss, or with a named problem."""

from __future__ import annotations

from typing import Any

import mcp.types as mcp
import msgspec
import pydantic
import pytest

from transom import mcptypes
from transom.errors import ValidationError
from transom.types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolResult,
)


def dumped(model: pydantic.BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


BLOCKS: list[ContentBlock] = [
    TextContent("hi", annotations={"audience": ["user"], "priority": 0.5}, meta={"k": None}),
    ImageContent("aGk=", "image/png", meta={"a": 1}),
    AudioContent("aGk=", "audio/wav"),
    ResourceLink("file:///a", "a", title="A", description="d", mime_type="text/plain", size=3),
    EmbeddedResource(ResourceContents("ui://a/b", "text/html", text="<p>", meta={"ui": {}})),
    EmbeddedResource(ResourceContents("ui://a/b", blob="aGk="), meta={"x": 1}),
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_a_content_block_has_the_same_json_on_both_sides(block: ContentBlock):
    assert dumped(mcptypes.content_to_mcp(block)) == msgspec.to_builtins(block)


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(),
        ToolResult(content=BLOCKS, structured_content={"a": None, "b": [None]}, meta={"m": None}),
        ToolResult(content=[TextContent("no")], is_error=True),
    ],
    ids=["empty", "everything", "error"],
)
def test_a_result_has_the_same_json_on_both_sides(result: ToolResult):
    theirs = dumped(mcptypes.result_to_mcp(result))
    assert ToolResult.from_wire({k: v for k, v in theirs.items() if k != "resultType"}) == result


def test_extra_keys_of_a_result_have_no_place_in_the_sdk():
    there = mcptypes.result_to_mcp(ToolResult(extra={"vendor": 1}))
    assert "vendor" not in there.model_dump(by_alias=True)


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (TextContent("t", annotations={"priority": 7}), "annotations.priority: "),
        (TextContent("t", annotations={"audience": ["cat"]}), "annotations.audience[0]: "),
        (EmbeddedResource(ResourceContents("u")), "resource: needs either text or blob"),
        (EmbeddedResource(ResourceContents("u", text="", blob="")), "resource: needs either"),
        (ResourceLink("u", "n", icons=[{"src": 3}]), "icons[0].src: "),
    ],
)
def test_content_that_does_not_fit_is_refused_with_its_path(block: ContentBlock, problem: str):
    with pytest.raises(ValidationError) as bare:
        mcptypes.content_to_mcp(block)
    assert str(bare.value).startswith(problem)
    with pytest.raises(ValidationError) as inside:
        mcptypes.result_to_mcp(ToolResult(content=[TextContent("ok"), block]))
    assert str(inside.value).startswith(f"content[1].{problem}")
    assert len(inside.value.mismatches) == 1


def test_a_refusal_never_repeats_the_value():
    block = TextContent("t", annotations={"audience": ["s3cret"]})
    with pytest.raises(ValidationError) as refused:
        mcptypes.content_to_mcp(block)
    assert "s3cret" not in str(refused.value)


def capabilities(settings: object) -> dict[str, object]:
    return {"extensions": {mcptypes.UI_EXTENSION: settings}}


@pytest.mark.parametrize(
    ("client", "supported"),
    [
        (None, False),
        ({}, False),
        ({"extensions": None}, False),
        ({"extensions": {"io.example/other": {"mimeTypes": [mcptypes.VIEW_MIME_TYPE]}}}, False),
        ({"experimental": capabilities({})["extensions"]}, False),
        (capabilities(None), False),
        (capabilities({}), False),
        (capabilities({"mimeTypes": []}), False),
        (capabilities({"mimeTypes": None}), False),
        (capabilities({"mimeTypes": mcptypes.VIEW_MIME_TYPE}), False),
        (capabilities({"mimeTypes": ["text/html"]}), False),
        (capabilities({"mimeTypes": ["text/html", mcptypes.VIEW_MIME_TYPE]}), True),
        (mcp.ClientCapabilities(), False),
        (
            mcp.ClientCapabilities(extensions={mcptypes.UI_EXTENSION: {"mimeTypes": []}}),
            False,
        ),
        (
            mcp.ClientCapabilities(
                extensions={mcptypes.UI_EXTENSION: {"mimeTypes": [mcptypes.VIEW_MIME_TYPE]}}
            ),
            True,
        ),
    ],
)
def test_only_the_view_type_in_mime_types_counts_as_support(client: object, supported: bool):
    assert mcptypes.supports_views(client) is supported  # type: ignore[arg-type]
