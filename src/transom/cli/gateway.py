"""`transom gateway`: running it.

A server that has a command is started first, and the gateway loads what else it needs while the
server does the same: that is why functions import here.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from transom.cli import run_async
from transom.connections.spawn import Process, signal_group, spawn
from transom.errors import TransomError, UsageError

if TYPE_CHECKING:
    import asyncio

    from transom.cli.options import GatewayOptions
    from transom.connections.process import ServerProcess
    from transom.gateway.config import ServerConfig
    from transom.host.renderers import Renderer
    from transom.web.csp import CspMode

_DRIVER_DIED = "Connection closed while reading from the driver"
_REPORT_AGAIN = 60.0  # seconds; an event loop tries to accept a connection once a second
_last_report: dict[str, float] = {}
_PAGE_WITHIN = 10.0  # seconds that a call waits for a page to be opened


def run(options: GatewayOptions) -> int:
    """Run a gateway until its client is gone, or a signal comes; the exit code."""
    process: Process | None = None
    try:
        _check(options)
        if options.command and options.http is None:
            _interrupt_on_signals()
            process = spawn(options.command)
        _set_up_logging(verbose=options.verbose)
        run_async(_run(options, process))
    except TransomError as error:
        _print(str(error))
        return 2
    except KeyboardInterrupt:  # a signal, before the event loop handles them
        return 0
    finally:
        if process is not None and process.poll() is None:
            signal_group(process, force=True)
            process.wait()
    return 0


def _check(options: GatewayOptions) -> None:
    given = [bool(options.command), options.url is not None, options.config is not None]
    if sum(given) != 1:
        raise UsageError("Give one of: a command after --, --url or --config")
    if options.headless and find_spec("playwright") is None:
        raise UsageError("--headless needs Playwright: pip install 'transom[headless]'")
    if options.bus is not None and options.http is None:
        raise UsageError("--bus goes with --http: replicas share clients that connect over HTTP")


def _interrupt_on_signals() -> None:
    """Have signals raise KeyboardInterrupt before there is an event loop to handle them."""
    for number in (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")):
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def _set_up_logging(*, verbose: bool) -> None:
    import logging

    logging.basicConfig(format="transom gateway: %(message)s")
    logging.getLogger("transom").setLevel(logging.INFO if verbose else logging.WARNING)
    # What the SDK logs as an exception, such as a lost server, the gateway reports by itself.
    logging.getLogger("mcp").setLevel(logging.WARNING if verbose else logging.CRITICAL)


async def _run(options: GatewayOptions, process: Process | None) -> None:
    import asyncio

    from transom.connections.process import ServerProcess
    from transom.gateway.stdio import on_signals

    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - for the type checker
    on_signals(task.cancel, interrupt=False)
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
    from transom.gateway.client_host import ViewOptions
    from transom.gateway.merge import server_names
    from transom.host.view_settings import ViewSettings

    servers = _servers(options)
    names = server_names([server.name for server in servers])
    settings = {
        name: ViewSettings(
            {**server.open_views, **dict(options.open)},
            {**server.reuse_views, **dict(options.reuse)},
        )
        for name, server in zip(names, servers, strict=True)
    }
    shows = any(each.may_open for each in settings.values())
    page = SharedPage(
        headless=options.headless,
        open_browser=not options.no_open,
        csp=options.csp,
        port=options.port,
        many_clients=options.http is not None,
        ephemeral=options.ephemeral,
        program=_program(options, servers),
    )
    identities = _identities(servers)
    async with page:
        if options.port:
            await page.start()  # so that a port which cannot be used is noticed now

        views = ViewOptions(
            page if shows else None,
            surface=options.surface,
            approval=options.approve,
            fresh=options.fresh,
            view_calls=options.view_calls,
            approve_view_calls=options.approve_view_calls,
            settings=settings,
            identities=identities,
        )
        if options.http is None:
            from transom.gateway.stdio import serve_stdio

            await serve_stdio(servers, views, hung_after=options.hung_after, started=started)
            return
        from transom.bus import Bus
        from transom.gateway.http import serve_http

        # The servers get our environment, but not these.
        token = os.environ.pop("TRANSOM_TOKEN", None) or None
        url = os.environ.pop("TRANSOM_BUS", None) or None
        url = url if options.bus is None else options.bus
        async with AsyncExitStack() as stack:
            await serve_http(
                servers,
                views,
                options.http,
                token=token if options.token is None else options.token,
                max_clients=options.max_clients,
                idle=options.idle * 60,
                hung_after=options.hung_after,
                announce=_print,
                bus=await stack.enter_async_context(Bus(url)) if url else None,
            )


def _servers(options: GatewayOptions) -> list[ServerConfig]:
    from msgspec.structs import replace

    from transom.cli.login import page_opener, read_headers
    from transom.gateway.config import read_config, server_from_command, server_from_url

    if options.header and options.url is None:
        raise UsageError("--header goes with --url; a file for --config has headers of its own")
    if options.config is not None:
        servers = read_config(options.config)
    elif options.url is not None:
        servers = [server_from_url(options.url, headers=read_headers(options.header))]
    else:
        servers = [server_from_command(options.command)]
    if options.no_open:
        return servers
    return [
        replace(each, ask=page_opener("transom gateway", each.url)) if each.url else each
        for each in servers
    ]


def _identities(servers: list[ServerConfig]) -> dict[str, str]:
    """The identity of each server, by its name in the gateway."""
    from transom.connections.targets import identity_of
    from transom.gateway.merge import server_names

    names = server_names([each.name for each in servers])
    found = [identity_of(s.url or s.command, env=s.env, cwd=s.cwd) for s in servers]
    return dict(zip(names, found, strict=True))


def _program(options: GatewayOptions, servers: list[ServerConfig]) -> str:
    """The identity of this gateway, which stays the same when its file gets more servers."""
    if options.config is not None:
        return f"gateway {options.config.absolute()}"
    return f"gateway {next(iter(_identities(servers).values()))}"


def _print(text: str) -> None:
    sys.stderr.write(f"transom gateway: {text}\n")
    sys.stderr.flush()


def _print_address(url: str) -> None:
    _print(f"Open this page to see Views: {url}")


class SharedPage:
    """Shows the Views of all clients of a gateway on one page, opened for the first of them."""

    def __init__(
        self,
        *,
        headless: bool = False,
        open_browser: bool = True,
        csp: CspMode = "compat",
        port: int = 0,
        many_clients: bool = False,
        ephemeral: bool = False,
        program: str = "",
    ) -> None:
        import asyncio

        self.pictures = headless
        self._port = port
        self._many_clients = many_clients
        self._open_browser = open_browser
        self._csp = csp
        self._ephemeral = ephemeral
        self._program = program
        self._lock = asyncio.Lock()
        self._renderer: Any = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        renderer, self._renderer = self._renderer, None
        if renderer is not None:
            await renderer.__aexit__(*error)

    async def start(self) -> None:
        """Begin to serve the page."""
        async with self._lock:
            if self._renderer is None:
                renderer = await self._make_renderer()
                await renderer.__aenter__()
                self._renderer = renderer

    async def seat(self, label: str) -> Renderer:
        """A renderer for the Views of one client."""
        await self.start()
        return self._renderer.seat(label)

    def where(self) -> str | None:
        """The address of the page; with its token only while no page is open.

        HTTP clients never get the token, because the page also shows the Views of others.
        """
        if self._renderer is None or self.pictures:
            return None
        stage = self._renderer.stage
        if stage.has_page:
            return stage.page_origin
        if self._many_clients:
            return f"{stage.page_origin} once the address is opened that the gateway printed"
        return self._renderer.url

    async def _make_renderer(self) -> Any:
        import asyncio

        # The web server takes a while to load, which answers to the client should not wait for.
        if self.pictures:
            module: Any = await asyncio.to_thread(import_module, "transom.web.headless")
            return module.HeadlessRenderer(csp=self._csp)
        module = await asyncio.to_thread(import_module, "transom.web.renderers")
        return module.BrowserRenderer(
            csp=self._csp,
            port=self._port,
            sandbox_port=self._port and self._port + 1,
            open_page=module.open_in_browser if self._open_browser else None,
            on_unopened=_print_address,
            page_timeout=_PAGE_WITHIN,
            share=True,
            ephemeral=self._ephemeral,
            program=self._program,
        )
