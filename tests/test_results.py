"""Tool results from whatever a function returns."""

import base64
import collections
import dataclasses
import datetime as dt
import enum
import json
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ids import plain
from transom.errors import ValidationError
from transom.results import encode_result, to_result
from transom.schema import Schema, output_schema
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

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 8
HELLO = TextContent("hello")


@dataclasses.dataclass
class Track:
    title: str
    seconds: int = 0


class Order(msgspec.Struct, rename="camel"):
    order_id: int


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(alias="fullName")


class Pair(NamedTuple):
    a: int
    b: int


class Mode(enum.StrEnum):
    ON = "on"


class OldMode(str, enum.Enum):  # noqa: UP042 - not every enumeration is a StrEnum
    ON = "on"


def refusal(value: object, output: Schema | None = None) -> str:
    with pytest.raises(ValidationError) as caught:
        to_result(value, output)
    return str(caught.value)


class TestPlainValues:
    @pytest.mark.parametrize("text", ["hello", "", "ünïcödé 🎵"])
    def test_text_is_text(self, text: str) -> None:
        assert to_result(text) == ToolResult(content=[TextContent(text)])

    @pytest.mark.parametrize("mode", [Mode.ON, OldMode.ON])
    def test_an_enumeration_of_texts_is_its_text(self, mode: str) -> None:
        result = to_result(mode)
        assert json.loads(result.to_wire())["content"] == [{"type": "text", "text": "on"}]

    def test_none_is_readable(self) -> None:
        assert to_result(None) == ToolResult(content=[TextContent("Done.")])

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ({"a": 1, "b": [None]}, {"a": 1, "b": [None]}),
            ({}, {}),
            ({1: "x"}, {"1": "x"}),
            (MappingProxyType({"a": 1}), {"a": 1}),
            (collections.OrderedDict(a=1), {"a": 1}),
            (collections.UserDict({"a": collections.deque([1])}), {"a": [1]}),
            (Track("Kashmir"), {"title": "Kashmir", "seconds": 0}),
            (Order(7), {"orderId": 7}),
            (Person(fullName="Ada"), {"fullName": "Ada"}),
            (
                {"who": Person(fullName="Ada"), "at": dt.date(2026, 1, 26)},
                {"who": {"fullName": "Ada"}, "at": "2026-01-26"},
            ),
        ],
        ids=plain,
    )
    def test_an_object_is_structured_content_and_the_same_as_text(
        self, value: object, expected: dict[str, Any]
    ) -> None:
        result = to_result(value)
        assert result.structured_content == expected
        assert json.loads(result.text) == expected
        assert ": " not in result.text
        assert not result.is_error

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (3, 3),
            (1.5, 1.5),
            (True, True),
            ([1, "a"], [1, "a"]),
            ((), []),
            ([], []),
            ([Track("a"), {"b": 1}], [{"title": "a", "seconds": 0}, {"b": 1}]),
            ({7}, [7]),
            (frozenset([7]), [7]),
            (range(2), [0, 1]),
            (Pair(1, 2), [1, 2]),
            (Decimal("1.50"), "1.50"),
            (dt.datetime(2026, 1, 26, tzinfo=dt.UTC), "2026-01-26T00:00:00Z"),
            (pydantic.RootModel[list[int]]([1]), [1]),
            ({1: 2}.keys(), [1]),
        ],
        ids=plain,
    )
    def test_anything_else_is_wrapped(self, value: object, expected: object) -> None:
        result = to_result(value)
        assert result.structured_content == {"result": expected}
        assert json.loads(result.text) == expected

    def test_numbers_that_json_lacks_become_null(self) -> None:
        result = to_result({"a": float("nan"), "b": float("inf")})
        assert result.structured_content == {"a": None, "b": None}
        assert result.text == '{"a":null,"b":null}'

    def test_the_returned_object_is_neither_kept_nor_changed(self) -> None:
        inner = [1]
        value = {"inner": inner}
        result = to_result(value)
        inner.append(2)
        assert result.structured_content == {"inner": [1]}
        assert value == {"inner": [1, 2]}

    @pytest.mark.parametrize(
        ("value", "why"),
        [
            (object(), "there is no JSON for an object of type object"),
            (print, "builtin_function_or_method"),
            ({"a": {"b": [print]}}, "builtin_function_or_method"),
            ((n for n in [1]), "generator"),
            ({object()}, "object"),
            ({(1, 2): 3}, "a tuple cannot be a key"),
            (Person, "ModelMetaclass"),
            ("\ud800", "lone surrogate"),
            (["\ud800"], "lone surrogate"),
            (TextContent("\ud800"), "lone surrogate"),
            (1j, "complex"),
            (type("Odd", (), {"__slots__": ()})(), "Odd"),
        ],
        ids=plain,
    )
    def test_what_has_no_json_form_is_refused(self, value: object, why: str) -> None:
        message = refusal(value)
        assert message.startswith("cannot be sent as JSON: ")
        assert why in message
        assert len(message) < 250

    def test_what_contains_itself_is_refused(self) -> None:
        loop: dict[str, Any] = {}
        loop["again"] = [loop]
        assert refusal(loop) == (
            "cannot be sent as JSON: it contains itself, or is nested too deeply"
        )


