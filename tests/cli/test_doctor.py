"""`transom doctor` from the command line: what is printed, where, and the exit code."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.running import transom
from tests.docs.console import FILES, prints
from transom.check.causes import Cause, cause_texts
from transom.check.doctor import Diagnosis
from transom.check.host_profiles import host_profiles
from transom.check.positions import Position
from transom.cli.doctor import as_json

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "doctor.md").read_text()


@pytest.mark.nightly
@pytest.mark.processes
def test_the_first_line_is_the_answer_as_the_page_shows_it(tmp_path, monkeypatch):
    shutil.copytree(FILES / "doctor.md", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    typed, shown = re.findall(r"```console\n\$ ([^\n]+)\n(.*?)```", PAGE, re.DOTALL)[0]
    ran = transom(*typed.partition("#")[0].split()[1:], "--timeout", "60")
    assert ran.returncode == 1, ran
    assert prints(shown, ran.stdout), ran.stdout


def test_a_diagnosis_for_machines_has_everything_but_the_page():
    cause = Cause(id="page-error", text="An error.", fix="Correct it.", line=3, column=5)
    found = Diagnosis(
        tool="show", uri="ui://a/b", host="plain", causes=[cause], notes=[], page="<html>"
    )
    place = Position(3, 5, "draw()", "/here/page.html")
    assert json.loads(as_json(found, {"page-error": place})) == {
        "tool": "show",
        "uri": "ui://a/b",
        "host": "plain",
        "notes": [],
        "causes": [
            {
                "id": "page-error",
                "text": "An error.",
                "fix": "Correct it.",
                "line": 3,
                "column": 5,
                "place": {"line": 3, "column": 5, "text": "draw()", "file": "/here/page.html"},
            }
        ],
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.py"], "there is no file nothing.py"),
        (["\x1b[2J\u202enothing.py"], "there is no file [2Jnothing.py"),
        (["orders.py", "--host", "clod"], "there is no host profile 'clod'; there are: plain,"),
        (["orders.py", "show", "[1]"], "ARGS must be a JSON object"),
    ],
)
def test_what_cannot_be_started_is_said_with_exit_code_2(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("orders.py").touch()
    ran = transom("doctor", *words)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert ran.stderr.removesuffix("\n").isprintable()
    assert not ran.stdout


def test_the_page_names_every_cause_and_every_host_with_its_sources():
    for name in cause_texts().keys() - {"csp"}:
        assert f"| `{name}` |" in PAGE
    for profile in host_profiles().values():
        assert f"| `{profile.name}` | {profile.title} |" in PAGE
        for source in profile.sources.values():
            assert source.url in PAGE
