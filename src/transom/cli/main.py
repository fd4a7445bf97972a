"""`transom`: the command and what all its parts share."""

from __future__ import annotations

from typing import Annotated

import typer

from transom import __version__
from transom.cli import check, gateway
from transom.cli import open as opening

__all__ = ["app"]

app = typer.Typer(
    name="transom",
    help="MCP Apps for Python: Views that offer tools, and what it takes to check them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"transom {__version__}")
        raise typer.Exit


@app.callback()
def main(
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


app.command("check", no_args_is_help=True)(check.check)
app.command("open", no_args_is_help=True)(opening.open_view)
app.command("gateway", no_args_is_help=True)(gateway.gateway)
