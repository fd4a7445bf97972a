"""Classes and modules stay small enough to be held in the head."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "transom"
MODULES = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.py")}

MAX_LINES = 850
MAX_ATTRIBUTES = 20
# A table of settings without behaviour: each field is one documented limit (docs/security.md).
TABLES = {"Limits"}
RECORDS = {"Struct", "Wire", "NamedTuple", "TypedDict", "dataclass"}


def attributes(body: ast.ClassDef) -> set[str]:
    """The names that the methods assign on `self`, the slots, and the fields of a record."""
    found: set[str] = set()
    named = {node.id for each in (*body.bases, *body.decorator_list) for node in _names(each)}
    for node in body.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if named & RECORDS:
                found.add(name)
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=slots):
                found |= set(ast.literal_eval(slots))
    for node in ast.walk(body):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                found.add(name)
    return found


def _names(node: ast.AST) -> Iterator[ast.Name]:
    for each in ast.walk(node):
        match each:
            case ast.Name():
                yield each
            case ast.Attribute(attr=attr):
                yield ast.Name(attr)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_no_class_has_too_many_attributes_and_no_module_too_many_lines(module: str) -> None:
    text = MODULES[module]
    assert text.count("\n") <= MAX_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name not in TABLES:
            found = attributes(node)
            assert len(found) <= MAX_ATTRIBUTES, f"{node.name} has {sorted(found)}"


def test_all_kinds_of_attributes_are_counted() -> None:
    text = """
class A(msgspec.Struct, frozen=True):
    one: int
    def method(self):
        self.two, self.three = 2, 3
        for self.four in (): pass
class B:
    __slots__ = ("five", "six")
    seven = Event()
"""
    first, second = (n for n in ast.parse(text).body if isinstance(n, ast.ClassDef))
    assert attributes(first) == {"one", "two", "three", "four"}
    assert attributes(second) == {"five", "six"}


def test_a_class_name_occurs_once() -> None:
    names = [
        node.name
        for name, text in MODULES.items()
        if "templates/" not in name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
