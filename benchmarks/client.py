"""A client of MCP that is nothing but JSON on a process's pipes: what it costs is next to nothing.

It is the same for a server and for whatever stands in front of it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

__all__ = ["HELLO", "Client", "client_of"]

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
_MAX_LINE = 64 * 1024 * 1024
_LEAVES_WITHIN = 30.0


class _Message(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: Any = None


class Client:
    """Asks a process, and tells it things. Make it with `client_of`.

    Args:
        process: the server.
        stderr: told of each line on its standard error.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, stderr: Callable[[str], object] | None = None
    ) -> None:
        self.process = process
        self.stray: list[str] = []
        """Lines that are no message, or answer nothing that was asked."""
        self.on_note: Callable[[str], object] = lambda _: None
        """Told the method of each notification."""
        self.given_up: set[int | str | None] = set()
        """What was cancelled: it may be answered or not."""
        self._waiting: dict[int | str | None, asyncio.Future[_Message]] = {}
        self._ids = itertools.count(1)
        self._decoder = msgspec.json.Decoder(_Message)
        self._tasks = [asyncio.create_task(self._read())]
        if stderr is not None:
            self._tasks.append(asyncio.create_task(self._pass_on(stderr)))

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            try:
                message = self._decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                self.stray.append(line[:200].decode(errors="replace"))
                continue
            if message.method is not None:
                self.on_note(message.method)
            elif (waiting := self._waiting.pop(message.id, None)) is not None:
                if not waiting.done():
                    waiting.set_result(message)
            elif message.id not in self.given_up:
                self.stray.append(line[:200].decode(errors="replace"))
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("The server ended"))

    async def _pass_on(self, told: Callable[[str], object]) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            told(line.decode(errors="replace").rstrip())

    def _say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def tell(self, method: str, params: object = None) -> None:
        """Say something that wants no answer."""
        self._say({"method": method, **({} if params is None else {"params": params})})

    def begin(self, method: str, params: object = None) -> tuple[int, asyncio.Future[_Message]]:
        """Ask; the id and what the answer will be in."""
        id = next(self._ids)
        waiting = self._waiting[id] = asyncio.get_running_loop().create_future()
        self._say({"id": id, "method": method, **({} if params is None else {"params": params})})
        return id, waiting

    def cancel(self, id: int) -> None:
        """Give up a request."""
        self._waiting.pop(id, None)
        self.given_up.add(id)
        self.tell("notifications/cancelled", {"requestId": id, "reason": "not needed"})

    async def ask(self, method: str, params: object = None) -> msgspec.Raw:
        """Ask, and wait for the result as JSON.

        Raises:
            RuntimeError: the server's error.
        """
        _, waiting = self.begin(method, params)
        answer = await waiting
        if answer.error is not None:
            raise RuntimeError(str(answer.error.get("message")))
        return answer.result

    async def call(self, name: str, arguments: dict[str, Any]) -> msgspec.Raw:
        """Call a tool; its result as JSON.

        Raises:
            RuntimeError: the server's error.
        """
        return await self.ask("tools/call", {"name": name, "arguments": arguments})

    async def initialize(self) -> msgspec.Raw:
        """Begin."""
        result = await self.ask("initialize", HELLO)
        self.tell("notifications/initialized")
        return result

    async def aclose(self, *, patience: float = _LEAVES_WITHIN) -> int:
        """Close the server's input; its exit code.

        Raises:
            TimeoutError: it did not leave.
        """
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(patience):
            code = await self.process.wait()
        await asyncio.gather(*self._tasks)
        return code


@asynccontextmanager
async def client_of(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    stderr: Callable[[str], object] | None = None,
) -> AsyncIterator[Client]:
    """A client of what this command starts, which ends with its block."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL if stderr is None else asyncio.subprocess.PIPE,
        limit=_MAX_LINE,
        env=env,
        cwd=cwd,
    )
    client = Client(process, stderr)
    try:
        yield client
    finally:
        if process.returncode is None:
            try:
                await client.aclose(patience=5.0)
            except TimeoutError:  # many a server does not leave when its input ends
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
