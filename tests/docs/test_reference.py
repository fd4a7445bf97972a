"""docs/api.md and docs/cli.md say what the code says, and miss no public name."""

import ast
import inspect
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet
from scripts.source import public_names, tree

import transom
from transom.cli.options import COMMANDS
from transom.events import Event

ROOT = Path(__file__).parents[2]
API = (ROOT / "docs" / "api.md").read_text()
CLI = (ROOT / "docs" / "cli.md").read_text()
MODULES = ("channel", "check", "errors", "gateway", "server", "types", "web")
PLACES = ["transom", *(f"transom.{name}" for name in MODULES)]
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


ENTRIES = re.findall(r"^### `(\w+)`$(.*?)(?=^#{2,3} |\Z)", API, re.MULTILINE | re.DOTALL)


def entry(name: str, text: str) -> ParameterSet:
    framework = "\nfrom transom.agents." in text  # to be imported, which is the slow part
    return pytest.param(name, text, id=name, marks=pytest.mark.load if framework else ())


@pytest.mark.parametrize(("name", "text"), [entry(*each) for each in ENTRIES])
def test_every_type_in_it_can_be_imported_from_a_public_place(name: str, text: str) -> None:
    place = re.search(rf"^from ([\w.]+) import {name}$", text, re.MULTILINE)
    assert place is not None
    shown = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    shown += re.findall(r"^\| `\w+` \| `([^`]+)` \|", text, re.MULTILINE)  # fields, attributes
    used = {word for part in shown for word in re.findall(r"(?<![\w.\"'])[A-Z]\w+", part)}
    value = getattr(import_module(place[1]), name)
    homes = [each.__module__ for each in getattr(value, "__mro__", ())] or [
        getattr(value, "__module__", "") if inspect.isfunction(value) else home_of(name, place[1])
    ]
    ours = [home for home in homes if home.startswith("transom")]
    internal = {
        word
        for word in used - HEADINGS
        if any(home_of(word, home).startswith("transom") for home in ours)
        and not any(isinstance(vars(sys.modules[home]).get(word), TypeVar) for home in ours)
    }
    assert internal == set()


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
