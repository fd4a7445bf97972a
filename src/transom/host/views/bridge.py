"""The host's end of one View.

1. Nothing is sent before the View says that it is initialised. Notifications that a host sends
   earlier are queued in order, and requests wait.
2. The tool's data goes to the View in its order (`tool_data.py`), or not at all.
3. The View is not trusted: what it lists, answers and requests is checked and capped (`Limits`).
4. `teardown` always completes.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec
from msgspec import Raw

from transom.background import Background, Debounced, ignore
from transom.channel import Channel
from transom.connections.targets import connected_server
from transom.connections.upstream import Server
from transom.connections.versions import task_in
from transom.errors import (
    METHOD_NOT_FOUND,
    AlreadyConnected,
    CapabilityMissing,
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    PeerError,
    ProtocolError,
    RequestTimeout,
    TransomError,
    UsageError,
)
from transom.events import Event, Slot
from transom.host.limits import Limits
from transom.host.views.tool_data import CANCELLED, INPUT, PARTIAL_INPUT, RESULT, ToolData
from transom.host.views.view_requests import ViewRequests
from transom.host.views.view_server import ViewServer
from transom.host.views.view_tools import ToolDefinitions, ToolListing
from transom.json_values import without_marks
from transom.protocol import messages as m
from transom.protocol import wire
from transom.protocol.lifecycle import Lifecycle, LifecycleState
from transom.protocol.messages import ToolOutcome, object_json, result_json
from transom.protocol.methods import HOST, VIEW
from transom.protocol.peer import Peer
from transom.queues import NotificationQueue
from transom.session import OnProgress, Session
from transom.types import (
    AppCapabilities,
    DisabledTool,
    HostCapabilities,
    HostContext,
    Implementation,
    Task,
    Tool,
    ToolResult,
)

if TYPE_CHECKING:
    from mcp import Client, ClientSession

_MAX_REPORTS = 64  # errors that async `on_error` handlers may work on at once
_READY = LifecycleState.READY  # looking a member up in its enum is slow, and every call needs it
_decode_result = msgspec.json.Decoder(ToolResult).decode
_read_result = HOST["tools/call"].read_result


class OutgoingCall(msgspec.Struct):
    """A call of a tool on its way to the View or the server that has it."""

    name: str
    arguments: Mapping[str, Any] | None = None
    timeout: float | None = None
    on_progress: OnProgress | None = None
    as_task: m.TaskRequest | None = None
    """As which the tool is to run, with `start_task`."""
    open_view: bool = True
    call_id: str | None = None


class _CallParams(msgspec.Struct, omit_defaults=True):
    """`CallToolParams` on their way out: the arguments are values, not JSON yet."""

    name: str
    arguments: dict[str, Any] | None = None
    task: m.TaskRequest | None = None


class CallsTools:
    """What a `Host`, a `View` and a `Bridge` have in common: calling tools."""

    __slots__ = ()

    @abstractmethod
    def _call(self, call: OutgoingCall) -> Coroutine[Any, Any, Any]:
        """`call_tool` and `start_task`."""

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Coroutine[Any, Any, ToolResult]:
        """Call a tool. Cancelling the call tells the View or server to stop.

        A `Bridge` and a `View` take the View's own name for its tool, a `Host` the name that
        `list_tools` gives it. A `View` and a `Host` ask the policy first.

        Args:
            name: the tool.
            arguments: a JSON object.
            timeout: seconds without an answer or a progress notification; the limit of the Bridge
                or the host unless given.
            on_progress: called with each progress notification; may be async.

        Raises:
            Refused: the policy does not allow it.
            ViewClosed: the View it belongs to is closed, or closed before it answered.
            ConnectionClosed: the server is gone, or the Bridge's View closed first.
            NotConnected: the Bridge's View was closed before, or is being torn down.
            CapabilityMissing: the Bridge's View did not declare tools.
            ProtocolError: there is no such tool, or it answered with an error.
            InvalidResult: the answer is not a valid result, or is too large.
            RequestTimeout: there was no answer in time.
        """
        return self._call(OutgoingCall(name, arguments, timeout, on_progress))

    def start_task(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Coroutine[Any, Any, Task | ToolResult]:
        """Call a tool as a task: returns a `Task` at once, while the work continues.

        A tool that cannot run as a task answers with its result. Follow a task where it was
        started with `get_task`, `task_result` and `cancel_task`, and one of a `View` at its host.

        `ttl` is how many milliseconds the task should be stored; the rest is as for `call_tool`.
        """
        as_task = m.TaskRequest(ttl)
        return self._call(OutgoingCall(name, arguments, timeout, on_progress, as_task))


class BridgeListener(Protocol):
    """Who uses a Bridge, and lists its View's tools itself."""

    def tools_changed(self) -> None:
        """The View's tools may have changed."""

    def restarted(self) -> None:
        """The View initialises again, and registers its tools again."""

    def refused(self, reason: str) -> None:
        """The View could not be initialised."""


