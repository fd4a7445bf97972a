"""A View's tools, asked for by its host.

1. Nothing is asked of a View that is not ready, or that did not say that it has tools.
2. An answer is checked and no larger than the limits allow; a View that claims progress may take
   longer, but not for ever.
3. The time a caller gives is for all of it: the wait for the View, and the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from transom.errors import CapabilityMissing, InvalidResult, PeerError, RequestTimeout
from transom.host.definitions import Definitions
from transom.host.policy import Limits
from transom.host.readiness import Readiness
from transom.host.values import object_json
from transom.protocol import wire
from transom.protocol.lifecycle import State
from transom.protocol.messages import TaskRequest
from transom.protocol.methods import HOST
from transom.session import OnProgress, Session
from transom.types import Task, Tool, ToolResult

__all__ = ["ViewTools"]

_READY = State.READY  # looking a member up in its enum is slow, and every call does
_decode_result = msgspec.json.Decoder(ToolResult).decode
_read_result = HOST["tools/call"].read_result


class _TaskAnswer(msgspec.Struct):
    task: Task


_decode_task = msgspec.json.Decoder(_TaskAnswer).decode


class ViewTools:
    """Lists and calls the tools of one View.

    Args:
        session: the conversation with the View.
        readiness: whether the View can be spoken to.
        limits: how much the View may cost.
        report: told of definitions that had to be left out.
    """

    def __init__(
        self,
        session: Session,
        readiness: Readiness,
        limits: Limits,
        report: Callable[[BaseException], object],
    ) -> None:
        self.offered = False
        """Whether the View said that it has tools."""
        self.app = "the View"
        """How the View names itself."""
        self.left_out: Mapping[str, str] = {}
        """Tools of the last listing that could not be used, with the reason."""
        self._session = session
        self._readiness = readiness
        self._lifecycle = readiness.lifecycle
        self._limits = limits
        self._report = report
        self._definitions = Definitions(limits)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
        task: TaskRequest | Mapping[str, Any] | None,
    ) -> Any:
        """Call a tool; a `ToolResult`, or the `Task` it has become."""
        if timeout is None:
            timeout = self._limits.call_timeout
        if self._lifecycle.state is not _READY or not self.offered:
            timeout = await self._until_callable("tools/call", timeout)
        call: dict[str, Any] = {"name": name}
        if arguments is not None:
            call["arguments"] = arguments if isinstance(arguments, dict) else dict(arguments)
        if task is not None:
            call["task"] = Raw(object_json(task))
        params = wire.encode(call)
        if on_progress is None:
            raw = await self._session.request("tools/call", params, timeout=timeout)
        else:
            raw = await self._call_with_progress(params, timeout, on_progress)
        if len(raw) > self._limits.max_result_bytes:
            raise self._too_large(name, raw)
        try:
            result = _decode_result(raw)
            if not result.extra:
                return result
        except (msgspec.DecodeError, RecursionError, ValueError):
            pass  # keys we do not know, or no result at all: sorted out below
        result = _read_result(raw)
        if "task" in result.extra and not result.content:
            return self._task_handle(name, raw, asked=task is not None)
        return result

    async def _call_with_progress(
        self, params: bytes, timeout: float, on_progress: OnProgress
    ) -> Raw:
        longest = max(timeout, self._limits.max_call_time)
        try:
            async with asyncio.timeout(longest):
                return await self._session.request(
                    "tools/call", params, timeout=timeout, on_progress=on_progress
                )
        except TimeoutError:
            raise RequestTimeout(f"tools/call: no answer within {longest:g} s") from None

    @staticmethod
    def _task_handle(name: str, raw: Raw, *, asked: bool) -> Task:
        if not asked:
            raise InvalidResult(f"{name}: the View answered with a task that nobody asked for")
        try:
            return _decode_task(raw).task
        except msgspec.DecodeError as error:
            raise InvalidResult(f"{name}: {error}") from None

    async def list_all(self, timeout: float | None) -> list[Tool]:
        """The tools, all pages, without those that cannot be used."""
        limit = self._limits.list_timeout if timeout is None else timeout
        clock = asyncio.get_running_loop().time
        deadline = clock() + limit
        if self._lifecycle.state is not _READY or not self.offered:
            await self._until_callable("tools/list", limit)

        def ask(params: bytes) -> Awaitable[Raw]:
            left = max(deadline - clock(), 0.001)
            return self._session.request("tools/list", params, timeout=left)

        listing = await self._definitions.list_all(ask)
        before, self.left_out = self.left_out, listing.left_out
        for name, reason in listing.left_out.items():
            if before.get(name) != reason:
                what = f"{name} left out: " if name else ""
                self._report(PeerError(f"tools/list: {what}{reason}"))
        return list(listing.tools.values())

    async def ask(self, method: str, params: dict[str, Any], timeout: float | None) -> Any:
        """Ask something else about tools, such as how a task is doing."""
        limit = self._limits.call_timeout if timeout is None else timeout
        left = await self._until_callable(method, limit)
        raw = await self._session.request(method, wire.encode(params), timeout=left)
        if len(raw) > self._limits.max_result_bytes:
            raise self._too_large(method, raw)
        return HOST[method].read_result(raw)

    def _too_large(self, what: str, raw: Raw) -> InvalidResult:
        size = f"{len(raw)} bytes is over the limit of {self._limits.max_result_bytes}"
        return InvalidResult(f"{what}: a result of {size}")

    async def _until_callable(self, method: str, timeout: float) -> float:
        """Wait until the View is ready, and see that it has tools; the time that is left."""
        left = await self._readiness.until_ready(method, timeout)
        if not self.offered:
            text = f"{method}: {self.app} did not declare the tools capability"
            raise CapabilityMissing(text)
        return left