class TestContent:
    @pytest.mark.parametrize(
        ("start", "mime_type"),
        [
            (PNG, "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a", "image/gif"),
            (b"GIF87a", "image/gif"),
            (b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
        ],
    )
    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_bytes_of_an_image_are_an_image(self, start: bytes, mime_type: str, kind: Any) -> None:
        data = start + b"pixels"
        (block,) = to_result(kind(data)).content
        assert block == ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type)

    @pytest.mark.parametrize(
        ("start", "mime_type"),
        [
            (b"RIFF\x00\x00\x00\x00WAVE", "audio/wav"),
            (b"ID3", "audio/mpeg"),
            (b"\xff\xfb", "audio/mpeg"),
            (b"OggS", "audio/ogg"),
            (b"fLaC", "audio/flac"),
        ],
    )
    def test_bytes_of_a_sound_are_a_sound(self, start: bytes, mime_type: str) -> None:
        (block,) = to_result(start).content
        assert block == AudioContent(data=base64.b64encode(start).decode(), mime_type=mime_type)

    @pytest.mark.parametrize(
        ("data", "mime_type"),
        [
            (b"%PDF-1.7", "application/pdf"),
            (b"RIFF\x00\x00\x00\x00AVI ", "application/octet-stream"),
            (b"", "application/octet-stream"),
        ],
    )
    def test_other_bytes_are_a_resource(self, data: bytes, mime_type: str) -> None:
        (block,) = to_result(data).content
        assert isinstance(block, EmbeddedResource)
        assert block.resource.mime_type == mime_type
        assert block.resource.uri
        assert base64.b64decode(block.resource.blob or "") == data

    @pytest.mark.parametrize(
        "block",
        [
            HELLO,
            ImageContent(data="AA==", mime_type="image/png"),
            AudioContent(data="AA==", mime_type="audio/wav"),
            ResourceLink(uri="ui://a", name="a"),
            EmbeddedResource(resource=ResourceContents(uri="ui://a", text="x")),
        ],
        ids=lambda block: type(block).__name__,
    )
    def test_a_content_block_is_content_as_struct_and_in_wire_form(
        self, block: ContentBlock
    ) -> None:
        wire = msgspec.to_builtins(block)
        for value in (block, [block], (block,), wire, [wire], MappingProxyType(wire)):
            assert to_result(value) == ToolResult(content=[block])

    def test_text_and_bytes_may_stand_between_blocks(self) -> None:
        result = to_result(["see", PNG, {"type": "text", "text": "hello"}])
        kinds = [type(block) for block in result.content]
        assert kinds == [TextContent, ImageContent, TextContent]
        assert result.structured_content is None

    @pytest.mark.parametrize(
        "value",
        [
            ["a", "b"],
            [{"type": "image", "id": 3}],
            [{"type": "text", "text": "x"}, {"id": 3}],
            [{"type": ["text"], "text": "x"}],
            {"type": "text", "words": 3},
        ],
        ids=plain,
    )
    def test_data_that_merely_resembles_blocks_is_data(self, value: Any) -> None:
        structured = to_result(value).structured_content
        assert structured == (value if isinstance(value, dict) else {"result": value})

    def test_a_malformed_block_is_refused(self) -> None:
        assert refusal([{"type": "text", "text": 3}]).startswith("is not a valid content block")


