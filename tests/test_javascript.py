"""The scripts for browsers: their sources in `js`, what is built of them, and the npm package."""

import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from transom.version import __version__

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[1]
JS = ROOT / "js"
STATIC = ROOT / "src" / "transom" / "web" / "static"
PACKAGE = json.loads((JS / "package.json").read_text())


def run(script: str, *arguments: str) -> str:
    done = subprocess.run(
        ["node", str(JS / script), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_that_need_no_page_pass():
    assert "# fail 0" in run("test.mjs", "--test-reporter=tap")


def test_what_is_built_is_what_the_sources_say():
    assert run("build.mjs", "--check") == ""


THEIRS = {"_meta", "_def", "_zod"}


def test_members_for_our_own_modules_have_short_names_in_what_is_built():
    """They begin with an underscore in the sources. Others are the protocol's, and zod's."""
    for file in STATIC.glob("*.js"):
        assert set(re.findall(r"[.,{ ](_[a-z]\w+)", file.read_text())) <= THEIRS, file.name
    for file in STATIC.glob("*.d.ts"):
        members = re.findall(r"^\s*(?:readonly )?(_\w+)\??:", file.read_text(), re.MULTILINE)
        assert set(members) <= THEIRS, file.name


def test_no_module_is_longer_than_six_hundred_lines():
    lines = {file.name: len(file.read_text().splitlines()) for file in (JS / "src").rglob("*.*s")}
    assert {name: count for name, count in lines.items() if count > 600} == {}


def test_the_package_has_the_version_of_transom():
    assert PACKAGE["version"] == __version__


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is in the packed file."""
    file = run("pack.mjs", str(tmp_path_factory.mktemp("npm"))).strip()
    with tarfile.open(file) as archive:
        files = [member for member in archive.getmembers() if member.isfile()]
        texts = {member.name: archive.extractfile(member) for member in files}
        return {name: text.read().decode() for name, text in texts.items() if text is not None}


def test_what_the_package_exports_is_in_it_with_types(packed: dict[str, str]):
    for exported in PACKAGE["exports"].values():
        for file in exported.values():
            assert f"package/{file.removeprefix('./')}" in packed
    assert {"package/README.md", "package/LICENSE"} < set(packed)


def test_the_package_needs_nothing_but_a_react_of_the_page(packed: dict[str, str]):
    assert "dependencies" not in PACKAGE
    assert PACKAGE["peerDependenciesMeta"] == {"react": {"optional": True}}
    assert {name for name, text in packed.items() if 'from"react"' in text} == {
        "package/dist/react.js"
    }
