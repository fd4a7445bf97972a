"""What a View asks of its server, passed on.

1. A View reaches the tools of its own server whose visibility has `app`, and no others. What it
   sends goes on as it is, except for its progress token: the server gets one of ours, and its
   progress comes back under the View's.
2. When the View gives up on a request, or goes, the server is told to stop.
3. The server's errors reach the View as they are.
4. A View can ask after the tasks that the server gave to it, and after no others.

A server as one of its Views reaches it: every call noted, and its tasks remembered.

What a host can do for a View, read off what it has been given to do it with.

What a View hears of its server's lists: that they changed, once it is ready to hear it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec
from msgspec import Raw

from transom.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    NotConnected,
    ProtocolError,
)
from transom.events import Slot
from transom.host.audit import AuditLog
from transom.host.coalesce import Coalesced
from transom.host.policy import view_may_call
from transom.host.tasks import Tasks
from transom.json_values import as_list
from transom.protocol import wire
from transom.protocol.methods import VIEW
from transom.protocol.peer import Progress
from transom.servers.server import Server
from transom.session import OnProgress
from transom.types import Task, Tool

__all__ = [
    "Forward",
    "ServerNews",
    "ViewServer",
    "derived_capabilities",
]


_NEEDS = {
    "tools/call": "tools",
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "prompts/list": "prompts",
    "tasks/get": "tasks",
    "tasks/result": "tasks",
    "tasks/cancel": "tasks",
}

_CHANGES = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
}


_MAX_TASKS = 1000


class _CreatedTask(msgspec.Struct):
    task: Task


class Forward:
    """Passes one View's requests on to its server.

    Args:
        upstream: the server.
        notify: sends a notification to the View; waits while the View is slow.
    """

    def __init__(self, upstream: Server, notify: Callable[[str, bytes], Awaitable[None]]) -> None:
        self.upstream = upstream
        self._notify = notify
        self._tasks: OrderedDict[str, None] = OrderedDict()

    def serves(self, method: str) -> bool:
        """Whether the server can answer `method`."""
        need = _NEEDS.get(method)
        return need is not None and self.upstream.capabilities.get(need) is not None

    def announces(self, method: str) -> bool:
        """Whether the server said that it would send `method`, a `list_changed`."""
        capability = self.upstream.capabilities.get(_CHANGES.get(method, ""))
        return isinstance(capability, Mapping) and (
            cast("Mapping[str, Any]", capability).get("listChanged") is True
        )

    async def permitted(self, name: str, *, known: bool = True) -> None:
        """See that a View may call this tool.

        Args:
            name: the tool.
            known: whether it has to be one of the server's.

        Raises:
            ProtocolError: there is no such tool, or its visibility lacks `app`.
        """
        tool = await self.upstream.tool(name)
        if tool is None:
            if known:
                raise ProtocolError(INVALID_PARAMS, f"Tool {name[:128]} not found")
        elif not view_may_call(tool):
            text = f"Tool {name[:128]} may not be called by a View: its visibility lacks 'app'"
            raise ProtocolError(SERVER_ERROR, text)

    async def ask(self, method: str, raw: Raw | None) -> bytes:
        """Pass a request on.

        Raises:
            ProtocolError: the server's answer, or that it cannot answer this.
        """
        if not self.serves(method):
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
        params: dict[str, Any] = {} if raw is None else msgspec.json.decode(raw)
        if method == "tools/call":
            await self.permitted(params["name"])
        elif method.startswith("tasks/") and params["taskId"] not in self._tasks:
            raise ProtocolError(INVALID_PARAMS, f"Task {params['taskId'][:128]} not found")
        token = _take_token(params)
        relay = None if token is None else self._relay(token)
        result = await self.upstream.request(method, params, on_progress=relay)
        if "task" in params and self._note_task(result):
            return result
        VIEW[method].read_result(result)  # a server's nonsense goes no further
        return _for_views(result) if method == "tools/list" else result

    def _note_task(self, result: bytes) -> bool:
        """Remember the task that a server created; False: it answered with the result itself."""
        try:
            task = msgspec.json.decode(result, type=_CreatedTask).task
        except msgspec.DecodeError:
            return False
        self._tasks[task.task_id] = None
        if len(self._tasks) > _MAX_TASKS:
            self._tasks.popitem(last=False)
        return True

    def _relay(self, token: wire.RequestId) -> OnProgress:
        """Sends the server's progress to the View, under the View's own token."""
        sending: asyncio.Task[None] | None = None

        async def send(params: dict[str, Any]) -> None:
            with suppress(NotConnected):
                await self._notify("notifications/progress", wire.encode(params))

        def relay(progress: Progress) -> None:
            nonlocal sending
            if sending is not None and not sending.done():
                return  # the View is slower than the server's progress, which matters less
            params: dict[str, Any] = {"progressToken": token, "progress": progress.progress}
            if progress.total is not None:
                params["total"] = progress.total
            if progress.message is not None:
                params["message"] = progress.message
            # A task, so that a View which does not read keeps no notification from the others.
            sending = asyncio.ensure_future(send(params))

        return relay


def _take_token(params: dict[str, Any]) -> wire.RequestId | None:
    """Take the View's progress token out: on the server's connection it means something else."""
    meta: object = params.get("_meta")
    if not isinstance(meta, dict) or "progressToken" not in meta:
        return None
    rest = dict(cast("dict[str, Any]", meta))
    token = rest.pop("progressToken")
    if rest:
        params["_meta"] = rest
    else:
        del params["_meta"]
    usable = isinstance(token, str | int) and not isinstance(token, bool)
    return token if usable else None


def _for_views(result: bytes) -> bytes:
    """A page of tools without those that a View may not call."""
    page = msgspec.json.decode(result)
    page["tools"] = [entry for entry in as_list(page.get("tools")) if _visible(entry)]
    return wire.encode(page)


def _visible(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    meta: object = cast("dict[str, Any]", entry).get("_meta")
    known = cast("dict[str, Any]", meta) if isinstance(meta, dict) else None
    return view_may_call(Tool(name="", meta=known))


_TASK_METHODS = frozenset({"tasks/get", "tasks/result", "tasks/cancel"})


class _MaybeTask(msgspec.Struct):
    task: Task | None = None


class ViewServer:
    """A `Server` that watches what one View does with it.

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
        upstream: Server,
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

    @property
    def current(self) -> bool:
        """Whether `tools()` has what the server would list now, as far as one can know."""
        return self._upstream.current

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
        self,
        method: str,
        params: Mapping[str, Any] | bytes | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> bytes:
        """Ask the server.

        Raises:
            ProtocolError: the server's error, or that the task is none of this View's.
        """
        self._used()
        given = msgspec.json.decode(params) if isinstance(params, bytes) else params or {}
        if method in _TASK_METHODS:
            task_id = given.get("taskId")
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
                tool=str(given.get("name"))[:128],
                arguments=given.get("arguments"),
                ms=round((time.perf_counter() - began) * 1000, 3),
                by=self._view_id,
                detail=detail,
            )
        if given.get("task") is not None:
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


