"""A View's requests, and who answers them: the host's handlers, or the View's server.

1. Params are checked before a handler sees them; invalid ones are answered with -32602 and the
   path.
2. A handler of the host answers, or else the server; if there is neither, the answer is -32601. A
   handler takes precedence over the server, but visibility is checked first: a handler does not get
   calls of tools that Views may not call.
3. A handler that returns nothing has accepted the request. False or `Refused` is a refusal,
   answered as `isError: true`. A `ProtocolError` is answered as it is, anything else as "Internal
   error".
4. Links that could run something never reach a handler, files reach it under harmless names.
5. A View is never put into a display mode that it, or the host, did not declare.

The host's context, which tells the View about its surroundings:

1. A change is a difference in value: the order of keys does not matter, and setting a key to the
   value it has changes nothing.
2. Changed keys are sent in one `host-context-changed`. Removed keys are sent as null, in a
   notification of their own: the protocol has no other way to remove a key, Transom's Views
   understand null, and a View that refuses null still gets the changed keys.
3. Until the View has sent `ui/initialize` nothing is sent: the answer will contain all of it.

And the View's server, as the View reaches it (`ViewServer`):

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
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, cast

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
from transom.events import Slot
from transom.host.audit import AuditLog
from transom.host.policy import ViewCalls, link_problem, safe_filenames, view_may_call
from transom.json_values import as_list, as_object
from transom.protocol import messages as m
from transom.protocol import wire
from transom.protocol.messages import object_json, result_json
from transom.protocol.methods import VIEW, Method
from transom.protocol.peer import Progress
from transom.session import OnProgress
from transom.types import (
    AppCapabilities,
    EmbeddedResource,
    HostContext,
    ResourceLink,
    Task,
    TextContent,
    Tool,
    ToolResult,
)


class Download(msgspec.Struct, frozen=True):
    """A file that a View offers to the user."""

    name: str
    """A harmless file name, from the last part of the resource's URI."""
    content: EmbeddedResource | ResourceLink
    """The file itself, or where it can be read."""


_HANDLERS = {
    "ui/open-link": "on_open_link",
    "ui/download-file": "on_download_file",
    "ui/message": "on_message",
    "ui/update-model-context": "on_update_model_context",
    "sampling/createMessage": "on_create_message",
    "tools/call": "on_call_tool",
    "tools/list": "on_list_tools",
    "resources/list": "on_list_resources",
    "resources/templates/list": "on_list_resource_templates",
    "resources/read": "on_read_resource",
    "prompts/list": "on_list_prompts",
    "transom/request-pin": "on_request_pin",
}


# Capabilities that need a handler, and those that need a handler or the server.
_BY_HANDLER = {
    "on_open_link": "openLinks",
    "on_download_file": "downloadFile",
    "on_log": "logging",
    "on_update_model_context": "updateModelContext",
    "on_message": "message",
    "on_create_message": "sampling",
}
# Transom's own experimental capabilities.
_OURS = {"on_request_pin": m.PIN, "on_problem": m.PROBLEMS}
_BY_SERVER = {
    "serverTools": ("on_call_tool", "tools/call", "tools"),
    "serverResources": ("on_read_resource", "resources/read", "resources"),
}


_WIRE_NAMES = {f.name: f.encode_name for f in msgspec.structs.fields(HostContext)}
_encode = msgspec.json.Encoder(order="deterministic").encode


