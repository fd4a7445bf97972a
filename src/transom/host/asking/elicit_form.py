"""The form that a server asks the user to fill in, read from its schema.

1. A form is flat: texts, numbers, yes or no, one or several of some options. Any other schema is
   refused, and so is one that is too large for a user to read.
2. The schema is a stranger's: texts are cleaned and cut. What only the server needs to check, such
   as a pattern, is left to it.
3. A default that does not fit its field is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, cast, get_args

import msgspec

from transom.json_values import Json, JsonObject, as_list, as_object, clean
from transom.types import Wire

FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices"]
"""What a field takes; `choice` is one of its options, `choices` any number of them."""
FieldFormat = Literal["email", "uri", "date", "date-time"]
"""What a text is, where the server says so."""

_MAX_FIELDS: Final = 50
_MAX_OPTIONS: Final = 300
_MAX_NAME: Final = 200
_MAX_TITLE: Final = 200
_MAX_DESCRIPTION: Final = 1000
_MAX_VALUE: Final = 10_000  # characters of a default or an option
_KINDS: Final[dict[str, FieldKind]] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
}
_LIMITS: Final[dict[FieldKind, tuple[str, str]]] = {
    "text": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "choices": ("minItems", "maxItems"),
}


class FieldOption(Wire, frozen=True):
    """A value that may be chosen, and what the user reads for it."""

    value: str
    title: str


class ElicitField(Wire, frozen=True):
    """A field of the form that a server asks for. Its texts are cleaned and cut."""

    name: str
    kind: FieldKind
    title: str
    description: str = ""
    required: bool = False
    default: Any = None
    """What it has before the user changes it; None: nothing."""
    format: FieldFormat | None = None
    """What a text is."""
    minimum: float | None = None
    """Of a number, of the characters of a text, or of how many options are chosen."""
    maximum: float | None = None
    options: tuple[FieldOption, ...] = ()

    def fits(self, value: object) -> bool:
        """Whether it is a value of this field."""
        known = {option.value for option in self.options}
        match self.kind, value:
            case "boolean", bool():
                return True
            case "number" | "integer", int() | float() if not isinstance(value, bool):
                whole = isinstance(value, int) or value.is_integer()
                return (whole or self.kind == "number") and self._within(value)
            case "text", str():
                return self._within(len(value))
            case "choice", str():
                return value in known
            case "choices", _ if isinstance(value, list):
                chosen = as_list(cast("object", value))
                known_all = all(isinstance(each, str) and each in known for each in chosen)
                return known_all and self._within(len(chosen))
            case _:
                return False

    def _within(self, size: float) -> bool:
        least, most = self.minimum, self.maximum
        return (least is None or size >= least) and (most is None or size <= most)


def read_form(schema: Mapping[str, Any]) -> tuple[ElicitField, ...]:
    """The fields of a form.

    Raises:
        ValueError: it is not a form that a user can be asked to fill in; the text says why.
    """
    properties = as_object(schema.get("properties"))
    if len(properties) > _MAX_FIELDS:
        raise ValueError(f"the form has {len(properties)} fields, more than {_MAX_FIELDS}")
    required = as_list(schema.get("required"))
    return tuple(
        _read_field(name, as_object(each), required=name in required)
        for name, each in properties.items()
    )


def form_answer(fields: Iterable[ElicitField], given: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a user has filled in, by field; None: it does not fit the form.

    A field that was left empty is None, so that its default is not filled in again.
    """
    answer = {field.name: given.get(field.name) for field in fields}
    for field in fields:
        value = answer[field.name]
        if field.required if value is None else not field.fits(value):
            return None
    return answer


def _read_field(name: str, schema: JsonObject, *, required: bool) -> ElicitField:
    # How pydantic writes a field that may be None.
    variants = [each for each in as_list(schema.get("anyOf")) if each != {"type": "null"}]
    if len(variants) == 1:
        schema = {**schema, "anyOf": [], **as_object(variants[0])}
    field = _shape(name, schema)
    if field is None or not name or len(name) > _MAX_NAME:
        shown = clean(name, 60)
        raise ValueError(f"the field {shown!r} is no text, number, yes or no, or choice")
    kind, options = field
    least, most = (_number(schema.get(key)) for key in _LIMITS.get(kind, ("", "")))
    known = (each for each in get_args(FieldFormat) if each == schema.get("format"))
    made = ElicitField(
        name=name,
        kind=kind,
        title=_text(schema.get("title"), _MAX_TITLE) or clean(name, _MAX_TITLE),
        description=_text(schema.get("description"), _MAX_DESCRIPTION),
        required=required,
        default=schema.get("default"),
        format=next(known, None) if kind == "text" else None,
        minimum=least,
        maximum=most,
        options=options,
    )
    long = isinstance(made.default, str) and len(made.default) > _MAX_VALUE
    if made.default is None or (made.fits(made.default) and not long):
        return made
    return msgspec.structs.replace(made, default=None)


def _shape(name: str, schema: JsonObject) -> tuple[FieldKind, tuple[FieldOption, ...]] | None:
    """What kind of field it is, with its options."""
    type = schema.get("type")
    if type == "array":
        options = _options(name, as_object(schema.get("items")))
        return None if options is None else ("choices", options)
    options = _options(name, schema)
    if options is not None:
        return ("choice", options) if type in ("string", None) else None
    kind = _KINDS.get(type) if isinstance(type, str) else None
    return None if kind is None else (kind, ())


def _options(name: str, schema: JsonObject) -> tuple[FieldOption, ...] | None:
    """The options of a choice: `enum`, with `enumNames` or not, or titles beside constants."""
    titled = [as_object(each) for each in as_list(schema.get("oneOf") or schema.get("anyOf"))]
    values = [each.get("const") for each in titled] or as_list(schema.get("enum"))
    if "const" in schema:
        values = [schema["const"]]
    titles = [each.get("title") for each in titled] or as_list(schema.get("enumNames"))
    if not values or not all(isinstance(v, str) and len(v) <= _MAX_VALUE for v in values):
        return None
    if len(values) > _MAX_OPTIONS:
        shown = clean(name, 60)
        raise ValueError(f"the field {shown!r} has {len(values)} options, over {_MAX_OPTIONS}")
    titles += [None] * (len(values) - len(titles))
    return tuple(
        FieldOption(str(value), _text(title, _MAX_TITLE) or clean(str(value), _MAX_TITLE))
        for value, title in zip(values, titles, strict=False)
    )


def _text(value: Json, limit: int) -> str:
    return clean(value, limit) if isinstance(value, str) else ""


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value
