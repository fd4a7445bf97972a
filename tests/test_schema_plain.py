"""The form of JSON Schema that goes on the wire."""

import json
from typing import Any

import pytest

from tests.ids import plain
from transom.errors import SchemaError
from transom.json_values import depth_exceeds
from transom.schema.document import inline

STRING = {"type": "string"}


class TestReferences:
    def test_a_reference_is_replaced_by_what_it_refers_to(self) -> None:
        assert inline(
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/name"}, "b": {"$ref": "#/definitions/names"}},
                "$defs": {"name": STRING, "unused": {"type": "null"}},
                "definitions": {"names": {"type": "array", "items": {"$ref": "#/$defs/name"}}},
            }
        ) == {
            "type": "object",
            "properties": {"a": STRING, "b": {"type": "array", "items": STRING}},
        }

    def test_a_reference_may_lead_anywhere_in_the_document(self) -> None:
        assert inline(
            {
                "properties": {
                    "a/b": STRING,
                    "c": {"$ref": "#/properties/a~1b"},
                    "d": {"anyOf": [{"type": "null"}, {"$ref": "#/properties/d/anyOf/0"}]},
                    "e": {"$ref": "#/x-parts/with%20space"},
                },
                "x-parts": {"with space": STRING},
            }
        )["properties"] == {
            "a/b": STRING,
            "c": STRING,
            "d": {"anyOf": [{"type": "null"}, {"type": "null"}]},
            "e": STRING,
        }

    def test_the_outermost_schema_is_never_a_bare_reference(self) -> None:
        assert inline(
            {
                "$ref": "#/$defs/a",
                "description": "outer",
                "$defs": {
                    "a": {"$ref": "#/$defs/b"},
                    "b": {"type": "object", "description": "inner"},
                },
            }
        ) == {"type": "object", "description": "outer"}

    def test_a_circular_reference_is_kept_as_a_definition(self) -> None:
        tree = {"type": "object", "properties": {"kids": {"items": {"$ref": "#/definitions/tree"}}}}
        schema = inline(
            {"properties": {"t": {"$ref": "#/definitions/tree"}}, "definitions": {"tree": tree}}
        )
        kept = {"type": "object", "properties": {"kids": {"items": {"$ref": "#/$defs/tree"}}}}
        assert schema == {
            "properties": {"t": {"$ref": "#/$defs/tree"}},
            "$defs": {"tree": kept},
        }

    def test_a_circular_outermost_schema_shows_its_type(self) -> None:
        node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
        assert inline({"$ref": "#/$defs/node", "$defs": {"node": node}}) == {
            **node,
            "$defs": {"node": node},
        }

    def test_a_reference_to_the_whole_document_becomes_a_definition(self) -> None:
        kept = {"type": "object", "properties": {"next": {"$ref": "#/$defs/schema"}}}
        assert inline({"type": "object", "properties": {"next": {"$ref": "#"}}}) == {
            **kept,
            "$defs": {"schema": kept},
        }

    def test_mutual_recursion_keeps_both(self) -> None:
        schema = inline(
            {
                "properties": {"a": {"$ref": "#/$defs/a"}},
                "$defs": {
                    "a": {"items": {"$ref": "#/$defs/b"}},
                    "b": {"items": {"$ref": "#/$defs/a"}, "contains": {"$ref": "#/$defs/c"}},
                    "c": STRING,
                },
            }
        )
        assert schema["$defs"] == {
            "a": {"items": {"$ref": "#/$defs/b"}},
            "b": {"items": {"$ref": "#/$defs/a"}, "contains": STRING},
        }

    def test_kept_definitions_of_the_same_name_are_told_apart(self) -> None:
        loop = {"type": "array"}
        schema = inline(
            {
                "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/definitions/x"}},
                "$defs": {"x": {**loop, "items": {"$ref": "#/$defs/x"}}},
                "definitions": {"x": {**loop, "contains": {"$ref": "#/definitions/x"}}},
            }
        )
        assert schema["$defs"] == {
            "x": {**loop, "items": {"$ref": "#/$defs/x"}},
            "x_2": {**loop, "contains": {"$ref": "#/$defs/x_2"}},
        }

    def test_notes_beside_a_reference_win_over_its_own(self) -> None:
        definitions = {"a": {"type": "string", "description": "old", "minLength": 1}}
        assert inline({
            "properties": {"x": {"$ref": "#/$defs/a", "description": "new", "default": "d"}},
            "$defs": definitions,
        })["properties"]["x"] == {
            "type": "string", "description": "new", "minLength": 1, "default": "d",
        }  # fmt: skip

    def test_constraints_beside_a_reference_hold_as_well(self) -> None:
        assert inline(
            {
                "properties": {"x": {"$ref": "#/$defs/a", "minLength": 5}},
                "$defs": {"a": {"minLength": 1}},
            }
        )["properties"]["x"] == {"allOf": [{"minLength": 1}], "minLength": 5}

    def test_what_only_looks_like_a_reference_is_left_alone(self) -> None:
        schema = {
            "properties": {
                "$ref": STRING,
                "$id": STRING,
                "title": STRING,
                "v": {"default": {"$ref": "http://x"}, "enum": [{"$ref": "#/nowhere"}]},
            },
            "const": {"$anchor": 1},
        }
        assert inline(schema) == schema

    def test_growth_beyond_bounds_keeps_the_references(self) -> None:
        """Each definition holds the next one twice: inlined, there would be a billion schemas."""
        definitions: dict[str, Any] = {"d0": STRING}
        for number in range(1, 31):
            definitions[f"d{number}"] = {"anyOf": [{"$ref": f"#/$defs/d{number - 1}"}] * 2}
        document = {"properties": {"v": {"$ref": "#/$defs/d30"}}, "$defs": definitions}
        assert inline(document) == document

    @pytest.mark.load
    def test_very_many_references_are_kept(self) -> None:
        definitions: dict[str, Any] = {"d0": STRING}
        for number in range(1, 3_000):
            definitions[f"d{number}"] = {"not": {"$ref": f"#/$defs/d{number - 1}"}}
        document = {"properties": {"v": {"$ref": "#/$defs/d2999"}}, "$defs": definitions}
        assert inline(document) == document

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            ({"$ref": "https://example.com/a"}, "its own parts only"),
            ({"$ref": "a.json"}, "its own parts only"),
            ({"$ref": "#name"}, "its own parts only"),
            ({"$ref": 3}, "its own parts only"),
            ({"$ref": "#/$defs/nowhere"}, "does not exist"),
            ({"$ref": "#/properties/a/0", "properties": {"a": {}}}, "does not exist"),
            ({"anyOf": [{}], "not": {"$ref": "#/anyOf/x"}}, "does not exist"),
            ({"title": "x", "not": {"$ref": "#/title"}}, "not a schema"),
            ({"$ref": "#"}, "to itself and to nothing else"),
            (
                {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
                "to itself and to nothing",
            ),
            ({"$ref": "#/$defs/a", "$defs": {"a": True}}, "just true or false"),
            ({"$dynamicRef": "#a"}, r"\$dynamicRef is not supported"),
            ({"items": {"$anchor": "a"}}, r"\$anchor is not supported"),
            ({"items": {"$id": "https://example.com/a"}}, r"nested \$id"),
        ],
        ids=plain,
    )
    def test_a_reference_that_cannot_be_followed_is_refused(
        self, schema: Any, message: str
    ) -> None:
        with pytest.raises(SchemaError, match=message):
            inline(schema)


