"""The tasks of servers and Views, under ids of the host."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from transom.types import Task


def owned_task(owner: str, task: Task) -> Task:
    """The task with the host's id for it, `OWNER/ID`: two Views may use the same id."""
    return msgspec.structs.replace(task, task_id=f"{owner}/{task.task_id}")


class TaskRegister:
    """The newest tasks that servers gave to Views. They outlive the View."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._servers: OrderedDict[tuple[str, str], str] = OrderedDict()

    def add(self, view_id: str, task_id: str, server: str) -> None:
        """Record that `server` gave a View this task."""
        self._servers[view_id, task_id] = server
        if len(self._servers) > self._limit:
            self._servers.popitem(last=False)

    def server_of(self, view_id: str, task_id: str) -> str | None:
        """The server that gave a View this task, if one did."""
        return self._servers.get((view_id, task_id))
