"""Calls that go on while the user is asked what their server wants to know.

A framework that is interrupted for its user comes back to a call from the beginning. The call
itself is not made twice: it waits here for the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import msgspec

from transom.host.asking.elicitation import ElicitRequest
from transom.host.tool_host import ToolHost
from transom.recent import Recent
from transom.types import ToolResult

_MAX_WAITING = 100  # calls of one agent whose user is asked


class PendingElicitation(msgspec.Struct, eq=False, frozen=True):
    """What a server asks, and where the answer goes: as `host.on_elicit` returns it."""

    server: str
    request: ElicitRequest
    answer: asyncio.Future[Any]
    certain: bool
    """Whether it is known that it belongs to this call."""

    def resolve(self, answer: object) -> None:
        """Answer it, unless it was withdrawn."""
        if not self.answer.done():
            self.answer.set_result(answer)


class AgentCall:
    """A call of a tool, and what its server asks meanwhile."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, ToolResult]]) -> None:
        self.asked: list[Any] = []
        """For the framework: what it was interrupted with so far."""
        self._questions: asyncio.Queue[PendingElicitation | None] = asyncio.Queue()
        self.task = asyncio.create_task(self._run(work))
        self.task.add_done_callback(lambda _: self._questions.put_nowait(None))

    async def _run(self, work: Callable[[], Coroutine[Any, Any, ToolResult]]) -> ToolResult:
        _current.set(self)
        return await work()

    async def ask(self, server: str, request: ElicitRequest, *, certain: bool) -> Any:
        """Have the framework ask its user; `certain`: it belongs to this call."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._questions.put_nowait(PendingElicitation(server, request, answer, certain))
        return await answer

    async def next_question(self) -> PendingElicitation | None:
        """What is asked next; None when the call has ended. Cancelled, it ends the call."""
        try:
            return await self._questions.get()
        except asyncio.CancelledError:
            self.task.cancel()
            raise


_current: ContextVar[AgentCall | None] = ContextVar("agent call", default=None)


class AgentCalls:
    """The calls of one agent. If nobody else answers what the host's servers ask, its user does."""

    def __init__(self, host: ToolHost) -> None:
        self.waiting: Recent[str, tuple[AgentCall, PendingElicitation]] = Recent(
            _MAX_WAITING, lambda held: held[0].task.cancel()
        )
        """Those whose user is asked."""
        self._running: list[AgentCall] = []
        slot = getattr(host, "on_elicit", None)
        if slot is not None and not slot:
            slot(self._elicit)

    def begin(self, work: Callable[[], Coroutine[Any, Any, ToolResult]]) -> AgentCall:
        """Begin a call."""
        call = AgentCall(work)
        self._running.append(call)
        call.task.add_done_callback(lambda _: self._running.remove(call))
        return call

    async def _elicit(self, server: str, request: ElicitRequest) -> Any:
        # Servers up to 2025-11-25 do not say for which call they ask: the newest is as good.
        call, certain = _current.get(), True
        if call is None or call.task.done():
            call = self._running[-1] if self._running else None
            certain = len(self._running) == 1
        return None if call is None else await call.ask(server, request, certain=certain)
