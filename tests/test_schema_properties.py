"""The schema on the wire and the values that are accepted agree, for generated types and values."""

import dataclasses
import enum
from typing import Annotated, Any, Literal, TypedDict

import annotated_types
import jsonschema_rs
import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from transom.errors import SchemaError, ValidationError
from transom.schema import Schema, from_signature, input_schema, output_schema


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Line:
    sku: Annotated[str, annotated_types.MinLen(1)]
    count: Annotated[int, annotated_types.Interval(ge=1, le=5)] = 1


class Rule(TypedDict, total=False):
    name: str
    level: Annotated[int | None, annotated_types.Gt(0)]


class Tree(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    kids: list["Tree"] = []


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    name: str


scalar_hints = st.sampled_from([
    int, str, bool, float, None, Any, Size, Level, Literal["a", "b", 1], Literal["x"] | None,
    Annotated[int, msgspec.Meta(ge=0, lt=3)],
    Annotated[int, annotated_types.MultipleOf(2)],
    Annotated[str, annotated_types.Len(1, 3)],
    Annotated[str, msgspec.Meta(pattern="^[ab]+$")],
    Annotated[float, annotated_types.Le(1.5)],
    Annotated[int | None, annotated_types.Ge(2)],
])  # fmt: skip
class_hints = st.sampled_from([Line, Rule, Tree, Cat | Dog])
hints = st.recursive(
    scalar_hints | class_hints,
    lambda inner: st.one_of(
        inner.map(lambda hint: list[hint]),
        inner.map(lambda hint: dict[str, hint]),
        inner.map(lambda hint: hint | None if hint is not None else None),
        inner.map(lambda hint: tuple[hint, int]),
        inner.map(lambda hint: Annotated[list[hint], annotated_types.MaxLen(1)]),
        inner.map(lambda hint: Annotated[hint, "Some words"]),
    ),
    max_leaves=4,
)

# Numbers such as 1.0 are left out: JSON Schema calls them integers, we do not.
numbers = st.integers(-3, 7) | st.sampled_from([0.5, 1.5, -2.25, 10**30])
names = st.sampled_from(["x", "sku", "count", "name", "level", "kids", "type", "lives"])
values = st.recursive(
    st.none()
    | st.booleans()
    | numbers
    | st.sampled_from(["", "a", "ab", "abcd", "small", "cat", "dog"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
objects = st.one_of(
    values,
    st.builds(lambda value: {"type": "cat", "lives": value}, values),
    st.builds(lambda value: {"type": "dog", "name": value}, values),
    st.builds(lambda sku, count: {"sku": sku, "count": count}, values, values),
    st.builds(
        lambda name, kids: {"name": name, "kids": kids}, values, st.lists(values, max_size=2)
    ),
)


def accepted(schema: Schema, value: object) -> bool:
    try:
        schema.parse(msgspec.json.encode(value))
    except ValidationError:
        return False
    return True


def signature_of(hint: Any, *, default: Any = ...) -> Schema:
    def tool(x): ...

    tool.__annotations__["x"] = hint
    if default is not ...:
        tool.__defaults__ = (default,)
    return from_signature(tool)


@given(hint=hints, value=st.dictionaries(st.just("x") | names, objects, max_size=2) | objects)
@example(hint=list[Tree], value={"x": [{"name": "a", "kids": [{"name": "b"}]}]})
@example(hint=Line, value={"x": {"sku": "", "count": 1}})
@example(hint=dict[str, Cat | Dog], value={"x": {"x": {"type": "cat", "lives": 1}}})
def test_a_signature_accepts_what_its_schema_accepts_and_nothing_else(
    hint: Any, value: object
) -> None:
    schema = signature_of(hint)
    expected = jsonschema_rs.Draft202012Validator(schema.json_schema).is_valid(value)
    assert accepted(schema, value) == expected


@given(hint=st.sampled_from([Line, Rule, Tree, Cat | Dog, dict[str, int]]), value=objects)
def test_a_class_accepts_what_its_schema_accepts_and_nothing_else(hint: Any, value: object) -> None:
    schema = input_schema(hint)
    expected = jsonschema_rs.Draft202012Validator(schema.json_schema).is_valid(value)
    assert accepted(schema, value) == expected


@given(hint=hints)
def test_what_is_emitted_is_a_valid_plain_object_schema(hint: Any) -> None:
    for schema in (signature_of(hint), output_schema(hint)):
        assert schema.json_schema["type"] == "object"
        jsonschema_rs.meta.validate(schema.json_schema)
        assert msgspec.json.decode(schema.json_bytes) == schema.json_schema


@given(hint=hints, value=objects)
def test_what_an_output_schema_lets_through_fits_what_it_says(hint: Any, value: object) -> None:
    schema = output_schema(hint)
    try:
        sent = schema.validate({"result": value} if schema.wrapped else value)
    except ValidationError:
        return
    jsonschema_rs.Draft202012Validator(schema.json_schema).validate(sent)
    assert schema.validate(sent) == sent


@given(hint=hints)
def test_a_default_makes_a_parameter_optional_and_is_passed(hint: Any) -> None:
    default = object()
    schema = signature_of(hint, default=default)
    assert "required" not in schema.json_schema
    assert schema.parse(b"{}")["x"] is default


@given(document=st.dictionaries(names, values, max_size=4), value=objects)
def test_a_json_schema_accepts_what_its_validator_accepts(
    document: dict[str, Any], value: object
) -> None:
    """Enumerations of anything: the simplest schema that may hold any JSON."""
    given_schema = {
        "type": "object",
        "properties": {name: {"enum": [entry, "x"]} for name, entry in document.items()},
        "required": list(document),
    }
    schema = input_schema(given_schema)
    assert schema.json_schema == given_schema
    assert accepted(schema, value) == jsonschema_rs.is_valid(given_schema, value)
    assert schema.validate(document) == document


@given(
    document=st.dictionaries(
        st.sampled_from(["type", "enum", "format", "items", "minimum", "maxLength", "required"]),
        values | st.sampled_from(["string", "array", {"type": "integer"}, ["a", "b"], ["a", "a"]]),
        max_size=3,
    )
)
def test_a_json_schema_is_taken_if_its_validator_takes_it(document: dict[str, Any]) -> None:
    """Also where the validator is not asked before there is a value to check."""
    given_schema = {"type": "object", "properties": {"a": document}}
    taken = jsonschema_rs.meta.is_valid(given_schema)
    try:
        input_schema(given_schema)
    except SchemaError:
        assert not taken
    else:
        assert taken
