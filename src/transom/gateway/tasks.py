"""Calls of Views' tools that run as tasks, in both forms of the protocol.

1. Before 2026-07-28 the client asks for a task, gets its handle at once, and waits for the result
   with `tasks/result`.
2. Since 2026-07-28 the gateway decides, for a client with the extension: a call that takes longer
   than half a second becomes a task, and `tasks/get` has the result.
3. A result is stored for the task's `ttl`, even if its View is closed meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import cast

import msgspec
from msgspec import Raw

from transom.connections.versions import (
    CAPABILITIES_KEY,
    MISSING_CAPABILITY,
    TASKS_EXTENSION,
    as_extension_task,
    is_modern,
)
from transom.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, ProtocolError
from transom.json_values import member, members, with_member
from transom.protocol import wire
from transom.protocol.messages import CreateTaskResult, TaskRequest
from transom.types import ToolResult
from transom.view.tasks import TaskRecord, TaskStore

MAX_TASK_TIME = 24 * 3600.0  # seconds
_AT_ONCE = 0.5  # seconds until a call becomes a task


def task_request(params: Raw | None) -> TaskRequest | None:
    """How a call may run as a task: as it requests, or as its client's capabilities allow."""
    if is_modern(params):
        return TaskRequest() if _has_extension(params) else None
    try:
        wanted = members(params).get("task")
        return None if wanted is None else msgspec.json.decode(wanted, type=TaskRequest)
    except msgspec.DecodeError:
        return TaskRequest()


def _has_extension(params: Raw | None) -> bool:
    can = members(members(params).get("_meta")).get(CAPABILITIES_KEY)
    return TASKS_EXTENSION in members(members(can).get("extensions"))


class CallTasks:
    """The tasks of one client."""

    def __init__(self) -> None:
        self._store = TaskStore(_no_host)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id in self._store

    def close(self) -> None:
        """Cancel and drop every task."""
        self._store.close()

    def start(self, outcome: Awaitable[bytes], wanted: TaskRequest) -> bytes:
        """Run a call as a task; the answer for a client before 2026-07-28."""
        return CreateTaskResult(task=self._store.start(outcome, wanted.ttl).task).to_wire()

    async def begin(self, outcome: Awaitable[bytes]) -> bytes:
        """Run a call; its result if it is quick, else the handle of a task."""
        record = self._store.start(outcome, None)
        try:
            async with asyncio.timeout(_AT_ONCE):
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

    def without_own(self, request: wire.Request) -> wire.Request:
        """A `subscriptions/listen` for servers, which know nothing of these tasks.

        No notifications are sent about them, so the client keeps polling.
        """
        wanted = members(members(request.params).get("notifications"))
        ids: object = member(wanted.get("taskIds"))
        if not isinstance(ids, list) or not any(id in self for id in cast("list[object]", ids)):
            return request
        others = [id for id in cast("list[object]", ids) if id not in self]
        params = with_member(request.params, "notifications", {**wanted, "taskIds": others})
        return msgspec.structs.replace(request, params=Raw(params))

    def listed(self) -> list[Raw]:
        """The stored tasks, as in `tasks/list`."""
        return [wire.raw(task) for task in self._store.tasks()]

    async def answer(self, method: str, params: Raw | None) -> bytes:
        """Answer a request about one of them."""
        id: str = member(params, "taskId")
        if is_modern(params):
            return self._answer_extension(method, id, params)
        match method:
            case "tasks/get":
                answer = self._store.get(id)
            case "tasks/result":
                answer = self._store.result(id)
            case "tasks/cancel":
                answer = self._store.cancel(id)
            case _:
                raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method[:200]}")
        return answer if isinstance(answer, bytes) else await answer

    def _answer_extension(self, method: str, id: str, params: Raw | None) -> bytes:
        if not _has_extension(params):
            data: object = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
            raise ProtocolError(MISSING_CAPABILITY, "Missing required client capability", data)
        record = self._store.find(id)
        told: dict[str, object] = {}
        match method:
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
            case "tasks/update":  # no task here asks for input
                pass
            case _:
                raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method[:200]}")
        return wire.encode({**told, "resultType": "complete"})


def _extension_task(record: TaskRecord) -> dict[str, object]:
    return {**as_extension_task(members(wire.encode(record.task)))}


async def _no_host(method: str, params: bytes) -> bytes:
    raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method} {params!r}"[:200])
