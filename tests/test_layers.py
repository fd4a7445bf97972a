"""Imports go down the layers only, without circles, and each layer loads only what it may.

The tables below are the layers. A new module or folder of `transom` needs a line in them.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import transom

SOURCE = Path(__file__).parents[1] / "src" / "transom"
SCRIPTS = Path(__file__).parents[1] / "js" / "src"

BOTTOM = {"errors", "lazy", "types", "protocol", "version"}
UP_TO_SESSION = BOTTOM | {
    "schema",
    "channel",
    "events",
    "background",
    "json_values",
    "queues",
    "recent",
    "fair_share",
    "results",
    "session",
    "traffic",
}
UP_TO_CONNECTIONS = UP_TO_SESSION | {"mcptypes", "state_files", "connections", "drive"}
UP_TO_HOST = UP_TO_CONNECTIONS | {"view", "host", "server"}
UP_TO_SERVING = UP_TO_HOST | {"serving", "bus"}
EVERYTHING = UP_TO_SERVING | {
    "python_files",
    "web",
    "agents",
    "gateway",
    "check",
    "dev",
    "testing",
    "evals",
    "conform",
    "cli",
}

MAY_IMPORT = {
    "errors": set[str](),
    "version": set[str](),
    "lazy": set[str](),
    "types": {"errors"},
    "protocol": {"errors", "types"},
    "schema": BOTTOM | {"json_values"},
    "channel": BOTTOM,
    "events": {"errors"},
    "background": {"events"},
    "json_values": {"protocol"},
    "state_files": set[str](),
    "python_files": {"errors"},
    "mcptypes": BOTTOM | {"schema"},
    "results": BOTTOM | {"schema"},
    "recent": set[str](),
    "fair_share": {"errors", "recent"},
    "queues": BOTTOM | {"background", "channel", "events"},
    "session": BOTTOM | {"background", "channel", "events", "queues"},
    "traffic": BOTTOM | {"channel"},
    "view": UP_TO_SESSION,
    "bus": UP_TO_SESSION,
    "drive": BOTTOM | {"json_values"},
    "connections": UP_TO_SESSION | {"mcptypes", "state_files"},
    "host": UP_TO_CONNECTIONS,
    # The in-process renderer runs Apps, so it alone in the host knows what a View is.
    "host.views.renderers": UP_TO_CONNECTIONS | {"view"},
    "server": UP_TO_SESSION | {"mcptypes"},
    "serving": {"errors"},
    "web": UP_TO_SERVING,
    "agents": UP_TO_HOST,
    "gateway": UP_TO_SERVING,
    "check": UP_TO_SERVING | {"web"},
    "dev": UP_TO_SERVING | {"web", "check"},
    "testing": UP_TO_SERVING | {"web", "check"},
    "evals": UP_TO_SERVING | {"python_files", "web", "agents", "testing"},
    "conform": UP_TO_SERVING | {"web", "check", "testing"},
    "cli": EVERYTHING,
    "__main__": {"cli"},
}

# The rooms of a folder from below, each with what may not import another of the same line; "" is
# every other module of the folder.
ROOMS = {
    "host": [{"audit", "limits"}, {"tools"}, {"asking"}, {"views"}, {""}],
    "web": [{""}, {"local", "application"}],
    "gateway": [{"configuration"}, {""}],
}

# The official SDK speaks in pydantic models, anyio streams and httpx2 clients.
MCP = {"mcp", "mcp_types", "pydantic", "pydantic_core", "anyio", "httpx2"}

# Third-party packages loaded together with the module.
PACKAGES = {
    "errors": set[str](),
    "version": set[str](),
    "lazy": set[str](),
    "types": {"msgspec"},
    "protocol": {"msgspec"},
    "schema": {"msgspec"},
    "channel": {"msgspec"},
    "events": set[str](),
    "background": set[str](),
    "json_values": {"msgspec"},
    "state_files": set[str](),
    "python_files": set[str](),
    "mcptypes": {"msgspec"} | MCP,
    "queues": {"msgspec"},
    "recent": set[str](),
    "fair_share": set[str](),
    "results": {"msgspec"},
    "session": {"msgspec"},
    "traffic": {"msgspec"},
    "view": {"msgspec"},
    "bus": {"msgspec"},
    "drive": {"msgspec"},
    "connections": {"msgspec"} | MCP,
    "host": {"msgspec", "jsonschema_rs"} | MCP,
    "server": {"msgspec", "jsonschema_rs"} | MCP,
    "serving": {"uvicorn"},
    "web": {"msgspec", "starlette", "websockets"},
    "agents": {"msgspec"} | MCP,
    "gateway": {"msgspec", "ruamel", "starlette"} | MCP,
    "check": {"msgspec", "jsonschema_rs", "rich"} | MCP,
    "dev": {"msgspec", "watchfiles"},
    "testing": {"msgspec", "pytest"} | MCP,
    "evals": {"msgspec", "rich", "ruamel"} | MCP,
    "conform": {"msgspec", "rich", "starlette"} | MCP,
    "cli": {"msgspec", "rich"} | MCP,
    "__main__": set[str](),
}

# Loaded later, inside a function or for type checkers only: what a user may have or not, and what
# exists in a browser only (js, pyodide).
LATER = {
    # jsonschema, with its own referencing, where jsonschema-rs has no build.
    "schema": {"jsonschema_rs", "jsonschema", "referencing", "pydantic"},
    "channel": {"js", "pyodide"},
    "view": {"js", "pyodide", "pydantic"},
    "bus": {"redis"},
    "connections": {"fastmcp", "keyring"},
    "host": {"fastmcp"},
    "server": {"fastmcp"},
    "web": {"playwright"},
    "gateway": {"fastmcp"},
    "testing": {"playwright", "pydantic_ai"},
    "cli": {"uvloop"},
}

# Modules made for a package that a user may have or not: never imported together with another.
ON_DEMAND = {
    "server.fastmcp": {"fastmcp"},
    "agents.langchain": {"langchain", "langgraph"},
    "agents.openai_agents": {"agents", "openai"},
    "agents.pydantic_ai": {"pydantic_ai"},
    "evals.runs": {"pydantic_ai", "pydantic_evals"},
}

# The protocol has no input, no output, no tasks and no clock.
NOT_IN_PROTOCOL = {"asyncio", "concurrent", "datetime", "selectors", "socket", "ssl", "subprocess"}
NOT_IN_PROTOCOL |= {"threading", "time"}


@dataclass(frozen=True)
class Import:
    target: str
    line: int
    at_once: bool  # False: inside a function, or for type checkers only


@cache
def imports_of(source: str, module: str) -> list[Import]:
    """Every import of `source`, which is the text of `module`: statements, and `import_module`."""
    return list(_imports_below(ast.parse(source), module, at_once=True))


def _imports_below(node: ast.AST, module: str, *, at_once: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, child.lineno, at_once)
            case ast.ImportFrom(names=names):
                home = _absolute(child, module)
                for alias in names:
                    yield Import(f"{home}.{alias.name}", child.lineno, at_once)
            case ast.Call(args=args) if _is_import_module(child):
                for arg in args:
                    if isinstance(arg, ast.Constant):
                        yield Import(str(arg.value), child.lineno, at_once)
            case ast.arg() | ast.Constant() | ast.Name():
                pass  # most of a tree, and nothing can be imported in them
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _imports_below(child, module, at_once=False)
            case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test):
                yield from _imports_below(child, module, at_once=False)
            case _:
                yield from _imports_below(child, module, at_once=at_once)


def _is_import_module(call: ast.Call) -> bool:
    """`import_module("name")`, or `to_thread(import_module, "name")`."""
    named = (call.func, *call.args[:1])
    return any(
        getattr(each, "id", None) == "import_module"
        or getattr(each, "attr", None) == "import_module"
        for each in named
    )


def _absolute(statement: ast.ImportFrom, module: str) -> str:
    if statement.level == 0:
        return statement.module or ""
    package = module.split(".")[: -statement.level]
    return ".".join([*package, *filter(None, [statement.module])])


def targets_of(source: str, module: str) -> Iterator[tuple[str, int]]:
    """Every module of ours that `module` imports, whenever it does so, with the line."""
    known = {"transom", *modules()}
    for each in imports_of(source, module):
        name = each.target
        while name and name not in known:  # what is imported from a module is inside it
            name = name.rpartition(".")[0]
        if name:
            yield name, each.line


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others."""
    reached = {module: _reachable(imports, module) for module in imports}
    groups = {
        tuple(sorted(other for other in reached[module] if module in reached.get(other, ())))
        for module in imports
        if module in reached[module]
    }
    return sorted(list(group) for group in groups)


