"""`transom new`: each project is checked, and its own test passes."""

import asyncio
import json
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.cli.running import transom
from tests.testing.test_plugin import PLUGINS
from transom.check import Calling, Options, check
from transom.cli.author_options import Template
from transom.cli.new import write_project
from transom.cli.options import find_command
from transom.errors import UsageError

ROOT = Path(__file__).parents[2]
FILES = {".gitignore", "README.md", "page.html", "pyproject.toml", "server.py", "test_server.py"}

KNOWN = (["pytest"], ["cd", "page"], ["npm", "install"], ["playwright", "install", "chromium"])
"""Commands of others."""


async def findings(project: Path) -> list[Any]:
    server = runpy.run_path(str(project / "server.py"))["server"]
    report = await check("new", server, options=Options(calling=Calling(all=True)))
    assert report.failure is None
    return list(report.findings)


@pytest.mark.parametrize("template", ["plain", "react", "fastmcp"])
async def test_a_new_project_keeps_every_rule(template: Template, tmp_path: Path):
    project = tmp_path / "shopping-list"
    written = write_project(project, template)
    assert {file.name for file in written} >= FILES
    assert await findings(project) == []
    texts = "".join(file.read_text() for file in written if "transom/" not in str(file))
    assert "my-view" not in texts
    assert "Shopping list" in texts


@pytest.mark.parametrize("template", ["plain", "react", "fastmcp"])
def test_a_new_project_lists_what_its_server_imports(template: Template, tmp_path: Path):
    project = tmp_path / "shopping"
    write_project(project, template)
    about = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    source = (project / "server.py").read_text()
    imported = set(re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE))
    listed = {Requirement(each).name for each in about["dependencies"]}
    assert listed == imported - sys.stdlib_module_names


COMMAND = re.compile(r"^\$ ([^#\n]+)|`((?:transom|pip|npm|playwright) [^`]+)`", re.MULTILINE)


@pytest.mark.parametrize("template", ["plain", "react", "fastmcp"])
def test_every_command_in_the_readme_of_a_new_project_can_be_run(
    template: Template, tmp_path: Path
):
    project = tmp_path / "shopping"
    write_project(project, template)
    found = [
        shlex.split(line or text)
        for line, text in COMMAND.findall((project / "README.md").read_text())
    ]
    programs = [words[0] for words in found]
    assert programs.count("transom") >= 4
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for program, *words in found:
        if program == "transom":
            command, rest = find_command([{"CLIENT": "cursor"}.get(each, each) for each in words])
            command.read(rest)
            assert command.name != "gateway install" or "--client" in rest
        elif program == "npm" and words[0] == "run":
            scripts = json.loads((project / "page" / "package.json").read_text())["scripts"]
            assert words[1] in scripts
        elif program == "pip":
            wanted = Requirement(" ".join(words[1:]))
            assert wanted.extras <= set(extras["optional-dependencies"])
            assert wanted.url == ROOT.as_uri()  # Transom is on no index
            project_file = tomllib.loads((project / "pyproject.toml").read_text())
            assert str(wanted) in [
                str(Requirement(each)) for each in project_file["dependency-groups"]["dev"]
            ]
        else:
            assert [program, *words] in KNOWN


@pytest.mark.nightly
@pytest.mark.processes
def test_the_commands_in_the_readme_of_a_new_project_do_what_it_says(tmp_path: Path):
    project = tmp_path / "shopping"
    write_project(project, "plain")
    programs = Path(sys.executable).parent
    found = COMMAND.findall((project / "README.md").read_text())
    commands = [shlex.split(line) for line, _ in found if line]
    assert [words[0] for words in commands] == ["pip", "transom", "transom", "pytest"]
    commands[0] += ["--dry-run", "--no-deps", "--no-build-isolation"]  # all else is here
    del commands[1]  # transom dev, which does not end
    for program, *words in commands:
        subprocess.run([programs / program, *words], cwd=project, check=True)


def run_its_tests(pytester: pytest.Pytester, project: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        done = pytester.runpytest_inprocess(*PLUGINS, "-p", "no:asyncio", str(project))
        done.assert_outcomes(passed=2)


@pytest.mark.processes
@pytest.mark.parametrize("template", ["plain", pytest.param("fastmcp", marks=pytest.mark.nightly)])
def test_the_test_of_a_new_project_passes(template: Template, pytester: pytest.Pytester):
    project = pytester.path / "shopping"
    write_project(project, template)
    run_its_tests(pytester, project)


def build(page: Path) -> None:
    """As `npm run build` does, with the packages of this checkout."""
    for program in ("typescript-7/bin/tsc", "vite/bin/vite.js build"):
        words = ["node", *f"node_modules/{program}".split()]
        subprocess.run(words, cwd=page, check=True, capture_output=True)


@pytest.mark.nightly
@pytest.mark.processes
def test_the_page_of_react_is_built_with_npm_and_passes(pytester: pytest.Pytester):
    project = pytester.path / "shopping"
    write_project(project, "react")
    before = (project / "page.html").read_text()
    (project / "page" / "node_modules").symlink_to(ROOT / "node_modules")
    build(project / "page")
    assert (project / "page.html").read_text() != before
    assert asyncio.run(findings(project)) == []
    run_its_tests(pytester, project)


def test_what_is_there_is_never_overwritten(tmp_path: Path):
    project = tmp_path / "mine"
    project.mkdir()
    (project / "notes.txt").write_text("dear to me")
    file = tmp_path / "file"
    file.touch()
    for place in (project, file):
        with pytest.raises(UsageError, match="is there already"):
            write_project(place, "plain")
    assert [each.name for each in project.iterdir()] == ["notes.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert write_project(empty, "plain")


@pytest.mark.parametrize("name", ["", "..", "My-View", "a/../b!", "1x", "x-", "a b", "é", "x" * 61])
def test_a_name_is_checked_before_anything_is_written(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = transom("new", "--", name)
    assert ran.returncode == 2
    assert "is no name for a project" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_wrote_and_what_to_do_next(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = transom("new", "shopping", "--template", "fastmcp")
    assert ran.returncode == 0
    assert "shopping/server.py\n" in ran.stdout
    assert ran.stdout.endswith("\ncd shopping\ntransom dev server.py\n")
