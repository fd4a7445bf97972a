"""What `import transom` gives and what it leaves alone."""

import importlib.metadata
import inspect
import re
import subprocess
import sys
import tomllib
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType

import pytest

import transom
import transom.conform
import transom.connections
import transom.drive
import transom.gateway
import transom.host
import transom.testing
import transom.view
import transom.web

ROOT = Path(__file__).parents[1]
PUBLIC = [name for name in transom.__all__ if name != "__version__"]


def modules_loaded_by(code: str) -> set[str]:
    """Top-level modules that `code` adds to a bare interpreter."""
    script = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=50
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def third_party(modules: set[str]) -> set[str]:
    return modules - sys.stdlib_module_names - {"transom"}


@pytest.mark.processes
def test_importing_transom_loads_no_third_party_package():
    assert third_party(modules_loaded_by("import transom")) == set()


@pytest.mark.processes
def test_importing_transom_loads_nothing_slow_of_the_standard_library():
    assert modules_loaded_by("import transom") & {"asyncio", "inspect", "re", "typing"} == set()


@pytest.mark.processes
def test_importing_transom_loads_nothing_but_its_version_and_how_to_load_the_rest():
    script = "import sys, transom; print([name for name in sys.modules if 'transom.' in name])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert done.stdout.strip() == b"['transom.lazy', 'transom.version']"


@pytest.mark.processes
@pytest.mark.parametrize("name", ["App", "Channel", "ProtocolError", "Tool"])
def test_what_a_view_needs_loads_no_more_than_msgspec_does(name: str):
    msgspec = third_party(modules_loaded_by("import msgspec"))
    assert third_party(modules_loaded_by(f"from transom import {name}")) <= msgspec


@pytest.mark.processes
def test_a_tool_with_a_plain_json_schema_loads_no_validator_before_it_is_called():
    """It takes as long to load as everything else that a View needs."""
    loaded = modules_loaded_by(
        "import transom\n"
        "schema = {'type': 'object', 'properties': {'text': {'type': 'string'}}}\n"
        "transom.App('a', '1').register_tool('echo', print, input_schema=schema)"
    )
    assert "msgspec" in loaded
    assert "jsonschema_rs" not in loaded


@pytest.mark.processes
@pytest.mark.parametrize(
    "module",
    ["host.host", "gateway.client_views", "check.runner", "web.local.headless", "cli.open"],
)
def test_nothing_waits_for_the_sdk_that_does_not_use_it(module: str):
    """Its models take a second to build."""
    assert modules_loaded_by(f"import transom.{module}") & {"mcp", "mcp_types", "pydantic"} == set()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_can_be_imported_from_transom(name: str):
    value = getattr(transom, name)
    assert value.__name__ == name
    assert value.__module__.startswith("transom.")


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_says_what_it_is_for(name: str):
    assert inspect.getdoc(getattr(transom, name))


def test_public_names_are_listed_before_they_are_loaded():
    assert set(transom.__all__) <= set(dir(transom))


LAZY = [
    transom,
    *(transom.conform, transom.connections, transom.drive, transom.gateway, transom.host),
    *(transom.testing, transom.view, transom.web),
]


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_the_lazy_names_and_the_typed_names_are_the_same(package: ModuleType):
    source = Path(inspect.getsourcefile(package) or "").read_text()
    typed = re.findall(r"^    from ([\w.]+) import \(?([\w,\s]+)\)?$", source, re.MULTILINE)
    lazy = dict(
        re.findall(
            r'^            "([\w.]+)": "([\w ]+)",(?:  # noqa: E501)?$', source, re.MULTILINE
        )
    )
    assert {home: re.findall(r"\w+", names) for home, names in typed} == {
        resolve_name(home, package.__name__): names.split() for home, names in lazy.items()
    }
    listed = [name for names in lazy.values() for name in names.split()]
    assert sorted(listed) == sorted(set(package.__all__) - {"__version__"})
    assert all(getattr(package, name) is not None for name in listed)


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="module 'transom' has no attribute 'Transom'"):
        _ = transom.Transom


def test_the_installed_version_is_the_one_in_the_code():
    assert importlib.metadata.version("transom") == transom.__version__


def test_the_changelog_has_a_section_for_this_version():
    assert f"\n## {transom.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_pinned_python_package_is_a_name_and_a_version_only():
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    strange = [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.!+]+", pin)]
    assert strange == []


def test_every_declared_python_package_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    declared = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["headless"],
        *groups["build"],
        *(entry for entry in groups["dev"] if isinstance(entry, str)),
    ]
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    names = {re.split(r"[\[<>=]", entry)[0].strip() for entry in declared}
    assert names - pinned == set()


@pytest.mark.parametrize("folder", [".", "tests/servers", "tests/conformance", "tests/inspectors"])
def test_the_npm_lock_files_name_no_address(folder: str):
    lock = (ROOT / folder / "package-lock.json").read_text()
    assert '"integrity"' in lock
    assert '"resolved"' not in lock
    assert "omit-lockfile-registry-resolved=true" in (ROOT / folder / ".npmrc").read_text()
