"""A worker in a process of its own: `python -m tests.bus.workers URL NAME`.

It claims the name, says so in a line, and answers `rpc`: `echo` with the params, `hang` never. For
each request it prints a line with the method.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from tests.processes import ended
from transom.bus import Bus
from transom.channel import Channel
from transom.protocol import wire
from transom.session import Session


def say(text: str) -> None:
    """Print a line that whoever started this process waits for."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def quick(url: str, lease: float = 4.0) -> Bus:
    """A bus that notices soon what happened to others; `lease`: how soon it counts as dead."""
    return Bus(url, lease=lease)


async def answer(name: str, hello: bytes, channel: Channel) -> None:
    """Serve requests: see above."""

    async def hang() -> bytes:
        await asyncio.Event().wait()
        return b""

    def on_request(request: wire.Request) -> object:
        say(request.method)
        if request.method == "hang":
            return hang()
        return bytes(request.params) if request.params is not None else b"{}"

    async with Session(channel, on_request=on_request, on_notification=lambda _: None) as session:
        await session.wait_closed()


def calls(channel: Channel) -> Session:
    """The other end of `answer`."""
    return Session(channel, on_request=lambda _: b"{}", on_notification=lambda _: None, timeout=20)


class Opened:
    """Hands over the channels that were opened, and keeps them until `let_go`."""

    over: ClassVar[list[asyncio.Event]] = []

    def __init__(self, bus: Bus, kind: str = "pipe") -> None:
        self.queue: asyncio.Queue[tuple[str, bytes, Any]] = asyncio.Queue()
        self._over = asyncio.Event()
        self.over.append(self._over)
        bus.on_open(kind, self._handle)

    async def _handle(self, name: str, hello: bytes, channel: Channel) -> None:
        self.queue.put_nowait((name, hello, channel))
        await self._over.wait()

    async def next(self) -> tuple[str, bytes, Any]:
        async with asyncio.timeout(20):
            return await self.queue.get()

    @classmethod
    def let_go(cls) -> None:
        """Let every handler return."""
        while cls.over:
            cls.over.pop().set()


async def until(look: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Wait until that is to be seen."""
    async with asyncio.timeout(20):
        while await look() != wanted:  # noqa: ASYNC110 - in Redis, which has no event for it
            await asyncio.sleep(0.02)


async def _run(url: str, name: str) -> None:
    async with quick(url, 2.0) as bus:
        bus.on_open("rpc", answer)
        assert await bus.claim(name, lambda _: None) is not None
        say("ready")
        await asyncio.Event().wait()


@asynccontextmanager
async def worker(url: str, name: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Such a process that has the name; killed in the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bus.workers", url, name),
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await ended(process)


if __name__ == "__main__":
    asyncio.run(_run(*sys.argv[1:]))
