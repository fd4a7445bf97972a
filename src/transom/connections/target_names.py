"""How a server is named on a command line, and in a test: the text becomes a target.

It is a Python file, `module:server`, a URL, or one command line. Everything but a URL becomes a
command: a server runs in a process of its own, so that one which blocks, prints or dies does so
there. Python files and modules are run by `transom.cli.serve`.
"""

# ruff: noqa: PLC0415 - a gateway loads this before it starts its server, so it is quick to load

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from transom.errors import UsageError

_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>[A-Za-z_][\w.]*))?")
_INTERPRETER = re.compile(r"(?:python[\d.]*|py|node|bun|deno|tsx|ruby|sh|bash)(?:\.exe)?")
_SCRIPT = re.compile(r"[^-].*\.(?:py|js|mjs|cjs|ts|mts|rb|sh)")


def parse_target(text: str) -> list[str] | str:
    """The command that starts the server, or its URL; a UsageError says what was tried."""
    text = text.strip()
    if not text:
        raise UsageError(
            "no server is named: give a Python file, module:server, a URL or a command"
        )
    if text.startswith(("http://", "https://")):
        from transom.connections.urls import is_http_url

        if not is_http_url(text):
            raise UsageError(f"{text} is not a URL: it names no host")
        return text
    if found := _FILE.fullmatch(text):
        path = Path(found["path"])
        if path.is_file():
            return _served(text)
        if " " not in text:
            raise _no_file(path)
    if _MODULE.fullmatch(text):
        return _served(text)
    return _command(text)


def check_script(command: Sequence[str]) -> None:
    """Raise a UsageError if a command runs a script that does not exist: `python gone.py`."""
    program, script = [*command, "", ""][:2]
    runs = _INTERPRETER.fullmatch(Path(program).name) and _SCRIPT.fullmatch(script)
    if runs and not Path(script).expanduser().is_file():
        raise _no_file(Path(script))


def _no_file(path: Path) -> UsageError:
    return UsageError(f"there is no file {path}")


def _served(text: str) -> list[str]:
    return [sys.executable, "-m", "transom.cli.serve", text]


def _command(text: str) -> list[str]:
    import shlex
    import shutil

    try:
        argv = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a command line: {error}") from error
    if shutil.which(argv[0]) is None:
        hint = ""
        if Path(argv[0]).is_file():
            runner = {".js": "node", ".mjs": "node", ".ts": "npx tsx"}.get(Path(argv[0]).suffix)
            command = f"{runner} {text}" if runner else f"./{text}"
            hint = f"; did you mean {command!r}?"
        raise UsageError(
            f"{argv[0]!r} is neither a Python file, module:server, a URL nor a command that can "
            f"be run{hint}"
        )
    return argv
