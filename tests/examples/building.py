"""Builds an example that has a bundler, once for all tests until something in it changes."""

import fcntl
import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from tests.examples.driving import EXAMPLES
from transom.cli.files import FILES

ROOT = EXAMPLES.parent
TOOLS = ROOT / "node_modules" / ".bin"
TSC = ROOT / "node_modules" / "typescript-7" / "bin" / "tsc"
STATIC = ROOT / "src" / "transom" / "web" / "static"
MADE = {"__pycache__", "dist", "node_modules", "transom"}
"""What someone who tried the example has left in its folder."""


def build(example: str) -> Path:
    """The folder of an example, built as its README says. It has the packages of this checkout."""
    source = EXAMPLES / example
    own = [file for file in source.rglob("*") if MADE.isdisjoint(file.relative_to(source).parts)]
    key = sha256((ROOT / "package-lock.json").read_bytes())
    for file in [*sorted(own), *(STATIC / name for name in FILES)]:
        if file.is_file():
            key.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    built = folder / f"{example}-{key.hexdigest()[:16]}"
    with (folder / f"{example}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker builds, the others wait for it
        if not built.exists():
            for earlier in folder.glob(f"{example}-*"):
                shutil.rmtree(earlier)
            _build(source, built)
    return built


def _build(source: Path, built: Path) -> None:
    work = built.with_name(f"{built.name}-unfinished")
    shutil.copytree(source, work, ignore=shutil.ignore_patterns(*MADE))
    copy = [sys.executable, "-m", "transom", *_script(source, "transom").split()[1:]]
    assert _script(source, "build") == "tsc && vite build"
    for command in (copy, [TSC], [TOOLS / "vite", "build"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=work)
        assert done.returncode == 0, done.stdout + done.stderr
    work.rename(built)


def _script(source: Path, name: str) -> str:
    return json.loads((source / "package.json").read_text())["scripts"][name]
