"""Running `transom gateway`, whoever read its command line."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transom.errors import TransomError, UsageError
from transom.gateway.config import Server, read_config, server_from_command, server_from_url
from transom.gateway.run import serve_stdio
from transom.gateway.views import ClientViews
from transom.web.screen import Screen

if TYPE_CHECKING:
    from transom.gateway.approval import Approval
    from transom.host.surface import Style
    from transom.web.csp import CspMode

__all__ = ["GatewayOptions", "run_gateway"]


class GatewayOptions(NamedTuple):
    """What a command line says; `transom gateway --help` explains each."""

    command: tuple[str, ...] = ()
    url: str | None = None
    config: Path | None = None
    headless: bool = False
    no_open: bool = False
    surface: Style = "both"
    approve: Approval = "client"
    csp: CspMode = "compat"
    http: str | None = None
    token: str | None = None
    max_clients: int = 100
    idle: float = 30
    verbose: bool = False


def run_gateway(options: GatewayOptions) -> int:
    """Run a gateway until its client is gone, or a signal comes; the exit code."""
    verbose = options.verbose
    logging.basicConfig(format="transom gateway: %(message)s")
    logging.getLogger("transom").setLevel(logging.INFO if verbose else logging.WARNING)
    # What the SDK finds exceptional, such as a server that is gone, the gateway says itself.
    logging.getLogger("mcp").setLevel(logging.WARNING if verbose else logging.CRITICAL)
    try:
        servers = _servers(options)
        asyncio.run(_run(servers, options))
    except TransomError as error:
        _note(str(error))
        return 2
    except KeyboardInterrupt:  # before there was anything to put away
        return 130
    return 0


async def _run(servers: Sequence[Server], options: GatewayOptions) -> None:
    screen = Screen(
        headless=options.headless, open_browser=not options.no_open, csp=options.csp, tell=_note
    )

    def views(label: str) -> ClientViews:
        return ClientViews(screen, surface=options.surface, approval=options.approve, label=label)

    async with screen:
        if options.http is None:
            await serve_stdio(servers, views(""))
        else:
            await _serve_http(servers, views, options, options.http)


async def _serve_http(
    servers: Sequence[Server],
    views: Callable[[str], ClientViews],
    options: GatewayOptions,
    address: str,
) -> None:
    # The SDK and the web server take a second to load, which others should not wait for.
    from transom.gateway.http_serving import serve_http  # noqa: PLC0415

    os.environ.pop("TRANSOM_TOKEN", None)  # the servers get our environment, but not this
    await serve_http(
        servers,
        views,
        address,
        token=options.token,
        max_clients=options.max_clients,
        idle=options.idle * 60,
        tell=_note,
    )


def _servers(options: GatewayOptions) -> list[Server]:
    given = [bool(options.command), options.url is not None, options.config is not None]
    if sum(given) > 1:
        raise UsageError("Give one of: a command after --, --url or --config")
    if options.config is not None:
        return read_config(options.config)
    if options.url is not None:
        return [server_from_url(options.url)]
    return [server_from_command(options.command)]


def _note(text: str) -> None:
    sys.stderr.write(f"transom gateway: {text}\n")
    sys.stderr.flush()
