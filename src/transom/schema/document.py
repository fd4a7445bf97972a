"""JSON Schema as it goes on the wire: one plain object that model APIs accept.

References inside a schema are replaced by what they refer to:

1. The result shares nothing with what was given.
2. References that lead back to themselves, or would make the schema grow beyond bounds, stay, as
   `#/$defs/NAME`.
3. References to other documents, `$dynamicRef`, `$anchor` and nested `$id` are refused.
4. `$schema`, the outer `$id` and the OpenAPI word `discriminator` are left out.
5. In schemas that we generate, a `title` that only repeats a name is left out, and an `enum` says
   its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import msgspec

from transom.errors import SchemaError
from transom.json_values import depth_exceeds, type_name
from transom.schema.mismatches import shorten

MAX_BYTES = 1_000_000
MAX_DEPTH = 128

# Where schemas are found inside a schema. Everything else is data: a property named "$ref" or a
# default that looks like a schema is left alone.
_ONE = frozenset({
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
    "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset({
    "$defs", "definitions", "dependentSchemas", "patternProperties", "properties",
})  # fmt: skip
_OBJECT_KEYWORDS = frozenset({
    "additionalProperties", "dependentRequired", "dependentSchemas", "maxProperties",
    "minProperties", "patternProperties", "properties", "propertyNames", "required",
    "unevaluatedProperties",
})  # fmt: skip

Json = dict[str, Any]


def copy_document(source: Mapping[str, Any]) -> Json:
    """Copy a given JSON Schema by encoding it as JSON."""
    try:
        data = msgspec.json.encode(source if isinstance(source, dict) else dict(source))
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"the schema is not plain JSON: {shorten(str(error))}") from error
    if len(data) > MAX_BYTES:
        raise SchemaError(f"the schema has {len(data)} bytes; at most {MAX_BYTES} are allowed")
    document: Json = msgspec.json.decode(data)
    if depth_exceeds(document, MAX_DEPTH):
        raise SchemaError(f"the schema is nested more than {MAX_DEPTH} levels deep")
    return document


def describes_object(schema: Mapping[str, Any]) -> bool:
    """Whether a schema accepts only JSON objects, judged by its outermost keywords."""
    kind = schema.get("type")
    if kind is not None:
        return kind in ("object", ["object"])
    if not _OBJECT_KEYWORDS.isdisjoint(schema):
        return True
    if any(describes_object(part) for part in _schemas(schema.get("allOf"))):
        return True
    alternatives = [*_schemas(schema.get("anyOf")), *_schemas(schema.get("oneOf"))]
    return bool(alternatives) and all(describes_object(part) for part in alternatives)


def require_object(schema: Json) -> Json:
    """Check that this schema describes an object, and add `type: object` to it."""
    if not describes_object(schema):
        kind = schema.get("type")
        what = f"type {kind!r}" if kind is not None else "no type"
        raise SchemaError(
            f"an input schema must describe an object, for tools take named arguments; got {what}"
        )
    rest = {key: value for key, value in schema.items() if key not in {"type", "properties"}}
    return {"type": "object", "properties": schema.get("properties", {}), **rest}


def wrap_other(schema: Json) -> tuple[Json, bool]:
    """Make any schema describe an object; whether it had to be wrapped for that.

    What is not an object is wrapped: the result describes `{"result": value}`.
    """
    if describes_object(schema):
        return {**schema, "type": "object"}, False
    definitions = schema.pop("$defs", None)
    wrapper: Json = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return ({**wrapper, "$defs": definitions} if definitions else wrapper), True


def refers_to_itself(schema: Json) -> bool:
    """Whether a schema has references: those that `inline` had to leave, mostly circular ones."""
    return any("$ref" in node for node in walk(schema))


def walk(schema: Any) -> Iterator[Json]:
    """Go through each schema object inside a schema, itself included."""
    todo = [schema]
    while todo:
        node = todo.pop()
        if not isinstance(node, dict):
            continue
        yield cast("Json", node)
        for key, value in cast("Json", node).items():
            if key in _NAMED and isinstance(value, dict):
                todo.extend(cast("Json", value).values())
            elif key in _MANY and isinstance(value, list):
                todo.extend(cast("list[Any]", value))
            elif key in _ONE:
                todo.append(value)


def _schemas(value: object) -> list[Json]:
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Json", entry) for entry in entries if isinstance(entry, dict)]


MAX_GROWTH = 5_000  # schemas that inlining may add
MAX_REFERENCES = 1_000
_LEFT_OUT = frozenset({"$defs", "$id", "$schema", "definitions", "discriminator"})
_REFUSED = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef")
# Beside a `$ref` these say nothing about what fits, so they may be merged with its target.
_ANNOTATIONS = frozenset({
    "$comment", "default", "deprecated", "description", "examples", "readOnly", "title",
    "writeOnly",
})  # fmt: skip
_PERCENT = r"(?:%[0-9A-Fa-f]{2})+"  # compiled when it is first used


def inline(document: Json, *, generated: bool = False, name: str = "") -> Json:
    """Bring a JSON Schema into the form that goes on the wire. `document` is not changed."""
    references = _References(document)
    everything = set(references.targets)
    if len(everything) <= MAX_REFERENCES:
        try:
            return _Inliner(references, references.circular(), generated=generated).run(name)
        except _TooLarge:
            pass
    return _Inliner(references, everything, generated=generated).run(name)


class _TooLarge(Exception):
    """Inlining would make the schema too large."""


class _References:
    """The references of a document, by JSON pointer."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.targets: dict[str, Any] = {}
        self.nodes = 0
        for node in walk(document):
            self.nodes += 1
            for word in _REFUSED:
                if word in node:
                    raise SchemaError(f"{word} is not supported in schemas: use $ref and $defs")
            if "$id" in node and node is not document:
                raise SchemaError("a nested $id is not supported in schemas: use $ref and $defs")
            if "$ref" in node:
                self.resolve(node["$ref"])

    def resolve(self, reference: object) -> str:
        """Give the pointer that a `$ref` holds, and remember its target."""
        if not isinstance(reference, str) or not (reference + "/").startswith("#/"):
            shown = shorten(str(reference), 80)
            raise SchemaError(f"a schema may refer to its own parts only ('#/...'), not to {shown}")
        pointer = re.sub(_PERCENT, _unquoted, reference[1:])
        if pointer not in self.targets:
            self.targets[pointer] = self._find(pointer)
        return pointer

    def _find(self, pointer: str) -> Any:
        node: Any = self.document
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            try:
                node = cast("Any", node[int(key)] if isinstance(node, list) else node[key])
            except (KeyError, IndexError, ValueError, TypeError):
                raise SchemaError(
                    f"the schema refers to #{shorten(pointer, 80)}, which does not exist"
                ) from None
        if not isinstance(node, dict | bool):
            raise SchemaError(f"the schema refers to #{shorten(pointer, 80)}, not a schema")
        return cast("Any", node)

    def circular(self) -> set[str]:
        """Those that can be reached from themselves."""
        leads_to = {
            pointer: {self.resolve(node["$ref"]) for node in walk(target) if "$ref" in node}
            for pointer, target in list(self.targets.items())
        }
        return {pointer for pointer in leads_to if pointer in _reachable(leads_to, pointer)}


