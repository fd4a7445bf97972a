"""`transom conform`: measure a host or a View, print the report."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from mcp.server.stdio import stdio_server
from rich.console import Console

from transom.cli import parse_target, run_async
from transom.cli.conform_options import ConformHostOptions, ConformOptions, ConformViewOptions
from transom.cli.login import remote_server
from transom.cli.target import read_call
from transom.conform.report import (
    ConformReport,
    as_html,
    as_json,
    as_junit,
    as_table,
    requirements_table,
)
from transom.conform.server import ConformServer, other_server
from transom.errors import UsageError
from transom.python_files import load_python_file

_FORMS = {".json": as_json, ".xml": as_junit, ".html": as_html}
_PRINTED = {"json": as_json, "junit": as_junit, "html": as_html}


def run(options: ConformHostOptions | ConformViewOptions) -> int:
    """Do what the command line says; the exit code."""
    if options.requirements:
        subject = "host" if isinstance(options, ConformHostOptions) else "view"
        Console().print(requirements_table(subject))
        return 0
    _check_files(options.report)
    # The loggers of both report what is wrong on purpose.
    logging.getLogger("transom").addHandler(logging.NullHandler())
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    if isinstance(options, ConformHostOptions):
        return _measure_host(options)
    report = run_async(_measure_view(options))
    return finish(report, options, sys.stdout)


def _measure_host(options: ConformHostOptions) -> int:
    if options.second:
        run_async(_serve_stdio(other_server()))
        return 0
    report = run_async(_serve(options))
    # On stdio, stdout is the wire.
    return finish(report, options, sys.stderr if options.http is None else sys.stdout)


async def _measure_view(options: ConformViewOptions) -> ConformReport:
    views: Any = import_module("transom.conform.measuring")
    name, timeout = options.target, options.timeout
    if options.app:
        return await views.measure_app(_function(name), name, timeout=timeout)
    if name.endswith((".html", ".htm")):
        opening = views.view_of_page(_page(name))
    else:
        server = remote_server(parse_target(name), options.header, "transom conform view")
        opening = views.view_of_server(server, *read_call(options))
    async with opening as source:
        return await views.measure_view(source, name, timeout=timeout)


def _page(name: str) -> Path:
    page = Path(name)
    if not page.is_file():
        raise UsageError(f"there is no file {page}")
    return page


def _function(text: str) -> Any:
    """The function that `FILE.py:name` or `module:name` names."""
    place, _, name = text.rpartition(":")
    try:
        if place.endswith(".py"):
            module = load_python_file(Path(place))
        else:
            sys.path.insert(0, "")
            module = import_module(place)
    except (ImportError, OSError) as error:
        raise UsageError(f"{place or text} cannot be loaded: {error}") from error
    found = getattr(module, name, None)
    if not callable(found):
        raise UsageError(f"{text} is not a function that returns an App")
    return found


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
        console.print(f"{report.summary()}.", markup=False, soft_wrap=True)
    if not report.measured:
        return 2
    return 1 if report.fails_on(options.fail_on) else 0
