"""`transom`: the command.

A client waits for its gateway as it would for the server alone. So the command lines that clients
are configured with are read without Typer, which takes longer to load than some servers to start.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from transom.cli.quick import quick_options
from transom.version import __version__

if TYPE_CHECKING:
    import typer

__all__ = ["main", "make_app"]


def main() -> None:
    """Run the command line of this process."""
    words = sys.argv[1:]
    if words == ["--version"]:  # true even when nothing else works
        sys.stdout.write(f"transom {__version__}\n")
        return
    options = quick_options(words)
    if options is not None:
        try:
            sys.exit(import_module("transom.cli.run_gateway").run_gateway(options))
        except KeyboardInterrupt:  # nothing was started yet
            sys.exit(130)
    make_app(words)(prog_name="transom")


def make_app(words: list[str]) -> typer.Typer:
    """The commands that these words may mean: one of them, or all when that cannot be told."""
    return import_module("transom.cli.app").make_app(words)