class ViewContext:
    """The host's context in its wire form, and the part of it that the View has."""

    def __init__(self, context: HostContext | Mapping[str, Any] | None) -> None:
        if isinstance(context, HostContext):
            self.values: dict[str, Any] = msgspec.json.decode(context.to_wire())
        else:
            self.values = msgspec.json.decode(msgspec.json.encode(dict(context or {})))
        self._sent: dict[str, bytes] | None = None

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set keys, by their Python or their wire name; None removes one."""
        for name, value in changes.items():
            key = _WIRE_NAMES.get(name, name)
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = msgspec.json.decode(msgspec.json.encode(value))

    def take_all(self) -> bytes:
        """All of it as JSON, for `ui/initialize`."""
        self._sent = {key: _encode(value) for key, value in self.values.items()}
        return msgspec.json.encode(self.values)

    def take_changes(self) -> list[bytes]:
        """The params of the notifications that bring the View up to date, if any are needed."""
        if self._sent is None:
            return []
        now = {key: _encode(value) for key, value in self.values.items()}
        changed = {key: self.values[key] for key in now if self._sent.get(key) != now[key]}
        removed = {key: None for key in self._sent if key not in now}
        self._sent = now
        return [msgspec.json.encode(part) for part in (changed, removed) if part]


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

Notify = Callable[[str, bytes], Awaitable[None]]
"""Sends a notification to the View; waits while the View is slow."""

ApproveCall = Callable[[Tool, Mapping[str, Any]], Awaitable[None]]
"""Asks whether the View may call a tool with these arguments; raises `Refused` if not."""


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


class ViewServer:
    """Forwards one View's requests to its server, and the server's `list_changed` to the View."""

    def __init__(
        self,
        server: Server | None,
        *,
        name: str = "",
        view_id: str = "",
        tasks: TaskRegister | None = None,
        audit: AuditLog | None = None,
        on_request: Callable[[], object] = lambda: None,
        view_calls: ViewCalls = "spec",
        approve: ApproveCall | None = None,
    ) -> None:
        self._server = server
        self._name = name
        self._view_id = view_id
        self._tasks = TaskRegister(_MAX_TASKS) if tasks is None else tasks
        self._audit = AuditLog(None) if audit is None else audit
        self._on_request = on_request
        self._view_calls: ViewCalls = view_calls
        self._approve = approve
        self._notify: Notify | None = None
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
            if self._tasks.server_of(self._view_id, task_id) is None:
                raise ProtocolError(INVALID_PARAMS, f"Task {task_id[:128]} not found")
        token = _take_token(params)
        on_progress = None if token is None else self._forward_progress(token)
        self._on_request()
        if method == "tools/call":
            return await self._call(self._server, params, on_progress)
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
        with self._audit.call(self._name, None, tool, arguments, by=self._view_id) as call:
            result = await server.request("tools/call", params, on_progress=on_progress)
            task = None if params.get("task") is None else task_in(result)
            call.result = VIEW["tools/call"].read_result(result) if task is None else task
        if task is not None:
            self._tasks.add(self._view_id, task.task_id, self._name)
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

    def start(self, notify: Notify, on_error: Callable[[BaseException], object]) -> None:
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


def refusal_json(refusal: Refused) -> bytes:
    """What a View is answered when it may not call a tool."""
    return result_json(ToolResult(content=[TextContent(str(refusal))], is_error=True))


class ViewRequests:
    """Answers the requests of one View: by the host's handlers, or by the View's server."""

    def __init__(
        self,
        handlers: Mapping[str, Slot],
        context: HostContext | Mapping[str, Any] | None,
        on_context: Callable[[], object],
        server: ViewServer,
        *,
        max_files: int,
    ) -> None:
        self.app: AppCapabilities | None = None  # what the View declared that it can do
        self._handlers = handlers
        self.context = ViewContext(context)
        self._on_context = on_context
        self._server = server
        self._max_files = max_files

    def capabilities(self) -> dict[str, Any]:
        """The host's capabilities, which follow from its handlers and its server."""
        handlers, server = self._handlers, self._server
        # Both say that the View's tools will be used: the draft has not decided on a name yet
        # (ext-apps pull request 656, issue 676).
        found: dict[str, Any] = {name: {"listChanged": True} for name in ("tools", "appTools")}
        for handler, capability in _BY_HANDLER.items():
            if handlers.get(handler):
                found[capability] = {}
        for capability, (handler, method, kind) in _BY_SERVER.items():
            if server.serves(method) or handlers.get(handler):
                found[capability] = {"listChanged": True} if server.announces(kind) else {}
        ours: dict[str, Any] = {key: {} for handler, key in _OURS.items() if handlers.get(handler)}
        return {**found, "experimental": ours} if ours else found

    def answer(self, request: wire.Request) -> bytes | Awaitable[bytes]:
        """The answer to a request, or an awaitable of it."""
        method = request.method
        if method == "ping":
            return b"{}"
        row = VIEW.get(method)
        if row is None or not row.is_request:
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
        if method == "ui/request-display-mode":
            return self._request_display_mode(row.read_params(request.params))
        handler = self._handlers.get(_HANDLERS.get(method, ""))
        if not handler and not self._server.serves(method):
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
        params = _read(row, request.params)
        if not handler:
            return self._server.forward(method, request.params)
        return self._handle(method, handler, params)

    def _handle(self, method: str, handler: Slot, params: Any) -> Awaitable[bytes]:
        match method:
            case "ui/open-link":
                return self._open_link(handler, params)
            case "ui/download-file":
                return self._download(handler, params)
            case "ui/message":
                return _verdict(handler, params.blocks)
            case "ui/update-model-context":
                return _verdict(handler, params)
            case "transom/request-pin":
                return _verdict(handler, params.reason)
            case "sampling/createMessage":
                return _object(handler, params)
            case "tools/call":
                return self._call_tool(handler, params)
            case "resources/read":
                return _object(handler, params.uri)
            case _:  # the lists
                return _object(handler, params.cursor)

    # --- the host's handlers -----------------------------------------------------------------

    async def _open_link(self, handler: Slot, params: m.OpenLinkParams) -> bytes:
        if link_problem(params.url) is not None:
            return _REFUSED
        return await _verdict(handler, params.url)

    async def _download(self, handler: Slot, params: m.DownloadFileParams) -> bytes:
        contents = params.contents
        if len(contents) > self._max_files:
            text = f"{len(contents)} files at once; a request may have {self._max_files}"
            raise ProtocolError(INVALID_PARAMS, text)
        names = safe_filenames(
            content.resource.uri if isinstance(content, EmbeddedResource) else content.uri
            for content in contents
        )
        files = [Download(*named) for named in zip(names, contents, strict=True)]
        return await _verdict(handler, files)

    async def _call_tool(self, handler: Slot, params: m.CallToolParams) -> bytes:
        arguments: Any = msgspec.json.decode(params.arguments) or {}
        try:
            if self._server.serves("tools/call"):
                await self._server.check_allowed(params.name, arguments, must_exist=False)
            return result_json(await _called(handler, params.name, arguments))
        except Refused as refusal:
            return refusal_json(refusal)

    # --- display modes -----------------------------------------------------------------------

    async def _request_display_mode(self, params: m.DisplayModeParams) -> bytes:
        handler = self._handlers.get("on_request_display_mode")
        now: object = self.context.values.get("displayMode") or "inline"
        if handler and params.mode != now and self.may_show_in(params.mode):
            try:
                outcome = await _called(handler, params.mode)
            except Refused:
                outcome = False
            mode = params.mode if outcome is None or outcome is True else outcome
            if isinstance(mode, str) and mode != now and self.may_show_in(mode):
                now = mode
                self.context.change({"displayMode": mode})
                self._on_context()
        return wire.encode({"mode": now})

    def may_show_in(self, mode: str) -> bool:
        """Whether View and host both support a display mode, as far as they declared any."""
        offered = self.context.values.get("availableDisplayModes")
        taken = None if self.app is None else self.app.available_display_modes
        return (not isinstance(offered, list) or mode in offered) and (
            taken is None or mode in taken
        )


_REFUSED = b'{"isError":true}'


def _read(row: Method, raw: msgspec.Raw | None) -> Any:
    params = row.read_params(raw)
    if isinstance(params, m.CallToolParams):
        arguments = bytes(params.arguments)
        if not arguments.startswith((b"{", b"null")):
            text = f"Invalid params for {row.name}: arguments: Expected `object`"
            raise ProtocolError(INVALID_PARAMS, text)
    return params


async def _called(handler: Slot, *args: object) -> Any:
    outcome = handler.ask(*args)
    return await outcome if inspect.isawaitable(outcome) else outcome


async def _object(handler: Slot, *args: object) -> bytes:
    return object_json(await _called(handler, *args))


async def _verdict(handler: Slot, *args: object) -> bytes:
    try:
        outcome = await _called(handler, *args)
    except Refused:
        return _REFUSED
    if outcome is None or outcome is True:
        return b"{}"
    return _REFUSED if outcome is False else object_json(outcome)
