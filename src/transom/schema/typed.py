"""Schemas from Python types: msgspec generates the JSON Schema and reads the values.

msgspec knows nothing of pydantic models, of the constraints that other libraries write into
`Annotated`, nor of the difference between what a class accepts and what it always has. `generate`
adds these to the JSON Schema that msgspec makes. pydantic makes those of its own models; it is not
imported before there is such a model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, cast, get_origin

import msgspec
from msgspec import NODEFAULT

from transom.errors import SchemaError, ValidationError
from transom.schema.checker import MAX_LISTED_BYTES, Checker
from transom.schema.document import inline, require_object, wrap_other
from transom.schema.hints import field_hints, is_pydantic, reachable_classes, translate
from transom.schema.mismatches import (
    invalid,
    mismatch_from_error,
    mismatches_from_pydantic,
    shorten,
)
from transom.schema.schema import Direction, Schema, read_json, to_json


class Typed:
    """Values that msgspec decodes and validates at once.

    Args:
        hint: the type, translated.
        json_schema: what goes on the wire.
        finish: makes of a decoded value what callers want.
        check: validate against the JSON Schema too, because it says more than msgspec knows: the
            text before msgspec reads it, or the finished value.
        incomplete: decoded values must be completed; see `complete_defaults`.
        exact: a struct whose own JSON is what `parse` would make of it, once it is valid.
    """

    __slots__ = (
        "_checker", "_decode", "_exact", "_finish", "_first", "_incomplete", "_last", "json_schema",
    )  # fmt: skip

    def __init__(
        self,
        hint: Any,
        json_schema: dict[str, Any],
        *,
        finish: Callable[[Any], Any] | None = None,
        check: Literal["text", "finished"] | None = None,
        incomplete: bool = False,
        exact: type[msgspec.Struct] | None = None,
    ) -> None:
        # `generate` has refused every type that neither msgspec nor pydantic knows.
        self._decode = msgspec.json.Decoder(hint, dec_hook=read_pydantic).decode
        self._finish = finish
        self._incomplete = incomplete
        self._checker = Checker(json_schema, lazy=check is None)
        self._first = self._checker if check == "text" else None
        self._last = self._checker if check == "finished" else None
        self.json_schema = json_schema
        self._exact = exact

    def schema(self, *, spread: bool = False, wrapped: bool = False) -> Schema:
        """The schema of these values."""
        encode_exact = None if self._exact is None else self.encode_exact
        return Schema(
            self.json_schema, self.parse, encode_exact=encode_exact, spread=spread, wrapped=wrapped
        )

    def parse(self, data: bytes | msgspec.Raw) -> Any:
        """Read a value from JSON text."""
        try:
            if self._first is not None:
                self._first.require(msgspec.json.decode(data), data)
            decode, finish = self._decode, self._finish
            value = decode(data)
            if self._incomplete:
                complete_defaults(value)
            if finish is not None:
                value = finish(value)
            if self._last is not None:
                self._last.require(value, data)
        except ValidationError:
            raise
        except Exception as error:
            raise self._explained(error, data) from error
        return value

    def encode_exact(self, value: Any) -> bytes | None:
        """The JSON text of a valid value of exactly this type; None: it takes `parse`."""
        if type(value) is not self._exact:
            return None
        data, decode = to_json(value), self._decode
        try:
            decode(data)
        except Exception as error:
            raise self._explained(error, data) from error
        return data

    def _explained(self, error: Exception, data: bytes | msgspec.Raw) -> ValidationError:
        """List all mismatches of a value of ordinary size: msgspec has stopped at the first."""
        if isinstance(error, msgspec.ValidationError) and len(bytes(data)) <= MAX_LISTED_BYTES:
            try:
                mismatches = self._checker.mismatches(msgspec.json.decode(data), data)
            except (SchemaError, msgspec.DecodeError, UnicodeError, RecursionError):
                pass  # not JSON after all, or no validator to ask: one mismatch is better than none
            else:
                if self._finish is _plain_values:
                    # In an output, what is missing may be filled in; msgspec knows, we do not.
                    mismatches = [found for found in mismatches if found.message != "is required"]
                if mismatches:
                    return invalid(mismatches)
        return invalid([mismatch_from_error(error)])


def typed_input(hint: Any) -> Schema:
    """Describe tool arguments by a class (one instance) or a TypedDict (keyword arguments)."""
    translated = translate(hint)
    generated = generate(translated, "input", name=_name(hint))
    typed = Typed(
        translated,
        require_object(generated.json_schema),
        check="text" if generated.says_more else None,
        incomplete=generated.incomplete,
    )
    return typed.schema(spread=_is_mapping(hint))


def typed_output(hint: Any) -> Schema:
    """Describe what a tool returns by a type. What is not an object is wrapped."""
    translated = translate(hint)
    generated = generate(translated, "output", name=_name(hint))
    schema, wrapped = wrap_other(generated.json_schema)
    if wrapped:
        translated = msgspec.defstruct("Result", [("result", translated)])
    if generated.uses_pydantic:
        # A model may write what it would not read, so the JSON Schema alone decides.
        return Typed(dict[str, Any], schema, check="finished").schema(wrapped=wrapped)
    is_struct = isinstance(translated, type) and issubclass(translated, msgspec.Struct)
    checked_whole = is_struct and not (wrapped or generated.says_more or generated.incomplete)
    typed = Typed(
        translated,
        schema,
        finish=_plain_values,
        check="finished" if generated.says_more else None,
        incomplete=generated.incomplete,
        exact=cast("Any", translated) if checked_whole else None,
    )
    return typed.schema(wrapped=wrapped)


def _plain_values(value: Any) -> Any:
    return msgspec.json.decode(to_json(value))


def _is_mapping(hint: Any) -> bool:
    cls = get_origin(hint) or hint
    return isinstance(cls, type) and issubclass(cls, dict)


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", "")


# --- JSON Schema of a type -------------------------------------------------------------------


class Generated(msgspec.Struct, frozen=True):
    """A type's JSON Schema, and how much of it msgspec will not check by itself."""

    json_schema: dict[str, Any]
    uses_pydantic: bool
    """There are pydantic models inside."""
    says_more: bool
    """Fields of classes have constraints that msgspec does not see."""
    incomplete: bool
    """Decoded values must be completed; see `complete_defaults`."""


