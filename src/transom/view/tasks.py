"""Calls that became tasks: work that continues after its call was answered.

1. A tool declares whether it may (`task="optional"`) or must (`"required"`) run as a task.
2. A task is stored for its `ttl` after it was created, whether or not it has ended; at most
   `max_tasks` are stored.
3. A handler may return a task of the server. Then the host gets its handle, and the host's requests
   about it are forwarded to the server.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from math import ceil

import msgspec

from transom.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    SERVER_ERROR,
    ProtocolError,
    TransomError,
)
from transom.events import abandon
from transom.protocol.messages import RELATED_TASK, CreateTaskResult, ListTasksResult
from transom.protocol.methods import HOST
from transom.recent import Recent
from transom.types import Task, TaskStatus, ToolResult

RequestHost = Callable[[str, bytes], Awaitable[bytes]]
"""Sends the host a request about a task of the server's: method, params, result."""

_POLL_INTERVAL = 500
_DEFAULT_TTL = 600_000
_MAX_TTL = 24 * 3600 * 1000
_MAX_TASKS = 1000


class TaskRecord:
    """One task, and its outcome once it has ended."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.outcome: ToolResult | ProtocolError | None = None
        self.work: asyncio.Task[None] | None = None
        self.expiry: asyncio.TimerHandle | None = None
        self.ended = asyncio.Event()


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


class TaskStore:
    """The tasks of one connection of one App."""

    def __init__(self, request_host: RequestHost, *, page_size: int = 100) -> None:
        self._request_host = request_host
        self._page_size = page_size
        self._records: dict[str, TaskRecord] = {}
        self._delegated: Recent[str, None] = Recent(_MAX_TASKS)

    def check_room(self) -> None:
        """Check that there is room for one more task, before any work is done."""
        if len(self._records) >= _MAX_TASKS:
            raise ProtocolError(SERVER_ERROR, f"{_MAX_TASKS} tasks are already stored")

    def start(self, outcome: Awaitable[bytes | Task], ttl: float | None) -> TaskRecord:
        """Run `outcome` as a task."""
        try:
            self.check_room()
        except ProtocolError:
            abandon(outcome)
            raise
        ttl = _DEFAULT_TTL if ttl is None or ttl <= 0 else ceil(min(ttl, _MAX_TTL))
        now = _now()
        task = Task(
            task_id=os.urandom(16).hex(),
            status="working",
            created_at=now,
            last_updated_at=now,
            ttl=ttl,
            poll_interval=_POLL_INTERVAL,
        )
        record = self._records[task.task_id] = TaskRecord(task)
        loop = asyncio.get_running_loop()
        record.work = loop.create_task(self._run(record, outcome))
        record.work.add_done_callback(lambda _: self._ended(record, outcome))
        record.expiry = loop.call_later(ttl / 1000, self.forget, task.task_id)
        return record

    def delegate(self, task: Task) -> bytes:
        """Answer with the handle of a task of the server's."""
        self._delegated[task.task_id] = None
        return CreateTaskResult(task=task).to_wire()

    async def _run(self, record: TaskRecord, outcome: Awaitable[bytes | Task]) -> None:
        try:
            result = await outcome
            if isinstance(result, Task):
                result = await self.wait(result)
            record.outcome = HOST["tasks/result"].read_result(result)
        except ProtocolError as error:
            record.outcome = error
        except TransomError:
            record.outcome = ProtocolError(INTERNAL_ERROR, "The task failed")

    def _ended(self, record: TaskRecord, outcome: Awaitable[bytes | Task]) -> None:
        abandon(outcome)  # if it was cancelled before it started
        status: TaskStatus = "completed"
        if record.outcome is None:
            record.outcome = ProtocolError(SERVER_ERROR, "The task was cancelled")
            status = "cancelled"
        elif isinstance(record.outcome, ProtocolError) or record.outcome.is_error:
            status = "failed"
        record.task = msgspec.structs.replace(record.task, status=status, last_updated_at=_now())
        record.ended.set()

    async def wait(self, task: Task) -> bytes:
        """The result of a task of the server's, for a call that was not made as a task."""
        return await self._forward("tasks/result", task.task_id)

    def _forward(self, method: str, task_id: str) -> Awaitable[bytes]:
        return self._request_host(method, msgspec.json.encode({"taskId": task_id}))

    # --- the host's requests -----------------------------------------------------------------

    def get(self, task_id: str) -> bytes | Awaitable[bytes]:
        """The state of a task."""
        if task_id in self._delegated:
            return self._forward("tasks/get", task_id)
        return msgspec.json.encode(self.find(task_id).task)

    def list(self, cursor: str | None) -> bytes:
        """A page of the stored tasks, oldest first."""
        ids = list(self._records)
        if cursor is not None and cursor not in self._records:
            raise ProtocolError(INVALID_PARAMS, "Invalid cursor")
        begin = 0 if cursor is None else ids.index(cursor) + 1
        page = ids[begin : begin + self._page_size]
        more = begin + self._page_size < len(ids)
        return ListTasksResult(
            tasks=[self._records[id].task for id in page], next_cursor=page[-1] if more else None
        ).to_wire()

    async def result(self, task_id: str) -> bytes:
        """The result of a task, once it has ended."""
        if task_id in self._delegated:
            return await self._forward("tasks/result", task_id)
        record = self.find(task_id)
        await record.ended.wait()
        outcome = record.outcome
        if isinstance(outcome, ToolResult):
            related = {RELATED_TASK: {"taskId": task_id}}
            meta = {**(outcome.meta or {}), **related}
            return msgspec.structs.replace(outcome, meta=meta).to_wire()
        raise outcome or ProtocolError(INTERNAL_ERROR, "The task failed")

    def cancel(self, task_id: str) -> bytes | Awaitable[bytes]:
        """Cancel a task."""
        if task_id in self._delegated:
            return self._forward("tasks/cancel", task_id)
        record = self.find(task_id)
        if record.ended.is_set():
            status = record.task.status
            raise ProtocolError(INVALID_PARAMS, f"Task {task_id} has already ended: {status}")
        return self._cancel(record)

    async def _cancel(self, record: TaskRecord) -> bytes:
        self.stop(record)
        await record.ended.wait()
        return msgspec.json.encode(record.task)

    def find(self, task_id: str) -> TaskRecord:
        """A task; the error for a client when there is none."""
        record = self._records.get(task_id)
        if record is None:
            raise ProtocolError(INVALID_PARAMS, f"Task {task_id[:100]} not found")
        return record

    @staticmethod
    def stop(record: TaskRecord) -> None:
        """Cancel a task without waiting for its end."""
        if record.work is not None:
            record.work.cancel()

    def tasks(self) -> Iterable[Task]:
        """The stored tasks, oldest first."""
        return [record.task for record in self._records.values()]

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._records

    def forget(self, task_id: str) -> None:
        """Cancel a task and delete it."""
        record = self._records.pop(task_id, None)
        if record is None:
            return
        if record.expiry is not None:
            record.expiry.cancel()
        self.stop(record)

    def close(self) -> None:
        """Cancel and delete every task."""
        for task_id in list(self._records):
            self.forget(task_id)
        self._delegated.clear()
