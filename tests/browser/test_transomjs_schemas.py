"""`transom.js` finds in values what `jsonschema-rs` finds, for the words it holds values to."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.browser.transomjs_host import LIBRARY, PAGES

pytestmark = pytest.mark.processes


class Validator:
    """`transom.js` in Node, asked over and over."""

    def __init__(self) -> None:
        node = shutil.which("node")
        assert node is not None, "these tests need Node 20 or newer on the PATH"
        self._process = subprocess.Popen(
            [node, str(PAGES / "validate.mjs"), str(LIBRARY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def said(self, schema: Any, *values: Any) -> Any:
        """What is wrong with each value, in words; "" for one that fits."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"schema": schema, "values": values}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def validator() -> Iterator[Validator]:
    made = Validator()
    yield made
    made.close()


POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}},
                       "required": ["id"]}},
}  # fmt: skip
SHAPE = {
    "oneOf": [
        {"type": "object", "properties": {"kind": {"const": "dot"}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"const": "box"}, "w": {"type": "integer"}},
         "required": ["kind", "w"]},
    ]
}  # fmt: skip

CASES: list[tuple[Any, Any, str]] = [
    # schema, value, what is said
    ({"type": "string"}, 1, "- v: expected string, got integer"),
    ({"type": "integer"}, 1.5, "- v: expected integer, got number"),
    ({"type": "integer"}, 2.0, ""),
    ({"type": "number"}, 3, ""),
    ({"type": ["string", "null"]}, 3, "- v: expected string or null, got integer"),
    ({"type": "boolean"}, 0, "- v: expected boolean, got integer"),
    ({"type": "null"}, False, "- v: expected null, got boolean"),
    ({"type": "object"}, [], "- v: expected object, got array"),
    ({"type": "array"}, {}, "- v: expected array, got object"),
    ({"enum": ["a", 1, None]}, "b", '- v: must be one of ["a",1,null]'),
    ({"enum": [{"a": [1]}]}, {"a": [1]}, ""),
    ({"type": "integer", "enum": [1]}, "x", "- v: must be one of [1]"),
    ({"type": "string", "enum": [1]}, 1, "- v: expected string, got integer"),
    ({"const": None}, 0, "- v: must be one of [null]"),
    ({"const": False}, False, ""),
    (POINT, {}, "- v.x: is required"),
    (POINT, {"x": "1"}, "- v.x: expected number, got string"),
    ({"required": ["constructor"]}, {}, "- v.constructor: is required"),
    ({"properties": {"toString": False}}, {}, ""),
    ({"properties": {"a": False}}, {"a": 1}, "- v.a: is not allowed"),
    ({"properties": {"a": {}, "b": {}}, "additionalProperties": False}, {"a": 1, "c": 1},
     "- v.c: is not expected"),
    ({"additionalProperties": {"type": "integer"}}, {"toString": "x"},
     "- v.toString: expected integer, got string"),
    ({"items": {"type": "integer"}}, [1, "x", None],
     "- v[1]: expected integer, got string\n- v[2]: expected integer, got null"),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], "- v[1]: is not allowed"),
    ({"prefixItems": [True, {"type": "string"}]}, [1, 2, 3],
      "- v[1]: expected string, got integer"),
    ({"minimum": 2, "maximum": 3}, 1, "- v: must have minimum 2"),
    ({"minimum": 2, "maximum": 3}, 4, "- v: must have maximum 3"),
    ({"exclusiveMinimum": 2}, 2, "- v: must have exclusiveMinimum 2"),
    ({"exclusiveMaximum": 2}, 2, "- v: must have exclusiveMaximum 2"),
    ({"exclusiveMinimum": 0, "minimum": 1, "maximum": -1}, None, ""),
    ({"minimum": 5, "minLength": 1}, True, ""),
    ({"minLength": 2, "maxLength": 3}, "😀", "- v: must have minLength 2"),
    ({"minLength": 2, "maxLength": 3}, "😀😀😀", ""),
    ({"maxLength": 3}, "abcd", "- v: must have maxLength 3"),
    ({"minItems": 1}, [], "- v: must have minItems 1"),
    ({"maxItems": 1}, [1, 2], "- v: must have maxItems 1"),
    ({"minItems": 1, "minimum": 5}, {"length": 1}, ""),
    ({"pattern": "^a+$"}, "ab", "- v: must match the pattern ^a+$"),
    ({"pattern": "a"}, "xay", ""),
    ({"pattern": r"^\p{L}+$"}, "né", ""),
    ({"format": "email"}, "nobody", ""),
    ({"allOf": [{"minimum": 2}, {"type": "integer"}]}, 1.5,
     "- v: must have minimum 2\n- v: expected integer, got number"),
    ({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 5}]}, 3,
      "- v: expected string, got integer"),
    ({"anyOf": [POINT, {"type": "null"}]}, None, ""),
    ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3, "- v: fits more than one alternative"),
    (SHAPE, {"kind": "dot"}, ""),
    (SHAPE, {"kind": "box"}, "- v.kind: must be one of [\"dot\"]"),
    ({"not": {"type": "string"}}, "x", "- v: is not allowed"),
    ({"not": {"type": "string"}}, 1, ""),
    (TREE, {"id": 1, "next": {"id": 2, "next": {}}}, "- v.next.next.id: is required"),
    ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"xy": 1}, ""),
    (True, 1, ""),
    (False, 1, "- v: is not allowed"),
    ({}, {"anything": [1]}, ""),
    ({"items": {"properties": {"a b": {"type": "string"}}}}, [{"a b": 1}],
     "- v[0].a b: expected string, got integer"),
]  # fmt: skip


