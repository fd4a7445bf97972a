"""`transom conform`: measure a host or a View, print the report."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mcp.server.stdio import stdio_server
from rich.console import Console

from transom.cli import run_async
from transom.conform.report import (
    ConformReport,
    as_html,
    as_json,
    as_junit,
    as_table,
    requirements_table,
)
from transom.conform.server import ConformServer, other_server
from transom.errors import TransomError, UsageError
from transom.json_values import clean

if TYPE_CHECKING:
    from transom.cli.conform_options import ConformHostOptions, ConformOptions

_FORMS = {".json": as_json, ".xml": as_junit, ".html": as_html}
_PRINTED = {"json": as_json, "junit": as_junit, "html": as_html}


def run(options: ConformHostOptions) -> int:
    """Do what the command line says; the exit code."""
    if options.requirements:
        Console().print(requirements_table("host"))
        return 0
    out = sys.stdout
    try:
        _check_files(options.report)
        if options.against != "none":
            # It loads the browser, the web server and the gateway.
            own: Any = import_module("transom.conform.own_hosts")
            logging.getLogger("transom").addHandler(logging.NullHandler())  # it is all on purpose
            report = run_async(own.measure_own(options.against, options.csp, options.timeout))
        elif options.second:
            run_async(_serve_stdio(other_server()))
            return 0
        else:
            if options.http is None:
                out = sys.stderr  # stdout is the wire
            logging.getLogger("mcp").addHandler(logging.NullHandler())
            report = run_async(_serve(options))
        return finish(report, options, out)
    except (TransomError, OSError) as error:
        sys.stderr.write(f"transom conform: {clean(str(error), 1000)}\n")
        return 2


async def _serve(options: ConformHostOptions) -> ConformReport:
    """Serve until the host is gone, or a signal comes."""
    server = ConformServer(
        timeout=options.timeout,
        other=options.has_second,
        on_report=lambda report: _write(report, options.report),  # the host may end us any time
    )
    by_http = options.http is not None
    current = asyncio.current_task()
    if current is not None and sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, current.cancel)
    with suppress(asyncio.CancelledError):
        async with server.probes(options.http or 0, mcp=by_http) as address:
            sys.stderr.write(f"transom conform: the results are at {address}/\n")
            if by_http:
                sys.stderr.write(f"transom conform: connect the host to {address}/mcp\n")
                await asyncio.Event().wait()
            else:
                await _serve_stdio(server.mcp)
    return server.report()


async def _serve_stdio(server: Any) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _check_files(files: list[Path]) -> None:
    for file in files:
        if file.suffix not in _FORMS:
            known = ", ".join(_FORMS)
            raise UsageError(f"--report {file}: the name must end with one of {known}")


def _write(report: ConformReport, files: list[Path]) -> None:
    for file in files:
        file.write_text(_FORMS[file.suffix](report), encoding="utf-8")


def finish(report: ConformReport, options: ConformOptions, out: TextIO) -> int:
    """Write and print the report; the exit code."""
    _write(report, options.report)
    if options.format != "table":
        out.write(f"{_PRINTED[options.format](report)}\n")
    else:
        console = Console(file=out, highlight=False)
        if report.measured:
            console.print(as_table(report, every=options.all))
        console.print(f"{report.summary()}.", markup=False)
    if not report.measured:
        return 2
    return 1 if report.fails_on(options.fail_on) else 0
