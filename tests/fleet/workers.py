"""Several workers as processes, a Redis, and a balancer that takes them in turn."""

import asyncio
import signal
import ssl
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import httpx2

from tests.ports import reserved_port
from tests.redis_server import RedisServer

ROOT = Path(__file__).parents[2]
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # else each client makes one, for long
WITHIN = 90.0  # seconds; a busy machine takes long to start Python


class Balancer:
    """Takes TCP connections and gives them to its targets in turn, without those that are dead."""

    def __init__(self, targets: Sequence[int]) -> None:
        self.targets = list(targets)
        self._next = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(len(self.targets)):
            self._next += 1
            port = self.targets[self._next % len(self.targets)]
            try:
                there, to_there = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            for source, target in ((reader, to_there), (there, writer)):
                task = asyncio.create_task(self._copy(source, target))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            return
        writer.transport.abort()

    @staticmethod
    async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()


class Worker:
    """One process. It can be killed, and started again on its port.

    What it writes to its standard error is in the file `log`, if there is one.
    """

    def __init__(self, redis: str, effects: Path, log: Path | None = None) -> None:
        self.port = reserved_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = (sys.executable, "-m", "tests.fleet.worker", redis, str(self.port))
        self._effects = str(effects)
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    async def start(self) -> None:
        with ExitStack() as stack:
            log = None if self._log is None else stack.enter_context(self._log.open("ab"))
            self._process = await asyncio.create_subprocess_exec(
                *self._command, self._effects, cwd=ROOT, stderr=log
            )
        await until(self._answers)

    async def _answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def stop(self, number: signal.Signals = signal.SIGKILL) -> int | None:
        """End it; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.send_signal(number)
        return await process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, and wait for nothing."""
        if self._process is not None:
            self._process.send_signal(number)

    async def call(self, user: str, tool: str, timeout: float = 50, **arguments: Any) -> Any:
        """What an agent on this worker gets for a call."""
        given = {"tool": tool, "arguments": arguments, "timeout": timeout}
        cookies = {"user": user}
        async with httpx2.AsyncClient(timeout=90, cookies=cookies, verify=_NO_TLS) as client:
            return (await client.post(f"{self.url}/agent", json=given)).json()


class Fleet:
    """Three workers behind a balancer. `origin` is where their pages are."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="transom-fleet-")
        self._effects = Path(self._folder.name) / "effects"
        self.redis = RedisServer()
        self.workers = [Worker(self.redis.url, self._effects) for _ in range(3)]
        self.balancer = Balancer([])
        self.origin = ""

    async def __aenter__(self) -> Self:
        self.redis.start()
        try:
            self.origin = f"http://localhost:{await self.balancer.start()}"
            await self.restore()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.balancer.aclose()
        await asyncio.gather(*(worker.stop() for worker in self.workers))
        self.redis.__exit__()
        self._folder.cleanup()

    async def restore(self) -> None:
        """Start what was killed, and have all workers take connections."""
        await asyncio.gather(*(each.start() for each in self.workers if not each.running))
        self.through(*self.workers)

    def through(self, *workers: Worker) -> None:
        """Have new connections of pages come to these workers, in turn."""
        self.balancer.targets = [worker.port for worker in workers]

    def effects(self) -> Counter[str]:
        """What the server was made to do, and how often."""
        return Counter(self._effects.read_text().splitlines())

    async def effect(self, line: str) -> None:
        """Wait until the server was made to do that."""
        await until(lambda: self._did(line))

    async def _did(self, line: str) -> bool:
        return self._effects.exists() and line in self.effects()


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until that is so, in another process; what it was then."""
    async with asyncio.timeout(WITHIN):
        while not (found := await look()):  # noqa: ASYNC110 - other processes have no event for it
            await asyncio.sleep(0.05)
    return found
