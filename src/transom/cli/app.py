"""`transom` as Typer has it: the commands and what they share.

Only the command that was asked for is loaded: it should be there soon.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from transom.cli.commands import Commands
from transom.version import __version__

__all__ = ["make_app"]

_COMMANDS = {
    "gateway": ("transom.cli.gateway", "gateway"),
    "gateway install": ("transom.cli.install", "install"),
    "open": ("transom.cli.open", "open_view"),
    "check": ("transom.cli.check", "check"),
}


def make_app(words: list[str]) -> typer.Typer:
    """The commands that these words may mean: one of them, or all when that cannot be told."""
    app = typer.Typer(
        name="transom",
        cls=Commands,
        help="MCP Apps for Python: brings Views, and the tools inside them, to every MCP client.",
        epilog="Start with `transom gateway --help` to use MCP Apps, or `transom open --help` to "
        "see one.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
    )
    app.callback()(_common)
    meant = (" ".join(words[:count]) for count in (2, 1))
    wanted = next(([name] for name in meant if name in _COMMANDS), list(_COMMANDS))
    for name in wanted:
        app.command(name, no_args_is_help=True)(_load(_COMMANDS[name]))
    return app


def _load(place: tuple[str, str]) -> Any:
    module, name = place
    return getattr(import_module(module), name)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"transom {__version__}")
        raise typer.Exit


def _common(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version.",
            metavar="",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """What every command has in common."""
