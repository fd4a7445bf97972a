"""A server that runs as a child process: its pipes as a Channel, and how it ends.

1. It leads a process group of its own. Closing closes its standard input first, as MCP specifies;
   after two seconds the rest of the group is terminated, and then killed.
2. A process that crashes is gone, even when something that it started still holds its pipes open.
3. Its standard error is copied to ours, without records of the levels INFO and DEBUG (unless
   `transom.connections` is logged at INFO). Before its first message, the copy is delayed by three
   seconds: if it dies by then, the error contains it, and nothing is printed twice. If nobody reads
   our standard error, that output is dropped and never blocks us.
4. A line that is not JSON in UTF-8 is passed on: the reader of messages refuses it. A line over the
   limit is dropped, and the request that it answers gets an error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import re
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from transom.channel import lines, pipe_streams
from transom.connections.spawn import Process, signal_group, spawn
from transom.errors import SERVER_ERROR, ChannelClosed
from transom.protocol import wire

_log = logging.getLogger("transom.connections")

MAX_LINE = 32 * 1024 * 1024

_LEAVES_WITHIN = 2.0  # seconds after its input ended
_ENDS_WITHIN = 2.0  # seconds after it was terminated
_LINGERS = 0.5  # seconds for which the output of a crashed process is still read
_PIPE_SIZE = 2**18  # bytes, as much as is read at once
_DIES_WITHIN = 1.0  # seconds between the end of its output and its exit


class ServerProcess:
    """A Channel to a process. Make it with `start` or `adopt`."""

    def __init__(
        self,
        process: Process,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        exited: asyncio.Event,
        stderr: _StandardError,
        max_line: int,
    ) -> None:
        def error_for(beginning: bytes, end: bytes) -> bytes | None:
            id = wire.answered_by_ends(beginning, end)
            text = f"The answer is longer than {max_line / 2**20:g} MB"
            return None if id is None else wire.encode_error(id, SERVER_ERROR, text)

        self._process = process
        self._exited = exited
        self._stderr = stderr
        self._input = streams[1]
        self._channel = lines(*streams, max_bytes=max_line, replace_long=error_for)
        self._closing: asyncio.Task[None] | None = None
        self._watching = asyncio.create_task(self._watch())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        inherit_env: bool = True,
        forward_stderr: bool = True,
        max_line: int = MAX_LINE,
    ) -> ServerProcess:
        """Start a command that speaks MCP on its standard input and output; see `spawn`."""
        process = spawn(command, env=env, cwd=cwd, inherit_env=inherit_env)
        return await cls.adopt(process, forward_stderr=forward_stderr, max_line=max_line)

    @classmethod
    async def adopt(
        cls,
        process: Process,
        *,
        forward_stderr: bool = True,
        on_stderr: Callable[[bytes], object] | None = None,
        max_line: int = MAX_LINE,
    ) -> ServerProcess:
        """Use a process that was started by `spawn`; if this is cancelled, end it.

        `on_stderr` is called with all that it writes to its standard error.
        """
        connecting = asyncio.ensure_future(
            cls._connect(process, forward_stderr, on_stderr, max_line)
        )
        try:
            return await asyncio.shield(connecting)
        except BaseException:
            signal_group(process, force=True)
            await (await connecting).aclose()
            raise

    @classmethod
    async def _connect(
        cls,
        process: Process,
        forward_stderr: bool,
        on_stderr: Callable[[bytes], object] | None,
        max_line: int,
    ) -> ServerProcess:
        loop = asyncio.get_running_loop()
        exited = asyncio.Event()
        # Not a process of asyncio's, which has not ended before its pipes have.
        threading.Thread(
            target=_wait, args=(process, loop, exited), name="transom-server", daemon=True
        ).start()
        stderr = _StandardError(exited, on_stderr, forward=forward_stderr)
        await loop.connect_read_pipe(lambda: stderr, process.stderr)
        _widen(process.stdout)
        _widen(process.stdin)
        streams = await pipe_streams(process.stdout, process.stdin)
        return cls(process, streams, exited, stderr, max_line)

    @property
    def pid(self) -> int:
        """The process, which is also its group."""
        return self._process.pid

    # --- messages ----------------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        """Send one message."""
        try:
            await self._channel.send(data)
        except ChannelClosed as error:
            raise ChannelClosed(await self._how_it_ended(error)) from None

    def send_nowait(self, data: bytes) -> bool:
        """Send one message if that needs no waiting. False: use `send`, which also says why."""
        try:
            return cast("bool", self._channel.send_nowait(data))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        except ChannelClosed:
            return False

    async def receive(self) -> bytes:
        """The next message."""
        return (await self.receive_many(1))[0]

    async def receive_many(self, limit: int = 64) -> list[bytes]:
        """The next messages, as many as are there."""
        try:
            found = cast("list[bytes]", await self._channel.receive_many(limit))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        except ChannelClosed as error:
            raise ChannelClosed(await self._how_it_ended(error)) from None
        if self._stderr.holds and found[0][:1] in (b"{", b"["):  # rather than output of a script
            self._stderr.release()
        return found

    async def last_output(self) -> str:
        """The end of its standard error, once it is gone."""
        return await self._stderr.last_output()

    async def _how_it_ended(self, error: ChannelClosed) -> str:
        if self._closing is not None:
            return str(error)
        await _wait_for(self._exited, _DIES_WITHIN)
        code = self._process.returncode
        if code is None:
            return str(error)
        how = f"it exited with code {code}"
        if code < 0:
            with suppress(ValueError):
                how = f"it was ended by {signal.Signals(-code).name}"
        text = await self._stderr.last_output()
        _log.info("The end of its standard error:\n%s", text)
        if found := _OURS.search(text):
            return found[1].strip()
        if found := cause(text):
            return f"{how}: {found}"
        last = " / ".join([line.strip() for line in text.splitlines() if line.strip()][-3:])
        return f"{how}; its last output: {last}" if last else how

    async def _watch(self) -> None:
        # A wrapper that exits with 0 may have passed its pipes to the real server.
        await self._exited.wait()
        if self._process.returncode != 0:
            await asyncio.sleep(_LINGERS)
            await self._channel.aclose()

    # --- the end -----------------------------------------------------------------------------

    async def aclose(self) -> None:
        """End the process and everything it started. Safe to repeat."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())
        await asyncio.shield(self._closing)

    async def _end(self) -> None:
        self._watching.cancel()
        # Its input first, as MCP specifies. Its output is still read: it may answer waiting
        # requests (such as a subscription), and must not fail with a broken pipe.
        self._input.close()
        await _wait_for(self._exited, _LEAVES_WITHIN)
        await self._channel.aclose()
        # Also if the process exited by itself: its children may still run.
        if signal_group(self._process, force=False):
            await _wait_for(self._exited, _ENDS_WITHIN)
            signal_group(self._process, force=True)
        if not self._exited.is_set():
            self._process.kill()  # it left its own group
        await self._exited.wait()
        await self._stderr.wait_ended(_ENDS_WITHIN)  # its children may hold it open
        self._stderr.close()


