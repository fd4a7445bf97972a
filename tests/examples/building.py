"""Builds an example that has a bundler, once for all tests until something in it changes."""

import fcntl
import json
import shutil
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

from tests.examples.driving import EXAMPLES
from transom.version import __version__

ROOT = EXAMPLES.parent
TOOLS = ROOT / "node_modules" / ".bin"
TSC = ROOT / "node_modules" / "typescript-7" / "bin" / "tsc"
STATIC = ROOT / "src" / "transom" / "web" / "static"
PACKAGE = ROOT / "js"
MADE = {"__pycache__", "dist", "node_modules"}
"""What someone who tried the example has left in its folder."""


def build(example: str) -> Path:
    """The folder of an example, built as its README says. It has the packages of this checkout."""
    source = EXAMPLES / example
    own = [file for file in source.rglob("*") if MADE.isdisjoint(file.relative_to(source).parts)]
    key = sha256((ROOT / "package-lock.json").read_bytes())
    packed = [PACKAGE / "package.json", PACKAGE / "pack.mjs", *sorted(STATIC.iterdir())]
    for file in [*sorted(own), *packed]:
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
    package = json.loads((source / "package.json").read_text())
    assert package["scripts"]["build"] == "tsc && vite build"
    file = Path(_run(["node", PACKAGE / "pack.mjs"], work).strip())
    assert package["dependencies"]["transom"] == f"file:../../build/npm/{file.name}"
    assert file.name == f"transom-{__version__}.tgz"
    # As npm installs it; the other packages are those of this checkout.
    with tarfile.open(file) as archive:
        archive.extractall(work / "node_modules", filter="data")
    (work / "node_modules" / "package").rename(work / "node_modules" / "transom")
    _run([TSC], work)
    _run([TOOLS / "vite", "build"], work)
    work.rename(built)


def _run(command: list[str | Path], folder: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
