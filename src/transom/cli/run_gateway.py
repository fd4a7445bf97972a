"""Running `transom gateway`, whoever read its command line.

A server that has a command is started first, and the gateway loads what else it needs while the
server does the same: that is why functions import here.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from transom.errors import TransomError, UsageError
from transom.gateway.stdio import on_signals
from transom.servers.process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transom.cli.options import GatewayOptions
    from transom.gateway.config import ServerConfig
    from transom.gateway.views import ClientViews

__all__ = ["run_gateway"]

_DRIVER_DIED = "Connection closed while reading from the driver"


def run_gateway(options: GatewayOptions) -> int:
    """Run a gateway until its client is gone, or a signal comes; the exit code."""
    verbose = options.verbose
    logging.basicConfig(format="transom gateway: %(message)s")
    logging.getLogger("transom").setLevel(logging.INFO if verbose else logging.WARNING)
    # What the SDK finds exceptional, such as a server that is gone, the gateway says itself.
    logging.getLogger("mcp").setLevel(logging.WARNING if verbose else logging.CRITICAL)
    try:
        asyncio.run(_run(options))
    except TransomError as error:
        _note(str(error))
        return 2
    except (asyncio.CancelledError, KeyboardInterrupt):
        return 0  # a signal, before there was a client to serve
    return 0


async def _run(options: GatewayOptions) -> None:
    given = [bool(options.command), options.url is not None, options.config is not None]
    if sum(given) > 1:
        raise UsageError("Give one of: a command after --, --url or --config")
    _stop_on_signals()
    asyncio.get_running_loop().set_exception_handler(_unheard)
    started: ServerProcess | None = None
    if options.command and options.http is None:
        started = await ServerProcess.start(options.command)
    try:
        await _serve(options, started)
    finally:
        if started is not None:
            await started.aclose()


def _stop_on_signals() -> None:
    """Whoever serves sees to signals itself; until then they must not leave a server behind."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - for the type checker
    on_signals(task.cancel, interrupt=False)


def _unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody waited for is told, except for what Playwright leaves when its driver dies.

    That happens when its browser is killed; the Views say themselves that they are gone.
    """
    if _DRIVER_DIED not in str(context.get("exception")):
        loop.default_exception_handler(context)


async def _serve(options: GatewayOptions, started: ServerProcess | None) -> None:
    from transom.gateway.views import ClientViews
    from transom.web.screen import Screen

    servers = _servers(options)
    screen = Screen(
        headless=options.headless, open_browser=not options.no_open, csp=options.csp, tell=_note
    )

    def views(label: str) -> ClientViews:
        return ClientViews(screen, surface=options.surface, approval=options.approve, label=label)

    async with screen:
        if options.http is None:
            from transom.gateway.stdio import serve_stdio

            await serve_stdio(servers, views(""), started=started)
        else:
            await _serve_http(servers, views, options, options.http)


async def _serve_http(
    servers: Sequence[ServerConfig],
    views: Callable[[str], ClientViews],
    options: GatewayOptions,
    address: str,
) -> None:
    from transom.gateway.http import serve_http

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


def _servers(options: GatewayOptions) -> list[ServerConfig]:
    from transom.gateway.config import read_config, server_from_command, server_from_url

    if options.config is not None:
        return read_config(options.config)
    if options.url is not None:
        return [server_from_url(options.url)]
    return [server_from_command(options.command)]


def _note(text: str) -> None:
    sys.stderr.write(f"transom gateway: {text}\n")
    sys.stderr.flush()