async def _wait_for(event: asyncio.Event, timeout: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            await event.wait()


def _widen(pipe: Any) -> None:
    """Have a pipe hold a long message at once, where the system can."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl  # noqa: PLC0415 - Windows has none

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)


def _wait(process: Process, loop: asyncio.AbstractEventLoop, exited: asyncio.Event) -> None:
    process.wait()
    with suppress(RuntimeError):  # the loop is closed
        # One turn later, so that what it has written is read before.
        loop.call_soon_threadsafe(loop.call_soon, exited.set)


class _StandardError(asyncio.Protocol):
    """What a process writes to standard error."""

    _KEPT = 16_000  # bytes
    _HELD_FOR = 3.0  # seconds

    def __init__(
        self,
        exited: asyncio.Event,
        on_output: Callable[[bytes], object] | None,
        *,
        forward: bool,
    ) -> None:
        self._exited = exited
        self._on_output = on_output
        self._ended = asyncio.Event()
        self._quiet = _QuietLines() if forward else None
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.BaseTransport | None = None
        self._held: bytes | None = b""
        self._tail = b""

    @property
    def holds(self) -> bool:
        """Whether the copy is still delayed."""
        return self._held is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-self._KEPT :]
        self._pass_on(data)
        if self._on_output is not None:
            self._on_output(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        self._pass_on(b"")
        self._ended.set()

    def close(self) -> None:
        """Read no more."""
        if self._transport is not None:
            self._transport.close()

    def _pass_on(self, data: bytes) -> None:
        if self._quiet is None:
            return
        if self._held is None:
            _stderr.write(self._quiet.feed(data))
            return
        self._held += data
        if len(self._held) > self._KEPT:  # more than the error would contain
            self.release()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._HELD_FOR, self._release_if_alive)

    def _release_if_alive(self) -> None:
        if not self._exited.is_set():
            self.release()

    def release(self) -> None:
        """Copy what was held back, and everything from now on."""
        if self._held is not None:
            held, self._held = self._held, None
            if self._timer is not None:
                self._timer.cancel()
            if held:
                self._pass_on(held)

    async def wait_ended(self, timeout: float) -> None:
        """Wait until it is closed, for at most `timeout` seconds."""
        await _wait_for(self._ended, timeout)

    async def last_output(self) -> str:
        """The end of it, once the process is gone."""
        await self.wait_ended(1.0)
        return self._tail.decode(errors="replace")


_LEVEL = re.compile(
    rb"(?:\[[^\]\n]{4,40}\]|[\dTZ:.,/ +-]{8,40})?[\s\[-]*(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\b"
)


class _QuietLines:
    """Filters standard error: whole lines, without records of the levels INFO and DEBUG."""

    _LONGEST = 65_536

    def __init__(self) -> None:
        self._rest = b""
        self._routine = False

    def feed(self, data: bytes) -> bytes:
        """The part of the data to print; empty data is the end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        kept = b"".join([line + b"\n" for line in lines if self._wanted(line)])
        if not data or len(self._rest) > self._LONGEST:
            kept, self._rest = kept + self._rest, b""
        return kept

    def _wanted(self, line: bytes) -> bool:
        if level := _LEVEL.match(line):
            self._routine = level[1] in {b"DEBUG", b"INFO"} and not _log.isEnabledFor(logging.INFO)
        elif not line[:1].isspace():  # an indented line belongs to the record before
            self._routine = False
        return not self._routine


_FRAME = re.compile(
    r'^\s+File "(?P<file>[^"\n]+)", line (?P<line>\d+).*(?:\n(?P<code>\s{4,}\S.*))?', re.MULTILINE
)
_RAISED = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Warning)\b(?::.*)?$", re.MULTILINE
)
NOT_THE_USERS = re.compile(
    r"<frozen |<string>|[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|"
    + re.escape(str(Path(__file__).parents[1]))
)
"""Matches the names of files, in a traceback, that are not those of the server's author."""

