"""`transom gateway install`: parse, print or write."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transom.errors import UsageError

__all__ = ["install"]


class ClientName(StrEnum):
    """The clients whose configuration is known."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CURSOR = "cursor"
    GEMINI = "gemini"
    VSCODE = "vscode"
    ZED = "zed"


def install(
    client: Annotated[
        ClientName,
        typer.Option(
            "--client",
            metavar="|".join(ClientName),
            help="The MCP client that is to run the gateway.",
            show_default=False,
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND…]", help="The server's command line.", show_default=False
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="A server that is reached by HTTP.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Servers of a file with `mcpServers`."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="What the client calls it.", show_default=False
        ),
    ] = None,
    project: Annotated[
        bool,
        typer.Option(
            "--project/--user", help="The configuration of this folder, or yours (the default)."
        ),
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Put it into the file; a copy of the file is kept.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an entry of that name that differs.")
    ] = False,
) -> None:
    """Show what to put into a client's configuration so that it runs the gateway, or put it there.

    The snippet is printed to standard output; which file it belongs in, and what to do then, to
    standard error. With --write it is merged into that file and nothing else in it is changed.

    Exit codes: 0 printed or written, 1 the file could not be changed (the snippet is printed
    instead), 2 the command line cannot be used.
    """
    # Loaded here: `transom --help` has no need of it.
    from transom.gateway.install import Scope, make_plan  # noqa: PLC0415

    try:
        plan = make_plan(
            client.value,
            command=command or (),
            url=url,
            config=config,
            name=name,
            scope=Scope.PROJECT if project else Scope.USER,
        )
    except UsageError as error:
        _note(f"transom gateway install: {error}")
        raise typer.Exit(2) from None
    if not write:
        _note(f"For {plan.client.title}, in {plan.path}:")
        typer.echo(plan.snippet(), nl=False)
        for note in plan.notes:
            _note(note)
        return
    try:
        written = plan.write(force=force)
    except UsageError as error:
        _note(f"transom gateway install: {error}")
        _note(f"Nothing was changed. To put it into {plan.path} by hand:")
        typer.echo(plan.snippet(), nl=False)
        raise typer.Exit(1) from None
    if not written.changed:
        _note(f"{plan.path} has {plan.name!r} already: nothing to do.")
        return
    _note(f"Put {plan.name!r} into {plan.path}.")
    if written.backup is not None:
        _note(f"The file as it was is {written.backup}.")
    for note in plan.notes:
        if not note.startswith("Or run:"):
            _note(note)


def _note(text: str) -> None:
    typer.echo(text, err=True)
