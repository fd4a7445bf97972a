"""Starting a server that its author edits: the next process is ready before it is needed.

A Python server takes a second to start, most of it for loading packages. Where `transom.cli.serve`
runs it, a spare process has loaded them and waits; the server's own files are loaded at the start.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from transom.background import ignore
from transom.channel import Channel
from transom.connections.process import ServerProcess
from transom.connections.spawn import Process, signal_group, spawn
from transom.connections.targets import ServerOpener, Target, identity_of

SERVE = "transom.cli.serve"
"""The module that runs servers of Python files and modules."""


class DevTarget(NamedTuple):
    """What is developed.

    The author calls it `shown`. A change in `folder` starts it again; one without runs elsewhere.
    """

    name: str
    shown: str
    server: Target
    folder: Path | None = None


class ServerStarter:
    """Starts a server again and again. Its `target` is for `Host.add_server`.

    Only a command is started here; any other server is connected as it is. `on_output` is called
    with all that it writes to its standard error, `tell` with a line if it does not come up, once
    for each cause, and when it runs after that; `shown` is what it is called there.
    """

    def __init__(
        self,
        server: Target,
        on_output: Callable[[bytes], object],
        shown: str = "",
        tell: Callable[[str], object] = ignore,
    ) -> None:
        self._command: list[str] = [] if not isinstance(server, list) else server
        self.target: Target = server
        """A new process for each connection."""
        if self._command:
            self.target = ServerOpener(self._start, identity_of(server))
        self._on_output = on_output
        self._shown = shown
        self._tell = tell
        self._trouble = ""  # that was told, until the server runs
        self._spare: Process | None = None
        self._last: ServerProcess | None = None

    def prepare(self) -> None:
        """Have a spare process load what the next start needs, if there is none."""
        if SERVE in self._command and self._spare is None:
            at = self._command.index(SERVE) + 1
            spare = [*self._command[:at], "--spare", *self._command[at:]]
            self._spare = spawn(spare, inherit_env=False)

    async def last_output(self) -> str:
        """What the process that was started last wrote to its standard error before it ended."""
        return "" if self._last is None else await self._last.last_output()

    def tell_failure(self, reason: str) -> None:
        """It does not come up."""
        if reason != self._trouble:
            self._trouble = reason
            self._tell(f"{self._shown} does not come up: {reason}")

    def tell_running(self) -> None:
        """It runs."""
        if self._trouble:
            self._trouble = ""
            self._tell(f"{self._shown} is running")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the spare process."""
        spare, self._spare = self._spare, None
        if spare is not None:
            signal_group(spare, force=True)
            for pipe in (spare.stdin, spare.stdout, spare.stderr):
                if pipe is not None:
                    pipe.close()
            spare.wait()

    async def _start(self) -> Channel:
        process, self._spare = self._spare, None
        if process is not None:
            with suppress(OSError):  # it has died: its end says why
                if process.stdin is not None:
                    process.stdin.write(b"\n")
        if process is None or process.poll() is not None:
            process = spawn(self._command, inherit_env=False)
        self._last = await ServerProcess.adopt(process, on_stderr=self._on_output)
        return self._last
