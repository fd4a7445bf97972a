"""`transom gateway`: running it.

A server that has a command is started first, and the gateway loads what else it needs while the
server does the same: that is why functions import here.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import errno
import hashlib
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from transom.cli import run_async
from transom.connections.spawn import Process, signal_group, spawn
from transom.errors import UsageError

if TYPE_CHECKING:
    import asyncio

    from transom.cli.options import GatewayOptions
    from transom.connections.process import ServerProcess
    from transom.gateway.configuration.config import ServerConfig
    from transom.gateway.display import SharedDisplay
    from transom.host.limits import Limits
    from transom.host.views.renderers import Renderer

_DRIVER_DIED = "Connection closed while reading from the driver"
_REPORT_AGAIN = 60.0  # seconds; an event loop tries to accept a connection once a second
_last_report: dict[str, float] = {}
_PAGE_WITHIN = 10.0  # seconds that a call waits for a page to be opened


def run(options: GatewayOptions) -> int:
    """Run a gateway until its client is gone, or a signal comes; the exit code."""
    process: Process | None = None
    early: list[int] = []  # signals, before the event loop handles them
    try:
        _check(options)
        if options.command and options.http is None:
            _record_signals(early)
            process = spawn(options.command)
        _set_up_logging(verbose=options.verbose)
        run_async(_run(options, process, early))
    except KeyboardInterrupt:  # Ctrl-C, before the event loop handles it
        return 0
    finally:
        if process is not None and process.poll() is None:
            signal_group(process, force=True)
            process.wait()
    return 0


def _check(options: GatewayOptions) -> None:
    given = [bool(options.command), options.url is not None, options.config is not None]
    if sum(given) != 1:
        raise UsageError(
            "Give one of: a command after --, --url or --config\nTry: transom gateway --help"
        )
    if options.headless and find_spec("playwright") is None:
        raise UsageError("--headless needs Playwright: pip install 'transom[headless]'")
    if options.record is not None and options.http is not None:
        raise UsageError("--record is for one client, on standard input: leave out --http")
    if options.bus is not None and options.http is None:
        raise UsageError("--bus goes with --http: replicas share clients that connect over HTTP")


def _record_signals(early: list[int]) -> None:
    """Note signals that come before there is an event loop to handle them.

    An exception in the middle of starting the server would leave it behind.
    """
    if sys.platform == "win32":  # its event loop handles none
        return
    for number in (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP", "SIGINT")):
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: early.append(number))


def _set_up_logging(*, verbose: bool) -> None:
    import logging

    logging.basicConfig(format="transom gateway: %(message)s")
    logging.getLogger("transom").setLevel(logging.INFO if verbose else logging.WARNING)
    # What the SDK logs as an exception, such as a lost server, the gateway reports by itself.
    logging.getLogger("mcp").setLevel(logging.WARNING if verbose else logging.CRITICAL)


async def _run(options: GatewayOptions, process: Process | None, early: list[int]) -> None:
    import asyncio

    from transom.connections.process import ServerProcess
    from transom.gateway.stdio import on_signals

    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - for the type checker
    on_signals(task.cancel, interrupt=process is not None)
    if early:
        return
    asyncio.get_running_loop().set_exception_handler(_report_unhandled)
    with suppress(asyncio.CancelledError):  # a signal, before there was a client to serve
        started = None if process is None else await ServerProcess.adopt(process)
        try:
            await _serve(options, started)
        finally:
            if started is not None:
                await started.aclose()


def _report_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report unhandled errors; too many open files only once a minute, Playwright's not at all.

    Playwright's own tasks fail when its driver dies, as it does when its browser is killed; the
    Views are reported closed then.
    """
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        if loop.time() - _last_report.get("files", -_REPORT_AGAIN) >= _REPORT_AGAIN:
            _last_report["files"] = loop.time()
            _print(f"Connections have to wait: {error.strerror}")
    elif _DRIVER_DIED not in str(error):
        loop.default_exception_handler(context)