class Bridge(CallsTools):
    """One View, seen from its host. `async with bridge:` runs it; leaving tears the View down.

    Args:
        channel: the pipe to the View; closed with the bridge.
        host_info: the host's name and version.
        capabilities: what the host can do, sent as it is. None: what its handlers and its server
            can do when the View initialises.
        context: the View's surroundings, sent as they are.
        upstream: the View's server: a connected MCP client, or any `Server`.
        limits: how much the View may cost.
        offers: the capabilities that it is offered of those there are; None: all. What needs
            another is refused.
        listener: is told at once when the View's tools change, in place of `on_tools_changed`.
        handlers: those below, by their names.

    Handlers are given here, assigned or used as decorators, and may be async. Those that answer the
    View:

    - `on_message(blocks)`, `on_open_link(url)`, `on_download_file(files)`,
      `on_update_model_context(update)`, `on_request_pin(reason)`: return nothing when done, False
      (or raise `Refused`) to refuse.
    - `on_request_display_mode(mode)`: return the mode the View is in now, nothing if it is `mode`.
    - `on_create_message(params)`: return the result of `sampling/createMessage`.
    - `on_call_tool(name, arguments)`, `on_list_tools(cursor)`, `on_list_resources(cursor)`,
      `on_list_resource_templates(cursor)`, `on_read_resource(uri)`, `on_list_prompts(cursor)`:
      answer in place of the server.

    Those that answer nothing: `on_tools_changed()`, `on_size_changed(width, height)`,
    `on_log(entry)`, `on_problem(problem)`, `on_unconnected()` when a script of its page failed,
    and it has not connected soon after that, `on_request_teardown()`, `on_closed(reason)`, and
    `on_error(error)` with protocol violations of the View and exceptions of handlers.
    """

    on_tools_changed = Event["Bridge"]()
    on_message = Event["Bridge"]()
    on_open_link = Event["Bridge"]()
    on_download_file = Event["Bridge"]()
    on_update_model_context = Event["Bridge"]()
    on_request_display_mode = Event["Bridge"]()
    on_create_message = Event["Bridge"]()
    on_request_pin = Event["Bridge"]()
    on_problem = Event["Bridge"]()
    on_unconnected = Event["Bridge"]()
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
        offers: Collection[str] | None = None,
        listener: BridgeListener | None = None,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._slots: dict[str, Slot] = {}
        for name, handler in (handlers or {}).items():
            if not isinstance(getattr(type(self), name, None), Event):
                raise UsageError(f"A Bridge has no event {name!r}")
            setattr(self, name, handler)
        self.limits = limits if limits is not None else Limits()
        self.app_info: Implementation | None = None
        """How the View named itself in `ui/initialize`; None before."""
        self._offers_tools = False
        self._lifecycle = Lifecycle()
        self._state_changed = asyncio.Event()  # set and cleared at once, to wake all waiters
        self._started = False
        self._reason = "the bridge was never started"
        self._session = Session(
            channel,
            on_request=self._handle_request,
            on_notification=self._handle_notification,
            on_error=self.report,
            on_closed=self._ended,
            timeout=self.limits.call_timeout_of(""),
            peer=Peer(
                max_bytes=self.limits.max_message_bytes,
                max_depth=self.limits.max_message_depth,
                max_containers=self.limits.max_message_containers,
                max_incoming=self.limits.max_requests,
                first_id=1,  # a View of ext-apps 1.x cannot cancel number 0
            ),
        )
        self._tool_data = ToolData(self._lifecycle, self._session.notify_soon)
        self._server = _view_server(upstream)
        self._requests = ViewRequests(
            self._slots,
            context,
            self._send_context_changes,
            self._server,
            host_info=object_json(host_info),
            capabilities=None if capabilities is None else object_json(capabilities),
            offers=offers,
            max_files=self.limits.max_files,
        )
        self._listing = ToolListing()
        self._definitions = ToolDefinitions(self.limits)
        self._torn_down: asyncio.Future[bool] | None = None
        self._restarting = False
        fire_changed = partial(self.on_tools_changed.fire, on_error=self.report)
        self._tools_changed = Debounced(fire_changed, self.report)
        self._listener = listener
        # Errors in handlers of `on_error` and `on_closed` are dropped: there is nobody to tell.
        self._reports = Background(ignore, limit=_MAX_REPORTS)
        # Not in the session's own queue: a slow handler must not delay other messages.
        self._events = NotificationQueue(self.report, limit=self.limits.max_queued)

    # --- life --------------------------------------------------------------------------------

    @property
    def state(self) -> LifecycleState:
        """The state of the connection, such as `LifecycleState.READY`."""
        return self._lifecycle.state

    @property
    def app_capabilities(self) -> AppCapabilities | None:
        """What the View declared in `ui/initialize`; None before."""
        return self._requests.app

    @property
    def left_out(self) -> Mapping[str, str]:
        """Tools of the last listing that are unusable, by name, with the reason."""
        return self._listing.left_out

    @property
    def disabled(self) -> Mapping[str, DisabledTool]:
        """Tools that the View has disabled, by name, as of the last listing."""
        return self._listing.disabled

    @property
    def lazy(self) -> bool:
        """Whether the View has a lazy schema, so that every listing may differ."""
        return self._listing.lazy

    @property
    def context(self) -> dict[str, Any]:
        """The host's context as the wire has it."""
        return dict(self._requests.context.values)

    def start(self) -> None:
        """Start to read from the View. `async with` does this.

        Raises:
            AlreadyConnected: it was started before; each connection needs a Bridge of its own.
        """
        if self._started:
            raise AlreadyConnected("This Bridge was connected before: make one per connection")
        self._started = True
        self._session.start()
        self._server.start(self._session.notify, self.report)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.teardown()

    async def initialized(self, timeout: float | None = None) -> None:
        """Wait until the View is initialised.

        Args:
            timeout: seconds; `limits.initialize_timeout` unless given.

        Raises:
            RequestTimeout: it did not say so in time.
            ConnectionClosed: it went away first.
            UsageError: the bridge was never started.
            NotConnected: it is closed, or being torn down.
        """
        limit = self.limits.initialize_timeout if timeout is None else timeout
        await self._until_ready("initialized", limit)

    async def _until_ready(self, what: str, timeout: float) -> float:
        """Wait until the View is initialised; returns the rest of the timeout."""
        if not self._started:
            raise UsageError(f"{what}: not connected (use `async with bridge:`)")
        self._check_open(what)
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout
        while (state := self._lifecycle.state) is not _READY:
            if state is LifecycleState.CLOSED:
                raise ConnectionClosed(f"{what}: connection closed: {self._reason}")
            if state is LifecycleState.TEARING_DOWN:
                raise NotConnected(f"{what}: the View is being torn down")
            try:
                async with asyncio.timeout_at(deadline):
                    await self._state_changed.wait()
            except TimeoutError:
                text = f"{what}: the View was not initialised within {timeout:g} s"
                raise RequestTimeout(text) from None
        return max(deadline - clock(), 0.001)

    async def _until_callable(self, method: str, timeout: float) -> float:
        """Wait until the View is ready and check that it has tools; the rest of the timeout."""
        left = await self._until_ready(method, timeout)
        if not self._offers_tools:
            app = "the View" if self.app_info is None else self.app_info.name
            raise CapabilityMissing(f"{method}: {app} did not declare the tools capability")
        return left

    def _check_open(self, what: str) -> None:
        if self._lifecycle.state is LifecycleState.CLOSED:
            raise NotConnected(f"{what}: not connected ({self._reason})")

    def _wake_waiting(self) -> None:
        self._state_changed.set()
        self._state_changed.clear()

    async def teardown(self, reason: str | None = None) -> bool:
        """Ask the View to clean up, wait briefly, and close. Always completes, safe to repeat.

        Returns:
            Whether the View confirmed it. Otherwise it is closed anyway.
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
        self._server.set_ready(False)
        params = wire.encode(m.TeardownParams(reason))
        try:
            await self._session.request(method, params, timeout=limit)
        except TransomError as error:
            # A View with nothing to clean up need not have a handler for this.
            if not isinstance(error, ProtocolError) or error.code != METHOD_NOT_FOUND:
                self.report(PeerError(f"The View did not clean up: {error}"))
            return False
        return True

    async def aclose(self, reason: str = "closed by the host") -> None:
        """Close the connection without asking the View first. Safe to repeat."""
        await self._session.aclose(reason)
        if self._lifecycle.state is not LifecycleState.CLOSED:  # it was never started
            self._ended(reason)

    async def wait_closed(self) -> str:
        """Wait until the connection has closed; returns the reason."""
        return await self._session.wait_closed()

    def _ended(self, reason: str) -> None:
        if self._lifecycle.state is LifecycleState.CLOSED:
            return  # a handler that was cancelled has closed this, while another task was at it
        self._reason = reason
        self._lifecycle.close()
        self._tool_data.clear()
        self._wake_waiting()
        self._tools_changed.close()
        self._events.close()
        self._server.close()
        self._reports.fire(self.on_closed, reason)

    # --- to the View: requests ---------------------------------------------------------------

    async def _call(self, call: OutgoingCall) -> Any:
        """`call_tool` and `start_task`."""
        name, arguments, timeout, task = call.name, call.arguments, call.timeout, call.as_task
        if timeout is None:
            timeout = self.limits.call_timeout_of(name)
        if self._lifecycle.state is not _READY or not self._offers_tools:
            timeout = await self._until_callable("tools/call", timeout)
        if arguments is not None and not isinstance(arguments, dict):
            arguments = dict(arguments)
        params = wire.encode(_CallParams(name, arguments, task))
        if call.on_progress is None:
            raw = await self._session.request("tools/call", params, timeout=timeout)
        else:
            raw = await self._call_with_progress(params, timeout, call.on_progress)
        data = self._checked(name, raw)
        try:
            result = _decode_result(data)
            if not result.extra:
                return result
        except (msgspec.DecodeError, RecursionError, ValueError):
            pass  # unknown members, or not a result: see below
        result = _read_result(data)
        if "task" not in result.extra or result.content:
            return result
        if task is None:
            raise InvalidResult(f"{name}: the View answered with a task that was not requested")
        handle = task_in(data)
        if handle is None:
            raise InvalidResult(f"{name}: the View answered with a task that cannot be read")
        return handle

    async def _call_with_progress(
        self, params: bytes, timeout: float, on_progress: OnProgress
    ) -> Raw:
        # A View that reports progress may take longer, up to `max_call_time`.
        longest = max(timeout, self.limits.max_call_time)
        try:
            async with asyncio.timeout(longest):
                return await self._session.request(
                    "tools/call", params, timeout=timeout, on_progress=on_progress
                )
        except TimeoutError:
            raise RequestTimeout(f"tools/call: no answer within {longest:g} s") from None

    def _checked(self, what: str, raw: Raw) -> bytes:
        """The result without the host's brackets; InvalidResult if it is too large."""
        if len(raw) > (limit := self.limits.max_result_bytes):
            raise InvalidResult(
                f"{what}: a result of {len(raw)} bytes is over the limit of {limit}"
            )
        return without_marks(bytes(raw))

    async def list_tools(self, *, timeout: float | None = None) -> list[Tool]:
        """The View's tools, all pages.

        Unusable definitions, and those beyond `limits.max_tools`, are left out; see `left_out`.
        Each new one there is reported to `on_error`.

        Args:
            timeout: seconds for all pages together; `limits.list_timeout` unless given.

        Raises:
            CapabilityMissing: the View did not declare tools.
            ProtocolError, InvalidResult, RequestTimeout, ConnectionClosed, NotConnected: as for
                `call_tool`.
        """
        limit = self.limits.list_timeout if timeout is None else timeout
        clock = asyncio.get_running_loop().time
        deadline = clock() + limit
        await self._until_callable("tools/list", limit)

        def request(params: bytes) -> Awaitable[Raw]:
            left = max(deadline - clock(), 0.001)
            return self._session.request("tools/list", params, timeout=left)

        listing = await self._definitions.list_all(request)
        before, self._listing = self._listing, listing
        for name, reason in listing.left_out.items():
            if before.left_out.get(name) != reason:
                what = f"{name} left out: " if name else ""
                self.report(PeerError(f"tools/list: {what}{reason}"))
        return list(listing.tools.values())

    async def ping(self, *, timeout: float | None = None) -> None:
        """Check that the View still answers.

        Args:
            timeout: seconds; `limits.list_timeout` unless given.

        Raises:
            RequestTimeout: it does not.
            ConnectionClosed, NotConnected: it is closed, or being torn down.
        """
        limit = self.limits.list_timeout if timeout is None else timeout
        left = await self._until_ready("ping", limit)
        await self._session.request("ping", b"{}", timeout=left)

    @property
    def last_message_at(self) -> float:
        """When the View's last message arrived, by `time.monotonic`; 0 before the first."""
        return self._session.last_message_at

    def notify_callers(self, message: str) -> None:
        """Give the callers that wait for the View, and want progress, a message of the host's."""
        self._session.notify_callers(message)

    def cancel_requests(self, reason: str) -> None:
        """End all requests to the View that wait for an answer."""
        self._session.reset(None, reason)

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

    async def request_task(self, method: str, params: object, timeout: float | None) -> Any:
        """Send a request about tasks; its result."""
        limit = self.limits.call_timeout_of("") if timeout is None else timeout
        left = await self._until_callable(method, limit)
        raw = await self._session.request(method, wire.encode(params), timeout=left)
        return HOST[method].read_result(self._checked(method, raw))

    # --- to the View: notifications ----------------------------------------------------------

    def begin_call(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Use the View for another call: its input and result follow, as for the first one.

        If the View still waits for the previous call's result, it gets a cancellation. A View that
        is not initialised yet, or is reloaded, gets the data of the last call only.

        Args:
            arguments: the complete input, if known; it is sent at once.

        Raises:
            NotConnected: it is closed, or being torn down.
        """
        self._check_open("begin_call")
        self._tool_data.begin_call(arguments)

    async def send_tool_input(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Give the View the complete arguments of the call it shows. Once for each call.

        Raises:
            OutOfOrder: it has them already.
            NotConnected: it is closed, or being torn down.
        """
        params = wire.encode({"arguments": dict(arguments or {})})
        await self._deliver(INPUT, params)

    async def send_tool_input_partial(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Give the View the arguments so far, while they arrive; raises as `send_tool_input`."""
        params = wire.encode({"arguments": dict(arguments or {})})
        await self._deliver(PARTIAL_INPUT, params)

    async def send_tool_result(self, result: ToolOutcome) -> None:
        """Give the View the result of the call it shows. Once, after the input.

        Raises:
            OutOfOrder: the input was not sent, or the View has a result or a cancellation already.
            NotConnected: it is closed, or being torn down.
        """
        await self._deliver(RESULT, result_json(result))

    async def send_tool_cancelled(self, reason: str | None = None) -> None:
        """Tell the View that the call it shows will have no result.

        Raises:
            OutOfOrder: it has a result or a cancellation already.
            NotConnected: it is closed, or being torn down.
        """
        params = wire.encode(m.ToolCancelledParams(reason))
        await self._deliver(CANCELLED, params)

    async def set_context(self, **changes: Any) -> None:
        """Change the host's context and send the View what has changed, if anything.

        Keys have their Python or their wire name (`display_mode`, `displayMode`). None removes a
        key, and the View gets null. Before `ui/initialize` this changes the context that it will
        return.

        Raises:
            CapabilityMissing: the View did not declare that display mode.
            NotConnected: the View is closed.
        """
        mode = changes.get("display_mode", changes.get("displayMode"))
        app = self.app_capabilities
        modes = None if app is None else app.available_display_modes
        if mode is not None and modes is not None and mode not in modes:
            raise CapabilityMissing(f"The View cannot be shown in {mode!r}, only in {modes}")
        self._check_open("set_context")
        self._requests.context.change(changes)
        self._send_context_changes()

    def _send_context_changes(self) -> None:
        if self._lifecycle.ready:
            for params in self._requests.context.take_changes():
                self._notify("ui/notifications/host-context-changed", params)

    async def _deliver(self, method: str, params: bytes) -> None:
        """Send a part of the tool's data, or queue it; then wait while the View is slow to read."""
        self._check_open(method)
        self._tool_data.deliver(method, params)
        await self._session.wait_writable()

    def _notify(self, method: str, params: bytes) -> None:
        with suppress(NotConnected):  # the View has closed
            self._session.notify_soon(method, params)

    # --- from the View -----------------------------------------------------------------------

    def _handle_request(self, request: wire.Request) -> Any:
        if request.method == "ui/initialize":
            return self._initialize(request)
        early = self._lifecycle.state in (LifecycleState.CREATED, LifecycleState.INITIALIZING)
        if early and request.method != "ping":
            self.report(PeerError(f"{request.method} came before the View was initialised"))
        return self._requests.answer(request)

    def _initialize(self, request: wire.Request) -> bytes:
        try:
            params: m.InitializeParams = VIEW["ui/initialize"].read_params(request.params)
        except ProtocolError as error:
            if self._listener is not None:
                self._listener.refused(str(error))
            raise
        if self.app_info is not None:
            self.report(PeerError("The View sent ui/initialize again; the newest counts"))
        live = self._lifecycle.ready
        self._lifecycle.record("view", "ui/initialize")
        if live:
            self._session.reset(request.id, "the View restarted before it answered")
            self._restarting = True
            self._listing = ToolListing(left_out=self._listing.left_out)
            if self._listener is not None:
                self._listener.restarted()
        self._server.set_ready(False)
        self.app_info = params.app_info
        self._offers_tools = params.app_capabilities.tools is not None
        return self._requests.initialize(params.app_capabilities)

    def _handle_notification(self, notification: wire.Notification) -> None:
        row = VIEW.get(notification.method)
        if row is None or row.is_request:
            return
        try:
            params = row.read_params(notification.params)
            self._lifecycle.record("view", notification.method)
        except (ProtocolError, PeerError) as error:
            self.report(PeerError(str(error)))
            return
        match notification.method:
            case "ui/notifications/initialized":
                self._initialized()
            case "notifications/tools/list_changed":
                self._notify_tools_changed()
            case "ui/notifications/size-changed":
                self._fire(self.on_size_changed, params.width, params.height)
            case "notifications/message":
                self._fire(self.on_log, params)
            case "ui/notifications/request-teardown":
                self._fire(self.on_request_teardown)
            case "transom/notifications/problem":
                self._fire(self.on_problem, params)
            case "transom/notifications/unconnected":
                self._fire(self.on_unconnected)
            case _:
                pass  # between the host and its sandbox, or handled by the session

    def _fire(self, handlers: Slot, *arguments: object) -> None:
        self._events.run(lambda: handlers.fire(*arguments, on_error=self.report))

    def _initialized(self) -> None:
        self._wake_waiting()
        for method, params in self._tool_data.take_due():
            self._notify(method, params)
        self._send_context_changes()
        self._server.set_ready(True)
        if self._restarting:
            self._restarting = False
            self._notify_tools_changed()

    def _notify_tools_changed(self) -> None:
        if self._listener is None:
            self._tools_changed.trigger()
        else:
            self._listener.tools_changed()

    def report(self, error: BaseException) -> None:
        """Hand an error to `on_error`."""
        self._reports.fire(self.on_error, error)


def _view_server(given: ViewServer | Server | Client | ClientSession | None) -> ViewServer:
    if isinstance(given, ViewServer):
        return given
    server = None if given is None else connected_server(given)
    if server is None and given is not None:
        raise UsageError(f"Expected a connected MCP client or a Server, not {type(given).__name__}")
    return ViewServer(server)


async def set_context_while_open(bridge: Bridge, changes: Mapping[str, Any]) -> None:
    """As `Bridge.set_context`, for a View that may be closed by now: then nothing happens.

    Without a display mode that it has not declared, and only then with an error.
    """
    with suppress(NotConnected):
        try:
            await bridge.set_context(**changes)
        except CapabilityMissing:
            others = {key: value for key, value in changes.items() if key != "displayMode"}
            await bridge.set_context(**others)
            raise