class TestWholeResults:
    def test_a_result_passes_as_it_is(self) -> None:
        result = ToolResult(content=[HELLO], meta={"k": 1}, is_error=True, extra={"more": 2})
        assert to_result(result) is result
        assert to_result(ToolResult()) == ToolResult()

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ({"content": [{"type": "text", "text": "hello"}]}, ToolResult(content=[HELLO])),
            ({"content": [HELLO], "isError": True}, ToolResult(content=[HELLO], is_error=True)),
            ({"content": []}, ToolResult()),
            ({"isError": True}, ToolResult(is_error=True)),
            ({"content": [], "_meta": {"a": 1}}, ToolResult(meta={"a": 1})),
            (
                {"content": [HELLO], "structuredContent": {"a": 1}, "more": 2},
                ToolResult(content=[HELLO], structured_content={"a": 1}, extra={"more": 2}),
            ),
        ],
        ids=plain,
    )
    def test_a_mapping_in_wire_form_is_a_result(self, value: Any, expected: ToolResult) -> None:
        assert to_result(value) == expected
        assert to_result(MappingProxyType(value)) == expected

    @pytest.mark.parametrize(
        "value",
        [
            {"content": "the text of a document", "id": 1},
            {"content": ["a", "b"]},
            {"content": [], "id": 1},
            {"content": None},
            {"isError": True, "code": 3},
            {"_meta": {}},
        ],
        ids=plain,
    )
    def test_data_with_such_keys_is_data(self, value: dict[str, Any]) -> None:
        assert to_result(value).structured_content == value

    def test_structured_content_alone_gets_its_text(self) -> None:
        expected = ToolResult(content=[TextContent('{"a":1}')], structured_content={"a": 1})
        assert to_result({"structuredContent": {"a": 1}}) == expected
        given_result = ToolResult(structured_content={"a": 1})
        assert to_result(given_result) == expected
        assert given_result.content == []

    def test_structured_content_may_hold_python_values(self) -> None:
        result = to_result(
            ToolResult(content=[HELLO], structured_content={"who": Person(fullName="A")})
        )
        assert result.structured_content == {"who": {"fullName": "A"}}
        assert result.content == [HELLO]

    @pytest.mark.parametrize(
        "value",
        [
            {"content": [{"type": "text", "text": 3}]},
            {"content": [HELLO], "isError": "yes"},
            {"structuredContent": [1]},
        ],
        ids=plain,
    )
    def test_a_malformed_result_is_refused(self, value: Any) -> None:
        assert refusal(value).startswith("is not a valid tool result")

    @pytest.mark.parametrize("name", ["is_error", "structured_content"])
    def test_python_names_in_a_mapping_are_not_silently_lost(self, name: str) -> None:
        assert "has wire names" in refusal({"content": [HELLO], name: True})

    @pytest.mark.parametrize(
        "result",
        [
            ToolResult(content=[HELLO], meta={"a": print}),
            ToolResult(content=[HELLO], extra={"a": object()}),
            ToolResult(content=[HELLO], structured_content={"a": object()}),
            ToolResult(content=[TextContent("\ud800")]),
        ],
        ids=["meta", "extra", "structured content", "text"],
    )
    def test_a_result_that_could_not_be_sent_is_refused_here(self, result: ToolResult) -> None:
        assert refusal(result).startswith("cannot be sent as JSON")


