"""The form that is made of what a server asks for."""

from typing import Any

import pytest

from transom.host.asking.elicit_form import ElicitField, FieldOption, form_answer, read_form

PLAIN_S = FieldOption("s", "s")
S, L = FieldOption("s", "Small"), FieldOption("l", "Large")
TITLED = [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]


def form(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"type": "string"}, ElicitField("a", "text", "a")),
        (
            {"type": "string", "title": "A", "default": "x"},
            ElicitField("a", "text", "A", default="x"),
        ),
        (
            {"type": "string", "minLength": 1, "maxLength": 5, "format": "email"},
            ElicitField("a", "text", "a", format="email", minimum=1, maximum=5),
        ),
        ({"type": "number", "minimum": 0.5}, ElicitField("a", "number", "a", minimum=0.5)),
        ({"type": "integer", "default": 3}, ElicitField("a", "integer", "a", default=3)),
        ({"type": "boolean", "default": True}, ElicitField("a", "boolean", "a", default=True)),
        (
            {"type": "string", "enum": ["s", "l"], "default": "l"},
            ElicitField("a", "choice", "a", default="l", options=(PLAIN_S, FieldOption("l", "l"))),
        ),
        (
            {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
            ElicitField("a", "choice", "a", options=(S, L)),
        ),
        ({"type": "string", "oneOf": TITLED}, ElicitField("a", "choice", "a", options=(S, L))),
        (
            {"type": "array", "maxItems": 2, "items": {"anyOf": TITLED}, "default": ["s"]},
            ElicitField("a", "choices", "a", default=["s"], maximum=2, options=(S, L)),
        ),
        (  # as pydantic writes them
            {"anyOf": [{"type": "string", "enum": ["s"]}, {"type": "null"}], "default": None},
            ElicitField("a", "choice", "a", options=(PLAIN_S,)),
        ),
        ({"const": "s", "type": "string"}, ElicitField("a", "choice", "a", options=(PLAIN_S,))),
        # Words of a stranger.
        (
            {"type": "string", "title": "A\u202e\u27e6b\nc", "description": "d" * 5000},
            ElicitField("a", "text", "Ab c", description=f"{'d' * 999}…"),
        ),
        (
            {"type": "string", "title": 5, "format": "regex", "pattern": "(a+)+$"},
            ElicitField("a", "text", "a"),
        ),
        # Defaults that do not fit.
        ({"type": "integer", "default": True}, ElicitField("a", "integer", "a")),
        ({"type": "integer", "default": 1.5}, ElicitField("a", "integer", "a")),
        (
            {"type": "number", "default": 9, "maximum": 5},
            ElicitField("a", "number", "a", maximum=5),
        ),
        ({"type": "string", "default": "x" * 20_000}, ElicitField("a", "text", "a")),
        (
            {"type": "string", "oneOf": TITLED, "default": "m"},
            ElicitField("a", "choice", "a", options=(S, L)),
        ),
    ],
)
def test_a_field_is_read_from_its_schema(schema: dict[str, Any], field: ElicitField) -> None:
    assert read_form(form(a=schema)) == (field,)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (form(a={"type": "object"}), "'a' is no text"),
        (form(a={"type": "array", "items": {"type": "string"}}), "'a' is no text"),
        (form(a={"type": ["string", "null"]}), "'a' is no text"),
        (form(a={"type": "integer", "enum": ["s"]}), "'a' is no text"),
        (form(a="string"), "'a' is no text"),
        (form(**{"": {"type": "string"}}), "'' is no text"),
        (form(**{"x" * 201: {"type": "string"}}), "is no text"),
        (form(**{f"a{n}": {"type": "string"} for n in range(51)}), "51 fields, more than 50"),
        (form(a={"enum": [str(n) for n in range(301)]}), "301 options, over 300"),
    ],
)
def test_what_no_user_can_be_asked_to_fill_in_is_refused(schema: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_form(schema)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"name": "Ada", "age": 3, "size": "s", "extras": ["l"], "news": True}, ...),
        ({"name": "Ada", "age": None, "size": None, "extras": None, "news": None}, ...),
        ({"name": "Ada", "age": 3.0, "size": None, "extras": [], "news": False}, ...),
        ({"age": 3}, None),  # what is required is missing
        ({"name": ""}, None),
        ({"name": "Ada", "age": True}, None),
        ({"name": "Ada", "age": 3.5}, None),
        ({"name": "Ada", "size": "m"}, None),
        ({"name": "Ada", "extras": "l"}, None),
        ({"name": "Ada", "extras": [{}]}, None),
        ({"name": "Ada", "extras": ["s", "l", "s"]}, None),
        ({"name": "Ada", "news": "yes"}, None),
        ({"name": {"x": 1}}, None),
    ],
)
def test_an_answer_fits_the_form_or_counts_for_nothing(given: dict[str, Any], answer: Any) -> None:
    fields = read_form(
        form(
            ("name",),
            name={"type": "string", "minLength": 1},
            age={"type": "integer"},
            size={"oneOf": TITLED},
            extras={"type": "array", "maxItems": 2, "items": {"anyOf": TITLED}},
            news={"type": "boolean"},
        )
    )
    assert form_answer(fields, {**given, "unasked": 1}) == (given if answer is ... else answer)
