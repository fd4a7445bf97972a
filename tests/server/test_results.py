"""What a tool returns reaches a View as data, a model as text, and fits what was promised."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict

import jsonschema_rs
import mcp.types as mcp
import msgspec
import pydantic
import pytest
from fastmcp.tools import ToolResult as FastResult
from fastmcp.utilities.types import File
from fastmcp.utilities.types import Image as FastImage
from mcp.server.mcpserver import Image

from transom.errors import ValidationError
from transom.server.tools import Output
from transom.types import ImageContent, TextContent, ToolResult


class Status(enum.StrEnum):
    OPEN = "open"
    PAID = "paid"


class StructItem(msgspec.Struct):
    id: str
    status: Status = Status.OPEN


class StructOrders(msgspec.Struct, rename="camel"):
    all_items: list[StructItem]
    at: dt.date


@dataclass
class DataItem:
    id: str
    tags: list[str] = field(default_factory=list)


@dataclass
class DataOrders:
    items: list[DataItem]


class DictItem(TypedDict):
    id: str
    note: NotRequired[str]


class DictOrders(TypedDict):
    items: list[DictItem]


class ModelItem(pydantic.BaseModel):
    id: str = pydantic.Field(description="the order's number")


class ModelOrders(pydantic.BaseModel):
    all_items: list[ModelItem] = pydantic.Field(alias="allItems")
    count: int = 1


class Branch(msgspec.Struct):
    name: str
    below: list[Branch] = []


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content]


@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (
            StructOrders,
            StructOrders([StructItem("1")], dt.date(2026, 1, 26)),
            {"allItems": [{"id": "1", "status": "open"}], "at": "2026-01-26"},
        ),
        (DataOrders, DataOrders([DataItem("1")]), {"items": [{"id": "1", "tags": []}]}),
        (DictOrders, {"items": [{"id": "1"}]}, {"items": [{"id": "1"}]}),
        (
            ModelOrders,
            ModelOrders(allItems=[ModelItem(id="1")]),
            {"allItems": [{"id": "1"}], "count": 1},
        ),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict[str, Any], {"a": None}, {"a": None}),
        (dict, {"a": [1, "x"]}, {"a": [1, "x"]}),
        (Branch, Branch("a", [Branch("b")]), {"name": "a", "below": [{"name": "b", "below": []}]}),
        (Annotated[DataItem, "a note"], DataItem("1", ["x"]), {"id": "1", "tags": ["x"]}),
        (DataItem | mcp.InputRequiredResult, DataItem("1"), {"id": "1", "tags": []}),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_an_object_becomes_structured_content_with_a_schema_and_text(
    annotation: Any, value: Any, data: dict[str, Any]
):
    output = Output("t", annotation)
    result = output.result(value)
    assert result.structured_content == data
    [text] = texts(result)
    assert msgspec.json.decode(text) == data
    assert output.schema is not None
    assert output.schema["type"] == "object"
    jsonschema_rs.validator_for(output.schema).validate(result.structured_content)


@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (int, 3, 3),
        (bool, True, True),
        (list[DataItem], [DataItem("1")], [{"id": "1", "tags": []}]),
        (list[ModelItem], [ModelItem(id="1")], [{"id": "1"}]),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (StructItem | None, None, None),
        (StructItem | None, StructItem("1"), {"id": "1", "status": "open"}),
        (Status, Status.PAID, "paid"),
    ],
)
def test_what_is_no_object_is_wrapped_in_schema_and_value(annotation: Any, value: Any, data: Any):
    output = Output("t", annotation)
    result = output.result(value)
    sent = msgspec.json.decode(msgspec.json.encode(result.structured_content))
    assert sent == {"result": data}
    assert output.schema is not None
    assert output.schema["required"] == ["result"]
    jsonschema_rs.validator_for(output.schema).validate(sent)
    [text] = texts(result)
    assert text == data or msgspec.json.decode(text) == data


@pytest.mark.parametrize(
    "annotation",
    [
        str,
        None,
        Any,
        str | None,
        bytes,
        ToolResult,
        mcp.CallToolResult,
        mcp.InputRequiredResult,
        TextContent,
        mcp.ImageContent,
        Image,
        FastResult,
        FastImage,
        list[File],
        list[mcp.TextContent],
        list[TextContent | ImageContent],
        list[str | Image],
        Annotated[str, "a note"],
        mcp.InputRequiredResult | str,
    ],
)
def test_text_content_and_whole_results_promise_nothing(annotation: Any):
    assert Output("t", annotation).schema is None


@pytest.mark.parametrize(
    ("value", "text"),
    [("3 orders", "3 orders"), (None, "Done."), ("", '""'), (7, "7"), ([], "[]"), (" ", '" "')],
)
def test_there_is_always_something_to_read(value: Any, text: str):
    result = Output("t", Any).result(value)
    assert texts(result) == [text]
    assert result.structured_content is None


def test_an_unannotated_object_is_structured_all_the_same():
    result = Output("t", Any).result(DataItem("1"))
    assert result.structured_content == {"id": "1", "tags": []}


def test_the_text_function_sees_the_value_and_makes_the_text():
    output = Output("t", DataOrders, lambda orders: f"{len(orders.items)} orders")
    result = output.result(DataOrders([DataItem("1"), DataItem("2")]))
    assert texts(result) == ["2 orders"]
    assert len(result.structured_content["items"]) == 2


def test_an_empty_text_falls_back_to_the_data():
    [text] = texts(Output("t", dict, lambda _: "").result({"a": 1}))
    assert msgspec.json.decode(text) == {"a": 1}


def test_content_blocks_pass_whoever_made_them():
    value = [TextContent("ours"), mcp.TextContent(text="theirs"), "plain", {"a": 1}]
    assert texts(Output("t", Any).result(value)) == ["ours", "theirs", "plain", '{\n  "a": 1\n}']
    [image] = Output("t", Image).result(Image(data=b"x", format="png")).content
    assert image == mcp.ImageContent(data="eA==", mime_type="image/png")
    [fast] = Output("t", FastImage).result(FastImage(data=b"x", format="png")).content
    assert fast == image
    [file] = Output("t", Any).result([File(data=b"x", name="a", format="txt")]).content
    assert file.type == "resource"
    [ours] = Output("t", ImageContent).result(ImageContent("eA==", "image/png")).content
    assert ours == image


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ToolResult(), "Done."),
        (ToolResult(content=[TextContent("  ")]), "Done."),
        (ToolResult(is_error=True), "Tool t failed"),
        (ToolResult(structured_content={"a": 1}), '{\n  "a": 1\n}'),
        (ToolResult(content=[TextContent("hi")], structured_content={"a": 1}), "hi"),
        (mcp.CallToolResult(content=[]), "Done."),
        (mcp.CallToolResult(content=[mcp.TextContent(text="hi")]), "hi"),
        (FastResult(content="hi", structured_content={"a": 1}), "hi"),
        (FastResult(content="no", is_error=True, meta={"m": 1}), "no"),
    ],
)
def test_a_whole_result_passes_with_text_added_where_there_is_none(value: Any, text: str):
    result = Output("t", Any).result(value)
    assert texts(result) == [text]
    assert result.structured_content == value.structured_content
    assert (result.is_error, result.meta) == (value.is_error, value.meta)


def test_an_image_alone_is_something_to_read():
    value = ToolResult(content=[ImageContent("eA==", "image/png")])
    assert len(Output("t", Any).result(value).content) == 1


def test_a_whole_result_keeps_its_meta():
    result = Output("t", ToolResult).result(ToolResult(meta={"private": 1}))
    assert result.meta == {"private": 1}


def test_a_question_to_the_client_passes_untouched():
    asked = mcp.InputRequiredResult(request_state="x")
    assert Output("t", dict).result(asked) is asked


def test_a_whole_result_can_have_a_schema_of_its_own():
    output = Output("t", Annotated[mcp.CallToolResult, DataItem])
    assert output.schema is not None
    good = mcp.CallToolResult(content=[], structured_content={"id": "1", "tags": []})
    assert output.result(good).structured_content == {"id": "1", "tags": []}
    with pytest.raises(ValidationError):
        output.result(mcp.CallToolResult(content=[], structured_content={"id": 1}))
    failed = mcp.CallToolResult(content=[], is_error=True)
    assert output.result(failed).is_error


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (DataItem, {"id": 1}),
        (DataItem, None),
        (DictOrders, {"items": [{}]}),
        (ModelOrders, {"allItems": 3}),
        (int, "3"),
        (dict, [1]),
        (Any, object()),
        (dict, {"a": object()}),
    ],
)
def test_what_breaks_the_promise_or_has_no_json_form_is_an_error(annotation: Any, value: Any):
    with pytest.raises(ValidationError):
        Output("t", annotation).result(value)


def test_the_returned_object_is_never_changed():
    value: dict[str, Any] = {"items": [{"id": "1"}]}
    result = Output("t", DictOrders).result(value)
    result.structured_content["items"].clear()
    assert value == {"items": [{"id": "1"}]}
