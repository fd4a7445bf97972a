"""Running a gateway for one client on standard input and output.

Nothing but protocol goes to standard output: while a gateway runs, whatever else is printed in this
process goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module

from transom.channel import Channel, lines
from transom.errors import UsageError
from transom.gateway.config import Server
from transom.gateway.session import Connect, Session
from transom.gateway.signals import on_signals
from transom.gateway.views import ClientViews
from transom.servers.process import ServerProcess

__all__ = ["connect_to", "serve_stdio"]


def connect_to(server: Server) -> Connect:
    """What starts or reaches a server."""

    async def connect() -> Channel:
        if server.url is not None:
            # The SDK takes most of a second to load: only those who need it wait for it.
            module = await asyncio.to_thread(import_module, "transom.gateway.http_upstream")
            return await module.HttpServer.connect(server.url, headers=server.headers)
        if server.command is None:
            raise UsageError(f"Server {server.name} has neither a command nor a URL")
        return await ServerProcess.start(server.command, env=server.env, cwd=server.cwd)

    return connect


def _beginning_with(started: Channel, connect: Connect) -> Connect:
    """Takes what is started already the first time."""
    waiting = [started]

    async def next_one() -> Channel:
        return waiting.pop() if waiting else await connect()

    return next_one


async def serve_stdio(
    servers: Sequence[Server], views: ClientViews, *, started: Channel | None = None
) -> None:
    """Serve the client on standard input and output until it is gone, or a signal comes.

    Args:
        servers: the servers behind the gateway.
        views: shows Views, and has their tools.
        started: the first server, if it is running already; its caller closes it in the end.

    Raises:
        NotConnected: a server cannot be started.
    """
    async with _standard_streams() as channel:
        ways = [(each.name, connect_to(each)) for each in servers]
        if started is not None:
            ways[0] = (ways[0][0], _beginning_with(started, ways[0][1]))
        session = Session(channel, ways, views)
        running = asyncio.ensure_future(session.run())

        def stop() -> None:
            if not session.closing:  # else it is about to end, and has to put everything away
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
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    source = os.fdopen(_pollable(os.dup(0), copying, into=False), "rb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    sink = os.fdopen(_pollable(out, copying, into=True), "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
    channel = lines(reader, asyncio.StreamWriter(transport, protocol, None, loop))
    try:
        yield channel
    finally:
        await channel.aclose()
        for thread in copying:
            await asyncio.to_thread(thread.join, 1.0)


def _pollable(fd: int, copying: list[threading.Thread], *, into: bool) -> int:
    """The same file for an event loop, which cannot wait for files on a disk or for `/dev/null`."""
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
