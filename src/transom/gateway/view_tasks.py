"""Calls of Views' tools that a client runs as tasks, in the forms of both versions of MCP.

1. In 2025-11-25 the client asks for a task in its call. In the extension that came with 2026-07-28,
   a call becomes one here if it takes long. `ClientRequest.asks_for_tasks` says which it is.
2. A result is stored for the task's `ttl`, even if its View is closed meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, cast

import msgspec
from msgspec import Raw

from transom.connections.versions import MISSING_CAPABILITY, TASKS_EXTENSION, as_extension_task
from transom.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, ProtocolError
from transom.gateway.eras import ClientRequest
from transom.json_values import member, members
from transom.protocol import wire
from transom.protocol.messages import CreateTaskResult, TaskRequest
from transom.types import ToolResult
from transom.view.tasks import TaskRecord, TaskStore

MAX_TASK_TIME: Final = 24 * 3600.0  # seconds
_TASK_AFTER = 0.5  # seconds until a call becomes a task of the extension


class CallTasks:
    """The tasks of one client."""

    def __init__(self) -> None:
        self._store = TaskStore(_no_host)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id in self._store

    def close(self) -> None:
        """Cancel and drop every task."""
        self._store.close()

    async def run(
        self, request: ClientRequest, outcome: Awaitable[bytes], wanted: TaskRequest
    ) -> bytes:
        """Run a call as a task, and answer with its handle.

        With the extension, a call that is quick is answered with its result.
        """
        if request.asks_for_tasks:
            return CreateTaskResult(task=self._store.start(outcome, wanted.ttl).task).to_wire()
        record = self._store.start(outcome, None)
        try:
            async with asyncio.timeout(_TASK_AFTER):
                await record.ended.wait()
        except TimeoutError:
            return wire.encode({**_extension_task(record), "resultType": "task"})
        except asyncio.CancelledError:
            self._store.forget(record.task.task_id)
            raise
        self._store.forget(record.task.task_id)
        if isinstance(record.outcome, ToolResult):
            return record.outcome.to_wire()
        raise record.outcome or ProtocolError(INTERNAL_ERROR, "The call was lost")

    def without_own(self, request: ClientRequest) -> ClientRequest:
        """A `subscriptions/listen` for servers, which know nothing of these tasks.

        No notifications are sent about them, so the client keeps polling.
        """
        wanted = members(request.members.get("notifications"))
        ids: object = member(wanted.get("taskIds"))
        if not isinstance(ids, list) or not any(id in self for id in cast("list[object]", ids)):
            return request
        others = [id for id in cast("list[object]", ids) if id not in self]
        return request.replaced(notifications={**wanted, "taskIds": others})

    def listed(self) -> list[Raw]:
        """The stored tasks, as in `tasks/list`."""
        return [wire.raw(task) for task in self._store.tasks()]

    async def answer(self, request: ClientRequest) -> bytes:
        """Answer a request about one of them."""
        id = request.task_id or ""
        if not request.asks_for_tasks:
            return self._answer_extension(request, id)
        match request.method:
            case "tasks/get":
                answer = self._store.get(id)
            case "tasks/result":
                answer = self._store.result(id)
            case "tasks/cancel":
                answer = self._store.cancel(id)
            case method:
                raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method[:200]}")
        return answer if isinstance(answer, bytes) else await answer

    def _answer_extension(self, request: ClientRequest, id: str) -> bytes:
        if not request.has_tasks_extension:
            data: object = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
            raise ProtocolError(MISSING_CAPABILITY, "Missing required client capability", data)
        record = self._store.find(id)
        told: dict[str, object] = {}
        match request.method:
            case "tasks/get":
                told = {**_extension_task(record)}
                if isinstance(record.outcome, ToolResult):
                    # A result with `isError` is a result: the task has not failed.
                    told |= {"status": "completed", "result": Raw(record.outcome.to_wire())}
                elif record.outcome is not None and record.task.status == "failed":
                    error = record.outcome
                    data = msgspec.UNSET if error.data is None else error.data
                    told["error"] = wire.WireError(error.code, error.message, data)
            case "tasks/cancel":
                self._store.stop(record)
            case _:  # "tasks/update": no task here asks for input
                pass
        return wire.encode({**told, "resultType": "complete"})


def _extension_task(record: TaskRecord) -> dict[str, object]:
    return {**as_extension_task(members(wire.encode(record.task)))}


async def _no_host(method: str, params: bytes) -> bytes:
    raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method} {params!r}"[:200])
