"""A server as one of its Views reaches it: every call noted, and its tasks remembered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from transom.errors import INVALID_PARAMS, ProtocolError
from transom.host.audit import AuditLog
from transom.host.forward import Relay, Upstream
from transom.host.policy import view_may_call
from transom.host.tasks import Tasks
from transom.types import Task, Tool

__all__ = ["ViewServer"]

_TASK_METHODS = frozenset({"tasks/get", "tasks/result", "tasks/cancel"})


class _MaybeTask(msgspec.Struct):
    task: Task | None = None


class ViewServer:
    """An `Upstream` that watches what one View does with it.

    Args:
        upstream: the View's server.
        server: its name.
        view_id: the View.
        audit: told of each call and each refusal.
        tasks: told of the tasks that the server gave the View.
        used: called when the View asks for something.
    """

    __slots__ = ("_audit", "_server", "_tasks", "_upstream", "_used", "_view_id")

    def __init__(
        self,
        upstream: Upstream,
        server: str,
        view_id: str,
        audit: AuditLog,
        tasks: Tasks,
        used: Callable[[], object],
    ) -> None:
        self._upstream = upstream
        self._server = server
        self._view_id = view_id
        self._audit = audit
        self._tasks = tasks
        self._used = used

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server can do, as on the wire."""
        return self._upstream.capabilities

    async def tools(self) -> Mapping[str, Tool]:
        """All tools of the server by name."""
        return await self._upstream.tools()

    async def tool(self, name: str) -> Tool | None:
        """One of them, as the View is about to call it."""
        tool = await self._upstream.tool(name)
        if tool is None or not view_may_call(tool):
            why = "not found" if tool is None else "its visibility lacks 'app'"
            self._audit.record(
                "refusal",
                "refused",
                server=self._server,
                view=self._view_id,
                tool=name[:128],
                by=self._view_id,
                detail=why,
            )
        return tool

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: Relay | None = None
    ) -> bytes:
        """Ask the server.

        Raises:
            ProtocolError: the server's error, or that the task is none of this View's.
        """
        self._used()
        if method in _TASK_METHODS:
            task_id = params.get("taskId")
            if not isinstance(task_id, str) or not self._tasks.handed(self._view_id, task_id):
                raise ProtocolError(INVALID_PARAMS, "Task not found")
        if method != "tools/call":
            return await self._upstream.request(method, params, on_progress=on_progress)
        began, outcome, detail = time.perf_counter(), "cancelled", None
        try:
            result = await self._upstream.request(method, params, on_progress=on_progress)
            outcome = "ok"
        except ProtocolError as error:
            outcome, detail = "failed", str(error)[:500]
            raise
        finally:
            self._audit.record(
                "call",
                outcome,
                server=self._server,
                tool=str(params.get("name"))[:128],
                arguments=params.get("arguments"),
                ms=round((time.perf_counter() - began) * 1000, 3),
                by=self._view_id,
                detail=detail,
            )
        if params.get("task") is not None:
            self._note_task(result)
        return result

    def _note_task(self, result: bytes) -> None:
        try:
            task = msgspec.json.decode(result, type=_MaybeTask).task
        except msgspec.DecodeError:
            return
        if task is not None:
            self._tasks.hand(self._view_id, task.task_id, self._server)

    def subscribe(self, observer: Callable[[str], object]) -> Callable[[], None]:
        """Call `observer` with the method of each `list_changed`. Returns how to stop that."""
        return self._upstream.subscribe(observer)