class TestWithAnOutputSchema:
    def test_the_value_is_validated_and_completed(self) -> None:
        output = output_schema(Track)
        for value in (Track("a"), {"title": "a"}, {"title": "a", "unknown": 1}):
            assert to_result(value, output) == ToolResult(
                content=[TextContent('{"title":"a","seconds":0}')],
                structured_content={"title": "a", "seconds": 0},
            )

    def test_a_mismatch_is_refused_with_its_path(self) -> None:
        assert refusal({"title": 3}, output_schema(Track)) == "title: expected string, got integer"
        assert refusal([1, "x"], output_schema(list[int])) == (
            "result[1]: expected integer, got string"
        )
        assert refusal("text", output_schema(Track)) == "expected object, got string"
        assert refusal(None, output_schema(Track)) == "expected object, got null"

    @pytest.mark.parametrize(
        ("source", "value", "text"),
        [
            (list[int], [1, 2], "[1,2]"),
            (int, 3, "3"),
            (str, "plain words", "plain words"),
            (int | None, None, "null"),
            ({"type": "array"}, (1, "a"), '[1,"a"]'),
            (list[Track], [Track("a", 1)], '[{"title":"a","seconds":1}]'),
            (pydantic.RootModel[list[int]], [1], "[1]"),
            (list[Person], [Person(fullName="A")], '[{"fullName":"A"}]'),
        ],
        ids=plain,
    )
    def test_what_is_no_object_is_wrapped_in_schema_and_value_alike(
        self, source: Any, value: object, text: str
    ) -> None:
        output = output_schema(source)
        result = to_result(value, output)
        assert result.structured_content is not None
        assert list(result.structured_content) == ["result"]
        assert output.validate(result.structured_content) == result.structured_content
        assert result.text == text

    def test_bytes_that_were_promised_as_data_are_data(self) -> None:
        result = to_result(PNG, output_schema(bytes))
        assert result.structured_content == {"result": base64.b64encode(PNG).decode()}

    def test_a_whole_result_is_held_to_the_schema_too(self) -> None:
        output = output_schema(Track)
        result = to_result(ToolResult(content=[HELLO], structured_content={"title": "a"}), output)
        assert result.content == [HELLO]
        assert result.structured_content == {"title": "a", "seconds": 0}
        assert refusal({"structuredContent": {"title": 1}}, output) == (
            "title: expected string, got integer"
        )

    def test_a_struct_of_exactly_the_declared_type_is_validated_and_encoded_at_once(self) -> None:
        output = output_schema(Order)
        order = Order(3)
        assert encode_result(order, output) == to_result(order, output).to_wire()
        order.order_id = cast("Any", "three")
        with pytest.raises(ValidationError, match="orderId: expected integer, got string"):
            encode_result(order, output)

    @pytest.mark.parametrize(
        "value", [ToolResult(content=[HELLO]), HELLO, [HELLO], {"content": [HELLO]}]
    )
    def test_content_alone_is_not_enough(self, value: object) -> None:
        assert "needs structured content" in refusal(value, output_schema(Track))

    def test_an_error_is_not_held_to_the_schema(self) -> None:
        output = output_schema(Track)
        error = ToolResult(content=[HELLO], is_error=True, structured_content={"any": 1})
        assert to_result(error, output) == error
        assert to_result({"content": [HELLO], "isError": True}, output).is_error

    def test_data_whose_promised_field_is_named_content_is_data(self) -> None:
        blocks = [{"type": "text", "text": "hello"}]
        output = output_schema({"type": "object", "properties": {"content": {"type": "array"}}})
        assert to_result({"content": blocks}, output).structured_content == {"content": blocks}

    def test_the_returned_object_is_never_changed(self) -> None:
        output = output_schema({"properties": {"a": {"default": 1}, "b": {}}})
        value: dict[str, Any] = {"b": []}
        result = to_result(value, output)
        assert result.structured_content == {"b": [], "a": 1}
        assert value == {"b": []}
        assert result.structured_content["b"] is not value["b"]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values)
def test_any_json_value_makes_a_result_that_can_be_sent_and_read_again(value: Any) -> None:
    try:
        result = to_result(value)
    except ValidationError as error:
        # Only for text that is not Unicode, and for mappings that pose as results or blocks.
        assert "surrogate" in str(error) or "is not a valid" in str(error)
        return
    assert ToolResult.from_wire(result.to_wire()) == result
    assert result.content or (isinstance(value, dict) and "content" in value)
