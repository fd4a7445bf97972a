"""`transom demo`: the demo among the examples, which are part of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transom.cli.commands import DemoOptions


def run(options: DemoOptions) -> int:
    """Run the demo; the exit code."""
    folder = examples()
    if options.examples:
        sys.stdout.write(f"{folder}\n")
        return 0
    return subprocess.run([sys.executable, str(folder / "demo.py")], check=False).returncode


def examples() -> Path:
    """The folder with the examples: in the installed package, or in a checkout beside `src`."""
    package = Path(__file__).parents[1]
    installed = package / "examples"
    return installed if installed.is_dir() else package.parents[1] / "examples"
