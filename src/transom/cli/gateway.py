"""`transom gateway`: its command line, with help. What it means is run by `run_gateway`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transom.cli.options import GatewayOptions
from transom.cli.run_gateway import run_gateway

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
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="[HOST:]PORT",
            help="Serve clients by streamable HTTP at /mcp instead of one on standard input. Each "
            "has servers and Views of its own. Without HOST, this machine alone: then every "
            "program on it, of any user, can use the servers, unless there is a token.",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TEXT",
            envvar="TRANSOM_TOKEN",
            show_envvar=False,
            help="What HTTP clients must send as a bearer token; needed with a HOST that others "
            "reach. Better set TRANSOM_TOKEN: a command line can be seen.",
        ),
    ] = None,
    max_clients: Annotated[
        int, typer.Option("--max-clients", min=1, help="How many HTTP clients at once.")
    ] = 100,
    idle: Annotated[
        float,
        typer.Option(
            "--idle",
            metavar="MINUTES",
            min=0.01,
            help="How long an HTTP client that has nothing open is waited for.",
        ),
    ] = 30,
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
    code = run_gateway(
        GatewayOptions(
            command=tuple(command or ()),
            url=url,
            config=config,
            headless=headless,
            no_open=no_open,
            surface=surface.value,
            approve=approve.value,
            csp=csp.value,
            http=http,
            token=token,
            max_clients=max_clients,
            idle=idle,
            verbose=verbose,
        )
    )
    if code:
        raise typer.Exit(code)
