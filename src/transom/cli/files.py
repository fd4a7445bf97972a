"""`transom js` and `transom demo`: files that are part of the package.

`js` copies those for the browser into a project that has a bundler of its own; `demo` runs one of
the examples.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from transom.cli import print_failure
from transom.cli.options import DemoOptions, JsOptions
from transom.errors import UsageError
from transom.version import __version__

FILES: Final = (
    "transom.js",
    "webmcp.js",
    "react.js",
    "transom.d.ts",
    "webmcp.d.ts",
    "react.d.ts",
    # what these import
    "zod.js",
    "app.d.ts",
    "errors.d.ts",
    "standard_schema.d.ts",
    "types.d.ts",
)
_MARK: Final = "// Copied by transom js"


def run(options: JsOptions | DemoOptions) -> int:
    """Copy the files, or run the demo; the exit code."""
    if isinstance(options, DemoOptions):
        return _run_demo(options)
    try:
        for file in copy_files(options.out):
            sys.stdout.write(f"{file}\n")
    except (UsageError, OSError) as error:
        print_failure("js", error)
        return 1
    return 0


def copy_files(folder: Path) -> list[Path]:
    """Copy them into a folder, which is made if it is not there. Earlier copies are replaced.

    Raises:
        UsageError: a file of that name is there, and is not a copy of ours. Nothing is copied.
    """
    targets = [folder / name for name in FILES]
    mark = _MARK.encode()
    for target in targets:
        if target.exists() and not target.read_bytes().startswith(mark):
            raise UsageError(
                f"{target} exists and was not written by transom js. Choose another folder."
            )
    folder.mkdir(parents=True, exist_ok=True)
    source = files("transom").joinpath("web", "static")
    note = f"{_MARK} of Transom {__version__}. Run it again to replace this file.\n"
    for target in targets:
        text = source.joinpath(target.name).read_text(encoding="utf-8")
        target.write_text(note + text, encoding="utf-8")
    return targets


def _run_demo(options: DemoOptions) -> int:
    folder = examples()
    if options.examples:
        sys.stdout.write(f"{folder}\n")
        return 0
    if not options.browser and find_spec("playwright") is None:
        sys.stderr.write(
            "transom demo: it needs Playwright: pip install 'transom[headless]', or use --browser\n"
        )
        return 1
    demo = [sys.executable, str(folder / "demo.py"), *(["--browser"] if options.browser else [])]
    return subprocess.run(demo, check=False).returncode


def examples() -> Path:
    """The folder with the examples: in the installed package, or in a checkout beside `src`."""
    package = Path(__file__).parents[1]
    installed = package / "examples"
    return installed if installed.is_dir() else package.parents[1] / "examples"
