"""Dataclass instances as msgspec makes them, completed.

msgspec does not write a plain default (`size: int = 0`) into a new dataclass instance, because
reading the attribute finds it on the class. But whoever looks at the instance's own attributes, as
msgspec itself does to encode it, would miss the field.

JSON Schema generated from Python types, by msgspec with a few additions.

msgspec knows nothing of pydantic models, of the constraints that other libraries write into
`Annotated`, nor of the difference between what a class accepts and what it always has. All three
are put in here, after it has done its part.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, cast, get_origin

import msgspec

from transom.errors import SchemaError
from transom.schema.document import inline
from transom.schema.hints import field_hints, is_pydantic, reachable_classes, translate
from transom.schema.pydantics import json_schema_of
from transom.schema.schema import Direction

__all__ = ["Generated", "generate", "needs_settling", "settle"]


def needs_settling(hint: Any) -> bool:
    """Whether instances of a class come incomplete."""
    cls = get_origin(hint) or hint
    return (
        dataclasses.is_dataclass(cls)
        and bool(getattr(cls, "__dictoffset__", 0))
        and any(field.default is not dataclasses.MISSING for field in dataclasses.fields(cls))
    )


def settle(value: Any) -> None:
    """Complete all dataclass instances inside a decoded value, in place."""
    if isinstance(value, dict):
        for part in cast("dict[Any, Any]", value).values():
            settle(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in cast("list[Any]", value):
            settle(part)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            settle(getattr(value, name))
    elif dataclasses.is_dataclass(value):
        own: dict[str, Any] = getattr(value, "__dict__", {})
        for field in dataclasses.fields(value):
            if field.default is not dataclasses.MISSING:
                # Not by assignment, which a frozen dataclass refuses.
                own.setdefault(field.name, field.default)
            settle(getattr(value, field.name, None))


class Generated(NamedTuple):
    """A type's JSON Schema, and how much of it msgspec will not check by itself."""

    json_schema: dict[str, Any]
    uses_pydantic: bool
    """There are pydantic models inside."""
    says_more: bool
    """Fields of classes have constraints that msgspec does not see."""
    needs_settling: bool
    """Decoded values must be completed; see `settled`."""


def generate(hint: Any, direction: Direction, *, name: str = "") -> Generated:
    """Describe a type, already translated, as JSON Schema.

    Raises:
        SchemaError: there is no JSON form for it.
    """
    classes = reachable_classes(hint)
    changes = [
        (cls, field.wire_name, field.hint, translated)
        for cls in classes
        for field in field_hints(cls)
        if (translated := translate(field.hint)) != field.hint
        and not getattr(translated, "__parameters__", ())
    ]
    definitions: dict[str, Any] = {}
    hook = _PydanticHook(direction, definitions)
    try:
        schemas, components = msgspec.json.schema_components(
            [hint, *classes, *(translated for *_, translated in changes)],
            schema_hook=hook,
            ref_template="#/$defs/{name}",
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise unsupported(error) from error
    definitions.update(components)
    described = dict(zip(map(id, classes), schemas[1:], strict=False))

    def definition(cls: Any) -> dict[str, Any]:
        reference: str = described[id(cls)].get("$ref", "")
        return definitions.get(reference.removeprefix("#/$defs/"), {})

    says_more = False
    for (cls, wire_name, original, _), schema in zip(
        changes, schemas[1 + len(classes) :], strict=True
    ):
        fields = definition(cls).get("properties", {})
        if wire_name in fields:
            says_more = says_more or _constrains_more(schema, fields[wire_name], original)
            kept = {key: fields[wire_name][key] for key in ("default",) if key in fields[wire_name]}
            fields[wire_name] = {**schema, **kept}
    if direction == "output":
        for cls in classes:
            _require_all(cls, definition(cls))
    document = {**schemas[0], "$defs": definitions}
    return Generated(
        inline(document, generated=True, name=name),
        hook.used,
        says_more,
        any(needs_settling(cls) for cls in classes),
    )


def unsupported(error: Exception) -> SchemaError:
    """Say in one line what msgspec could not do."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines and "is not supported" in lines[-1] else " ".join(lines)
    return SchemaError(text)


class _PydanticHook:
    """Describes the types that msgspec leaves to others."""

    def __init__(self, direction: Direction, definitions: dict[str, Any]) -> None:
        self.used = False
        self._direction: Direction = direction
        self._definitions = definitions

    def __call__(self, cls: type) -> dict[str, Any]:
        if not is_pydantic(cls):
            raise TypeError(f"type {cls.__module__}.{cls.__qualname__} is not supported")
        self.used = True
        # Definitions of different models may share a name, so each model's get its own prefix.
        prefix = f"{cls.__name__}{len(self._definitions)}--"
        schema = json_schema_of(cls, self._direction, ref_template=f"#/$defs/{prefix}{{model}}")
        for name, definition in schema.pop("$defs", {}).items():
            self._definitions[prefix + name] = definition
        self._definitions[f"{prefix}--{cls.__name__}"] = schema
        return {"$ref": f"#/$defs/{prefix}--{cls.__name__}"}


def _constrains_more(schema: dict[str, Any], before: dict[str, Any], original: Any) -> bool:
    silent = {"title", "description", "examples", "format", "default"}

    def loud(node: Any) -> Any:
        if isinstance(node, dict):
            entries = cast("dict[str, Any]", node).items()
            return {key: loud(value) for key, value in entries if key not in silent}
        if isinstance(node, list):
            return [loud(value) for value in cast("list[Any]", node)]
        return node

    return original is not Any and loud(schema) != loud(before)


def _require_all(hint: Any, definition: dict[str, Any]) -> None:
    """What goes out has every field, whether or not it has a default."""
    cls = get_origin(hint) or hint
    if "properties" not in definition:
        return
    if issubclass(cls, msgspec.Struct):
        if cls.__struct_config__.omit_defaults:
            return
        optional = {
            field.encode_name
            for field in msgspec.structs.fields(cls)
            if field.default is msgspec.UNSET
        }
    elif hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__attrs_attrs__"):
        optional = {
            name for name in definition["properties"] if getattr(cls, name, None) is msgspec.UNSET
        }
    else:
        return
    required = [name for name in definition["properties"] if name not in optional]
    if required:
        definition["required"] = required
