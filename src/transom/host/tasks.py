"""The tasks of servers and Views, under ids of the host."""

from __future__ import annotations

import msgspec

from transom.recent import Recent
from transom.types import Task


def owned_task(owner: str, task: Task) -> Task:
    """The task with the host's id for it, `OWNER/ID`: two Views may use the same id."""
    return msgspec.structs.replace(task, task_id=f"{owner}/{task.task_id}")


MAX_TASKS = 10_000
TaskServers = Recent[tuple[str, str], str]
"""By View and task id: the server that gave the View this task. They outlive the View."""
