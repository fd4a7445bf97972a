"""`transom`, run in this process where that will do, since starting Python takes long."""

import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import NamedTuple

import pytest

from transom.cli.main import run

# What a shell starts in the background ignores SIGINT, and so do its children: a process that is to
# be interrupted needs Python's own handler again.
_MAIN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
_MAIN += "from transom.cli.main import main; main()"
TRANSOM = [sys.executable, "-c", _MAIN]
"""`transom` as a command, for tests that need a process of it."""


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
