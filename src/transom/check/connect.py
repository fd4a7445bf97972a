"""Pipes to a server: what the checker sends and receives, message by message, unjudged.

A pipe carries whatever the server wrote. What is no JSON object comes out as `Noise`, what is too
long is dropped and comes out as `TooLong`; nothing a server does raises anything but `PipeClosed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, TypeAlias, cast

import msgspec

from transom.errors import TransomError
from transom.json_values import JsonObject

__all__ = [
    "MAX_MESSAGE",
    "Connect",
    "Incoming",
    "Noise",
    "Pipe",
    "PipeClosed",
    "TooLong",
    "parse",
    "process",
]

MAX_MESSAGE = 16 * 1024 * 1024
_CHUNK = 256 * 1024
_STDERR_LINES = 20
_PATIENCE = 1.0  # seconds for each step of asking a process to go


class PipeClosed(TransomError):
    """The server is gone. The text says how it went."""


class Noise(msgspec.Struct, frozen=True):
    """Something a server wrote that is no JSON-RPC message."""

    text: str


class TooLong(msgspec.Struct, frozen=True):
    """A message longer than the limit; it was dropped unread."""

    limit: int


Incoming: TypeAlias = "JsonObject | Noise | TooLong"


class Pipe(Protocol):
    """One connection to a server."""

    async def send(self, message: JsonObject, headers: Mapping[str, str]) -> None:
        """Send one message; `headers` matter to transports that have them.

        Raises:
            PipeClosed: the server is gone.
        """
        ...

    async def receive(self) -> Incoming:
        """The next thing the server wrote.

        Raises:
            PipeClosed: the server is gone.
        """
        ...


Connect = Callable[[], AbstractAsyncContextManager[Pipe]]


def process(
    argv: Sequence[str],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    max_message: int = MAX_MESSAGE,
) -> Connect:
    """Run a command for each connection and talk to it over stdin and stdout.

    It gets this process's environment, with `env` on top. Its whole process group is ended when
    the connection is closed.
    """

    @contextlib.asynccontextmanager
    async def connect() -> AsyncGenerator[Pipe, None]:
        try:
            running = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise PipeClosed(f"the server cannot be started: {error}") from error
        pipe = _ProcessPipe(running, max_message)
        listening = asyncio.create_task(pipe.keep_stderr())
        try:
            yield pipe
        finally:
            await _stop(running)
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    return connect


class _ProcessPipe:
    def __init__(self, running: asyncio.subprocess.Process, max_message: int) -> None:
        self._process = running
        # All three were asked for, so all three are there.
        self._in = cast("asyncio.StreamWriter", running.stdin)
        self._out = cast("asyncio.StreamReader", running.stdout)
        self._err = cast("asyncio.StreamReader", running.stderr)
        self._max_message = max_message
        self._buffer = bytearray()
        self._searched = 0
        self._dropping = False
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)

    async def send(self, message: JsonObject, headers: Mapping[str, str]) -> None:
        del headers  # stdio has none
        try:
            self._in.write(msgspec.json.encode(message) + b"\n")
            await self._in.drain()
        except (OSError, RuntimeError) as error:
            raise PipeClosed(await self._obituary()) from error

    async def receive(self) -> Incoming:
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                if self._dropping:
                    self._dropping = False
                    return TooLong(self._max_message)
                if line.strip():
                    return parse(line)
                continue
            self._searched = len(self._buffer)
            if self._searched > self._max_message:
                self._dropping = True
            if self._dropping:
                self._buffer.clear()
                self._searched = 0
            chunk = await self._out.read(_CHUNK)
            if not chunk:
                raise PipeClosed(await self._obituary())
            self._buffer += chunk

    async def keep_stderr(self) -> None:
        """Read stderr for as long as there is any, keeping the last lines."""
        rest = b""
        while chunk := await self._err.read(_CHUNK):
            *lines, rest = (rest + chunk[-8192:]).split(b"\n")
            self._stderr.extend(line.decode(errors="replace")[:200] for line in lines if line)
            rest = rest[-8192:]
        if rest:
            self._stderr.append(rest.decode(errors="replace")[:200])

    async def _obituary(self) -> str:
        """How the process ended, and its last words."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _PATIENCE)
        code = self._process.returncode
        if code is None:
            how = "the server closed its output but is still running"
        elif code < 0:
            how = f"the server was ended by signal {-code}"
        else:
            how = f"the server exited with code {code}"
        words = " / ".join(list(self._stderr)[-3:])
        return f"{how}; its last words: {words}" if words else how


def parse(line: bytes) -> Incoming:
    """Read one line of JSON-RPC."""
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Noise(line[:200].decode(errors="replace"))
    if not isinstance(message, dict):
        return Noise(line[:200].decode(errors="replace"))
    return cast("JsonObject", message)


async def _stop(running: asyncio.subprocess.Process) -> None:
    """Close stdin, then terminate, then kill; each step gets a moment."""
    if running.stdin is not None:
        running.stdin.close()
    # What it still writes must not keep it from ending.
    drained = asyncio.create_task(_drain(running.stdout))
    try:
        for step in (None, "terminate", "kill"):
            if step is not None:
                _end(running, force=step == "kill")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(running.wait(), _PATIENCE)
                break
        # Children it left behind hold its pipes; they go with it.
        _end(running, force=True)
    finally:
        drained.cancel()
        await asyncio.gather(drained, return_exceptions=True)


async def _drain(stream: asyncio.StreamReader | None) -> None:
    while stream is not None and await stream.read(_CHUNK):
        pass


def _end(running: asyncio.subprocess.Process, *, force: bool) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(running.pid, signal.SIGKILL if force else signal.SIGTERM)
        elif running.returncode is None:
            (running.kill if force else running.terminate)()