_OURS = re.compile(r"^transom: (.*)", re.MULTILINE | re.DOTALL)  # what `transom.cli.serve` says


def cause(text: str) -> str:
    """The exception that ended a program, and the user's own line in its Python traceback.

    Nothing if there is no such thing in the text.
    """
    raised = list(_RAISED.finditer(text))
    if not raised:
        return ""
    begins = text.rfind("Traceback (most recent call last)", 0, raised[-1].start())
    frames = list(_FRAME.finditer(text, max(begins, 0), raised[-1].start()))
    own = [frame for frame in frames if not NOT_THE_USERS.search(frame["file"])]
    what = re.sub(r"^(?:\w+\.)+(?=\w)", "", raised[-1][0])
    if not own:
        return what
    file = Path(own[-1]["file"])
    if file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    code = f": {own[-1]['code'].strip()}" if own[-1]["code"] else ""
    return f"{what} ({file}, line {own[-1]['line']}{code})"


class _StderrWriter:
    """Writes to our standard error in a thread, because a write to an unread pipe blocks."""

    _WAITING = 256  # chunks; more are dropped

    def __init__(self) -> None:
        self._chunks: queue.Queue[bytes] = queue.Queue(self._WAITING)
        self._thread: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="transom-server-stderr", daemon=True
            )
            self._thread.start()
        with suppress(queue.Full):
            self._chunks.put_nowait(data)

    def _run(self) -> None:
        while True:
            data = self._chunks.get()
            # Not `sys.stderr`: a thread that blocks while it has its lock breaks Python's exit.
            with suppress(OSError):
                while data:
                    data = data[os.write(2, data) :]


_stderr = _StderrWriter()
