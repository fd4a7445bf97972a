"""The host's end of one View.

1. Nothing is sent before the View says that it is initialised. Notifications that a host sends
   earlier are queued in order, and requests wait.
2. The tool's data goes to the View in the order of the lifecycle table, or not at all.
3. The View is not trusted: what it lists, answers and requests is checked and capped (`Limits`).
4. `teardown` always completes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, Unpack

from transom.background import Background, Debounced
from transom.channel import Channel
from transom.errors import (
    METHOD_NOT_FOUND,
    AlreadyConnected,
    NotConnected,
    OutOfOrder,
    PeerError,
    ProtocolError,
    TransomError,
    UsageError,
)
from transom.events import Event, Slot
from transom.host.policy import Limits
from transom.host.view_requests import ViewRequests
from transom.host.view_server import ViewServer
from transom.host.view_state import Readiness, ViewContext
from transom.host.view_tools import CallOptions, ViewTools
from transom.protocol import messages as m
from transom.protocol import wire
from transom.protocol.lifecycle import State
from transom.protocol.messages import ToolOutcome, object_json, result_json
from transom.protocol.methods import VIEW
from transom.protocol.peer import Peer
from transom.queues import NotificationQueue
from transom.servers.server import Server
from transom.servers.targets import connected_server
from transom.session import Session
from transom.types import (
    AppCapabilities,
    HostCapabilities,
    HostContext,
    Implementation,
    Task,
    Tool,
    ToolResult,
)

if TYPE_CHECKING:
    from mcp import Client, ClientSession

__all__ = ["Bridge"]

_MAX_REPORTS = 64  # errors that async `on_error` handlers may work on at once


def _ignore(_: BaseException) -> None:
    """A handler of `on_error` or `on_closed` that fails has nobody to report to."""


class Bridge:
    """One View, seen from its host. `async with bridge:` runs it; leaving tears the View down.

    Args:
        channel: the pipe to the View; closed with the bridge.
        host_info: the host's name and version.
        capabilities: what the host can do, sent as it is. None: what its handlers and its server
            can do when the View initialises.
        context: the View's surroundings, sent as they are.
        upstream: the View's server: a connected MCP client, or any `Server`.
        limits: how much the View may cost.

    Handlers are assigned or used as decorators, and may be async. Those that answer the View:

    - `on_message(blocks)`, `on_open_link(url)`, `on_download_file(files)`,
      `on_update_model_context(update)`: return nothing when done, False (or raise `Refused`) to
      refuse.
    - `on_request_display_mode(mode)`: return the mode the View is in now, nothing if it is `mode`.
    - `on_create_message(params)`: return the result of `sampling/createMessage`.
    - `on_call_tool(name, arguments)`, `on_list_tools(cursor)`, `on_list_resources(cursor)`,
      `on_list_resource_templates(cursor)`, `on_read_resource(uri)`, `on_list_prompts(cursor)`:
      answer in place of the server.

    Those that answer nothing: `on_tools_changed()`, `on_size_changed(width, height)`,
    `on_log(entry)`, `on_request_teardown()`, `on_closed(reason)`, and `on_error(error)`, which gets
    whatever the View did wrong and whatever a handler raised.
    """

    on_tools_changed = Event["Bridge"]()
    on_message = Event["Bridge"]()
    on_open_link = Event["Bridge"]()
    on_download_file = Event["Bridge"]()
    on_update_model_context = Event["Bridge"]()
    on_request_display_mode = Event["Bridge"]()
    on_create_message = Event["Bridge"]()
    on_call_tool = Event["Bridge"]()
    on_list_tools = Event["Bridge"]()
    on_list_resources = Event["Bridge"]()
    on_list_resource_templates = Event["Bridge"]()
    on_read_resource = Event["Bridge"]()
    on_list_prompts = Event["Bridge"]()
    on_size_changed = Event["Bridge"]()
    on_log = Event["Bridge"]()
    on_request_teardown = Event["Bridge"]()
    on_closed = Event["Bridge"]()
    on_error = Event["Bridge"]()

    def __init__(
        self,
        channel: Channel,
        *,
        host_info: Implementation | Mapping[str, Any],
        capabilities: HostCapabilities | Mapping[str, Any] | None = None,
        context: HostContext | Mapping[str, Any] | None = None,
        upstream: Server | ViewServer | Client | ClientSession | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits if limits is not None else Limits()
        self._slots: dict[str, Slot] = {}
        self.app_info: Implementation | None = None
        """How the View named itself in `ui/initialize`; None before."""
        self._host_info = object_json(host_info)
        self._capabilities = None if capabilities is None else object_json(capabilities)
        self._context = ViewContext(context)
        self._readiness = Readiness(self.limits.max_queued)
        self._lifecycle = self._readiness.lifecycle
        self._session = Session(
            channel,
            on_request=self._handle_request,
            on_notification=self._handle_notification,
            on_problem=self.report,
            on_closed=self._ended,
            timeout=self.limits.call_timeout,
            peer=Peer(
                max_bytes=self.limits.max_message_bytes,
                max_depth=self.limits.max_message_depth,
                max_incoming=self.limits.max_requests,
                first_id=1,  # a View of ext-apps 1.x cannot cancel number 0
            ),
        )
        self._server = None if upstream is None else _view_server(upstream)
        self._requests = ViewRequests(
            self._slots,
            self._context,
            self._send_context_changes,
            self._server,
            max_files=self.limits.max_files,
        )
        self._tools = ViewTools(self._session, self._readiness, self.limits, self.report)
        self._torn_down: asyncio.Future[bool] | None = None
        self._restarting = False
        self._tools_changed = Debounced(self._fire_tools_changed, self.report)
        self.notify_tools_changed: Callable[[], object] = self._tools_changed.trigger
        self._reports = Background(_ignore, limit=_MAX_REPORTS)
        # Beside the session's own queue: a slow handler must not hold up the conversation.
        self._events = NotificationQueue(self.report, limit=self.limits.max_queued)

    # --- life --------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """How far the conversation is."""
        return self._lifecycle.state

    @property
    def app_capabilities(self) -> AppCapabilities | None:
        """What the View declared in `ui/initialize`; None before."""
        return self._requests.app

    @property
    def left_out(self) -> Mapping[str, str]:
        """Tools of the last listing that could not be used, by name, with the reason."""
        return self._tools.left_out

    @property
    def context(self) -> dict[str, Any]:
        """The host's context as the wire has it."""
        return dict(self._context.values)

    def start(self) -> None:
        """Start to read from the View. `async with` does this.

        Raises:
            AlreadyConnected: it was started before; each connection needs a Bridge of its own.
        """
        if self._readiness.started:
            raise AlreadyConnected("This Bridge was connected before: make one per connection")
        self._readiness.started = True
        self._session.start()
        if self._server is not None:
            self._server.start(self._session.notify, self.report)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.teardown()

    async def initialized(self, timeout: float | None = None) -> None:
        """Wait until the View has said that it is initialised.

        Args:
            timeout: seconds; `limits.initialize_timeout` unless given.

        Raises:
            RequestTimeout: it did not say so in time.
            ConnectionClosed: it went away first.
            NotConnected: the bridge is not running.
        """
        limit = self.limits.initialize_timeout if timeout is None else timeout
        await self._readiness.until_ready("initialized", limit)

    async def teardown(self, reason: str | None = None) -> bool:
        """Ask the View to wind up, wait a little, and close. Always completes, safe to repeat.

        Returns:
            Whether the View answered that it was done. One that does not know how to, fails, is
            silent for `limits.teardown_timeout` or was never initialised is closed all the same.
        """
        if self._torn_down is not None:
            return await asyncio.shield(self._torn_down)
        self._torn_down = asyncio.get_running_loop().create_future()
        agreed = False
        try:
            if self._lifecycle.ready and not self._session.closed:
                agreed = await self._request_teardown(reason)
        finally:
            try:
                await self.aclose("torn down by the host" if reason is None else reason)
            finally:
                self._torn_down.set_result(agreed)
        return agreed

    async def _request_teardown(self, reason: str | None) -> bool:
        method, limit = "ui/resource-teardown", self.limits.teardown_timeout
        self._lifecycle.record("host", method)
        if self._server is not None:
            self._server.set_ready(False)
        params = wire.encode(m.TeardownParams(reason))
        try:
            await self._session.request(method, params, timeout=limit)
        except TransomError as error:
            # A View with nothing to clean up need not have a handler for this.
            if not isinstance(error, ProtocolError) or error.code != METHOD_NOT_FOUND:
                self.report(error)
            return False
        return True

    async def aclose(self, reason: str = "closed by the host") -> None:
        """Close the connection without asking the View first. Safe to repeat."""
        await self._session.aclose(reason)
        if self._lifecycle.state is not State.CLOSED:  # it was never started
            self._ended(reason)

    async def wait_closed(self) -> str:
        """Wait until the conversation is over; the reason it ended."""
        return await self._session.wait_closed()

    def _ended(self, reason: str) -> None:
        if self._lifecycle.state is State.CLOSED:
            return
        self._readiness.close(reason)
        self._tools_changed.close()
        self._events.close()
        if self._events.task is not None and self._events.task is not asyncio.current_task():
            self._events.task.cancel()
        if self._server is not None:
            self._server.close()
        self._reports.fire(self.on_closed, reason)

    # --- to the View: requests ---------------------------------------------------------------

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> Coroutine[Any, Any, ToolResult]:
        """Call one of the View's tools.

        Args:
            name: as the View lists it.
            arguments: a JSON object.
            options: see `CallOptions`. Cancelling the call tells the View to stop.

        Raises:
            CapabilityMissing: the View did not declare tools.
            ProtocolError: the View answered with an error.
            InvalidResult: it answered with something that is no result, or with too much.
            RequestTimeout: it did not answer in time.
            ConnectionClosed: it closed first.
            NotConnected: it was closed before.
        """
        return self._tools.call(name, arguments, **options)

    def start_task(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        **options: Unpack[CallOptions],
    ) -> Coroutine[Any, Any, Task | ToolResult]:
        """Call a tool as a task: the View answers with a `Task` at once and works on.

        A tool that cannot run as a task answers with its result.

        `ttl` is how many milliseconds the View should keep the task; all else is as for
        `call_tool`.
        """
        return self._tools.call(name, arguments, **options, task=m.TaskRequest(ttl))

    def call(
        self, name: str, arguments: Mapping[str, Any], options: CallOptions
    ) -> Coroutine[Any, Any, Any]:
        """`call_tool`, or with `TaskCallOptions` `start_task`."""
        return self._tools.call(name, arguments, **options)

    async def list_tools(self, *, timeout: float | None = None) -> list[Tool]:
        """The View's tools, all pages.

        Definitions that cannot be used, and those beyond `limits.max_tools`, are left out; see
        `left_out`. Each that is new there is reported to `on_error`.

        Args:
            timeout: seconds for all pages together; `limits.list_timeout` unless given.

        Raises:
            CapabilityMissing: the View did not declare tools.
            ProtocolError, InvalidResult, RequestTimeout, ConnectionClosed, NotConnected: as for
                `call_tool`.
        """
        return await self._tools.list_all(timeout)

    async def ping(self, *, timeout: float | None = None) -> None:
        """Check that the View still answers.

        Raises:
            RequestTimeout: it does not.
            ConnectionClosed, NotConnected: it is closed.
        """
        limit = self.limits.call_timeout if timeout is None else timeout
        left = await self._readiness.until_ready("ping", limit)
        await self._session.request("ping", b"{}", timeout=left)

    async def get_task(self, task_id: str, *, timeout: float | None = None) -> Task:
        """The state of a task of the View."""
        return await self.request_task("tasks/get", {"taskId": task_id}, timeout)

    async def list_tasks(
        self, cursor: str | None = None, *, timeout: float | None = None
    ) -> m.ListTasksResult:
        """A page of the View's tasks."""
        params = {} if cursor is None else {"cursor": cursor}
        return await self.request_task("tasks/list", params, timeout)

    async def task_result(self, task_id: str, *, timeout: float | None = None) -> ToolResult:
        """The result of a task; waits until there is one."""
        return await self.request_task("tasks/result", {"taskId": task_id}, timeout)

    async def cancel_task(self, task_id: str, *, timeout: float | None = None) -> Task:
        """Stop a task of the View."""
        return await self.request_task("tasks/cancel", {"taskId": task_id}, timeout)

    async def request_task(
        self, method: str, params: Mapping[str, Any], timeout: float | None
    ) -> Any:
        """Send a request about tasks; its result."""
        return await self._tools.request(method, params, timeout)

    # --- to the View: notifications ----------------------------------------------------------

    async def send_tool_input(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Give the View the complete arguments of the call that opened it. Once.

        Raises:
            OutOfOrder: it has them already, or it is being torn down.
            NotConnected: it is closed.
        """
        params = wire.encode({"arguments": dict(arguments or {})})
        await self._send_when_ready("ui/notifications/tool-input", params)

    async def send_tool_input_partial(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Give the View what there is of the arguments so far.

        Raises:
            OutOfOrder: it has the complete ones already, or it is being torn down.
            NotConnected: it is closed.
        """
        params = wire.encode({"arguments": dict(arguments or {})})
        await self._send_when_ready("ui/notifications/tool-input-partial", params)

    async def send_tool_result(self, result: ToolOutcome) -> None:
        """Give the View the result of the call that opened it. Once, after the input.

        Raises:
            OutOfOrder: the input was not sent, or the View has a result or a cancellation already.
            NotConnected: it is closed.
        """
        await self._send_when_ready("ui/notifications/tool-result", result_json(result))

    async def send_tool_cancelled(self, reason: str | None = None) -> None:
        """Tell the View that the call that opened it will have no result.

        Raises:
            OutOfOrder: it has a result or a cancellation already.
            NotConnected: it is closed.
        """
        params = wire.encode(m.ToolCancelledParams(reason))
        await self._send_when_ready("ui/notifications/tool-cancelled", params)

    async def set_context(self, **changes: Any) -> None:
        """Change the host's context and send the View what has changed, if anything.

        Keys go by their Python or their wire name (`display_mode`, `displayMode`). None removes a
        key; the View is sent null. Before `ui/initialize` this changes what it will answer.

        Raises:
            UsageError: the View did not declare that display mode.
            NotConnected: the View is closed.
        """
        mode = changes.get("display_mode", changes.get("displayMode"))
        app = self._requests.app
        modes = None if app is None else app.available_display_modes
        if mode is not None and modes is not None and mode not in modes:
            raise UsageError(f"The View cannot be shown in {mode!r}, only in {modes}")
        self._readiness.check_open("set_context")
        self._context.change(changes)
        self._send_context_changes()

    def _send_context_changes(self) -> None:
        if self._lifecycle.ready:
            for params in self._context.take_changes():
                self._notify("ui/notifications/host-context-changed", params)

    async def _send_when_ready(self, method: str, params: bytes) -> None:
        if self._readiness.admit(method, params):
            await self._session.notify(method, params)

    def _notify(self, method: str, params: bytes) -> None:
        with suppress(NotConnected):  # the View is gone, and needs nothing any more
            self._session.notify_soon(method, params)

    # --- from the View -----------------------------------------------------------------------

    def _handle_request(self, request: wire.Request) -> Any:
        if request.method == "ui/initialize":
            return self._initialize(request)
        early = self._lifecycle.state in (State.CREATED, State.INITIALIZING)
        if early and request.method != "ping":
            self.report(PeerError(f"{request.method} came before the View was initialised"))
        return self._requests.answer(request)

    def _initialize(self, request: wire.Request) -> bytes:
        params: m.InitializeParams = VIEW["ui/initialize"].read_params(request.params)
        if self.app_info is not None:
            self.report(PeerError("The View sent ui/initialize again; the newest counts"))
        live = self._lifecycle.ready
        self._lifecycle.record("view", "ui/initialize")
        if live:
            self._session.reset(request.id, "the View restarted before it answered")
            self._restarting = True
        if self._server is not None:
            self._server.set_ready(False)
        self.app_info = params.app_info
        self._requests.app = params.app_capabilities
        self._tools.app = params.app_info.name
        self._tools.offered = params.app_capabilities.tools is not None
        capabilities = self._capabilities
        if capabilities is None:
            capabilities = wire.encode(self._requests.capabilities())
        return b'{"protocolVersion":%b,"hostInfo":%b,"hostCapabilities":%b,"hostContext":%b}' % (
            wire.encode(m.PROTOCOL_VERSION),
            self._host_info,
            capabilities,
            self._context.take_all(),
        )

    def _handle_notification(self, notification: wire.Notification) -> None:
        row = VIEW.get(notification.method)
        if row is None or row.is_request:
            return
        try:
            params = row.read_params(notification.params)
            self._lifecycle.record("view", notification.method)
        except (ProtocolError, OutOfOrder) as error:
            self.report(PeerError(str(error)))
            return
        match notification.method:
            case "ui/notifications/initialized":
                self._initialized()
            case "notifications/tools/list_changed":
                self.notify_tools_changed()
            case "ui/notifications/size-changed":
                self._fire(self.on_size_changed, params.width, params.height)
            case "notifications/message":
                self._fire(self.on_log, params)
            case "ui/notifications/request-teardown":
                self._fire(self.on_request_teardown)
            case _:
                pass  # between the host and its sandbox, or the session's own

    def _fire(self, handlers: Slot, *arguments: object) -> None:
        self._events.run(lambda: handlers.fire(*arguments, on_problem=self.report))

    def _initialized(self) -> None:
        for method, params in self._readiness.become_ready():
            self._notify(method, params)
        self._send_context_changes()
        if self._server is not None:
            self._server.set_ready(True)
        if self._restarting:
            self._restarting = False
            self.notify_tools_changed()

    def _fire_tools_changed(self) -> object:
        return self.on_tools_changed.fire(on_problem=self.report)

    def report(self, error: BaseException) -> None:
        """Hand an error to `on_error`."""
        self._reports.fire(self.on_error, error)


def _view_server(given: ViewServer | Server | Client | ClientSession) -> ViewServer:
    if isinstance(given, ViewServer):
        return given
    server = connected_server(given)
    if server is None:
        raise UsageError(f"Expected a connected MCP client or a Server, not {type(given).__name__}")
    return ViewServer(server)
