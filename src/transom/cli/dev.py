"""`transom dev`: a page for the author of a server."""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from functools import partial

from transom.cli import print_failure, run_async
from transom.cli.options import DevOptions
from transom.cli.target import read_target
from transom.connections.targets import identity_of
from transom.dev.session import DevSession, Settings
from transom.errors import TransomError
from transom.traffic import Recorder
from transom.web.local.renderers import open_in_browser


def run(options: DevOptions) -> int:
    """Do what the command line says; the exit code."""
    recording = nullcontext() if options.record is None else Recorder(options.record)
    with suppress(KeyboardInterrupt), recording as recorder:
        run_async(make_session(options, recorder).run())
    return 0


def make_session(options: DevOptions, recorder: Recorder | None = None) -> DevSession:
    """The session of a command line; a UsageError says what is wrong with that."""
    target = read_target(options, "transom dev")

    async def open_page(url: str) -> None:
        sys.stderr.write(f"transom dev shows {options.target} at {url}\nPress Ctrl-C to end it.\n")
        if not options.no_open:
            try:
                await open_in_browser(url)
            except TransomError:
                sys.stderr.write("No browser could be opened: open that address yourself.\n")

    return DevSession(
        target,
        open_page,
        timeout=options.timeout,
        settings=Settings(csp=options.csp),
        checks=not options.no_check,
        tell=partial(print_failure, "dev"),
        program=f"dev {identity_of(target.server)}",
        ephemeral=options.ephemeral,
        ports=(options.port, options.port and options.port + 1),
        recorder=recorder,
    )
