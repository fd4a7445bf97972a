"""A Python file that a user names is a module like any other, whatever it is called."""

import json
import sys
from pathlib import Path

import pytest

from transom.errors import UsageError
from transom.python_files import load_python_file

FILE = """\
from __future__ import annotations
from dataclasses import KW_ONLY, dataclass
from beside_of_it import WORD

@dataclass
class Made:
    _: KW_ONLY
    word: str = WORD
"""


@pytest.mark.parametrize("name", ["my_models", "json"])
def test_it_may_have_dataclasses_and_modules_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    (tmp_path / "beside_of_it.py").write_text("WORD = 'found'\n")
    (tmp_path / f"{name}.py").write_text(FILE)
    assert load_python_file(tmp_path / f"{name}.py").Made().word == "found"
    assert sys.modules["json"] is json


def test_what_is_no_python_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"x\.txt cannot be loaded as Python"):
        load_python_file(tmp_path / "x.txt")
