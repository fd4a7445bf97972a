"""The ids of tasks, and which server gave a View which task.

A host knows a task as `OWNER/ID`, where the owner is a View or a server: two Views may use the
same id. A task that a server gave to a View outlives the View, so the register is kept by the host.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from transom.errors import INVALID_PARAMS, ProtocolError
from transom.types import Task


class _TaskAnswer(msgspec.Struct):
    task: Task


_decode = msgspec.json.Decoder(_TaskAnswer).decode


def task_in(result: bytes | msgspec.Raw) -> Task | None:
    """The task that a result of `tools/call` hands out; None when it is the result itself."""
    try:
        return _decode(result).task
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def owned_task(owner: str, task: Task) -> Task:
    """The task, under the id by which the host knows it."""
    return msgspec.structs.replace(task, task_id=f"{owner}/{task.task_id}")


def split_task_id(task_id: str) -> tuple[str, str]:
    """The owner of a task, and the owner's own id for it.

    Raises:
        ProtocolError: no host gave out such an id.
    """
    owner, slash, inner = task_id.partition("/")
    if not slash:
        raise ProtocolError(INVALID_PARAMS, f"Task {task_id[:128]} not found")
    return owner, inner


class TaskRegister:
    """The tasks that servers gave to Views.

    Args:
        limit: how many are kept; the oldest are dropped.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._servers: OrderedDict[tuple[str, str], str] = OrderedDict()

    def add(self, view_id: str, task_id: str, server: str) -> None:
        """Keep that `server` gave a View this task."""
        self._servers[view_id, task_id] = server
        if len(self._servers) > self._limit:
            self._servers.popitem(last=False)

    def server_of(self, view_id: str, task_id: str) -> str | None:
        """The server that gave a View this task, if one did."""
        return self._servers.get((view_id, task_id))
