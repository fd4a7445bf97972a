"""A View's server, as the View reaches it.

1. A View reaches the tools of its own server whose visibility has `app`, and no others. Its params
   are forwarded as they are, except for the progress token: the server gets one of ours, and its
   progress is sent back under the View's.
2. When the View cancels a request, or closes, the server's work is cancelled.
3. The server's errors and results reach the View unchanged, except results that are invalid for the
   method.
4. A View can ask about the tasks that the server gave to it, and about no others.
5. The server's `list_changed` notifications reach the View once it is ready. While it is slow,
   several of a kind become one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from typing import Any

import msgspec
from msgspec import Raw

from transom.background import Debounced
from transom.connections.upstream import Server
from transom.connections.versions import has_tasks, task_in
from transom.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    NotConnected,
    ProtocolError,
    Refused,
)
from transom.host.audit import AuditLog, RecordedCall
from transom.host.tools.tool_visibility import ViewCalls, view_may_call
from transom.host.views.renderers import Turn
from transom.host.views.tasks import TaskServers
from transom.json_values import as_list, as_object
from transom.protocol import wire
from transom.protocol.messages import result_json
from transom.protocol.methods import VIEW
from transom.protocol.peer import Progress
from transom.session import OnProgress
from transom.types import TextContent, Tool, ToolResult

_FORWARDED = frozenset(
    {
        *("tools/call", "tools/list", "prompts/list", "tasks/get", "tasks/result", "tasks/cancel"),
        *("resources/list", "resources/templates/list", "resources/read"),
    }
)
_LIST_CHANGED = frozenset(
    f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")
)
_MAX_TASKS = 1000  # of a View without a host

_Notify = Callable[[str, bytes], Awaitable[None]]
"""Sends a notification to the View; waits while the View is slow."""

ApproveCall = Callable[[Tool, Mapping[str, Any]], Awaitable[None]]
"""Asks whether the View may call a tool with these arguments; raises `Refused` if not."""


class ViewServer:
    """Forwards one View's requests to its server, and the server's `list_changed` to the View."""

    def __init__(
        self,
        server: Server | None,
        *,
        name: str = "",
        view_id: str = "",
        tasks: TaskServers | None = None,
        audit: AuditLog | None = None,
        on_request: Callable[[], object] = lambda: None,
        view_calls: ViewCalls = "spec",
        approve: ApproveCall | None = None,
        turn: Turn = nullcontext,
    ) -> None:
        self._server = server
        self._name = name
        self._view_id = view_id
        self._tasks = TaskServers(_MAX_TASKS) if tasks is None else tasks
        self._audit = AuditLog(None) if audit is None else audit
        self._on_request = on_request
        self._view_calls: ViewCalls = view_calls
        self._approve = approve
        self._turn = turn
        self._notify: _Notify | None = None
        self._ready = False
        self._changes: set[str] = set()
        self._send_changes: Debounced | None = None
        self._unsubscribe: Callable[[], None] | None = None

    # --- what the server can do --------------------------------------------------------------

    def serves(self, method: str) -> bool:
        """Whether the server can answer `method`."""
        if method.startswith("tasks/") and self._server is not None:
            return method in _FORWARDED and has_tasks(self._server.capabilities)
        return method in _FORWARDED and self._capability(method.partition("/")[0]) is not None

    def announces(self, kind: str) -> bool:
        """Whether the server declared `listChanged` for `tools`, for example."""
        return as_object(self._capability(kind)).get("listChanged") is True

    def _capability(self, kind: str) -> object:
        return None if self._server is None else self._server.capabilities.get(kind)

    # --- requests of the View ----------------------------------------------------------------

    async def check_allowed(
        self, name: str, arguments: Mapping[str, Any], *, must_exist: bool = True
    ) -> None:
        """Check that the View may call this tool, and ask the user if the policy requires it.

        Raises:
            ProtocolError: there is no such tool, or its visibility lacks `app`.
            Refused: the user refused it.
        """
        tool = None if self._server is None else await self._server.tool(name)
        if tool is None and must_exist:
            reason = "not found"
            error = ProtocolError(INVALID_PARAMS, f"Tool {name[:128]} not found")
        elif tool is not None and not view_may_call(tool, self._view_calls):
            reason = "its visibility lacks 'app'"
            if "app" in tool.visibility:
                reason = "it declares no visibility, and the host's view_calls requires one"
            text = f"Tool {name[:128]} may not be called by a View: {reason}"
            error = ProtocolError(SERVER_ERROR, text)
        else:
            if tool is not None and self._approve is not None:
                await self._approve(tool, arguments)
            return
        self._audit.record(
            "refusal",
            "refused",
            server=self._name,
            view=self._view_id,
            tool=name[:128],
            by=self._view_id,
            detail=reason,
        )
        raise error

    async def forward(self, method: str, raw: Raw | None) -> bytes:
        """Forward a request of the View; the server's result."""
        if self._server is None:
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
        params: dict[str, Any] = {} if raw is None else msgspec.json.decode(raw)
        if method == "tools/call":
            try:
                await self.check_allowed(params["name"], params.get("arguments") or {})
            except Refused as refusal:
                return refusal_json(refusal)
        elif method.startswith("tasks/"):
            task_id = params["taskId"]
            if (self._view_id, task_id) not in self._tasks:
                raise ProtocolError(INVALID_PARAMS, f"Task {task_id[:128]} not found")
        token = _take_token(params)
        on_progress = None if token is None else self._forward_progress(token)
        self._on_request()
        if method == "tools/call":
            return await self._call(self._server, params, on_progress)
        async with self._turn():
            result = await self._server.request(method, params, on_progress=on_progress)
        VIEW[method].read_result(result)
        return self._for_views(result) if method == "tools/list" else result

    def _for_views(self, result: bytes) -> bytes:
        """A page of tools, without those that Views may not call."""
        page = msgspec.json.decode(result)
        page["tools"] = [e for e in as_list(page.get("tools")) if self._may_see(e)]
        return wire.encode(page)

    def _may_see(self, entry: object) -> bool:
        meta: dict[str, Any] = as_object(as_object(entry).get("_meta"))
        tool = Tool(name="", meta=meta)
        return isinstance(entry, dict) and view_may_call(tool, self._view_calls)

    async def _call(
        self, server: Server, params: dict[str, Any], on_progress: OnProgress | None
    ) -> bytes:
        tool, arguments = params["name"][:128], params.get("arguments")
        with RecordedCall(self._audit, self._name, None, tool, arguments, by=self._view_id) as call:
            async with self._turn():
                result = await server.request("tools/call", params, on_progress=on_progress)
            task = None if params.get("task") is None else task_in(result)
            call.result = VIEW["tools/call"].read_result(result) if task is None else task
        if task is not None:
            self._tasks[self._view_id, task.task_id] = self._name
        return result

    def _forward_progress(self, token: wire.RequestId) -> OnProgress:
        """Sends the server's progress to the View, under the View's own token."""
        sending: asyncio.Task[None] | None = None

        async def send(params: bytes) -> None:
            with suppress(NotConnected):
                if self._notify is not None:
                    await self._notify("notifications/progress", params)

        def forward(progress: Progress) -> None:
            nonlocal sending
            if sending is not None and not sending.done():
                return  # the View reads slower than progress arrives: drop some
            # A task, so that a View that does not read does not delay the others.
            sending = asyncio.ensure_future(send(progress.relayed(token)))

        return forward

    # --- changes of the server's lists -------------------------------------------------------

    def start(self, notify: _Notify, on_error: Callable[[BaseException], object]) -> None:
        """Subscribe to the server's notifications; `notify` sends to the View."""
        self._notify = notify
        if self._server is not None:
            self._send_changes = Debounced(self._notify_changes, on_error)
            self._unsubscribe = self._server.subscribe(self._list_changed)

    def set_ready(self, ready: bool) -> None:
        """Set whether the View can be notified. Earlier changes are sent when it becomes ready."""
        self._ready = ready
        if ready and self._changes and self._send_changes is not None:
            self._send_changes.trigger()

    def close(self) -> None:
        """Unsubscribe, and notify the View no more."""
        if self._unsubscribe is not None and self._send_changes is not None:
            self._unsubscribe()
            self._send_changes.close()

    def _list_changed(self, method: str) -> None:
        if method in _LIST_CHANGED and self.announces(method.split("/")[1]):
            self._changes.add(method)
            self.set_ready(self._ready)

    async def _notify_changes(self) -> None:
        with suppress(NotConnected):  # the View is gone
            while self._changes and self._ready and self._notify is not None:
                await self._notify(self._changes.pop(), b"{}")


def _take_token(params: dict[str, Any]) -> wire.RequestId | None:
    """Remove the View's progress token, which could collide on the server's connection."""
    meta: dict[str, Any] = as_object(params.get("_meta"))
    if "progressToken" not in meta:
        return None
    token = meta.pop("progressToken")
    if not meta:
        del params["_meta"]
    usable = isinstance(token, str | int) and not isinstance(token, bool)
    return token if usable else None


def refusal_json(refusal: Refused) -> bytes:
    """What a View is answered when it may not call a tool."""
    return result_json(ToolResult(content=[TextContent(str(refusal))], is_error=True))