def _reachable(leads_to: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = set(leads_to[start])
    while todo:
        seen.add(pointer := todo.pop())
        todo |= leads_to.get(pointer, set[str]()) - seen
    return seen


class _Inliner:
    """One pass over a document that replaces references, except those in `kept`."""

    def __init__(self, references: _References, kept: set[str], *, generated: bool) -> None:
        self._references = references
        self._generated = generated
        self._kept = _short_names(kept)
        self._used: list[str] = []
        self._nodes = 0
        self._depth = 0

    def run(self, name: str) -> Json:
        schema = self._outside(self._references.document, name)
        definitions: Json = {}
        for pointer in self._used:  # grows while we walk: definitions use definitions
            target = self._references.targets[pointer]
            definitions[self._kept[pointer]] = self._emit(target, _last_name(pointer))
        return {**schema, "$defs": definitions} if definitions else schema

    def _outside(self, node: Json, name: str) -> Json:
        """The outermost schema must not be a bare reference, for its type must show."""
        seen: set[str] = set()
        around: Json = {}
        while "$ref" in node:
            pointer = self._references.resolve(node["$ref"])
            if pointer in seen:
                raise SchemaError("the schema refers to itself and to nothing else")
            seen.add(pointer)
            target = self._references.targets[pointer]
            beside = {key: node[key] for key in node if key not in {*_LEFT_OUT, "$ref"}}
            if not isinstance(target, dict) or not _ANNOTATIONS.issuperset(beside):
                break
            around = {**beside, **around}
            node, name = cast("Json", target), _last_name(pointer)
        schema = self._emit(node, name)
        if not isinstance(schema, dict):
            raise SchemaError("the schema is just true or false")
        return {**schema, **around}

    def _emit(self, node: Any, name: str) -> Any:
        if not isinstance(node, dict):
            return node
        self._nodes += 1
        self._depth += 1
        too_deep = self._depth > MAX_DEPTH // 2 + 1  # each schema is two levels of JSON or more
        if too_deep or self._nodes > self._references.nodes + MAX_GROWTH:
            if len(self._kept) < len(self._references.targets):
                raise _TooLarge
            if too_deep:
                raise SchemaError(f"the schema is nested more than {MAX_DEPTH} levels deep")
        schema = cast("Json", node)
        emitted = _map(schema, self._emit)
        if self._generated:
            if _same_name(schema.get("title"), name):
                del emitted["title"]
            if emitted.get("required") == []:
                del emitted["required"]
            if "enum" in emitted and "type" not in emitted:
                kinds = {type_name(value) for value in emitted["enum"]}
                if len(kinds) == 1:
                    emitted["type"] = kinds.pop()
        if "$ref" in schema:
            emitted = self._replace(self._references.resolve(schema["$ref"]), emitted)
        self._depth -= 1
        return emitted

    def _replace(self, pointer: str, beside: Json) -> Any:
        beside.pop("$ref")
        if pointer in self._kept:
            if pointer not in self._used:
                self._used.append(pointer)
            return {"$ref": f"#/$defs/{self._kept[pointer]}", **beside}
        target = cast("object", self._emit(self._references.targets[pointer], _last_name(pointer)))
        if not beside:
            return target
        if isinstance(target, dict) and _ANNOTATIONS.issuperset(beside):
            return cast("Json", target) | beside
        return {"allOf": [cast("Any", target)], **beside}


def _map(schema: Json, change: Callable[[Any, str], Any]) -> Json:
    """Copy a schema with `change` applied to each schema inside it."""
    changed: Json = {}
    for key, value in schema.items():
        if key in _LEFT_OUT:
            continue
        if key in _NAMED and isinstance(value, dict):
            named = cast("Json", value)
            changed[key] = {name: change(part, name) for name, part in named.items()}
        elif key in _MANY and isinstance(value, list):
            changed[key] = [change(part, "") for part in cast("list[Any]", value)]
        elif key in _ONE:
            changed[key] = change(value, "")
        else:
            changed[key] = msgspec.to_builtins(value)  # a copy
    return changed


def _unquoted(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("%", "")).decode(errors="replace")


def _last_name(pointer: str) -> str:
    return pointer.rpartition("/")[2].rpartition("--")[2]


def _short_names(pointers: set[str]) -> dict[str, str]:
    """Name the definitions that stay: letters, digits and the like, each once."""
    taken: dict[str, str] = {}
    for pointer in sorted(pointers):
        letters = "".join(c if c.isalnum() or c in "_-." else "_" for c in _last_name(pointer))
        name = base = letters or "schema"
        number = 2
        while name in taken.values():
            name, number = f"{base}_{number}", number + 1
        taken[pointer] = name
    return taken


def _same_name(title: object, name: str) -> bool:
    def letters(text: str) -> str:
        return "".join(c for c in text.casefold() if c.isalnum())

    return isinstance(title, str) and letters(title) == letters(name)