def _reachable(imports: dict[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    todo = [start]
    while todo:
        further = imports.get(todo.pop(), set()) - reached
        reached |= further
        todo += further
    return reached


def layer_of(module: str) -> str:
    """`transom.host.views.renderers`: `host.views.renderers`, if the tables have it, or `host`."""
    inner = module.removeprefix("transom.")
    return inner if inner in MAY_IMPORT else inner.partition(".")[0]


def complaints(source: str, module: str) -> list[str]:
    """What is wrong with the imports of `module`, a sentence each."""
    layer = layer_of(module)
    if layer not in MAY_IMPORT:
        return [f"{module} has no place in the layers: add {layer} to the tables of this test"]
    found: list[str] = []
    for each in imports_of(source, module):
        package = each.target.partition(".")[0]
        if package == "transom":
            wrong = wrong_of_ours(each, layer)
        elif package in sys.stdlib_module_names:
            wrong = layer == "protocol" and package in NOT_IN_PROTOCOL and f"may not use {package}"
        else:
            wrong = wrong_of_theirs(each, module)
        if wrong:
            found.append(f"{module}, line {each.line}: {layer} {wrong}")
    return found


def wrong_of_ours(each: Import, layer: str) -> str | None:
    name = each.target.partition(".")[2]
    handed_out = name in transom.__all__ and name != "__version__"
    target = getattr(transom, name).__module__ if handed_out else each.target
    inner = target.removeprefix("transom.")
    for module in ON_DEMAND:
        if each.at_once and f"{inner}.".startswith(f"{module}."):
            return f"may import {module} inside a function only"
    own = layer_of(target).partition(".")[0] == layer.partition(".")[0]
    if own or layer_of(target) in MAY_IMPORT[layer]:
        return None
    return f"may not import {layer_of(target)} ({each.target})"


def wrong_of_theirs(each: Import, module: str) -> str | None:
    package = each.target.partition(".")[0]
    inner = module.removeprefix("transom.")
    folder = inner.partition(".")[0]
    if package in PACKAGES[folder] | ON_DEMAND.get(inner, set()):
        return None
    if each.at_once:
        return f"may not load {package} at import time"
    return None if package in LATER.get(folder, set()) else f"may not load {package} at all"


@cache
def modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if "templates" in path.parts:  # files of new projects
            continue
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    del found["transom"]  # the package itself hands out every layer; test_package.py looks at it
    return found


def as_child(module: str, path: Path) -> str:
    """A module is a child of its package; a package's own imports start one level lower."""
    return f"{module}.__init__" if path.name == "__init__.py" else module


def test_imports_go_down_the_layers_only():
    found = [
        complaint
        for module, path in modules().items()
        for complaint in complaints(path.read_text(), as_child(module, path))
    ]
    assert found == []


def test_no_modules_import_each_other_in_a_circle():
    """Imports for type checkers and inside functions count too."""
    imports = {
        module: {target for target, _ in targets_of(path.read_text(), as_child(module, path))}
        for module, path in modules().items()
    }
    assert circles(imports) == []


def test_no_scripts_import_each_other_in_a_circle():
    """`import type` counts as any other."""

    def imported(file: Path) -> set[str]:
        names = re.findall(r"""["'](\.\.?/[\w./-]+)\.js["']""", file.read_text())
        return {str((file.parent / f"{name}.ts").resolve().relative_to(SCRIPTS)) for name in names}

    imports = {str(file.relative_to(SCRIPTS)): imported(file) for file in SCRIPTS.rglob("*.ts")}
    assert imports["app.ts"] > {"hooks.ts", "tool_service.ts"}
    assert circles(imports) == []


def test_nothing_inside_imports_the_package_that_hands_out_everything():
    found = [
        (module, line)
        for module, path in modules().items()
        for target, line in targets_of(path.read_text(), as_child(module, path))
        if target == "transom"
    ]
    assert found == []


def room_of(module: str) -> tuple[int, str]:
    """How far up it is in its folder, and the name of its room: `transom.host.tools.surface`."""
    folder, _, inner = module.removeprefix("transom.").partition(".")
    first = inner.partition(".")[0]
    known = {room for rooms in ROOMS[folder] for room in rooms}
    room = first if first in known else ""
    return next(height for height, rooms in enumerate(ROOMS[folder]) if room in rooms), room


@pytest.mark.parametrize("folder", ROOMS)
def test_rooms_of_a_folder_import_only_those_below_them(folder: str):
    inside = [module for module in modules() if module.startswith(f"transom.{folder}.")]
    wrong = [
        f"{module}, line {line}: {target}"
        for module in inside
        for target, line in targets_of(modules()[module].read_text(), module)
        if target in inside and room_of(target) != room_of(module)
        if room_of(target)[0] >= room_of(module)[0]
    ]
    assert wrong == []


def test_every_room_exists():
    for folder, heights in ROOMS.items():
        found = {room_of(module)[1] for module in modules() if f".{folder}." in module}
        assert found == set().union(*heights)


def test_circles_are_found_however_long_they_are():
    imports = {
        "a": {"b", "d"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": set[str](), "f": {"f"},
    }  # fmt: skip
    assert circles(imports) == [["a", "b", "c"], ["f"]]


@pytest.mark.parametrize(
    "source",
    [
        "import transom.host.host",
        "from transom.host.host import Host",
        "from transom.host import host",
        "from . import host",
        "from .host import Host",
        "def f():\n    from transom.host.host import Host",
        "if TYPE_CHECKING:\n    from transom.host.host import Host",
        "def f():\n    return import_module('transom.host.host').Host",
        "def f():\n    return importlib.import_module('transom.host.host')",
        "async def f():\n    return await to_thread(import_module, 'transom.host.host')",
    ],
)
def test_an_import_is_one_of_its_module_however_it_is_written(source: str):
    assert list(targets_of(source, "transom.host.open_views")) == [
        ("transom.host.host", source.count("\n") + 1)
    ]


@pytest.mark.parametrize("source", ["import transom", "from transom import App, Host"])
def test_what_the_package_hands_out_is_an_import_of_the_package(source: str):
    assert {target for target, _ in targets_of(source, "transom.host.views.bridge")} == {"transom"}


def test_the_modules_of_transom_are_found():
    assert {"transom.errors", "transom.types", "transom.protocol.wire"} <= set(modules())


def test_every_layer_exists_and_has_its_packages_listed():
    inside = {module.removeprefix("transom.") for module in modules()}
    assert set(MAY_IMPORT) <= inside
    assert {*BOTTOM, *UP_TO_SERVING, *EVERYTHING} <= set(MAY_IMPORT)
    assert {layer.partition(".")[0] for layer in MAY_IMPORT} == set(PACKAGES)
    assert set(LATER) <= set(PACKAGES)


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("protocol.peer", "import transom.session", "protocol may not import session"),
        ("protocol.peer", "from transom import session", "protocol may not import session"),
        ("protocol.peer", "from .. import session", "protocol may not import session"),
        ("protocol.__init__", "from ..session import Session", "protocol may not import session"),
        ("protocol.peer", "import asyncio", "protocol may not use asyncio"),
        ("errors", "def f():\n    from transom.types import Tool", "errors may not import types"),
        ("view.app", "from transom.host.views.bridge import Bridge", "view may not import host"),
        ("view.app", "from transom import Bridge", "view may not import host"),
        ("host.views.bridge", "from transom.view.app import App", "host may not import view"),
        ("server.views", "from transom.host.host import Host", "server may not import host"),
        ("web.asgi", "from transom.gateway.proxy import run", "web may not import gateway"),
        ("host.host", "import transom.cli", "host may not import cli"),
        ("view.tools", "import mcp", "view may not load mcp at import time"),
        ("view.tools", "def f():\n    import mcp.types", "view may not load mcp at all"),
        ("schema", "try:\n    import pydantic\nexcept ImportError:\n    pass", "at import time"),
        ("host.tools.surface", "from starlette import types", "host may not load starlette"),
        ("web.csp", "from mcp import types", "web may not load mcp"),
        ("server.views", "from fastmcp import FastMCP", "server may not load fastmcp"),
        ("server.views", "from transom.server.fastmcp import FastGate", "inside a function only"),
        ("server.views", "from transom.server import fastmcp", "inside a function only"),
        ("novelty.thing", "", "has no place in the layers"),
        (
            "session",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from transom.view import app",
            "session may not import view",
        ),
    ],
)
def test_an_import_that_goes_up_is_found(module: str, source: str, complaint: str):
    [found] = complaints(source, f"transom.{module}")
    assert complaint in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("protocol.peer", "import json\nfrom transom.protocol.wire import decode\nimport msgspec"),
        ("protocol.__init__", "from .wire import decode\nfrom . import peer"),
        ("schema", "def f():\n    import pydantic"),
        ("schema", "if TYPE_CHECKING:\n    import pydantic"),
        ("host.views.renderers", "from transom.view.app import App"),
        ("host.views.bridge", "from transom.types import ToolResult\nimport mcp_types"),
        ("server.fastmcp", "from fastmcp import FastMCP"),
        ("server.views", "def f():\n    from transom.server import fastmcp"),
        ("cli.main", "import rich\nfrom transom.gateway import proxy"),
    ],
)
def test_an_import_that_goes_down_is_left_alone(module: str, source: str):
    assert complaints(source, f"transom.{module}") == []