_BY_HANDLER = {
    "on_open_link": "openLinks",
    "on_download_file": "downloadFile",
    "on_log": "logging",
    "on_update_model_context": "updateModelContext",
    "on_message": "message",
    "on_create_message": "sampling",
}
_BY_SERVER = {
    "serverTools": ("on_call_tool", "tools/call", "notifications/tools/list_changed"),
    "serverResources": (
        "on_read_resource",
        "resources/read",
        "notifications/resources/list_changed",
    ),
}


def derived_capabilities(handlers: Mapping[str, Slot], forward: Forward | None) -> dict[str, Any]:
    """The host's capabilities from its handlers and its server.

    `tools` says that the View's tools will be used (ext-apps PR 656).
    """
    found: dict[str, Any] = {"tools": {"listChanged": True}}
    for handler, capability in _BY_HANDLER.items():
        if handlers.get(handler):
            found[capability] = {}
    for capability, (handler, method, notice) in _BY_SERVER.items():
        served = forward is not None and forward.serves(method)
        if served or handlers.get(handler):
            tells = forward is not None and forward.announces(notice)
            found[capability] = {"listChanged": True} if tells else {}
    return found


class ServerNews:
    """Passes the server's `list_changed` notices to one View.

    What comes before the View is initialised is told when it is. However many come while the View
    is slow, one of each kind is told.

    Args:
        forward: the way to the server.
        notify: sends a notification to the View; waits while the View is slow.
        report: told what goes wrong.
    """

    def __init__(
        self,
        forward: Forward,
        notify: Callable[[str, bytes], Awaitable[None]],
        report: Callable[[BaseException], object],
    ) -> None:
        self._forward = forward
        self._notify = notify
        self._changes: set[str] = set()
        self._ready = False
        self._telling = Coalesced(self._tell, report)
        self._unsubscribe = forward.upstream.subscribe(self._changed)

    def ready(self, is_ready: bool = True) -> None:
        """Note whether the View can be told."""
        self._ready = is_ready
        if is_ready and self._changes:
            self._telling.want()

    def close(self) -> None:
        """Hear and tell no more."""
        self._unsubscribe()
        self._telling.close()

    def _changed(self, method: str) -> None:
        if self._forward.announces(method):
            self._changes.add(method)
            if self._ready:
                self._telling.want()

    async def _tell(self) -> None:
        with suppress(NotConnected):  # the View is gone; its news with it
            while self._changes and self._ready:
                await self._notify(self._changes.pop(), b"{}")
