"""docs/api.md and docs/cli.md say what the code says, and miss no public name."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import TypeVar

import pytest
from scripts.source import (
    MADE_BY_US,
    class_body,
    definition,
    public_names,
    statement,
    tree,
)

import transom
from transom.cli.options import COMMANDS
from transom.events import Event

ROOT = Path(__file__).parents[2]
API = (ROOT / "docs" / "api.md").read_text()
CLI = (ROOT / "docs" / "cli.md").read_text()
MODULES = (
    *("bus", "channel", "check", "conform", "connections", "drive", "errors", "events", "gateway"),
    *("host", "server", "testing", "traffic", "types", "view", "web"),
)
PLACES = ["transom", *(f"transom.{name}" for name in MODULES)]
FRAMEWORKS = ("langchain", "openai_agents", "pydantic_ai")  # to be imported, which is slow
ALL_PLACES = [
    *PLACES,
    *(pytest.param(f"transom.agents.{name}", marks=pytest.mark.load) for name in FRAMEWORKS),
]
HEADINGS = set(re.findall(r"^#{3,4} `([\w.]+)`$", API, re.MULTILINE))


@pytest.mark.processes
@pytest.mark.timeout(240)  # everything is imported, and every command says its help
def test_the_reference_is_up_to_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    monkeypatch.setattr(sys, "argv", ["scripts/api.py", "--check"])
    # Here, and not in a process of its own: the agent frameworks take seconds to import.
    status = run_path(str(ROOT / "scripts" / "api.py"))["main"]()
    assert (capsys.readouterr().out, status) == ("", 0)


@pytest.mark.parametrize("place", PLACES)
def test_every_public_name_is_in_it(place: str) -> None:
    names = {name for name in public_names(import_module(place)) if name != "__version__"}
    constants = set(re.findall(r"^\| `([A-Z_]+)` \| `-?\d+` \|$", API, re.MULTILINE))
    assert names - HEADINGS - constants == set()


@pytest.mark.parametrize("owner", [transom.App, transom.Bridge, transom.Host])
def test_every_handler_is_explained_where_its_owner_is(owner: type) -> None:
    handlers = [
        name for name in dir(owner) if isinstance(inspect.getattr_static(owner, name), Event)
    ]
    assert len(handlers) >= 11
    assert [name for name in handlers if f"{name}(" not in (owner.__doc__ or "")] == []


@cache
def imported(module: str) -> dict[str, tuple[str, str]]:
    """The names that a module imports, for type checkers too: where from, and what it is there."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom):
            for each in node.names:
                found[each.asname or each.name] = (node.module or "", each.name)
    return found


def home_of(name: str, module: str) -> str:
    """The module that defines what `module` calls `name`; "" if that is not known."""
    while name in imported(module):
        module, name = imported(module)[name]
        if not module.startswith("transom"):
            return module
    return module if hasattr(import_module(module), name) else ""


Named = tuple[str, str]
"""A name, and the module that defines it."""
TYPING = ("types", "typing", "collections.abc")  # whose objects aliases are


def defined(module: str, name: str) -> Named | None:
    """What `module` calls `name`, if that is a class or an alias of Transom."""
    home = home_of(name, module)
    if not home.startswith("transom"):
        return None
    while name in imported(module):
        module, name = imported(module)[name]
    value = getattr(import_module(home), name)
    ours = isinstance(value, type) and value.__module__.startswith("transom")
    is_type = ours or type(value).__module__ in TYPING
    return (name, home) if is_type and not isinstance(value, TypeVar) else None


