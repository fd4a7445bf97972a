"""Every kind of Channel, as a pair of joined ends. The contract suite runs over each of them.

To add one, write an async context manager that yields two ends which are joined, and name it in
`CHANNELS`.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.processes import ended
from tests.web.page import StagePage
from transom.channel import Channel, lines, memory_pair
from transom.host.views.ui_resource import UIResource
from transom.web.local.stage_server import StageServer
from transom.web.stage import Stage

Ends = tuple[Channel, Channel]


@asynccontextmanager
async def memory() -> AsyncIterator[Ends]:
    left, right = memory_pair(capacity=16)
    yield left, right
    await left.aclose()


@asynccontextmanager
async def lines_over_a_socket() -> AsyncIterator[Ends]:
    near, far = socket.socketpair()
    left = lines(*await asyncio.open_connection(sock=near))
    right = lines(*await asyncio.open_connection(sock=far))
    yield left, right
    await left.aclose()
    await right.aclose()


@asynccontextmanager
async def _pipe() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """One direction: what is written to the writer arrives at the reader."""
    loop = asyncio.get_running_loop()
    out, into = os.pipe()
    reader = asyncio.StreamReader()
    reading, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(out, "rb", 0)
    )
    writing, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(into, "wb", 0)
    )
    writer = asyncio.StreamWriter(writing, protocol, None, loop)
    yield reader, writer
    reading.close()


@asynccontextmanager
async def lines_over_pipes() -> AsyncIterator[Ends]:
    async with _pipe() as (there, to_there), _pipe() as (back, to_back):
        left, right = lines(back, to_there), lines(there, to_back)
        yield left, right
        await left.aclose()
        await right.aclose()


# Copies between its standard streams and a socket; ends when one of the two directions has ended.
_RELAY = """
import os, sys, threading
socket = int(sys.argv[1])
done = threading.Event()
def copy(source, target):
    try:
        while data := os.read(source, 65536):
            while data:
                data = data[os.write(target, data):]
    except OSError:
        pass
    done.set()
threading.Thread(target=copy, args=(0, socket), daemon=True).start()
threading.Thread(target=copy, args=(socket, 1), daemon=True).start()
done.wait()
os._exit(0)
"""


@asynccontextmanager
async def lines_over_a_process() -> AsyncIterator[Ends]:
    near, far = socket.socketpair()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", "-E", "-c", _RELAY, str(near.fileno())),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        pass_fds=[near.fileno()],
    )
    near.close()
    assert process.stdout is not None
    assert process.stdin is not None
    left = lines(process.stdout, process.stdin)
    right = lines(*await asyncio.open_connection(sock=far))
    try:
        yield left, right
    finally:
        await left.aclose()
        await right.aclose()
        if process.returncode is None:
            process.kill()
        await ended(process)


@asynccontextmanager
async def a_view_on_the_stage() -> AsyncIterator[Ends]:
    """The host's end of a View, and the page that it is on: two ends of a real socket."""
    stage = Stage()
    async with StageServer(stage), StagePage(stage) as page:
        view = UIResource(view_id="view-1", server="tests", uri="ui://tests/view", html="")
        left = stage.mount(view)
        yield left, await page.view("view-1")
        await left.aclose()


CHANNELS: dict[str, Callable[[], AbstractAsyncContextManager[Ends]]] = {
    "memory": memory,
    "lines over a socket": lines_over_a_socket,
    "lines over pipes": lines_over_pipes,
    "lines over a process": lines_over_a_process,
    "a View on the Stage": a_view_on_the_stage,
}
