"""What a server's process says on its standard error: passed on, and its last words kept."""

from __future__ import annotations

import asyncio
import os
import sys
from types import TracebackType
from typing import Self

__all__ = ["Stderr"]

_KEPT = 2000
_LAST_LINES = 3


class Stderr:
    """A file to hand to a process. `async with` opens and closes it."""

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        read, write = os.pipe()
        self.file = os.fdopen(write, "w")
        self._tail = b""
        self._over = loop.create_future()
        self._transport, _ = await loop.connect_read_pipe(lambda: _Tap(self), os.fdopen(read, "rb"))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.file.close()
        self._transport.close()

    def heard(self, data: bytes) -> None:
        """Pass it on, and remember the end of it."""
        self._tail = (self._tail + data)[-_KEPT:]
        sys.stderr.write(data.decode(errors="replace"))

    def ended(self) -> None:
        """Nobody can say anything more."""
        if not self._over.done():
            self._over.set_result(None)

    async def last_words(self) -> str:
        """The last lines, once the process is gone."""
        self.file.close()
        await asyncio.wait([self._over], timeout=1)
        lines = [line.strip() for line in self._tail.decode(errors="replace").splitlines()]
        return " / ".join([line for line in lines if line][-_LAST_LINES:])


class _Tap(asyncio.Protocol):
    def __init__(self, stderr: Stderr) -> None:
        self._stderr = stderr

    def data_received(self, data: bytes) -> None:
        self._stderr.heard(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._stderr.ended()