def types_in(hint: ast.AST, module: str) -> Iterator[Named]:
    """The classes and aliases of Transom in a type hint."""
    for node in ast.walk(hint):
        match node:
            case ast.Constant(value=str(text)) if text.isidentifier():
                found = defined(module, text)
            case ast.Name(id=name):
                found = defined(module, name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in imported(module):
                found = defined(".".join(imported(module)[name]), attribute)
            case _:
                continue
        if found is None:
            continue
        alias = not isinstance(getattr(import_module(found[1]), found[0]), type)
        if alias and found[0].startswith("_"):
            yield from types_in(_value(*found), found[1])
        else:
            yield found


def _value(alias: str, module: str) -> ast.AST:
    """What an alias stands for."""
    match statement(module, alias)[0]:
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return value
        case other:
            return other


def hints_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """The types of its arguments and of what it returns."""
    for each in ast.walk(function.args):
        if isinstance(each, ast.arg) and each.annotation is not None:
            yield each.annotation
    if function.returns is not None:
        yield function.returns


def hints_of_attributes(made: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """The types of the public attributes that `__init__` sets."""
    given = {each.arg: each.annotation for each in ast.walk(made.args) if isinstance(each, ast.arg)}
    for node in ast.walk(made):
        match node:
            case ast.AnnAssign(target=ast.Attribute(ast.Name("self"), attr=name), annotation=hint):
                pass
            case ast.Assign([ast.Attribute(ast.Name("self"), attr=name)], ast.Name(id=argument)):
                hint = given.get(argument)
            case ast.Assign([ast.Attribute(ast.Name("self"), attr=name)], ast.Call(func=hint)):
                pass
            case _:
                continue
        made_by_function = isinstance(hint, ast.Name) and not hint.id.lstrip("_")[:1].isupper()
        if hint is not None and not name.startswith("_") and not made_by_function:
            yield hint


def public_hints(cls: type) -> Iterator[tuple[str, ast.expr, str]]:
    """The types that its users meet: of fields, attributes, properties and methods."""
    seen: set[str] = set()
    for home in cls.__mro__:
        if not home.__module__.startswith("transom"):
            continue
        for node in class_body(home):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    hints = list(hints_of(node))
                    if name == "__init__":
                        made = cls.__name__ not in MADE_BY_US and name not in seen
                        hints = [*(hints if made else ()), *hints_of_attributes(node)]
                case ast.AnnAssign(target=ast.Name(id=name), annotation=hint):
                    hints = [hint]
                case ast.Assign([ast.Name(id=name)], ast.Call(func=ast.Subscript(slice=hint))):
                    hints = [hint]  # an `Event`, or a field of a `RegisteredTool`
                case _:
                    continue
            private = name.startswith("_") and not name.endswith("__")
            if not private and (name not in seen or name == "__init__"):
                yield from ((name, hint, home.__module__) for hint in hints)
            seen.add(name)


@cache
def public_types() -> set[Named]:
    """Everything that can be imported from a public place."""
    return {
        defined(place, name) or (name, place)
        for place in PLACES
        for name in public_names(import_module(place))
    }


@pytest.mark.parametrize("place", ALL_PLACES)
def test_every_type_that_users_meet_can_be_imported_from_a_public_place(place: str) -> None:
    module = import_module(place)
    met: set[tuple[str, Named]] = set()
    for name in public_names(module):
        value = getattr(module, name)
        if isinstance(value, type) and value.__module__.startswith("transom"):
            for member, hint, home in public_hints(value):
                met |= {(f"{name}.{member}", each) for each in types_in(hint, home)}
        elif inspect.isfunction(value):
            node = definition(tree(value.__module__).body, value.__name__)
            assert node is not None
            for hint in hints_of(node):
                met |= {(name, each) for each in types_in(hint, value.__module__)}
        else:
            alias, home = defined(place, name) or (name, place)
            met |= {(name, each) for each in types_in(_value(alias, home), home)}
    assert [(where, *each) for where, each in sorted(met) if each not in public_types()] == []


def test_everything_in_it_is_explained() -> None:
    entries = re.split(r"^(?=#{2,4} )", API, flags=re.MULTILINE)
    code_and_title = re.compile(r"^#+ .*?$|^```.*?^```$", re.DOTALL | re.MULTILINE)
    silent = [
        entry.splitlines()[0]
        for entry in entries
        if entry.startswith(("### ", "#### ")) and not code_and_title.sub("", entry).strip()
    ]
    assert len(entries) > 150
    assert silent == []


def test_every_command_is_in_it() -> None:
    commands = {f"transom {name}" for name in COMMANDS}
    assert set(re.findall(r"^## (.+)$", CLI, re.MULTILINE)) == {"transom", *commands}


def test_help_fits_a_page_of_88_columns_without_colour() -> None:
    assert max(map(len, CLI.splitlines())) <= 88
    assert "\x1b" not in CLI
