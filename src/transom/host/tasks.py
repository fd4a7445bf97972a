"""Which tasks there are, and who can be asked about them.

A host knows a task as `OWNER/ID`, where the owner is a View or a server: two Views may well call
their tasks the same. A task that a View handed on to its server outlives the View; only those that
the server gave that very View are asked about there.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from transom.errors import INVALID_PARAMS, ProtocolError
from transom.types import Task

__all__ = ["Tasks", "owned_task", "split_task_id"]

_MAX_HANDED = 10_000


def owned_task(owner: str, task: Task) -> Task:
    """The task, under the id by which the host knows it."""
    return msgspec.structs.replace(task, task_id=f"{owner}/{task.task_id}")


def split_task_id(task_id: str) -> tuple[str, str]:
    """The owner of a task, and the owner's id of it.

    Raises:
        ProtocolError: it is no id that a host gave out.
    """
    owner, slash, inner = task_id.partition("/")
    if not slash:
        raise ProtocolError(INVALID_PARAMS, f"Task {task_id[:128]} not found")
    return owner, inner


class Tasks:
    """The tasks that servers gave to Views; the oldest are forgotten when there are too many."""

    def __init__(self) -> None:
        self._handed: OrderedDict[tuple[str, str], str] = OrderedDict()

    def hand(self, view_id: str, task_id: str, server: str) -> None:
        """Note that `server` gave a View this task."""
        self._handed[view_id, task_id] = server
        if len(self._handed) > _MAX_HANDED:
            self._handed.popitem(last=False)

    def handed(self, view_id: str, task_id: str) -> str | None:
        """The server that gave a View this task, if one did."""
        return self._handed.get((view_id, task_id))
