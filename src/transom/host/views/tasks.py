"""The tasks of servers and Views, under ids of the host."""

from __future__ import annotations

import msgspec

from transom.errors import INVALID_PARAMS, ProtocolError
from transom.recent import Recent
from transom.types import Task

_UNTRUSTED = "untrusted:"


def owned_task(owner: str, task: Task, *, untrusted: bool = False) -> Task:
    """The task with the host's id for it, `OWNER/ID`: two Views may use the same id.

    `untrusted`: its result has to be marked, which the id says as well.
    """
    mark = _UNTRUSTED if untrusted else ""
    return msgspec.structs.replace(task, task_id=f"{owner}/{mark}{task.task_id}")


def parse_task_id(task_id: str) -> tuple[str, str, bool]:
    """The owner of a task, the id that it has there, and whether its result is untrusted.

    Raises:
        ProtocolError: it is no id that `owned_task` made.
    """
    owner, slash, inner = task_id.partition("/")
    if not slash:
        raise ProtocolError(INVALID_PARAMS, f"Task {task_id[:128]} not found")
    return owner, inner.removeprefix(_UNTRUSTED), inner.startswith(_UNTRUSTED)


MAX_TASKS = 10_000
TaskServers = Recent[tuple[str, str], str]
"""By View and task id: the server that gave the View this task. They outlive the View."""