def generate(hint: Any, direction: Direction, *, name: str = "") -> Generated:
    """Describe a type, already translated, as JSON Schema."""
    classes = reachable_classes(hint)
    changes = [
        (cls, wire_name, declared, translated)
        for cls in classes
        for wire_name, declared in field_hints(cls).items()
        if (translated := translate(declared)) != declared
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
        # Of several lines, the last one says which type it is.
        lines = [line for line in str(error).splitlines() if line.strip()]
        text = lines[-1] if lines and "is not supported" in lines[-1] else " ".join(lines)
        raise SchemaError(text) from error
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
        any(_lacks_defaults(cls) for cls in classes),
    )


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


# --- defaults of dataclasses -----------------------------------------------------------------


def _lacks_defaults(hint: Any) -> bool:
    """Whether msgspec makes instances of a class without some of their own attributes."""
    cls = get_origin(hint) or hint
    defaults = _fields_of(cls).values()
    return bool(getattr(cls, "__dictoffset__", 0)) and any(e is not NODEFAULT for e in defaults)


def _fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, or of an instance of one, with their plain defaults."""
    if not hasattr(value, "__dataclass_fields__"):
        return {}
    import dataclasses as dc  # noqa: PLC0415 - there is a dataclass, so it is loaded already

    return {e.name: NODEFAULT if e.default is dc.MISSING else e.default for e in dc.fields(value)}


def complete_defaults(value: Any) -> None:
    """Complete all dataclass instances inside a decoded value, in place.

    msgspec does not write a plain default (`size: int = 0`) into a new dataclass instance, because
    reading the attribute finds it on the class. But code that looks at the instance's own
    attributes, as msgspec itself does to encode it, would miss the field.
    """
    if isinstance(value, dict):
        for part in cast("dict[Any, Any]", value).values():
            complete_defaults(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in cast("list[Any]", value):
            complete_defaults(part)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            complete_defaults(getattr(value, name))
    else:
        own: dict[str, Any] = getattr(value, "__dict__", {})
        for name, default in _fields_of(value).items():
            if default is not NODEFAULT:
                own.setdefault(name, default)  # a frozen dataclass refuses assignment
            complete_defaults(getattr(value, name, None))


# --- pydantic models -------------------------------------------------------------------------


def json_schema_of(
    source: Any, direction: Direction, ref_template: str = "#/$defs/{model}"
) -> dict[str, Any]:
    """Ask pydantic for the JSON Schema of a type."""
    try:
        if direction == "input":
            return _adapter(source).json_schema(ref_template=ref_template)
        return _adapter(source).json_schema(
            ref_template=ref_template, mode="serialization", schema_generator=_output_generator()
        )
    except Exception as error:
        raise SchemaError(
            f"pydantic cannot describe {source.__name__}: {shorten(str(error))}"
        ) from error


def read_pydantic(source: Any, value: Any) -> Any:
    """Make an instance of a pydantic type from plain JSON values."""
    try:
        # As JSON, because a strict model takes a date from a JSON string but not from a Python one.
        return _adapter(source).validate_json(to_json(value))
    except ValueError as error:
        raise ValueError(str(invalid(mismatches_from_pydantic(error)))) from error


def model_input(source: Any) -> Schema:
    """Compile tool arguments described by a pydantic model: one instance for the handler."""
    adapter = _adapter(source)
    document = json_schema_of(source, "input")
    emitted = require_object(inline(document, generated=True, name=source.__name__))

    def parse(data: bytes | msgspec.Raw) -> Any:
        try:
            return adapter.validate_json(bytes(data))
        except Exception as error:
            raise _explained(error) from error

    return Schema(emitted, parse)


def model_output(source: Any) -> Schema:
    """Compile what a handler returns, described by a pydantic model."""
    adapter = _adapter(source)
    document = json_schema_of(source, "output")
    emitted, wrapped = wrap_other(inline(document, generated=True, name=source.__name__))
    checker = Checker(emitted, lazy=True)

    def complete(value: Any) -> Any:
        instance = adapter.validate_json(msgspec.json.encode(value["result"] if wrapped else value))
        dumped = msgspec.json.decode(adapter.dump_json(instance, by_alias=True))
        return {"result": dumped} if wrapped else dumped

    def parse(data: bytes | msgspec.Raw) -> Any:
        value = read_json(data)
        mismatches = checker.mismatches(value, data)
        if any(mismatch.message == "is required" for mismatch in mismatches):
            # It may be a mapping that relies on the model's defaults: let the model complete it.
            try:
                value = complete(value)
            except Exception as error:
                raise invalid(mismatches) from error
            checker.require(value, data)
        elif mismatches:
            raise invalid(mismatches)
        return value

    return Schema(emitted, parse, wrapped=wrapped)


@functools.cache
def _output_generator() -> Any:
    # Imported here for the same reason as below.
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415

    class WithDefaultsRequired(GenerateJsonSchema):
        """What goes out has every field, whether or not it has a default."""

        def field_is_required(self, field: Any, total: bool) -> bool:
            if field["type"] == "typed-dict-field":
                return super().field_is_required(field, total)
            return not (field.get("serialization_exclude") or field.get("serialization_exclude_if"))

    return WithDefaultsRequired


def _adapter(source: Any) -> Any:
    # Reached with a type of pydantic's only, so it is loaded already.
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(source)


def _explained(error: Exception) -> Exception:
    if hasattr(error, "errors"):
        return invalid(mismatches_from_pydantic(error))
    return invalid([mismatch_from_error(error)])
