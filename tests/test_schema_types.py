"""Schemas from classes and other types, in both directions, and from return annotations."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import annotated_types
import mcp.types
import msgspec
import pydantic
import pytest

from tests.ids import plain
from transom.errors import SchemaError, ValidationError
from transom.schema import from_return, input_schema, is_lazy, output_schema
from transom.types import ImageContent, TextContent, ToolResult

T = TypeVar("T")


@dataclasses.dataclass
class Track:
    title: Annotated[str, annotated_types.MinLen(1)]
    seconds: int = 0
    played: dt.datetime | None = None


class Order(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    order_id: int
    line_items: list[str] = []
    note: str | msgspec.UnsetType = msgspec.UNSET


class Sparse(msgspec.Struct, omit_defaults=True):
    a: int
    b: int = 0


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Pair(NamedTuple):
    a: int
    b: int


class Box(msgspec.Struct, Generic[T]):
    value: T
    label: Annotated[str, "What it says"] = ""


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    name: str


class Person(pydantic.BaseModel):
    """Somebody."""

    model_config = pydantic.ConfigDict(extra="forbid")

    name: str = pydantic.Field(alias="fullName", min_length=1)
    age: int = 0
    friends: list[Person] = []

    @pydantic.computed_field
    @property
    def adult(self) -> bool:
        return self.age >= 18


@pydantic.dataclasses.dataclass
class Checked:
    value: Annotated[int, pydantic.Field(gt=0)]


def refusal(schema: Any, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        schema.validate(value)
    return str(caught.value)


class TestInputClasses:
    def test_a_dataclass_arrives_as_one_instance(self) -> None:
        schema = input_schema(Track)
        assert not schema.spread
        assert schema.json_schema["required"] == ["title"]
        assert schema.parse(b'{"title":"Kashmir"}') == Track("Kashmir")
        assert schema.validate(Track("Kashmir")) == Track("Kashmir")

    def test_constraints_of_other_libraries_hold_inside_a_dataclass(self) -> None:
        schema = input_schema(Track)
        assert schema.json_schema["properties"]["title"] == {"type": "string", "minLength": 1}
        assert refusal(schema, {"title": ""}) == "title: must have at least 1 characters"
        assert refusal(input_schema(Box[Track]), {"value": {"title": ""}}) == (
            "value.title: must have at least 1 characters"
        )

    def test_a_struct_keeps_its_wire_names_and_its_strictness(self) -> None:
        schema = input_schema(Order)
        assert not schema.spread
        assert list(schema.json_schema["properties"]) == ["orderId", "lineItems", "note"]
        assert schema.json_schema["additionalProperties"] is False
        assert schema.parse(b'{"orderId":1}') == Order(1)
        assert refusal(schema, {"order_id": 1}) == (
            "order_id: is not expected; known: orderId, lineItems, note; orderId: is required"
        )

    def test_a_typed_dict_arrives_as_keyword_arguments_without_unknown_keys(self) -> None:
        schema = input_schema(Movie)
        assert schema.spread
        assert schema.parse(b'{"title":"Alien","other":1}') == {"title": "Alien"}

    def test_a_plain_dict_type_arrives_as_keyword_arguments(self) -> None:
        schema = input_schema(dict[str, int])
        assert schema.spread
        assert schema.parse(b'{"a":1}') == {"a": 1}
        assert refusal(schema, {"a": ""}) == "a: expected integer, got string"

    def test_a_generic_class_is_described_with_its_argument(self) -> None:
        schema = input_schema(Box[int])
        assert schema.json_schema["properties"] == {
            "value": {"type": "integer"},
            "label": {"type": "string", "description": "What it says", "default": ""},
        }
        assert schema.parse(b'{"value":1}') == Box(1)

    def test_a_union_of_tagged_structs_is_an_object(self) -> None:
        schema = input_schema(Cat | Dog)
        assert schema.json_schema["type"] == "object"
        assert schema.parse(b'{"type":"dog","name":"Rex"}') == Dog("Rex")
        assert refusal(schema, {"type": "cow"}) == "type: must be one of 'cat', 'dog'"

    def test_a_pydantic_model_reads_by_its_own_rules(self) -> None:
        schema = input_schema(Person)
        assert not schema.spread
        person = schema.parse(b'{"fullName":"Ada","age":"36","friends":[{"fullName":"Bob"}]}')
        assert isinstance(person, Person)
        assert (person.name, person.age, person.friends[0].name) == ("Ada", 36, "Bob")
        assert schema.validate({"fullName": "Ada"}) == Person(fullName="Ada")
        assert refusal(schema, {"age": "x", "friends": [{}], "shoe": 1}) == (
            "fullName: is required; age: input should be a valid integer, unable to parse string "
            "as an integer; friends[0].fullName: is required; shoe: is not expected"
        )
        assert "no JSON for an object" in refusal(schema, object())

    def test_the_schema_of_a_pydantic_model_has_no_noise(self) -> None:
        schema = input_schema(Person).json_schema
        assert schema == {
            "type": "object",
            "properties": {
                "fullName": {"type": "string", "minLength": 1},
                "age": {"type": "integer", "default": 0},
                "friends": {
                    "type": "array",
                    "items": {"$ref": "#/$defs/Person"},
                    "default": [],
                },
            },
            "required": ["fullName"],
            "additionalProperties": False,
            "description": "Somebody.",
            "$defs": {"Person": schema["$defs"]["Person"]},
        }

    def test_a_title_that_says_something_stays(self) -> None:
        class Titled(pydantic.BaseModel):
            size: int = pydantic.Field(title="How big it is")

        assert input_schema(Titled).json_schema["properties"]["size"]["title"] == "How big it is"

    def test_a_discriminated_union_of_models_is_plain_json_schema(self) -> None:
        class A(pydantic.BaseModel):
            kind: Literal["a"]

        class B(pydantic.BaseModel):
            kind: Literal["b"]

        one_of = pydantic.create_model(
            "OneOf", pet=(Annotated[A | B, pydantic.Field(discriminator="kind")], ...)
        )
        pet = input_schema(one_of).json_schema["properties"]["pet"]
        assert list(pet) == ["oneOf"]
        assert [branch["properties"]["kind"]["const"] for branch in pet["oneOf"]] == ["a", "b"]

    def test_a_pydantic_dataclass_is_checked_by_pydantic(self) -> None:
        schema = input_schema(Checked)
        assert schema.parse(b'{"value":1}') == Checked(1)
        assert refusal(schema, {"value": 0}) == "value: input should be greater than 0"

    @pytest.mark.parametrize(
        "source", [int, str, None, list[int], Pair, Cat | None, pydantic.RootModel[list[int]]]
    )
    def test_what_is_no_object_cannot_be_arguments(self, source: Any) -> None:
        with pytest.raises(SchemaError, match="must describe an object"):
            input_schema(source)

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("text", "got str"),
            (42, "got int"),
            (True, "got bool"),
            ([], "got list"),
            (object, "must describe an object"),
            (Any, "must describe an object"),
            (range, "range is not supported"),
            (dict.fromkeys, "must be called first"),
        ],
    )
    def test_what_is_no_schema_is_refused(self, source: Any, message: str) -> None:
        with pytest.raises(SchemaError, match=message):
            input_schema(source)

    def test_a_compiled_schema_stays_what_it_is(self) -> None:
        schema = input_schema({"type": "object"})
        assert input_schema(schema) is schema

    def test_a_decoded_dataclass_has_its_defaults_as_its_own(self) -> None:
        track = input_schema(Track).parse(b'{"title":"Kashmir"}')
        assert vars(track) == {"title": "Kashmir", "seconds": 0, "played": None}
        inside = input_schema(Box[list[Track]]).parse(b'{"value":[{"title":"Kashmir"}]}')
        assert vars(inside.value[0]) == vars(track)


class TestOutputTypes:
    def test_defaulted_fields_are_required_and_filled_in(self) -> None:
        schema = output_schema(Track)
        assert schema.json_schema["required"] == ["title", "seconds", "played"]
        assert not schema.wrapped
        full = {"title": "Kashmir", "seconds": 0, "played": None}
        assert schema.validate(Track("Kashmir")) == full
        assert schema.validate({"title": "Kashmir", "more": 1}) == full
        assert schema.parse(b'{"title":"Kashmir"}') == full

    def test_an_instance_that_broke_its_promise_is_refused(self) -> None:
        assert refusal(output_schema(Track), Track("")) == "title: must have at least 1 characters"
        assert refusal(output_schema(Track), Track("a", "b")) == (
            "seconds: expected integer, got string"
        )

    def test_fields_that_may_be_left_out_of_the_wire_are_not_required(self) -> None:
        assert output_schema(Order).json_schema["required"] == ["orderId", "lineItems"]
        assert output_schema(Sparse).json_schema["required"] == ["a"]
        assert output_schema(Movie).json_schema["required"] == ["title"]
        assert output_schema(Order).validate(Order(1)) == {"orderId": 1, "lineItems": []}

    @pytest.mark.parametrize(
        ("source", "value", "inner"),
        [
            (int, 3, {"type": "integer"}),
            (list[int], [1], {"type": "array", "items": {"type": "integer"}}),
            (int | None, None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (Literal["on", "off"], "on", {"enum": ["off", "on"], "type": "string"}),
            ({"type": "string"}, "x", {"type": "string"}),
            ({"type": ["object", "null"]}, None, {"type": ["object", "null"]}),
            ({}, 1, {}),
            (pydantic.RootModel[list[int]], [1], {"type": "array", "items": {"type": "integer"}}),
        ],
        ids=plain,
    )
    def test_what_is_no_object_is_wrapped(self, source: Any, value: Any, inner: Any) -> None:
        schema = output_schema(source)
        assert schema.wrapped
        assert schema.json_schema == {
            "type": "object",
            "properties": {"result": inner},
            "required": ["result"],
        }
        assert schema.validate({"result": value}) == {"result": value}
        assert refusal(schema, {}) == "result: is required"
        assert refusal(schema, {"outcome": value}).startswith("result: is required")

    def test_definitions_of_a_wrapped_schema_stay_at_the_top(self) -> None:
        schema = output_schema(list[Person])
        assert schema.json_schema["properties"]["result"]["items"] == {"$ref": "#/$defs/Person"}
        assert list(schema.json_schema["$defs"]) == ["Person"]
        ada = {"fullName": "Ada", "age": 3, "friends": [], "adult": False}
        assert schema.validate({"result": [Person(fullName="Ada", age=3)]}) == {"result": [ada]}
        assert refusal(schema, {"result": [{**ada, "age": "x"}]}) == (
            "result[0].age: expected integer, got string"
        )

    def test_a_pydantic_model_is_described_as_it_writes(self) -> None:
        schema = output_schema(Person)
        assert schema.json_schema["required"] == ["fullName", "age", "friends", "adult"]
        full = {"fullName": "Ada", "age": 36, "friends": [], "adult": True}
        assert schema.validate(Person(fullName="Ada", age=36)) == full
        assert schema.validate({"fullName": "Ada", "age": 36}) == full

    def test_a_pydantic_model_that_broke_its_promise_is_refused_without_a_warning(self) -> None:
        schema = output_schema(Person)
        broken = Person.model_construct(name="", age=3, friends="none")
        assert refusal(schema, broken) == (
            "fullName: must have at least 1 characters; friends: expected array, got string"
        )
        unspeakable = Person.model_construct(name="Ada", age="old", friends=[])
        assert refusal(schema, unspeakable).startswith("cannot be sent as JSON")

    def test_fields_that_a_model_excludes_are_not_promised(self) -> None:
        class Secretive(pydantic.BaseModel):
            shown: int = 1
            hidden: int = pydantic.Field(2, exclude=True)

        schema = output_schema(Secretive)
        assert schema.json_schema["required"] == ["shown"]
        assert schema.validate(Secretive()) == {"shown": 1}

    def test_a_number_that_json_lacks_is_refused_where_a_number_is_promised(self) -> None:
        assert refusal(output_schema(float), {"result": float("nan")}) == (
            "result: expected number, got null"
        )


def returns(annotation: Any) -> Any:
    def tool(): ...

    tool.__annotations__["return"] = annotation
    return from_return(tool)


class TestReturnAnnotations:
    @pytest.mark.parametrize(
        "annotation",
        [
            None, Any, object, str, str | None, bytes, dict, dict[str, Any], Mapping[str, object],
            ToolResult, TextContent, list[TextContent], list[TextContent | ImageContent],
            tuple[TextContent, ...], Track | ToolResult, mcp.types.CallToolResult,
            Sequence[mcp.types.TextContent], Annotated[str, "text"], T, range, "Nowhere",
        ],
        ids=plain,
    )  # fmt: skip
    def test_annotations_that_promise_nothing_give_no_schema(self, annotation: Any) -> None:
        assert returns(annotation) is None

    def test_no_annotation_gives_no_schema(self) -> None:
        assert from_return(lambda: 1) is None
        assert from_return(dict) is None

    @pytest.mark.parametrize(
        ("annotation", "wrapped"),
        [
            (Track, False),
            (Movie, False),
            (Person, False),
            (dict[str, int], False),
            ("Track", False),
            (int, True),
            (list[str], True),
            (Track | None, True),
            (Literal["a"], True),
            (list[Person], True),
            (tuple[int, str], True),
        ],
        ids=plain,
    )
    def test_annotations_that_promise_something_give_a_schema(
        self, annotation: Any, wrapped: bool
    ) -> None:
        schema = returns(annotation)
        assert schema.wrapped is wrapped
        assert schema.json_schema["type"] == "object"

    async def test_an_async_function_promises_what_it_gives_in_the_end(self) -> None:
        async def tool() -> Track: ...

        schema = from_return(tool)
        assert schema is not None
        assert "title" in schema.json_schema["properties"]


class TestLaziness:
    @pytest.mark.parametrize("source", [dict.fromkeys, functools.partial(dict), "x".upper])
    def test_a_function_is_lazy(self, source: Any) -> None:
        assert is_lazy(source)

    @pytest.mark.parametrize(
        "source",
        [{}, Track, Order, Movie, Person, list[int], dict[str, int], int | None, None,
         Annotated[int, "x"], Literal["a"], input_schema(Track)],
        ids=[f"source{n}" for n in range(12)],  # some have their address in their text
    )  # fmt: skip
    def test_a_schema_is_not(self, source: Any) -> None:
        assert not is_lazy(source)

    def test_an_object_that_validates_is_not_lazy_even_if_it_can_be_called(self) -> None:
        class Callable:
            def __call__(self) -> None: ...

            def json_schema(self) -> dict[str, Any]:
                return {"type": "object"}

            def validate(self, value: Any) -> Any:
                return value

        assert not is_lazy(Callable())

    def test_the_same_class_and_the_same_json_schema_are_compiled_once(self) -> None:
        assert input_schema(Track) is input_schema(Track)
        assert input_schema({"type": "object"}) is input_schema({"type": "object"})
        assert input_schema({"type": "object"}) is not output_schema({"type": "object"})