class TestOtherWords:
    def test_words_that_say_nothing_to_a_model_are_left_out(self) -> None:
        assert inline(
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$id": "https://example.com/root",
                "type": "object",
                "properties": {"a": {"oneOf": [STRING], "discriminator": {"propertyName": "k"}}},
            }
        ) == {"type": "object", "properties": {"a": {"oneOf": [STRING]}}}

    def test_titles_of_an_author_stay_and_generated_ones_that_repeat_a_name_go(self) -> None:
        schema = {
            "title": "Order",
            "properties": {
                "order_id": {"title": "Order Id"},
                "size": {"title": "How big"},
                "item": {"$ref": "#/$defs/Item_int_"},
            },
            "$defs": {"Item_int_": {"title": "Item[int]", "type": "object"}},
        }
        kept = inline(schema)
        assert kept["title"] == "Order"
        assert kept["properties"]["order_id"] == {"title": "Order Id"}
        assert inline(schema, generated=True, name="Order") == {
            "properties": {
                "order_id": {},
                "size": {"title": "How big"},
                "item": {"type": "object"},
            }
        }

    def test_the_document_is_copied_and_never_changed(self) -> None:
        document = {
            "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"enum": [[1]], "default": {"x": [1]}}},
        }
        before = json.dumps(document)
        schema = inline(document)
        schema["properties"]["a"]["enum"][0].append(2)
        schema["properties"]["a"]["default"]["x"].append(2)
        assert schema["properties"]["b"] == {"enum": [[1]], "default": {"x": [1]}}
        assert json.dumps(document) == before


class TestDepth:
    @pytest.mark.parametrize("depth", [0, 1, 5])
    def test_depth_counts_containers(self, depth: int) -> None:
        value: object = 1
        for _ in range(depth):
            value = {"a": 1, "b": [value]}
        assert not depth_exceeds(value, 2 * depth)
        assert depth == 0 or depth_exceeds(value, 2 * depth - 1)

    def test_a_value_that_contains_itself_is_endlessly_deep(self) -> None:
        loop: list[Any] = []
        loop.extend([loop, loop])
        assert depth_exceeds(loop, 1_000)
