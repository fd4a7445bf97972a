"""From `view` down the standard library and msgspec are enough, in a browser too."""

import json
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import transom
import transom.protocol
import transom.schema
import transom.view

pytestmark = pytest.mark.processes

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SMALL_APP = HERE / "small_app.py"

BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in ("transom", "msgspec"):
            return None
        raise ImportError(f"{name} is neither of the standard library nor msgspec")

sys.meta_path.insert(0, Block())
before = set(sys.modules)
"""


def modules() -> list[str]:
    """Every module that a View may need."""
    found = [
        f"transom.{name}" for name in ("errors", "types", "events", "channel", "queues", "results")
    ]
    for package in (transom.protocol, transom.schema, transom.view):
        found.append(package.__name__)
        inside = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        found += [module.name for module in inside]
    return ["transom", "transom.session", *found]


def bare_python(code: str) -> str:
    """What `code` prints in a Python that has nothing but the standard library and msgspec."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + code],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_small_app(happened: dict[str, Any]) -> None:
    """What small_app.py does is the same everywhere."""
    assert happened["names"] == ["find", "pay", "play"]
    assert happened["schema"]["required"] == ["city"]
    assert happened["schema"]["properties"]["city"]["minLength"] == 2
    assert happened["found"]["structuredContent"] == {"city": "Delft", "population": 3}
    assert happened["wrong"]["isError"] is True
    assert "city" in happened["wrong"]["content"][0]["text"]
    assert happened["paid"]["content"][0]["text"] == "5 eur"
    assert happened["refused"]["content"][0]["text"] == "That is too much"
    assert happened["no_track"]["isError"] is True
    assert happened["played"]["content"][0]["text"] == "playing two"
    assert happened["steps"] == [1]
    assert happened["theme"] == "dark"
    assert "needs the package jsonschema" in happened["documents"]


def test_the_list_of_modules_is_not_empty() -> None:
    assert {"transom.view.app", "transom.protocol.wire", "transom.schema"} <= set(modules())


def test_every_module_of_a_view_is_imported_without_third_party_packages_but_msgspec() -> None:
    imports = "\n".join(f"import {name}" for name in modules())
    loaded = bare_python(f"{imports}\nprint(*set(sys.modules) - before)").split()
    packages = {name.partition(".")[0] for name in loaded}
    assert packages - sys.stdlib_module_names == {"transom", "msgspec"}


def test_what_is_blocked_is_really_blocked() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + "import pydantic"], capture_output=True, check=False
    )
    assert b"neither of the standard library nor msgspec" in done.stderr


def test_a_small_app_works_without_third_party_packages_but_msgspec() -> None:
    code = f"import runpy; runpy.run_path({str(SMALL_APP)!r}, run_name='__main__')"
    check_small_app(json.loads(bare_python(code)))


@pytest.mark.nightly
@pytest.mark.timeout(180)  # WebAssembly is compiled at each start
def test_the_same_app_works_in_pyodide_and_an_app_finds_its_parent_window() -> None:
    node = shutil.which("node")
    assert node is not None, "this test needs Node 20 or newer on the PATH"
    wheels = list((ROOT / ".venv" / "pyodide").glob("msgspec-*.whl"))
    assert len(wheels) == 1, "run make setup"
    done = subprocess.run(
        [node, HERE / "pyodide.mjs", wheels[0], ROOT / "src", SMALL_APP],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    happened = json.loads(done.stdout.splitlines()[-1])
    assert happened["platform"] == "emscripten"
    check_small_app(happened["small"])
    bridge = happened["bridge"]
    assert bridge["theme"] == "dark"
    assert bridge["info"] == {"name": "in-a-page", "version": "1"}
    assert [tool["name"] for tool in bridge["tools"]] == ["shout"]
    assert bridge["good"]["content"][0]["text"] == "H\u00c9 \U0001f600!"
    assert bridge["bad"]["isError"] is True
