"""`transom gateway`: parse, run."""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transom.errors import TransomError
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


def gateway(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND…", help="Starts the MCP server.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="A streamable HTTP server.")] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Several servers: a file with `mcpServers`."),
    ] = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="Show Views in a browser without a window.")
    ] = False,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Open no browser: print the page's address.")
    ] = False,
    surface: Annotated[Surface, typer.Option("--surface", help="How View tools are offered.")] = (
        Surface.BOTH
    ),
    approve: Annotated[
        Approve, typer.Option("--approve", help="Who is asked before a View's tool runs.")
    ] = Approve.CLIENT,
) -> None:
    """Bring MCP Apps to any MCP client."""
    logging.basicConfig(format="transom gateway: %(message)s", level=logging.WARNING)
    try:
        servers = _servers(command, url, config)
        asyncio.run(_run(servers, headless, no_open, surface, approve))
    except TransomError as error:
        _note(f"transom gateway: {error}")
        raise typer.Exit(2) from None


async def _run(
    servers: list[Server], headless: bool, no_open: bool, surface: Surface, approve: Approve
) -> None:
    screen = Screen(headless=headless, open_browser=not no_open, tell=_note)
    async with screen:
        views = ClientViews(screen, surface=surface.value, approval=approve.value)
        await serve_stdio(servers, views)


def _servers(command: list[str] | None, url: str | None, config: Path | None) -> list[Server]:
    if config is not None:
        return read_config(config)
    if url is not None:
        return [server_from_url(url)]
    return [server_from_command(command or [])]


def _note(text: str) -> None:
    typer.echo(text, err=True)
