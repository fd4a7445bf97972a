"""Input schemas from a function's signature."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import json
import math
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Required, TypedDict, TypeVar

import annotated_types
import msgspec
import pydantic
import pytest
from typing_extensions import Doc, TypeAliasType

from tests.ids import plain
from transom.errors import SchemaError, ValidationError
from transom.schema import from_signature


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


@dataclass
class Item:
    """Something to order."""

    id: Annotated[int, annotated_types.Ge(1), "Its number"]
    when: dt.datetime | None = None
    tags: list[str] = field(default_factory=list)


class Options(TypedDict):
    size: Required[int]
    note: NotRequired[Annotated[str, "Anything"]]


class Point(NamedTuple):
    x: int
    y: int = 0


class Node(msgspec.Struct, rename="camel"):
    node_value: int
    next_node: Node | None = None


class Address(pydantic.BaseModel):
    city: str
    zip_code: Annotated[str, pydantic.Field(alias="zip", pattern="^[0-9]+$")] = "0"


@dataclass
class Broken:
    value: Nowhere  # noqa: F821


@dataclass
class Left:
    x: int


@dataclass
class Right:
    y: int


class Endless:
    """As `type Endless = list[Endless]` in Python 3.12 and later, for all versions."""

    @property
    def __value__(self) -> Any:
        return list[self]


Endless.__name__ = "TypeAliasType"


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    return from_signature(function).json_schema["properties"]


def mismatches(schema: Any, arguments: object) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        schema.parse(json.dumps(arguments).encode())
    return [str(mismatch) for mismatch in caught.value.mismatches]


class TestWhatIsEmitted:
    def test_a_signature_is_a_closed_object_with_its_required_parameters(self) -> None:
        def move(x: int, y: int = 0) -> None: ...

        schema = from_signature(move)
        assert schema.json_schema == {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
            "required": ["x"],
            "additionalProperties": False,
        }
        assert msgspec.json.decode(schema.json_bytes) == schema.json_schema
        assert schema.spread
        assert not schema.wrapped

    def test_a_function_without_parameters_takes_an_empty_object(self) -> None:
        schema = from_signature(lambda: None)
        assert schema.json_schema == {
            "type": "object",
            "properties": {},
            "additionalProperties": False,
        }
        assert schema.parse(b"{}") == {}

    @pytest.mark.parametrize(
        ("hint", "expected"),
        [
            (str, {"type": "string"}),
            (float, {"type": "number"}),
            (bool, {"type": "boolean"}),
            (Any, {}),
            (object, {}),
            (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
            (Color, {"enum": ["green", "red"], "type": "string"}),
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
            (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
            (Mapping[str, Any], {"type": "object"}),
            (dt.datetime, {"type": "string", "format": "date-time"}),
            (
                list[dt.datetime],
                {"type": "array", "items": {"type": "string", "format": "date-time"}},
            ),
            (dt.date, {"type": "string", "format": "date"}),
            (uuid.UUID, {"type": "string", "format": "uuid"}),
            (decimal.Decimal, {"type": "string", "format": "decimal"}),
            (bytes, {"type": "string", "contentEncoding": "base64"}),
            (
                Options,
                {
                    "type": "object",
                    "properties": {
                        "size": {"type": "integer"},
                        "note": {"type": "string", "description": "Anything"},
                    },
                    "required": ["size"],
                },
            ),
            (
                Point,
                {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, {"type": "integer", "default": 0}],
                    "minItems": 1,
                    "maxItems": 2,
                },
            ),
            (
                Item,
                {
                    "type": "object",
                    "description": "Something to order.",
                    "properties": {
                        "id": {"type": "integer", "minimum": 1, "description": "Its number"},
                        "when": {
                            "anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}],
                            "default": None,
                        },
                        "tags": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["id"],
                },
            ),
            (
                Address,
                {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string"},
                        "zip": {"type": "string", "pattern": "^[0-9]+$", "default": "0"},
                    },
                    "required": ["city"],
                },
            ),
        ],
        ids=plain,
    )
    def test_a_hint_becomes_a_property(self, hint: Any, expected: object) -> None:
        def tool(value): ...

        tool.__annotations__["value"] = hint
        assert properties(tool)["value"] == expected

    @pytest.mark.parametrize(
        "hint",
        [
            Annotated[int, "How many"],
            Annotated[int, Doc("How many")],
            Annotated[int, msgspec.Meta(description="How many")],
            Annotated[int, pydantic.Field(description="How many")],
        ],
        ids=["string", "Doc", "Meta", "Field"],
    )
    def test_each_way_to_describe_a_parameter_works(self, hint: Any) -> None:
        def tool(value): ...

        tool.__annotations__["value"] = hint
        assert properties(tool)["value"] == {"type": "integer", "description": "How many"}

    @pytest.mark.parametrize(
        ("hint", "expected"),
        [
            (Annotated[int, msgspec.Meta(ge=1, lt=9)], {"minimum": 1, "exclusiveMaximum": 9}),
            (Annotated[int, pydantic.Field(gt=1, le=9)], {"exclusiveMinimum": 1, "maximum": 9}),
            (
                Annotated[int, annotated_types.Interval(ge=1, le=9), annotated_types.MultipleOf(2)],
                {"minimum": 1, "maximum": 9, "multipleOf": 2},
            ),
            (Annotated[str, annotated_types.Len(1, 3)], {"minLength": 1, "maxLength": 3}),
            (Annotated[str, pydantic.StringConstraints(pattern="^a")], {"pattern": "^a"}),
            (Annotated[list[int], pydantic.Field(min_length=2)], {"minItems": 2}),
            (pydantic.PositiveInt, {"exclusiveMinimum": 0}),
        ],
        ids=plain,
    )
    def test_each_way_to_constrain_a_parameter_works(self, hint: Any, expected: Any) -> None:
        def tool(value): ...

        tool.__annotations__["value"] = hint
        assert expected.items() <= properties(tool)["value"].items()

    def test_a_type_alias_means_what_it_stands_for(self) -> None:
        item = TypeVar("item")
        ids = TypeAliasType("ids", list[Annotated[int, annotated_types.Ge(1)]])
        pair = TypeAliasType("pair", tuple[item, item], type_params=(item,))

        def tool(a, b): ...

        tool.__annotations__.update(a=Annotated[ids, "Which"], b=pair[dt.date])
        schema = from_signature(tool)
        assert schema.json_schema["properties"]["a"] == {
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
            "description": "Which",
        }
        assert schema.parse(b'{"a":[1],"b":["2026-01-26","2026-01-27"]}')["b"][1].day == 27
        assert mismatches(schema, {"a": [0], "b": []}) == [
            "a[0]: must be >= 1",
            "b: must have at least 2 items",
        ]

    def test_constraints_on_an_optional_value_are_about_the_value(self) -> None:
        def tool(size: Annotated[int | None, annotated_types.Ge(1), "How big"] = None) -> None: ...

        assert properties(tool)["size"] == {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}],
            "description": "How big",
            "default": None,
        }

    def test_a_default_of_none_makes_none_acceptable(self) -> None:
        def tool(size=None): ...

        tool.__annotations__["size"] = Annotated[int, annotated_types.Ge(1), "How big"]
        schema = from_signature(tool)
        assert schema.json_schema["properties"]["size"] == {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}],
            "description": "How big",
            "default": None,
        }
        assert schema.parse(b'{"size":null}') == {"size": None}
        assert mismatches(schema, {"size": 0}) == ["size: must be >= 1"]

        tool.__annotations__["size"] = int
        schema = from_signature(tool)
        assert schema.parse(b'{"size":null}') == {"size": None}
        assert mismatches(schema, {"size": "x"}) == ["size: expected integer or null, got string"]

    def test_a_pydantic_field_may_stand_in_the_place_of_the_default(self) -> None:
        def tool(
            size: int = pydantic.Field(3, ge=1, description="How big"),
            name: str = pydantic.Field(max_length=5),
            tags: list[str] = pydantic.Field(default_factory=list),  # noqa: B008
        ) -> None: ...

        schema = from_signature(tool)
        assert schema.json_schema["properties"] == {
            "size": {"type": "integer", "minimum": 1, "description": "How big", "default": 3},
            "name": {"type": "string", "maxLength": 5},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        }
        assert schema.parse(b'{"name":"x"}') == {"size": 3, "name": "x", "tags": []}

    def test_the_docstring_describes_parameters_that_have_no_description(self) -> None:
        def tool(a: int, b: Annotated[int, "Told here"], c: int = 1, **rest: Any) -> None:
            """Do it.

            Args:
                a: The first,
                    on two lines.
                b (int): Not used.
                c: 100: a number.

                    A second paragraph is left out.
                rest: The others.

            Returns:
                d: Nothing.
            """

        assert {name: entry.get("description") for name, entry in properties(tool).items()} == {
            "a": "The first, on two lines.",
            "b": "Told here",
            "c": "100: a number.",
        }

    def test_sphinx_style_docstrings_are_read_too(self) -> None:
        def tool(a: int, b: int) -> None:
            """Do it.

            :param a: The first,
                on two lines.
            :param int b: The second.
            :returns: Nothing.
            """

        described = [entry["description"] for entry in properties(tool).values()]
        assert described == ["The first, on two lines.", "The second."]

    @pytest.mark.parametrize("default", [math.nan, math.inf, object(), print])
    def test_a_default_without_a_json_form_is_not_shown_but_used(self, default: object) -> None:
        def tool(value: Any = default) -> None: ...

        schema = from_signature(tool)
        assert schema.json_schema["properties"]["value"] == {}
        assert schema.parse(b"{}")["value"] is default

    def test_defaults_of_any_kind_are_shown_as_json(self) -> None:
        def tool(
            color: Color = Color.RED,
            item: Item = Item(1),  # noqa: B008
            when: dt.date = dt.date(2026, 1, 26),
            tags: tuple[str, ...] = ("a",),
        ) -> None: ...

        shown = {name: entry["default"] for name, entry in properties(tool).items()}
        assert shown == {
            "color": "red",
            "item": {"id": 1, "when": None, "tags": []},
            "when": "2026-01-26",
            "tags": ["a"],
        }

    def test_a_recursive_type_is_kept_as_a_definition(self) -> None:
        def tool(node: Node) -> None: ...

        schema = from_signature(tool).json_schema
        assert schema["properties"]["node"] == {"$ref": "#/$defs/Node"}
        assert schema["$defs"]["Node"]["properties"]["nextNode"]["anyOf"][0] == {
            "$ref": "#/$defs/Node"
        }

    def test_models_with_the_same_name_are_told_apart(self) -> None:
        def make(kind: type) -> type[pydantic.BaseModel]:
            inner = pydantic.create_model("Inner", value=(kind, ...))
            return pydantic.create_model("Outer", inner=(inner, ...))

        def tool(a, b): ...

        tool.__annotations__.update(a=make(int), b=make(str))
        kinds = [
            entry["properties"]["inner"]["properties"]["value"]["type"]
            for entry in properties(tool).values()
        ]
        assert kinds == ["integer", "string"]


class TestWhatArrives:
    def test_arguments_arrive_as_python_values_with_defaults(self) -> None:
        def tool(
            color: Color, items: list[Item], node: Node, home: Address, point: Point, n: int = 3
        ) -> None: ...

        arguments = from_signature(tool).parse(
            json.dumps(
                {
                    "color": "red",
                    "items": [{"id": 1, "when": "2026-01-26T10:00:00Z"}],
                    "node": {"nodeValue": 1, "nextNode": {"nodeValue": 2}},
                    "home": {"city": "Ulm", "zip": "89073"},
                    "point": [1, 2],
                }
            ).encode()
        )
        assert arguments == {
            "color": Color.RED,
            "items": [Item(1, dt.datetime(2026, 1, 26, 10, tzinfo=dt.UTC), [])],
            "node": Node(1, Node(2)),
            "home": Address(city="Ulm", zip="89073"),
            "point": Point(1, 2),
            "n": 3,
        }

    def test_a_mutable_default_is_the_one_that_python_would_pass(self) -> None:
        shared: list[int] = []

        def tool(values: list[int] = shared) -> None: ...

        assert from_signature(tool).parse(b"{}")["values"] is shared

    def test_validate_takes_values_that_are_in_memory(self) -> None:
        def tool(item: Item) -> None: ...

        schema = from_signature(tool)
        assert schema.validate({"item": {"id": 1}}) == {"item": Item(1)}
        assert schema.validate({"item": Item(1)}) == {"item": Item(1)}
        with pytest.raises(ValidationError, match=r"item\.id: must be >= 1"):
            schema.validate({"item": Item(0)})

    @pytest.mark.parametrize("name", ["__proto__", "constructor", "_meta", "self", "prototype"])
    def test_awkward_names_are_ordinary_names(self, name: str) -> None:
        scope: dict[str, Any] = {}
        exec(f"def tool({name}: int): return {name}", scope)  # noqa: S102
        schema = from_signature(scope["tool"])
        assert schema.parse(json.dumps({name: 7}).encode()) == {name: 7}
        assert mismatches(from_signature(lambda: None), {name: 7}) == [f"{name}: is not expected"]

    @pytest.mark.parametrize("name", ["__dict__", "__slots__", "__post_init__", "__weakref__"])
    def test_names_that_cannot_work_are_refused_at_once(self, name: str) -> None:
        scope: dict[str, Any] = {}
        exec(f"def tool({name}: int): return {name}", scope)  # noqa: S102
        with pytest.raises(SchemaError, match=name):
            from_signature(scope["tool"])

    def test_parameters_to_skip_are_not_part_of_it(self) -> None:
        def tool(query: str, ctx: Unknown) -> None: ...  # noqa: F821

        schema = from_signature(tool, skip=("ctx",))
        assert list(schema.json_schema["properties"]) == ["query"]
        assert mismatches(schema, {"query": "", "ctx": 1}) == ["ctx: is not expected; known: query"]


class TestWhatIsRefused:
    def test_every_problem_is_told_with_its_path(self) -> None:
        def tool(
            count: Annotated[int, msgspec.Meta(ge=0)],
            color: Color,
            items: list[Item],
            options: Options,
            home: Address,
            label: str = "",
        ) -> None: ...

        assert mismatches(
            from_signature(tool),
            {
                "count": -1,
                "color": "blue",
                "items": [{"id": 1}, {"id": 0}, {"tags": [1]}],
                "options": {},
                "home": {"city": 5},
                "label": None,
                "labels": "",
            },
        ) == [
            "count: must be >= 0",
            "color: must be one of 'green', 'red'",
            "items[1].id: must be >= 1",
            "items[2].id: is required",
            "items[2].tags[0]: expected string, got integer",
            "options.size: is required",
            "home.city: expected string, got integer",
            "label: expected string, got null",
            "labels: is not expected; known: count, color, items, options, home, label",
        ]

    @pytest.mark.parametrize(
        ("hint", "value", "message"),
        [
            (int, "1", "expected integer, got string"),
            (int, True, "expected integer, got boolean"),
            (int, 1.0, "expected integer, got number"),
            (str, 1, "expected string, got integer"),
            (bool, 1, "expected boolean, got integer"),
            (float, "1.5", "expected number, got string"),
            (int | str, [], "expected integer or string, got array"),
            (dt.datetime, "yesterday", "invalid RFC3339 encoded datetime"),
            (uuid.UUID, "x", "invalid UUID"),
            (bytes, "?", "invalid base64 encoded string"),
            (Annotated[list[int], msgspec.Meta(max_length=1)], [1, 2], "must have at most 1 items"),
        ],
        ids=plain,
    )
    def test_types_are_strict_json(self, hint: Any, value: object, message: str) -> None:
        def tool(value): ...

        tool.__annotations__["value"] = hint
        assert mismatches(from_signature(tool), {"value": value}) == [f"value: {message}"]

    def test_a_pydantic_validator_inside_hints_has_its_say(self) -> None:
        class Even(pydantic.BaseModel):
            value: int

            @pydantic.field_validator("value")
            @classmethod
            def must_be_even(cls, value: int) -> int:
                if value % 2:
                    raise ValueError("must be even")
                return value

        def tool(numbers): ...

        tool.__annotations__["numbers"] = list[Even]
        schema = from_signature(tool)
        assert schema.parse(b'{"numbers":[{"value":2}]}') == {"numbers": [Even(value=2)]}
        assert mismatches(schema, {"numbers": [{"value": 3}]}) == [
            "numbers[0]: value: must be even"
        ]

    def test_a_wrong_tag_of_a_union_is_told_which_there_are(self) -> None:
        class Cat(msgspec.Struct, tag="cat"):
            lives: int

        class Dog(msgspec.Struct, tag="dog"):
            name: str

        def tool(pet): ...

        tool.__annotations__["pet"] = Cat | Dog
        schema = from_signature(tool)
        assert schema.parse(b'{"pet":{"type":"cat","lives":9}}') == {"pet": Cat(9)}
        assert mismatches(schema, {"pet": {"type": "cow"}}) == [
            "pet.type: must be one of 'cat', 'dog'"
        ]
        assert mismatches(schema, {"pet": {"type": "dog", "name": 1}}) == [
            "pet.name: expected string, got integer"
        ]

    def test_without_a_json_schema_validator_the_first_problem_is_told(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
        monkeypatch.setitem(sys.modules, "jsonschema", None)

        def tool(a: int, b: Color, c: int | None = None) -> None: ...

        schema = from_signature(tool)
        assert mismatches(schema, {"a": "x", "b": "y"}) == ["a: expected integer, got string"]
        assert mismatches(schema, {"a": 1, "b": "y"}) == ["b: is not one of the allowed values"]
        assert mismatches(schema, {"a": 1}) == ["b: is required"]
        assert mismatches(schema, {"d": 1}) == ["d: is not expected"]
        assert mismatches(schema, {"c": "x"}) == ["c: expected integer or null, got string"]


class TestKindsOfFunction:
    def test_keyword_arguments_of_any_name_are_taken_where_the_function_does(self) -> None:
        def tool(a: int, **others: int) -> None: ...

        schema = from_signature(tool)
        assert schema.json_schema["additionalProperties"] == {"type": "integer"}
        assert schema.parse(b'{"a":1,"b":2,"__proto__":3}') == {"a": 1, "b": 2, "__proto__": 3}
        assert schema.validate({"a": 1}) == {"a": 1}
        assert mismatches(schema, {"b": "x", "c": []}) == [
            "a: is required",
            "b: expected integer, got string",
            "c: expected integer, got array",
        ]

    def test_keyword_arguments_without_a_hint_take_anything(self) -> None:
        schema = from_signature(lambda **others: None)
        assert schema.json_schema["additionalProperties"] is True
        assert schema.parse(b'{"b":[1]}') == {"b": [1]}
        with pytest.raises(ValidationError, match="not valid JSON"):
            schema.parse(b"{")

    def test_what_a_function_gets_from_elsewhere_cannot_be_passed_as_any_name(self) -> None:
        class Editor:
            def save(self, a: int, ctx: Any, **others: Any) -> None: ...

        method = from_signature(Editor().save, skip=["ctx"])
        assert mismatches(method, {"a": 1, "self": 2, "ctx": 3}) == [
            "ctx: is not an argument of this tool",
            "self: is not an argument of this tool",
        ]
        partial = from_signature(functools.partial(Editor().save, 1), skip=["ctx"])
        assert mismatches(partial, {"a": 2}) == ["a: is not an argument of this tool"]

    def test_methods_partials_wrappers_and_callable_objects_have_signatures(self) -> None:
        class Editor:
            def method(self, a: int) -> None: ...

            @classmethod
            def of_class(cls, a: int) -> None: ...

            @staticmethod
            def of_nobody(a: int) -> None: ...

            def __call__(self, a: int) -> None: ...

        @functools.wraps(Editor.of_nobody)
        def wrapper(*args: Any, **kwargs: Any) -> None: ...

        expected = {"a": {"type": "integer"}}
        editor = Editor()
        for function in (editor.method, Editor.of_class, Editor.of_nobody, editor, wrapper):
            assert properties(function) == expected
        assert properties(functools.partial(wrapper, a=3)) == {
            "a": {"type": "integer", "default": 3}
        }

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda a, /: a, "'a' .* is positional-only.*drop the '/'"),
            (lambda *numbers: numbers, r"takes \*numbers.*take a list"),
            (dict, "has no signature"),
        ],
    )
    def test_functions_that_cannot_be_called_by_name_are_refused(
        self, function: Any, message: str
    ) -> None:
        with pytest.raises(SchemaError, match=message):
            from_signature(function)

    @pytest.mark.parametrize(
        ("hint", "message"),
        [
            (complex, "complex is not supported"),
            (Callable[[int], int], "Callable is not supported"),
            (Left | Right, "unions may not contain more than one dataclass"),
            (Annotated[str, annotated_types.Ge(1)], "numeric type"),
            (Annotated[int | None, annotated_types.MinLen(1)], "min_length fits no member"),
            (Annotated[int, annotated_types.Ge(1), annotated_types.Gt(1)], "both `gt` and `ge`"),
            (Annotated[str, annotated_types.Predicate(str.islower)], "Predicate .* is not run"),
            (Annotated[int, pydantic.AfterValidator(abs)], "AfterValidator .* is not run"),
            (Annotated[str, pydantic.Field(pattern="(")], "cannot use .*unterminated subpattern"),
            (Endless(), "refers to itself: use a class"),
            ("Nowhere", "cannot resolve the type hint 'Nowhere'.*name 'Nowhere' is not defined"),
            ("list[", "cannot resolve the type hint"),
        ],
        ids=plain,
    )
    def test_a_hint_that_cannot_be_used_is_blamed_by_parameter(
        self, hint: Any, message: str
    ) -> None:
        def tool(good: int, bad): ...

        tool.__annotations__["bad"] = hint
        with pytest.raises(SchemaError, match=message) as caught:
            from_signature(tool)
        assert "parameter 'bad' of tool()" in str(caught.value)

    def test_a_pydantic_dataclass_inside_hints_is_refused_because_its_checks_would_be_lost(
        self,
    ) -> None:
        @pydantic.dataclasses.dataclass
        class Checked:
            value: int

        def tool(values): ...

        tool.__annotations__["values"] = list[Checked]
        with pytest.raises(SchemaError, match="Checked is a pydantic dataclass"):
            from_signature(tool)


class TestStringAnnotations:
    def test_local_classes_are_found_where_the_function_is_defined(self) -> None:
        class Local(msgspec.Struct):
            value: int

        def define() -> Any:
            class Deeper(msgspec.Struct):
                value: str

            def tool(a: Local, b: list[Deeper]) -> None: ...

            return from_signature(tool)

        schema = define().json_schema
        assert schema["properties"]["a"]["properties"] == {"value": {"type": "integer"}}
        assert schema["properties"]["b"]["items"]["properties"] == {"value": {"type": "string"}}

    def test_a_class_that_is_gone_is_a_clear_error(self) -> None:
        def define() -> Any:
            class Local(msgspec.Struct):
                value: int

            def tool(a: Local) -> None: ...

            return tool

        with pytest.raises(
            SchemaError, match="'Local' of parameter 'a' of tool\\(\\).*module level"
        ):
            from_signature(define())

    def test_an_unresolvable_return_annotation_does_not_spoil_the_parameters(self) -> None:
        def tool(a: int) -> Nowhere: ...  # noqa: F821

        assert properties(tool) == {"a": {"type": "integer"}}

    def test_a_field_that_names_nothing_is_blamed_on_its_class(self) -> None:
        def tool(value: Broken) -> None: ...

        with pytest.raises(SchemaError, match="annotations of Broken: name 'Nowhere'"):
            from_signature(tool)
