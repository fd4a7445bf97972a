"""A server that runs as a child process: its pipes as a Channel, and how it ends.

1. It leads a process group of its own. Closing closes its standard input first, as MCP specifies;
   after two seconds the rest of the group is terminated, and then killed.
2. A process that crashes is gone, even when something that it started still holds its pipes open.
3. Its standard error is copied to ours, without records of the levels INFO and DEBUG (unless
   `transom.servers` is logged at INFO). Before its first message, the copy is delayed by three
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
import shutil
import signal
import threading
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from transom.channel import lines
from transom.errors import SERVER_ERROR, ChannelClosed, NotConnected

_log = logging.getLogger("transom.servers")

MAX_LINE = 32 * 1024 * 1024

_LEAVES_WITHIN = 2.0  # seconds after its input ended
_ENDS_WITHIN = 2.0  # seconds after it was terminated
_LINGERS = 0.5  # seconds for which the output of a crashed process is still read
_DIES_WITHIN = 1.0  # seconds between the end of its output and its exit

# The variables that a server needs to run. Any other may be a secret.
_BASIC_ENVIRONMENT = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR"),
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT"),
    *("PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)


class ServerProcess:
    """A Channel to a process. Make it with `start`."""

    def __init__(
        self, transport: asyncio.SubprocessTransport, protocol: _Protocol, max_line: int
    ) -> None:
        def error_for(beginning: bytes, end: bytes) -> bytes | None:
            # Loaded here, so that a gateway can start its server before it loads msgspec.
            from transom.protocol import wire  # noqa: PLC0415

            id = wire.answered_by_ends(beginning, end)
            text = f"The answer is longer than {max_line / 2**20:g} MB"
            return None if id is None else wire.encode_error(id, SERVER_ERROR, text)

        # `start` asked for both pipes, so both are there.
        reader = cast("asyncio.StreamReader", protocol.stdout)
        writer = cast("asyncio.StreamWriter", protocol.stdin)
        self._transport = transport
        self._protocol = protocol
        self._channel = lines(reader, writer, max_bytes=max_line, replace_long=error_for)
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
        """Start a command that speaks MCP on its standard input and output.

        `env` is added to its environment: all of ours with `inherit_env`, else only what a program
        needs to run, such as `PATH` and `HOME`.
        """
        inherited = {
            key: value
            for key, value in os.environ.items()
            if inherit_env or key.upper() in _BASIC_ENVIRONMENT or key.startswith("LC_")
        }
        environment = {**inherited, **(env or {})}
        if shutil.which(command[0], path=environment.get("PATH")) is None:
            raise NotConnected(f"There is no command {command[0]!r}")
        loop = asyncio.get_running_loop()
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: _Protocol(loop, forward_stderr=forward_stderr),
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=environment,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=_keep_no_copies if type(loop).__module__ == "uvloop" else None,
            )
        except (OSError, ValueError) as error:
            raise NotConnected(f"{command[0]!r} cannot be started: {error}") from error
        return cls(transport, protocol, max_line)

    @property
    def pid(self) -> int:
        """The process, which is also its group."""
        return self._transport.get_pid()

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
            return cast("list[bytes]", await self._channel.receive_many(limit))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        except ChannelClosed as error:
            raise ChannelClosed(await self._how_it_ended(error)) from None

    async def _how_it_ended(self, error: ChannelClosed) -> str:
        if self._closing is not None:
            return str(error)
        with suppress(TimeoutError):
            async with asyncio.timeout(_DIES_WITHIN):
                await self._protocol.exited.wait()
        code = self._transport.get_returncode()
        if code is None:
            return str(error)
        how = f"it exited with code {code}"
        if code < 0:
            with suppress(ValueError):
                how = f"it was ended by {signal.Signals(-code).name}"
        text = await self._protocol.last_output()
        _log.info("The end of its standard error:\n%s", text)
        if found := _OURS.search(text):
            return found[1].strip()
        if found := cause(text):
            return f"{how}: {found}"
        last = " / ".join([line.strip() for line in text.splitlines() if line.strip()][-3:])
        return f"{how}; its last output: {last}" if last else how

    async def _watch(self) -> None:
        # A wrapper that exits with 0 may have passed its pipes to the real server.
        await self._protocol.exited.wait()
        if self._transport.get_returncode() != 0:
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
        stdin = self._transport.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        await self._wait_exited(_LEAVES_WITHIN)
        await self._channel.aclose()
        # Also if the process exited by itself: its children may still run.
        if self._signal(force=False):
            await self._wait_exited(_ENDS_WITHIN)
            self._signal(force=True)
        if not self._protocol.exited.is_set():
            with suppress(ProcessLookupError):
                self._transport.kill()  # it left its own group
        await self._protocol.exited.wait()
        await self._protocol.wait_stderr_ended(_ENDS_WITHIN)  # its children may hold it open
        self._transport.close()

    async def _wait_exited(self, timeout: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._protocol.exited.wait()

    def _signal(self, *, force: bool) -> bool:
        """Terminate or kill the rest of the group; returns whether there was any."""
        try:
            if hasattr(os, "killpg"):
                os.killpg(self.pid, signal.SIGKILL if force else signal.SIGTERM)
            elif self._transport.get_returncode() is not None:
                return False
            elif force:
                self._transport.kill()
            else:
                self._transport.terminate()
        except (ProcessLookupError, PermissionError):
            return False
        return True


class _Protocol(SubprocessStreamProtocol):
    """The process's events: its exit, and what it writes to standard error."""

    _KEPT = 16_000  # bytes
    _HELD_FOR = 3.0  # seconds

    def __init__(self, loop: asyncio.AbstractEventLoop, *, forward_stderr: bool) -> None:
        super().__init__(limit=2**16, loop=loop)
        # Not `Process.wait`, which also waits until the pipes are closed.
        self.exited = asyncio.Event()
        self._stderr_ended = asyncio.Event()
        self._quiet = _QuietLines() if forward_stderr else None
        self._timer: asyncio.TimerHandle | None = None
        self._held: bytes | None = b""
        self._tail = b""

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd == 2 and isinstance(data, bytes):
            self._tail = (self._tail + data)[-self._KEPT :]
            self._pass_on(data)
        else:
            if data[:1] in (b"{", b"["):  # a message, rather than output of a script
                self._release()
            super().pipe_data_received(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        super().pipe_connection_lost(fd, exc)
        if fd == 2:
            self._pass_on(b"")
            self._stderr_ended.set()

    def _pass_on(self, data: bytes) -> None:
        if self._quiet is None:
            return
        if self._held is None:
            _stderr.write(self._quiet.feed(data))
            return
        self._held += data
        if len(self._held) > self._KEPT:  # more than the error would contain
            self._release()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._HELD_FOR, self._release_if_alive)

    def _release_if_alive(self) -> None:
        if not self.exited.is_set():
            self._release()

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            if self._timer is not None:
                self._timer.cancel()
            if held:
                self._pass_on(held)

    async def wait_stderr_ended(self, timeout: float) -> None:
        """Wait until its standard error is closed, for at most `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._stderr_ended.wait()

    async def last_output(self) -> str:
        """The end of its standard error, once the process is gone."""
        await self.wait_stderr_ended(1.0)
        return self._tail.decode(errors="replace")


def _keep_no_copies() -> None:
    """Prevent duplicate pipes in a child of uvloop, which would hide that it closed one."""
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):  # noqa: PTH208 - little may be done between fork and exec
            with suppress(OSError):  # the descriptor of the listing itself is closed by now
                os.set_inheritable(int(name), int(name) < 3)


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
_NOT_THE_USERS = re.compile(
    r"<frozen |<string>|[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|"
    + re.escape(str(Path(__file__).parents[1]))
)


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
    own = [frame for frame in frames if not _NOT_THE_USERS.search(frame["file"])]
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
