"""Asking about tasks: the View that works on one, or the server it was handed to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from transom.errors import ConnectionClosed, NotConnected, RequestTimeout, TransomError
from transom.host.servers import Servers
from transom.host.tasks import Tasks, owned_task, split_task_id
from transom.host.views import View
from transom.protocol.methods import read_result
from transom.types import Task, ToolResult

__all__ = ["TaskDesk"]


class TaskDesk:
    """Finds whoever knows about a task.

    Args:
        tasks: what servers handed to Views.
        views: the open Views.
        servers: the servers.
        gone: the error for a View that is not there any more.
    """

    def __init__(
        self,
        tasks: Tasks,
        views: Mapping[str, View],
        servers: Servers,
        gone: Callable[[str], TransomError],
    ) -> None:
        self._tasks = tasks
        self._views = views
        self._servers = servers
        self._gone = gone

    async def get(self, task_id: str) -> Task:
        """How a task is doing."""
        owner, _ = split_task_id(task_id)
        return owned_task(owner, await self._ask("get", task_id, Task, None))

    async def result(self, task_id: str, timeout: float | None) -> ToolResult:
        """What came of it, once it has ended."""
        return await self._ask("result", task_id, ToolResult, timeout)

    async def cancel(self, task_id: str) -> Task:
        """Stop it."""
        owner, _ = split_task_id(task_id)
        return owned_task(owner, await self._ask("cancel", task_id, Task, None))

    async def _ask(self, what: str, task_id: str, kind: Any, timeout: float | None) -> Any:
        owner, inner = split_task_id(task_id)
        view = self._views.get(owner)
        bridge = None if view is None else view.bridge
        if bridge is not None:
            asked = {"get": bridge.get_task, "result": bridge.task_result}
            ask: Any = asked.get(what, bridge.cancel_task)
            try:
                return await ask(inner, timeout=timeout)
            except (ConnectionClosed, NotConnected):
                pass  # it went while it was asked; its server may know
        server = owner if owner in self._servers else self._tasks.handed(owner, inner)
        if server is None:
            raise self._gone(owner)
        method = f"tasks/{what}"
        try:
            async with asyncio.timeout(timeout):
                raw = await self._servers.upstream(server).request(method, {"taskId": inner})
        except TimeoutError:
            raise RequestTimeout(f"{method}: no answer within {timeout:g} s") from None
        return read_result(method, kind, raw)
