"""Running a gateway for one client on standard input and output.

Nothing but protocol goes to standard output: while a gateway runs, whatever else is printed in this
process goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

from transom.channel import Channel, lines
from transom.errors import UsageError
from transom.gateway.config import Server
from transom.gateway.process import ServerProcess
from transom.gateway.session import Connect, Session
from transom.gateway.views import ClientViews

__all__ = ["connect_to", "serve_stdio"]


def connect_to(server: Server) -> Connect:
    """What starts or reaches a server."""

    async def connect() -> Channel:
        if server.command is None:
            raise UsageError(f"Server {server.name} has no command")
        return await ServerProcess.start(server.command, env=server.env, cwd=server.cwd)

    return connect


async def serve_stdio(servers: Sequence[Server], views: ClientViews) -> None:
    """Serve the client on standard input and output until it is gone, or a signal comes.

    Raises:
        NotConnected: a server cannot be started.
    """
    async with _standard_streams() as channel:
        session = Session(channel, [(each.name, connect_to(each)) for each in servers], views)
        running = asyncio.ensure_future(session.run())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, running.cancel)
        with suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def _standard_streams() -> AsyncGenerator[Channel]:
    sys.stdout.flush()
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(0), "rb")
        )
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(out, "wb")
        )
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        yield lines(reader, writer)
    finally:
        sys.stdout.flush()
