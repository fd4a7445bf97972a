"""Serving one client on standard input and output.

Nothing but protocol goes to standard output: while a gateway runs, whatever else is printed in this
process goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from transom.channel import Channel, lines, pipe_streams
from transom.gateway.proxy import Proxy


def on_signals(call: Callable[[], object], *, interrupt: bool = True) -> None:
    """Call this when the process is asked to end; with `interrupt`, also on Ctrl-C.

    A signal that is ignored stays ignored: `nohup` ignores SIGHUP, and a shell ignores SIGINT for
    background jobs. Where the event loop does not support this (Windows), signals have their
    default effect.
    """
    loop = asyncio.get_running_loop()
    names = ("SIGTERM", "SIGHUP", "SIGINT") if interrupt else ("SIGTERM", "SIGHUP")
    for number in (getattr(signal, name, None) for name in names):
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            try:
                loop.add_signal_handler(number, call)
            except NotImplementedError:  # the event loop of Windows
                return


async def serve_stdio(make_proxy: Callable[[Channel], Proxy]) -> None:
    """Serve the client on standard input and output until it is gone, or a signal comes."""
    async with _standard_streams() as channel:
        proxy = make_proxy(channel)
        running = asyncio.ensure_future(proxy.run())

        def stop() -> None:
            if not proxy.closing:  # else it is already closing everything
                running.cancel()

        on_signals(stop)
        with suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def _standard_streams() -> AsyncGenerator[Channel]:
    sys.stdout.flush()
    out = os.dup(1)
    os.dup2(2, 1)
    copying: list[threading.Thread] = []
    source = os.fdopen(_pollable(os.dup(0), copying, into=False), "rb", buffering=0)
    sink = os.fdopen(_pollable(out, copying, into=True), "wb", buffering=0)
    channel = lines(*await pipe_streams(source, sink))
    try:
        yield channel
    finally:
        await channel.aclose()
        for thread in copying:
            await asyncio.to_thread(thread.join, 1.0)


def _pollable(fd: int, copying: list[threading.Thread], *, into: bool) -> int:
    """The file in a form that an event loop can poll: it cannot poll disk files or `/dev/null`."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd):
        return fd
    read, write = os.pipe()
    ends = (read, fd) if into else (fd, write)
    thread = threading.Thread(target=_copy, args=ends, daemon=True)
    thread.start()
    if into:
        copying.append(thread)
    return write if into else read


def _copy(source: int, sink: int) -> None:
    with suppress(OSError), os.fdopen(source, "rb", 0) as given, os.fdopen(sink, "wb", 0) as taken:
        while chunk := given.read(65536):
            taken.write(chunk)
