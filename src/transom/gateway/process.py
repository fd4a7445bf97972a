"""A server that runs as a process of ours: its pipes as a Channel, and its end.

1. It gets our environment and what is configured for it: whoever started the gateway meant it so.
2. It leads a process group of its own. Closing shuts its standard input first, as MCP says; what is
   left of the group after a moment is asked to end, and then made to.
3. One that crashes is gone, even when something that it started still holds its pipes open.
4. What it says on its standard error goes to ours. The end of it is kept, for when it dies.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

from transom.channel import Channel, lines
from transom.errors import ChannelClosed, NotConnected
from transom.host.stderr import Stderr

__all__ = ["ServerProcess"]

_LEAVES_WITHIN = 2.0  # seconds after its input ended
_ENDS_WITHIN = 2.0  # seconds after it was asked to
_LINGERS = 0.5  # seconds in which the last words of one that crashed are still read


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells when the process is gone; `Process.wait` also waits for the end of its pipes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=2**16, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class ServerProcess:
    """A Channel to a process. Make it with `start`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        exited: asyncio.Event,
        channel: Channel,
        stderr: Stderr,
    ) -> None:
        self._process = process
        self._exited = exited
        self._channel = channel
        self._stderr = stderr
        self._closing: asyncio.Task[None] | None = None
        self._watching = asyncio.create_task(self._watch())
        self.send = channel.send
        self.send_nowait = getattr(channel, "send_nowait")  # noqa: B009 - `lines` has it

    @classmethod
    async def start(
        cls, command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> ServerProcess:
        """Start a command that speaks MCP on its standard input and output.

        Raises:
            NotConnected: it cannot be started.
        """
        environment = {**os.environ, **(env or {})}
        if shutil.which(command[0], path=environment.get("PATH")) is None:
            raise NotConnected(f"There is no command {command[0]!r}")
        loop = asyncio.get_running_loop()
        stderr = await Stderr().__aenter__()
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: _Protocol(loop),
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr.file,
                env=environment,
                cwd=cwd,
                start_new_session=True,
            )
        except BaseException as error:
            await stderr.__aexit__(None, None, None)
            if isinstance(error, OSError):
                raise NotConnected(f"{command[0]!r} cannot be started: {error}") from error
            raise
        process = asyncio.subprocess.Process(transport, protocol, loop)
        assert process.stdin is not None  # noqa: S101 - for the type checker
        assert process.stdout is not None  # noqa: S101 - as above
        return cls(process, protocol.exited, lines(process.stdout, process.stdin), stderr)

    @property
    def pid(self) -> int:
        """The process, which is also the group."""
        return self._process.pid

    async def receive(self) -> bytes:
        """The next message.

        Raises:
            ChannelClosed: the process is gone; the text says how it went.
        """
        try:
            return await self._channel.receive()
        except ChannelClosed:
            if self._closing is not None:
                raise
            raise ChannelClosed(await self._how_it_went()) from None

    async def _watch(self) -> None:
        # One that leaves with 0 may have handed its pipes to the real server, as some wrappers do.
        await self._exited.wait()
        if self._process.returncode != 0:
            await asyncio.sleep(_LINGERS)
            await self._channel.aclose()

    async def _how_it_went(self) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._process.wait()
        code = self._process.returncode
        if code is None:
            return "it closed its output"
        how = f"it exited with code {code}"
        if code < 0:
            with suppress(ValueError):
                how = f"it was ended by {signal.Signals(-code).name}"
        last = await self._stderr.last_words()
        return f"{how}; its last words: {last}" if last else how

    async def aclose(self) -> None:
        """End the process and everything it started. Safe to repeat."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())
        await asyncio.shield(self._closing)

    async def _end(self) -> None:
        self._watching.cancel()
        await self._channel.aclose()
        for patience, kill in ((_LEAVES_WITHIN, signal.SIGTERM), (_ENDS_WITHIN, signal.SIGKILL)):
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._process.wait()
            # Also when the leader has left by itself: its children may not have.
            if not self._signal(kill):
                break
        await self._process.wait()
        await self._stderr.__aexit__(None, None, None)

    def _signal(self, number: signal.Signals) -> bool:
        """Whether there was anybody left to hear it."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True
