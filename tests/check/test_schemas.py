"""Arguments made from a schema fit it, and those meant not to fit do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.check.schemas import (
    MAX_STEPS,
    ExampleMaker,
    fits,
    fitting_arguments,
    mismatches_of,
    schema_error,
    unfitting_arguments,
)


def one(schema, *, required=True):
    made = {"type": "object", "properties": {"x": schema}}
    return {**made, "required": ["x"]} if required else made


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "example"),
        ({"type": "string", "default": "a"}, "a"),
        ({"type": "string", "examples": ["b", "c"]}, "b"),
        ({"enum": ["d", "e"]}, "d"),
        ({"const": 7}, 7),
        ({"type": "string", "minLength": 9}, "examplexx"),
        ({"type": "string", "maxLength": 3}, "exa"),
        ({"type": "string", "format": "date"}, "2026-01-26"),
        ({"type": "string", "format": "uri"}, "https://example.com/"),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "integer", "minimum": 3, "multipleOf": 4}, 4),
        ({"type": "boolean"}, False),
        ({"type": ["null", "string"]}, "example"),
        ({"type": "array", "items": {"type": "integer"}}, []),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
        ({"oneOf": [{"type": "string", "enum": ["z"]}]}, "z"),
        (
            {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]},
            {"y": "example"},
        ),
        ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, 3),
    ],
)
def test_arguments_fit_the_schema(schema, value):
    assert fitting_arguments(one(schema)) == {"x": value}


def test_only_what_is_required_is_given():
    assert fitting_arguments(one({"type": "string"}, required=False)) == {}
    assert fitting_arguments({"type": "object"}) == {}


def test_references_inside_the_schema_are_followed():
    schema = {
        **one({"$ref": "#/$defs/Status"}),
        "$defs": {"Status": {"enum": ["open"]}, "a/b": {"$ref": "#/$defs/Status"}},
    }
    assert fitting_arguments(schema) == {"x": "open"}
    assert fitting_arguments({**schema, **one({"$ref": "#/$defs/a~1b"})}) == {"x": "open"}


@pytest.mark.parametrize(
    "schema",
    [
        one({"type": "string", "pattern": "^[A-Z]{3}$"}),
        one({"$ref": "https://example.com/schema.json"}),
        one({"not": {}}),
        {"type": "string"},
        {"type": "object", "required": ["x"], "properties": {"x": False}},
    ],
)
def test_no_arguments_are_better_than_wrong_ones(schema):
    assert fitting_arguments(schema) is None


def test_wrong_arguments_do_not_fit():
    schema = one({"type": "string"})
    wrong = unfitting_arguments(schema)
    assert wrong is not None
    assert not fits(wrong, schema)


def test_nothing_is_wrong_where_anything_fits():
    assert unfitting_arguments({"type": "object"}) is None
    assert unfitting_arguments(one({})) is None


def test_a_schema_that_names_another_is_never_fetched():
    schema = one({"$ref": "http://127.0.0.1:9/schema.json"})
    with pytest.raises(ValueError, match="not fetched"):
        mismatches_of({"x": 1}, schema)
    assert schema_error({"$schema": "http://127.0.0.1:9/dialect", "type": "object"}) is None


def test_a_schema_that_nests_too_deep_is_not_used():
    schema = {"type": "object"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"x": schema}}
    assert schema_error(schema) == "it nests deeper than 64 levels"
    assert fitting_arguments(schema) is None
    assert unfitting_arguments(schema) is None


@pytest.mark.load
@pytest.mark.parametrize("width", [3, 30])
def test_references_that_multiply_do_not_multiply_the_work(width):
    """Every level refers to the root `width` times: twelve levels would be width ** 12 schemas."""
    root = {"$ref": "#"}
    names = [f"n{number}" for number in range(width)]
    nested = {"type": "object", "properties": dict.fromkeys(names, root), "required": names}
    for schema in ({"allOf": [root] * width}, nested):
        maker = ExampleMaker(schema)
        maker.make(schema)
        assert maker.steps < MAX_STEPS * 2


def doubling(steps):
    """Each definition refers to the next one twice: 2 ** steps places to look at."""
    defs = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2, "$anchor": f"d{n}"}
        for n in range(steps)
    }
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": {**defs, f"d{steps}": {}}}


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"x": value}
    return value


@pytest.mark.load
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling(40), {}),
        ({"properties": {"x": {"allOf": [{"$ref": "#"}] * 2}}}, nested(60)),
        (
            {"properties": {"x": {"$ref": "#"}}, "patternProperties": {".": {"$ref": "#"}}},
            nested(60),
        ),
        ({"$anchor": "a", "properties": {"x": {"allOf": [{"$ref": "#a"}] * 2}}}, nested(60)),
    ],
)
def test_a_schema_that_would_be_looked_at_for_ever_is_not_used(schema, value):
    with pytest.raises(ValueError, match="too long"):
        mismatches_of(value, schema)


@pytest.mark.load
def test_no_arguments_are_made_for_a_schema_that_would_be_looked_at_for_ever():
    assert unfitting_arguments({**doubling(40), "properties": {"x": {"type": "string"}}}) is None


def test_a_tree_and_a_long_list_are_validated():
    tree = {"properties": {"x": {"$ref": "#"}, "y": {"$ref": "#"}}, "additionalProperties": False}
    assert mismatches_of(nested(60), tree) == []
    assert [p.path for p in mismatches_of({"x": {"y": {"z": 1}}}, tree)] == [".x.y"]
    assert (
        mismatches_of({"a": [1] * 100_000}, {"properties": {"a": {"items": {"minimum": 1}}}}) == []
    )


def test_of_a_large_value_the_first_problem_is_enough():
    """All of them take a second for each thousand, because each repeats the whole enum."""
    choices = {"properties": {"x": {"items": {"enum": [{"n": -n} for n in range(2_000)]}}}}
    (mismatch,) = mismatches_of({"x": [{"n": n + 1} for n in range(2_000)]}, choices)
    assert mismatch.path == ".x[0]"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "properties", "required", "x", "$ref", "items", "anyOf", "enum", "minimum",
             "multipleOf", "minItems", "allOf", "minLength", "prefixItems", "#/x"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["type", "properties", "required", "allOf"]), JSON))
def test_no_schema_makes_it_fail(schema):
    made = fitting_arguments(schema)
    assert made is None or fits(made, schema)
    wrong = unfitting_arguments(schema)
    assert wrong is None or not fits(wrong, schema)
