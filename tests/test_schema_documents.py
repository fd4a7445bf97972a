"""JSON Schemas given as dicts, and objects that validate by themselves."""

import json
import sys
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from tests.ids import plain
from transom.errors import Mismatch, SchemaError, ValidationError
from transom.schema import input_schema, output_schema
from transom.schema.schema import from_document

TRACKS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "enum": ["a", "b"]},
        "volume": {"type": "integer", "minimum": 0, "maximum": 10, "default": 5},
        "tags": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "required": ["id"],
}


def mismatches(schema: Any, value: object) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        schema.parse(json.dumps(value).encode())
    return [str(mismatch) for mismatch in caught.value.mismatches]


@pytest.fixture(params=["jsonschema_rs", "jsonschema"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each validator package in turn. Compile with `from_document`, which does not cache."""
    if request.param == "jsonschema":
        monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    return request.param


class TestDicts:
    def test_arguments_arrive_as_they_are_with_defaults_of_absent_properties(self) -> None:
        schema = input_schema(TRACKS)
        assert schema.spread
        assert schema.json_schema == TRACKS
        assert schema.parse(b'{"id":"a","other":null}') == {
            "id": "a",
            "other": None,
            "volume": 5,
            "tags": [],
        }

    def test_a_default_is_a_fresh_value_each_time(self) -> None:
        schema = input_schema(TRACKS)
        schema.parse(b'{"id":"a"}')["tags"].append("changed")
        assert schema.parse(b'{"id":"a"}')["tags"] == []

    def test_nothing_is_shared_with_the_dict_that_was_given(self) -> None:
        given = json.loads(json.dumps(TRACKS))
        schema = input_schema(given)
        given["properties"]["id"]["enum"].append("c")
        given["properties"]["new"] = True
        assert schema.json_schema == TRACKS
        assert input_schema(given) is not schema

    def test_any_mapping_will_do(self) -> None:
        assert input_schema(MappingProxyType(TRACKS)).json_schema == TRACKS

    @pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": ["object"]}])
    def test_an_object_without_properties_says_so(self, schema: dict[str, Any]) -> None:
        assert input_schema(schema).json_schema == {"type": "object", "properties": {}}

    @pytest.mark.parametrize(
        "schema",
        [
            {"properties": {"a": {}}},
            {"required": ["a"]},
            {"additionalProperties": False},
            {"allOf": [{"properties": {"a": {}}}]},
            {"anyOf": [{"type": "object"}, {"required": ["a"]}]},
        ],
        ids=plain,
    )
    def test_a_missing_type_is_added_where_an_object_is_meant(self, schema: Any) -> None:
        assert input_schema(schema).json_schema == {"type": "object", "properties": {}} | schema

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "string"},
            {"type": "array"},
            {"type": ["object", "null"]},
            {"enum": [1, 2]},
            {"nonsense": 1},
            {"anyOf": [{"type": "object"}, {"type": "string"}]},
        ],
        ids=plain,
    )
    def test_a_schema_of_something_else_is_refused(self, schema: Any) -> None:
        with pytest.raises(SchemaError, match="must describe an object"):
            input_schema(schema)

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "object", "properties": 3},
            {"type": "object", "properties": {"a": {"type": "strnig"}}},
            {"type": "object", "required": "a"},
            {"type": "object", "required": ["a", "a"]},
            {"type": "object", "properties": {"a": {"type": "array", "items": None}}},
            {"type": "object", "properties": {"a": {"minLength": -1}}},
            {"type": "object", "properties": {"a": {"enum": "a"}}},
            {"type": "object", "properties": {"a": {"pattern": "("}}},
            {"type": "object", "patternProperties": {"(": {}}},
            {"type": "object", "minProperties": -1},
        ],
        ids=plain,
    )
    def test_what_is_not_json_schema_is_refused_when_it_is_given(
        self, engine: str, schema: Any
    ) -> None:
        with pytest.raises(SchemaError, match="not a valid JSON Schema"):
            from_document(schema, "input")

    @pytest.mark.parametrize("value", [object(), print, {"\ud800"}, {(1, 2): 3}])
    def test_what_is_not_json_is_refused(self, value: object) -> None:
        with pytest.raises(SchemaError, match="not plain JSON"):
            input_schema({"type": "object", "default": value})

    def test_a_schema_that_contains_itself_is_refused(self) -> None:
        schema: dict[str, Any] = {"type": "object"}
        schema["properties"] = {"again": schema}
        with pytest.raises(SchemaError, match="not plain JSON"):
            input_schema(schema)

    def test_a_schema_has_a_largest_size_and_depth(self) -> None:
        with pytest.raises(SchemaError, match="at most 1000000 are allowed"):
            input_schema({"type": "object", "description": "x" * 1_000_001})
        deep: dict[str, Any] = {"type": "object"}
        for _ in range(100):
            deep = {"type": "object", "properties": {"a": deep}}
        with pytest.raises(SchemaError, match="more than 128 levels"):
            input_schema(deep)

    @pytest.mark.parametrize(
        "reference",
        ["http://127.0.0.1:1/schema", "file:///etc/hostname", "other.json", "other.json#/a", ""],
    )
    def test_a_reference_to_another_document_is_refused(self, reference: str) -> None:
        with pytest.raises(SchemaError, match="its own parts only"):
            input_schema({"type": "object", "properties": {"a": {"$ref": reference}}})

    @pytest.mark.parametrize("format_", ["date-time", "email", "made-up"])
    def test_a_format_is_a_note_and_refuses_nothing(self, engine: str, format_: str) -> None:
        schema = from_document(
            {"properties": {"a": {"type": "string", "format": format_}}}, "input"
        )
        assert schema.parse(b'{"a":"whatever"}') == {"a": "whatever"}

    def test_without_a_validator_the_error_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
        monkeypatch.setitem(sys.modules, "jsonschema", None)
        with pytest.raises(SchemaError, match="jsonschema-rs or jsonschema; install one"):
            from_document({"type": "object"}, "input")


class TestProblems:
    def test_every_problem_is_told_with_its_path(self, engine: str) -> None:
        schema = from_document(
            {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "n": {"type": ["integer", "null"], "minimum": 3},
                    "items": {
                        "type": "array",
                        "items": {"type": "object", "required": ["id"]},
                        "maxItems": 2,
                    },
                    "either": {"anyOf": [{"type": "string"}, {"type": "array"}]},
                    "kind": {"const": "x"},
                    "strict": {"additionalProperties": False, "properties": {"ok": True}},
                    "odd name": {"type": "string", "maxLength": 2},
                },
                "required": ["id"],
            },
            "input",
        )
        found = mismatches(
            schema,
            {
                "n": 2,
                "items": [{"id": 1}, {}, 3],
                "either": 1,
                "kind": "y",
                "strict": {"no": 1},
                "odd name": "abc",
            },
        )
        assert sorted(found) == [
            "['odd name']: must have at most 2 characters",
            "either: expected string or array, got integer",
            "id: is required",
            "items: must have at most 2 items",
            "items[1].id: is required",
            "items[2]: expected object, got integer",
            "kind: must be 'x'",
            "n: must be >= 3",
            "strict.no: is not expected; known: ok",
        ]

    @pytest.mark.parametrize(
        ("schema", "value", "message"),
        [
            ({"type": "integer"}, 1.5, "expected integer, got number"),
            ({"exclusiveMinimum": 3}, 3, "must be > 3"),
            ({"exclusiveMaximum": 3}, 3, "must be < 3"),
            ({"maximum": 3}, 4, "must be <= 3"),
            ({"multipleOf": 2}, 3, "must be a multiple of 2"),
            ({"minLength": 2}, "a", "must have at least 2 characters"),
            ({"minItems": 1}, [], "must have at least 1 items"),
            ({"minProperties": 1}, {}, "must have at least 1 properties"),
            ({"maxProperties": 0}, {"a": 1}, "must have at most 0 properties"),
            ({"uniqueItems": True}, [1, 1], "must not hold the same item twice"),
            ({"contains": {"const": 1}}, [2], "must hold an item that fits"),
            ({"not": {"type": "integer"}}, 1, "is not allowed"),
            ({"pattern": "^a+$"}, "b", "must match the pattern '^a+$'"),
            ({"const": {"a": 1}}, 2, 'must be {"a":1}'),
            ({"enum": ["a", None, 1]}, "b", "must be one of 'a', null, 1"),
            ({"enum": [7] * 12}, 1, f"must be one of {'7, ' * 10}... (2 more)"),
            ({"type": "string", "enum": ["a"]}, 1, "must be one of 'a'"),
            ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3, "fits more than one alternative"),
            (
                {"oneOf": [{"type": "string"}, {"type": "null"}]},
                [],
                "expected string or null, got array",
            ),
            ({"anyOf": [{"type": "null"}, {"minimum": 5}]}, 3, "must be >= 5"),
        ],
        ids=plain,
    )
    def test_each_keyword_has_a_short_sentence(
        self, engine: str, schema: Any, value: object, message: str
    ) -> None:
        compiled = from_document({"type": "object", "properties": {"v": schema}}, "input")
        assert mismatches(compiled, {"v": value}) == [f"v: {message}"]

    def test_other_keywords_are_named(self, engine: str) -> None:
        schema = from_document({"properties": {"v": {"propertyNames": {"maxLength": 1}}}}, "input")
        assert len(mismatches(schema, {"v": {"long": 1}})) == 1

    def test_the_alternative_that_was_meant_is_explained(self, engine: str) -> None:
        def shape(kind: str, **needed: Any) -> dict[str, Any]:
            properties = {"kind": {"const": kind}, **needed}
            return {"type": "object", "properties": properties, "required": list(properties)}

        shapes = [
            shape("circle", radius={"type": "number"}),
            shape("square", side={"type": "number"}),
        ]
        schema = from_document(
            {"properties": {"shape": {"anyOf": [*shapes, {"type": "null"}]}}}, "input"
        )
        assert mismatches(schema, {"shape": {"kind": "square", "side": "x"}}) == [
            "shape.side: expected number, got string"
        ]
        assert mismatches(schema, {"shape": {"kind": "oval"}}) == [
            "shape.kind: must be one of 'circle', 'square'"
        ]
        assert mismatches(schema, {"shape": 3}) == ["shape: expected object or null, got integer"]

    def test_many_problems_are_cut_short(self, engine: str) -> None:
        schema = from_document({"properties": {"v": {"items": {"type": "integer"}}}}, "input")
        found = mismatches(schema, {"v": ["x"] * 25})
        assert len(found) == 11
        assert found[9:] == ["v[9]: expected integer, got string", "and 15 more"]

    def test_messages_and_paths_never_echo_long_texts(self, engine: str) -> None:
        huge = "x" * 5_000
        schema = from_document(
            {
                "type": "object",
                "properties": {"v": {"enum": [huge, huge]}, huge: {"type": "integer"}},
                "additionalProperties": False,
            },
            "input",
        )
        found = mismatches(schema, {"v": huge + "y", huge: "", huge + "z": 1})
        assert len(found) == 3
        assert max(map(len, found)) < 350

    def test_a_large_value_is_told_its_first_problem(self, engine: str) -> None:
        schema = from_document({"properties": {"v": {"items": {"type": "integer"}}}}, "input")
        assert mismatches(schema, {"v": ["x"] * 50_000}) == ["v[0]: expected integer, got string"]

    @pytest.mark.parametrize("length", [40, 100_000])
    @pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(a|a)*(?!b)c$", r"^(a*)*\1b$"])
    def test_a_pattern_cannot_hang_the_validator(self, pattern: str, length: int) -> None:
        schema = input_schema({"type": "object", "properties": {"v": {"pattern": pattern}}})
        (found,) = mismatches(schema, {"v": "a" * length + "!"})
        assert found.startswith(("v: must match the pattern", "v: takes too long to match"))

    def test_a_value_deeper_than_a_recursive_schema_may_follow_is_refused(
        self, engine: str
    ) -> None:
        node = {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}
        schema = from_document({**node, "$defs": {"node": node}}, "input")

        def nested(depth: int) -> bytes:
            return b'{"child":' * depth + b"{}" + b"}" * depth

        assert schema.parse(nested(50))
        with pytest.raises(ValidationError, match="nested too deeply"):
            schema.parse(nested(500))


class Positive:
    """What a validation library for Python might look like."""

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}

    def validate(self, value: Any) -> Any:
        if value["n"] < 1:
            raise ValueError("n must be positive")
        return {"n": value["n"], "seen": True}


class TestCustomObjects:
    def test_an_object_describes_and_validates_by_itself(self) -> None:
        schema = input_schema(Positive())
        assert schema.spread
        assert schema.json_schema == Positive().json_schema()
        assert msgspec.json.decode(schema.json_bytes) == schema.json_schema
        assert schema.parse(b'{"n":1}') == {"n": 1, "seen": True}
        assert schema.validate({"n": 1}) == {"n": 1, "seen": True}

    def test_what_it_raises_becomes_a_problem(self) -> None:
        assert mismatches(input_schema(Positive()), {"n": 0}) == ["n must be positive"]
        with pytest.raises(ValidationError, match="not valid JSON"):
            input_schema(Positive()).parse(b"{")

    def test_its_bugs_are_no_news_for_a_model(self) -> None:
        assert mismatches(input_schema(Positive()), {}) == ["could not be checked"]

    def test_problems_with_paths_are_passed_on(self) -> None:
        class Precise(Positive):
            def validate(self, value: Any) -> Any:
                raise ValidationError([Mismatch("n", "is odd"), Mismatch("m", "is even")])

        assert mismatches(input_schema(Precise()), {}) == ["n: is odd", "m: is even"]

    def test_it_may_make_one_object_of_the_arguments(self) -> None:
        class Whole(Positive):
            spread = False

            def validate(self, value: Any) -> Any:
                return ("whole", value["n"])

        schema = input_schema(Whole())
        assert not schema.spread
        assert schema.parse(b'{"n":1}') == ("whole", 1)

    def test_one_object_without_saying_so_is_a_mistake(self) -> None:
        class Unclear(Positive):
            def validate(self, value: Any) -> Any:
                return 42

        with pytest.raises(SchemaError, match="returned int.*spread = False"):
            input_schema(Unclear()).parse(b"{}")

    def test_an_output_that_is_no_object_is_wrapped(self) -> None:
        class Number(Positive):
            def json_schema(self) -> dict[str, Any]:
                return {"type": "integer"}

            def validate(self, value: Any) -> Any:
                return int(value)

        schema = output_schema(Number())
        assert schema.wrapped
        assert schema.json_schema["properties"] == {"result": {"type": "integer"}}
        assert schema.parse(b'{"result":"3"}') == {"result": 3}

    @pytest.mark.parametrize(
        ("description", "message"),
        [
            (None, "must return a dict, not NoneType"),
            ({"type": "string"}, "must describe an object"),
        ],
    )
    def test_a_bad_description_is_refused(self, description: Any, message: str) -> None:
        class Bad(Positive):
            def json_schema(self) -> Any:
                return description

        with pytest.raises(SchemaError, match=message):
            input_schema(Bad())

    def test_a_description_that_raises_is_refused(self) -> None:
        class Bad(Positive):
            def json_schema(self) -> Any:
                raise RuntimeError("no idea")

        with pytest.raises(SchemaError, match=r"json_schema\(\) failed: no idea"):
            input_schema(Bad())

    def test_an_async_validator_is_refused(self) -> None:
        class Later(Positive):
            async def validate(self, value: Any) -> Any:
                return value

        with pytest.raises(SchemaError, match="must not be async"):
            input_schema(Later())
