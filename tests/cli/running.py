"""`transom` run in this process: starting Python for each line would take longer than the rest."""

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import NamedTuple

import pytest

from transom.cli.main import run


class Ran(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def transom(*words: str) -> Ran:
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COLUMNS", "100")
        patch.setenv("NO_COLOR", "1")
        code = run(words)
    return Ran(code, out.getvalue(), err.getvalue())
