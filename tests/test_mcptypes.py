"""Values cross between our structs and the official SDK's without loss, or with a named problem."""

from __future__ import annotations

import mcp.types as mcp
import msgspec
import pytest
from mcp.shared.exceptions import MCPError

from transom import mcptypes
from transom.errors import ProtocolError, ValidationError
from transom.types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    Icon,
    ImageContent,
    ReadResourceResult,
    Resource,
    ResourceContents,
    ResourceLink,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolExecution,
    ToolResult,
)

BLOCKS: list[ContentBlock] = [
    TextContent("hi", annotations={"audience": ["user"], "priority": 0.5}, meta={"k": None}),
    ImageContent("aGk=", "image/png", meta={"a": 1}),
    AudioContent("aGk=", "audio/wav"),
    ResourceLink("file:///a", "a", title="A", description="d", mime_type="text/plain", size=3),
    EmbeddedResource(ResourceContents("ui://a/b", "text/html", text="<p>", meta={"ui": {}})),
    EmbeddedResource(ResourceContents("ui://a/b", blob="aGk="), meta={"x": 1}),
]

FULL_TOOL = Tool(
    "show_orders",
    title="Orders",
    description="Show orders.",
    input_schema={
        "type": "object",
        "properties": {"q": {"type": ["string", "null"], "default": None}},
        "x-ours": {"deep": [None, 1]},
    },
    output_schema={"type": "object"},
    annotations=ToolAnnotations(title="O", read_only_hint=True, destructive_hint=False),
    execution=ToolExecution("optional"),
    icons=[Icon("data:,x", "image/png", ["48x48"])],
    meta={"ui": {"resourceUri": "ui://a/b", "visibility": ["app"]}, "other": None},
)


@pytest.mark.parametrize("tool", [Tool("bare"), FULL_TOOL], ids=["bare", "full"])
def test_a_tool_survives_the_round_trip(tool: Tool):
    there = mcptypes.tool_to_mcp(tool)
    assert isinstance(there, mcp.Tool)
    assert mcptypes.tool_from_mcp(there) == tool


def test_a_tool_has_the_same_json_on_both_sides():
    theirs = mcptypes.tool_to_mcp(FULL_TOOL).model_dump(
        by_alias=True, mode="json", exclude_none=True
    )
    assert theirs == msgspec.json.decode(msgspec.json.encode(FULL_TOOL))


def test_nulls_inside_a_schema_are_kept_when_reading():
    schema = {"type": "object", "properties": {"q": {"default": None}}}
    assert mcptypes.tool_from_mcp(mcp.Tool(name="t", input_schema=schema)).input_schema == schema


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_a_content_block_survives_the_round_trip(block: ContentBlock):
    there = mcptypes.content_to_mcp(block)
    assert there.type == msgspec.to_builtins(block)["type"]
    assert mcptypes.content_from_mcp(there) == block


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(),
        ToolResult(content=BLOCKS, structured_content={"a": None, "b": [None]}, meta={"m": None}),
        ToolResult(content=[TextContent("no")], is_error=True),
    ],
    ids=["empty", "everything", "error"],
)
def test_a_result_survives_the_round_trip(result: ToolResult):
    assert mcptypes.result_from_mcp(mcptypes.result_to_mcp(result)) == result


def test_what_the_sdk_adds_for_one_hop_is_not_kept():
    result = mcptypes.result_from_mcp(mcp.CallToolResult(content=[], result_type="complete"))
    assert result.extra == {}
    read = mcptypes.read_result_from_mcp(
        mcp.ReadResourceResult(contents=[], ttl_ms=60_000, cache_scope="public")
    )
    assert read.extra == {}


@pytest.mark.parametrize("value", ["text", 3, [1, None], True])
def test_structured_content_that_is_no_object_is_wrapped(value: object):
    read = mcptypes.result_from_mcp(mcp.CallToolResult(content=[], structured_content=value))
    assert read.structured_content == {"result": value}


def test_extra_keys_of_a_result_have_no_place_in_the_sdk():
    there = mcptypes.result_to_mcp(ToolResult(extra={"vendor": 1}))
    assert "vendor" not in there.model_dump(by_alias=True)


def test_a_listed_resource_survives_the_round_trip():
    for resource in (
        Resource("ui://a/b"),
        Resource(
            "ui://a/b",
            "b",
            title="B",
            description="d",
            mime_type=mcptypes.VIEW_MIME_TYPE,
            size=9,
            annotations={"priority": 1.0},
            meta={"ui": {"prefersBorder": True}},
        ),
    ):
        assert mcptypes.resource_from_mcp(mcptypes.resource_to_mcp(resource)) == resource


def test_a_read_result_survives_the_round_trip():
    read = ReadResourceResult(
        contents=[
            ResourceContents("ui://a/b", "text/html", text="", meta={"ui": {"csp": {}}}),
            ResourceContents("ui://a/c", blob="aGk="),
        ],
        meta={"m": 1},
    )
    assert mcptypes.read_result_from_mcp(mcptypes.read_result_to_mcp(read)) == read


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
    assert len(inside.value.problems) == 1


def test_a_refusal_never_repeats_the_value():
    block = TextContent("t", annotations={"audience": ["s3cret"]})
    with pytest.raises(ValidationError) as refused:
        mcptypes.content_to_mcp(block)
    assert "s3cret" not in str(refused.value)


def test_a_read_result_without_a_body_is_refused_with_its_path():
    with pytest.raises(ValidationError, match=r"contents\[0\]: needs either text or blob"):
        mcptypes.read_result_to_mcp(ReadResourceResult(contents=[ResourceContents("u")]))


def test_a_json_rpc_error_survives_the_round_trip():
    error = mcptypes.error_to_mcp(ProtocolError(-32602, "no such tool", {"name": "x"}))
    assert isinstance(error, MCPError)
    back = mcptypes.error_from_mcp(error)
    assert (back.code, back.message, back.data) == (-32602, "no such tool", {"name": "x"})


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


def test_our_clients_advertise_the_view_type():
    extension = mcptypes.ui_extension()
    assert extension.identifier == "io.modelcontextprotocol/ui"
    assert extension.settings() == {"mimeTypes": ["text/html;profile=mcp-app"]}
