"""A Redis of the tests' own: Debian's `redis-server`, on a free port, without any file."""

import asyncio
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Self

from tests.ports import reserved_port

_STARTS_WITHIN = 60.0


class RedisServer:
    """Runs while the block runs. It can be killed and started again, empty, on the same port."""

    def __init__(self) -> None:
        self.port = reserved_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._databases = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="transom-redis-")

    def database(self) -> str:
        """The URL of a database that nobody has used."""
        return f"{self.url}/{next(self._databases)}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._folder.cleanup()

    def start(self) -> None:
        options = ["--save", "", "--appendonly", "no", "--databases", "4096", "--bind", "127.0.0.1"]
        command = ["redis-server", "--port", str(self.port), "--dir", self._folder.name, *options]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        except FileNotFoundError:
            raise RuntimeError("There is no redis-server: run scripts/setup redis") from None
        deadline = time.monotonic() + _STARTS_WITHIN
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("redis-server does not start")
            time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def kill(self) -> None:
        """As kill -9 does it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """It stops answering, while its port is still there."""
        assert self._process is not None
        self._process.send_signal(19)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(18)


class Wire:
    """A connection to Redis that can go dead: what is sent is lost, and nobody is told.

    Or what it answers next is not what Redis says (`garbled`).
    """

    def __init__(self, url: str) -> None:
        address, _, self._database = url.removeprefix("redis://").partition("/")
        host, _, port = address.partition(":")
        self._redis = host, int(port)
        self._open: list[asyncio.StreamWriter] = []
        self._passes: list[asyncio.Event] = []
        self.url = ""
        self.garbled = b""

    def cut(self) -> None:
        """The connections that there are go dead; later ones are fine."""
        while self._passes:
            self._passes.pop().clear()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Wire"]:
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            self.url = f"redis://127.0.0.1:{port}/{self._database}"
            try:
                yield self
            finally:
                for each in self._open:
                    each.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passes = asyncio.Event()
        passes.set()
        self._passes.append(passes)
        try:
            to_reader, to_writer = await asyncio.open_connection(*self._redis)
        except OSError:  # Redis is not there: nor is this
            writer.transport.abort()
            return
        self._open += (writer, to_writer)
        with suppress(OSError):
            out = _pump(reader, to_writer, passes, bytes)
            await asyncio.gather(out, _pump(to_reader, writer, passes, self._garble))

    def _garble(self, data: bytes) -> bytes:
        garbled, self.garbled = self.garbled, b""
        return garbled or data


async def _pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    passes: asyncio.Event,
    change: Callable[[bytes], bytes],
) -> None:
    while data := await reader.read(65536):
        if passes.is_set():
            writer.write(change(data))
            await writer.drain()
    writer.close()