@pytest.mark.processes
def test_each_word_means_what_it_means_elsewhere_and_says_so(validator: Validator):
    for schema, value, expected in CASES:
        [said] = validator.said(schema, value)
        assert said == expected, schema
        fits = jsonschema_rs.Draft202012Validator(schema).is_valid(value)
        assert (said == "") is fits, schema


def test_no_more_than_ten_problems_are_told_and_none_at_length(validator: Validator):
    [said] = validator.said({"items": {"type": "string"}}, list(range(100_000)))
    assert said.count("\n") == 9
    [said] = validator.said({"enum": ["x" * 50] * 1000}, "y")
    assert len(said) < 250


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "("},
        {"$ref": "#/$defs/nowhere/else"},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/properties/v"},
        {"anyOf": {"type": "string"}},
    ],
    ids=["pattern", "missing", "elsewhere", "itself", "malformed"],
)
def test_a_schema_that_cannot_be_held_to_lets_nothing_pass(validator: Validator, schema: Any):
    [said] = validator.said(schema, "x")
    assert said in ("Tool t failed", "- v: is not allowed")
    assert validator.said({"type": "string"}, "x") == [""]


# --- any schema of these words ---------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "constructor", "__proto__", "a b", "1"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, -1.5, 2.0]),
    st.text("ab😀", max_size=4),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPE = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
LIMIT = st.integers(-1, 3)
COUNT = st.integers(0, 3)


PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "type": TYPE | st.lists(TYPE, min_size=1, max_size=3, unique=True),
    "enum": st.lists(SCALARS, min_size=1, max_size=3),
    "const": SCALARS,
    "required": st.lists(NAMES, max_size=2, unique=True),
    "minimum": LIMIT,
    "maximum": LIMIT,
    "exclusiveMinimum": LIMIT,
    "exclusiveMaximum": LIMIT,
    "minLength": COUNT,
    "maxLength": COUNT,
    "minItems": COUNT,
    "maxItems": COUNT,
    "pattern": st.sampled_from(["a", "^b", "^(ab)*$", "^.$"]),
    "format": st.just("email"),
    "description": st.just("words for the reader"),
}
ONE = ("additionalProperties", "items", "not")
MANY = ("prefixItems", "anyOf", "oneOf", "allOf")


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    """A schema of the words that `transom.js` holds values to."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.booleans())
    inner = schemas(depth - 1)
    made: dict[str, Any] = {}
    words = (*PLAIN, *ONE, *MANY, "properties")
    for word in draw(st.lists(st.sampled_from(words), max_size=4, unique=True)):
        if word in ONE:
            made[word] = draw(inner)
        elif word in MANY:
            made[word] = draw(st.lists(inner, min_size=1, max_size=3))
        elif word == "properties":
            made[word] = draw(st.dictionaries(NAMES, inner, max_size=3))
        elif word not in ("enum", "const") or not made.keys() & {"enum", "const"}:
            made[word] = draw(PLAIN[word])  # one of `enum` and `const` is looked at, not both
    return made


@settings(max_examples=150)
@given(schema=schemas(), values=st.lists(VALUES, min_size=1, max_size=5))
def test_verdicts_are_those_of_jsonschema_rs(validator: Validator, schema: Any, values: list[Any]):
    reference = jsonschema_rs.Draft202012Validator(schema)
    said = validator.said(schema, *values)
    assert [text == "" for text in said] == [reference.is_valid(value) for value in values]
