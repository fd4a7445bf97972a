"""`transom gateway`: parse, run."""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transom.errors import TransomError, UsageError
from transom.gateway.config import Server, read_config, server_from_command, server_from_url
from transom.gateway.run import serve_stdio
from transom.gateway.views import ClientViews
from transom.web.screen import Screen

__all__ = ["gateway"]


class Surface(StrEnum):
    """How the tools of Views are offered."""

    FLAT = "flat"
    INDIRECT = "indirect"
    BOTH = "both"


class Approve(StrEnum):
    """Who is asked before a View's tool runs."""

    CLIENT = "client"
    PAGE = "page"
    ELICIT = "elicit"
    NEVER = "never"


class Csp(StrEnum):
    """How much a View's page may do with itself."""

    COMPAT = "compat"
    STRICT = "strict"


def gateway(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND…]",
            help="Starts the MCP server, such as `python orders.py`.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="A server that is reached by streamable HTTP."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Several servers: a file with `mcpServers`."),
    ] = None,
    headless: Annotated[
        bool,
        typer.Option(
            "--headless",
            help="Show Views in a browser without a window, and offer `screenshot_view`.",
        ),
    ] = False,
    no_open: Annotated[
        bool,
        typer.Option("--no-open", help="Open no browser: say on standard error where Views are."),
    ] = False,
    surface: Annotated[
        Surface,
        typer.Option(
            "--surface",
            metavar="flat|indirect|both",
            help="`flat`: each tool of a View is a tool. `indirect`: `list_view_tools` and "
            "`call_view_tool` stand for them all.",
        ),
    ] = Surface.BOTH,
    approve: Annotated[
        Approve,
        typer.Option(
            "--approve",
            metavar="client|page|elicit|never",
            help="Who is asked before a View's tool runs that may change something: the client "
            "does it as for any tool; the user on the page; the user through the client; nobody, "
            "so that it does not run.",
        ),
    ] = Approve.CLIENT,
    csp: Annotated[
        Csp,
        typer.Option(
            "--csp",
            metavar="compat|strict",
            help="What a View's page may do with itself: what other hosts allow, or what the "
            "specification does.",
        ),
    ] = Csp.COMPAT,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say more on standard error.")
    ] = False,
) -> None:
    """Stand in front of an MCP server and bring its MCP Apps to a client that knows none.

    Put it into your agent's configuration in place of the server itself:

        transom gateway -- python orders.py

    Everything the server offers passes through unchanged. When the model calls a tool that has a
    View, the View opens in your browser, and the tools inside it appear to the model as ordinary
    tools. `transom gateway install --client …` writes the configuration for you.

    Exit codes: 0 the client went away, 2 the server could not be started.
    """
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(format="transom gateway: %(message)s")
    logging.getLogger("transom").setLevel(level)
    try:
        servers = _servers(command or [], url, config)
        screen = Screen(headless=headless, open_browser=not no_open, csp=csp.value, tell=_note)
        asyncio.run(_run(servers, screen, surface, approve))
    except TransomError as error:
        _note(str(error))
        raise typer.Exit(2) from None


async def _run(servers: list[Server], screen: Screen, surface: Surface, approve: Approve) -> None:
    async with screen:
        views = ClientViews(screen, surface=surface.value, approval=approve.value)
        await serve_stdio(servers, views)


def _servers(command: list[str], url: str | None, config: Path | None) -> list[Server]:
    given = [bool(command), url is not None, config is not None]
    if sum(given) > 1:
        raise UsageError("Give one of: a command after --, --url or --config")
    if config is not None:
        return read_config(config)
    if url is not None:
        return [server_from_url(url)]
    return [server_from_command(command)]


def _note(text: str) -> None:
    typer.echo(f"transom gateway: {text}", err=True)
