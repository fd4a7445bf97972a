"""A Redis of the tests' own: Debian's `redis-server`, on a free port, without any file."""

import socket
import subprocess
import tempfile
import time
from itertools import count
from typing import Self

_STARTS_WITHIN = 10.0


class RedisServer:
    """Runs while the block runs. It can be killed and started again, empty, on the same port."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
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