async def _serve(options: GatewayOptions, started: ServerProcess | None) -> None:
    from transom.gateway.gateway import Gateway
    from transom.traffic import Recorder

    servers = _servers(options)
    page = _page(options, servers)
    recorder = None if options.record is None else Recorder(options.record)
    gateway = Gateway(
        servers,
        renderer=page,
        naming=options.surface,
        approval=options.approve,
        drive=options.drive,
        fresh=options.fresh,
        view_calls=options.view_calls,
        approve_view_calls=options.approve_view_calls,
        limits=gateway_limits(options),
        hung_after=options.hung_after,
        traffic=recorder,
    )
    async with AsyncExitStack() as stack:
        if recorder is not None:
            stack.enter_context(recorder)
        await stack.enter_async_context(gateway)
        if options.port:
            await page.start()  # so that a port which cannot be used is noticed now
        if options.http is None:
            await gateway.serve_stdio(started=started)
            return
        from transom.bus import Bus

        # The servers get our environment, but not these.
        token = os.environ.pop("TRANSOM_TOKEN", None) or None
        url = os.environ.pop("TRANSOM_BUS", None) or None
        token = token if options.token is None else options.token
        url = url if options.bus is None else options.bus
        # Gateways with other tokens on the same Redis have other clients.
        secret = None if token is None else hashlib.sha256(token.encode()).hexdigest()
        await gateway.serve_http(
            options.http,
            token=token,
            max_clients=options.max_clients,
            idle=options.idle * 60,
            bus=await stack.enter_async_context(Bus(url, secret=secret)) if url else None,
            announce=_print,
        )


def gateway_limits(options: GatewayOptions) -> Limits:
    """The limits of Views, as the options have them."""
    from transom.host.limits import Limits

    given: dict[str, Any] = dict(options.limit)
    if options.call_timeout:
        given["call_timeout"] = dict(options.call_timeout)
    return Limits(**given)


def _servers(options: GatewayOptions) -> list[ServerConfig]:
    from msgspec.structs import replace

    from transom.cli.login import page_opener, read_headers
    from transom.gateway.configuration.config import (
        read_config,
        server_from_command,
        server_from_url,
    )

    if options.header and options.url is None:
        raise UsageError("--header goes with --url; a file for --config has headers of its own")
    if options.config is not None:
        servers = read_config(options.config)
    elif options.url is not None:
        servers = [server_from_url(options.url, headers=read_headers(options.header))]
    else:
        servers = [server_from_command(options.command)]
    servers = [
        replace(
            each,
            open_views={**each.open_views, **dict(options.open)},
            reuse_views={**each.reuse_views, **dict(options.reuse)},
        )
        for each in servers
    ]
    if options.no_open:
        return servers
    return [
        replace(each, ask=page_opener("transom gateway", each.url)) if each.url else each
        for each in servers
    ]


def _program(options: GatewayOptions, servers: list[ServerConfig]) -> str:
    """The identity of this gateway, which stays the same when its file gets more servers."""
    if options.config is not None:
        return f"gateway {options.config.absolute()}"
    from transom.connections.targets import identity_of

    first = servers[0]
    return f"gateway {identity_of(first.url or first.command, env=first.env, cwd=first.cwd)}"


def _print(text: str) -> None:
    sys.stderr.write(f"transom gateway: {text}\n")


def _print_address(url: str) -> None:
    _print(f"Open this page to see Views: {url}")


def _page(options: GatewayOptions, servers: list[ServerConfig]) -> SharedDisplay:
    """Where Views are shown: a page in the user's browser, or a browser without a window."""
    import asyncio

    from transom.gateway.display import SharedDisplay

    async def make() -> Renderer:
        # The web server takes a while to load, which answers to the client should not wait for.
        if options.headless:
            module: Any = await asyncio.to_thread(import_module, "transom.web.local.headless")
            return module.HeadlessRenderer(csp=options.csp)
        module = await asyncio.to_thread(import_module, "transom.web.local.renderers")
        return module.BrowserRenderer(
            csp=options.csp,
            port=options.port,
            sandbox_port=options.port and options.port + 1,
            open_page=None if options.no_open else module.open_in_browser,
            on_unopened=_print_address,
            page_timeout=_PAGE_WITHIN,
            share=True,
            ephemeral=options.ephemeral,
            program=_program(options, servers),
        )

    many = options.http is not None
    return SharedDisplay(make, pictures=options.headless, drives=True, many_clients=many)
