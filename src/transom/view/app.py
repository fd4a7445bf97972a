"""`App`: the object inside a View that talks to its host.

1. `connect` shakes hands: `ui/initialize`, its answer, `ui/notifications/initialized`.
2. Handlers and tools are set before `connect`; what the host sends once is not kept for latecomers.
3. Tools are offered when the `tools` capability is declared: by the first tool or tool handler that
   is set before `connect`, or by the author. Later it is too late, and nothing half-happens.
4. `notifications/tools/list_changed` is sent for real changes, once in a turn of the event loop.
5. Nothing is sent before the handshake, after the close, or that the host did not say it takes
   where the spec wants us to look first.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, overload

import msgspec

from transom.channel import Channel
from transom.errors import (
    METHOD_NOT_FOUND,
    AlreadyConnected,
    InvalidResult,
    NotConnected,
    PeerError,
    ProtocolError,
    RegistrationError,
    UsageError,
)
from transom.events import Event
from transom.protocol import wire
from transom.protocol.messages import PROTOCOL_VERSION, InitializeResult
from transom.protocol.methods import HOST, VIEW, read_result
from transom.protocol.peer import Peer
from transom.session import Session
from transom.types import (
    AppCapabilities,
    HostCapabilities,
    HostContext,
    Implementation,
    Open,
    ToolAnnotations,
    Visibility,
)
from transom.view.asking import HostRequests
from transom.view.browser import parent_channel
from transom.view.changes import ListChanges
from transom.view.handlers import description_of, name_of
from transom.view.service import ToolService
from transom.view.tools import RegisteredTool, Registry, TaskSupport

__all__ = ["App"]

_log = logging.getLogger("transom.view")

_DELIVERED: dict[str, tuple[str, Callable[[Any], object]]] = {
    "ui/notifications/tool-input": ("on_tool_input", lambda p: p.arguments or {}),
    "ui/notifications/tool-input-partial": ("on_tool_input_partial", lambda p: p.arguments or {}),
    "ui/notifications/tool-result": ("on_tool_result", lambda p: p),
    "ui/notifications/tool-cancelled": ("on_tool_cancelled", lambda p: p.reason),
}
"""The tool's data: which handler gets it, and in which form."""

_UPDATABLE = ("disabled", "description", "input_schema")


class App(HostRequests):
    """A View's end of the conversation with its host.

    Args:
        name: the name of the View's app.
        version: its version.
        title: a name for people.
        capabilities: what the View can do, besides what is found out by itself (`tools`); sent as
            given, unknown keys included.
        strict: raise where the default is to warn: handlers set too late, requests made before
            the handshake has ended.
        page_size: how many tools one answer to `tools/list` has at most.
        timeout: seconds a request to the host may take without an answer or a progress notice.

    Handlers, assigned or as decorators, sync or async: `on_tool_input(arguments)`,
    `on_tool_input_partial(arguments)`, `on_tool_result(result)`, `on_tool_cancelled(reason)`,
    `on_host_context_changed(changes)`, `on_teardown(reason)`, `on_tool_change(tool)`,
    `on_error(error)`, `on_list_tools(cursor)`, `on_call_tool(name, arguments, ctx)`, and
    `on_notification(method, params)` for whatever else the host says.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        title: str | None = None,
        capabilities: AppCapabilities | Mapping[str, Any] | None = None,
        strict: bool = False,
        page_size: int = 100,
        timeout: float | None = 60.0,
    ) -> None:
        if page_size < 1:
            raise ValueError(f"page_size must be at least 1, not {page_size}")
        self.info = Implementation(name, version, title)
        self.strict = strict
        self.timeout = timeout
        self._given = capabilities
        self._tools_wanted = False
        self._heard: set[str] = set()
        self._session: Session | None = None
        self._next_id = 0
        self._ready = False
        self._declared: dict[str, Any] = {}
        self._host: InitializeResult | None = None
        self._context: dict[str, Any] = {}
        self._changes = ListChanges(
            lambda: self.notify("notifications/tools/list_changed", {}) if self._ready else None
        )
        self._registry = Registry(self._tool_changed, self.report)
        self._service = ToolService(self, self._registry, page_size, self._ask_host)

    def __repr__(self) -> str:
        state = "connected" if self._ready else "not connected"
        return f"<App {self.info.name!r} {self.info.version} {state}, {len(self._registry)} tools>"

    # --- handlers ----------------------------------------------------------------------------

    def _check_late(self, name: str) -> None:
        """The first handler of a one-shot event, set after the handshake, has missed it."""
        if name in self._heard:
            return
        if self._ready:
            text = f"{name} was set after the handshake and may have missed its event; set it first"
            if self.strict:
                raise UsageError(text)
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        self._heard.add(name)

    def _check_tools(self, name: str) -> None:
        self._want_tools(f"{name} was set")

    on_tool_input = Event["App"](_check_late)
    on_tool_input_partial = Event["App"](_check_late)
    on_tool_result = Event["App"](_check_late)
    on_tool_cancelled = Event["App"](_check_late)
    on_host_context_changed = Event["App"]()
    on_teardown = Event["App"]()
    on_tool_change = Event["App"]()
    on_error = Event["App"]()
    on_notification = Event["App"]()
    on_list_tools = Event["App"](_check_tools)
    on_call_tool = Event["App"](_check_tools)

    def report(self, error: BaseException) -> None:
        """Tell `on_error`, or the log when nobody listens."""
        if not self.on_error:
            _log.error("%s: %s", self.info.name, error, exc_info=error)
            return
        self._run_aside(self.on_error.fire(error, on_problem=self._report_failed))

    def _report_failed(self, error: BaseException) -> None:
        _log.error("%s: on_error itself failed", self.info.name, exc_info=error)

    def _run_aside(self, waiting: object) -> None:
        if inspect.isawaitable(waiting):
            if self._session is not None and not self._session.closed:
                self._session.aside(waiting)
            elif inspect.iscoroutine(waiting):
                waiting.close()
                _log.error("%s: an async handler had no connection to run on", self.info.name)

    # --- state -------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the handshake is done and the connection lives."""
        return self._ready

    @property
    def host_info(self) -> Implementation | None:
        """Who the host is; None before the handshake."""
        return None if self._host is None else self._host.host_info

    @property
    def host_capabilities(self) -> HostCapabilities | None:
        """What the host can do; None before the handshake."""
        return None if self._host is None else self._host.host_capabilities

    @property
    def host_context(self) -> HostContext | None:
        """The View's surroundings as they are now; None before the handshake."""
        return None if self._host is None else HostContext.from_wire(self._context)

    @property
    def protocol_version(self) -> str | None:
        """The version the host answered with; None before the handshake."""
        return None if self._host is None else self._host.protocol_version

    @property
    def capabilities(self) -> dict[str, Any]:
        """What `connect` declares, or has declared, in wire form."""
        if self._session is not None:
            return self._declared
        given: dict[str, Any] = {}
        if self._given is not None:
            given = msgspec.json.decode(msgspec.json.encode(self._given))
        if self._tools_wanted and "tools" not in given:
            given["tools"] = {"listChanged": True}
        return given

    # --- life --------------------------------------------------------------------------------

    async def connect(self, channel: Channel | None = None, *, timeout: float | None = -1) -> Self:
        """Shake hands with the host.

        Args:
            channel: the pipe to the host; in a browser, the page's parent unless given.
            timeout: seconds to wait for the host's answer; the App's own unless given.

        Raises:
            AlreadyConnected: there is a connection. It is left as it is.
            ProtocolError, RequestTimeout, InvalidResult, ConnectionClosed: the handshake failed;
                the channel is closed.
        """
        if self._session is not None:
            raise AlreadyConnected(
                "App is already connected. Call close() before connecting again."
            )
        declared = self.capabilities
        session = Session(
            parent_channel() if channel is None else channel,
            on_request=self._on_request,
            on_notification=self._on_notification,
            on_problem=self.report,
            on_closed=self._on_closed,
            timeout=self.timeout,
            peer=Peer(first_id=self._next_id),
        )
        self._session, self._declared = session, declared
        session.start()
        self._changes.attach()
        params = {
            "appInfo": self.info,
            "appCapabilities": declared,
            "protocolVersion": PROTOCOL_VERSION,
        }
        try:
            raw = await session.request(
                "ui/initialize", msgspec.json.encode(params), timeout=timeout
            )
            host: InitializeResult = VIEW["ui/initialize"].read_result(raw)
            context = msgspec.json.decode(host.host_context, type=dict[str, Any])
            HostContext.from_wire(context)
        except BaseException as error:
            await self.close()
            if isinstance(error, msgspec.ValidationError):
                text = f"Invalid result for ui/initialize: hostContext: {error}"
                raise InvalidResult(text) from None
            raise
        self._host, self._context = host, context
        await session.notify("ui/notifications/initialized")
        self._ready = True
        return self

    async def close(self) -> None:
        """End the connection. Calls that run are cancelled. Tools and handlers stay."""
        session = self._session
        if session is not None:
            self._ready = False
            await session.aclose("the View closed it")

    async def wait_closed(self) -> str:
        """Wait until the connection has ended; the reason.

        Raises:
            NotConnected: there is none.
        """
        return await self._live().wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _on_closed(self, reason: str) -> None:
        if self._session is not None:
            self._next_id = self._session.peer.next_id
        self._ready = False
        self._session = None
        self._host = None
        self._context = {}
        self._changes.forget()
        self._service.close()
        _log.debug("%s: %s", self.info.name, reason)

    def _live(self) -> Session:
        if self._session is None or self._session.closed:
            raise NotConnected("Not connected")
        return self._session

    # --- talking to the host -----------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | msgspec.Struct | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = -1,
        on_progress: Callable[[Any], object] | None = None,
        result: type[Open] | None = None,
    ) -> Any:
        """Ask the host. The named methods, such as `call_server_tool`, say it more kindly.

        Returns:
            The result as the method has it (or as `result` has it), or as plain JSON where the
            method is not known.
        """
        row = VIEW.get(method)
        session = self._live()
        if not self._ready and (row is None or not row.early):
            self._too_early(method)
        raw = await session.request(
            method,
            None if params is None else msgspec.json.encode(params),
            meta=meta,
            timeout=timeout,
            on_progress=on_progress,
        )
        if result is not None:
            return read_result(method, result, raw)
        return msgspec.json.decode(raw) if row is None else row.read_result(raw)

    def notify(self, method: str, params: Mapping[str, Any] | msgspec.Struct | None = None) -> None:
        """Tell the host.

        Raises:
            NotConnected: there is no connection.
        """
        self._live().notify_soon(method, None if params is None else msgspec.json.encode(params))

    def _too_early(self, method: str) -> None:
        text = f"{method} was called before the handshake had ended: await connect() first"
        if self.strict:
            raise UsageError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=4)

    async def _ask_host(self, method: str, params: bytes) -> bytes:
        return bytes(await self._live().request(method, params))

    # --- tools -------------------------------------------------------------------------------

    @property
    def tools(self) -> tuple[RegisteredTool, ...]:
        """Every registered tool, disabled ones too, in the order of registration."""
        return tuple(self._registry)

    def register_tool(
        self,
        name: str,
        handler: Callable[..., Any],
        *,
        title: str | None = None,
        description: str | None = None,
        input_schema: object = None,
        output_schema: object = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        visibility: Sequence[Visibility] | None = None,
        meta: Mapping[str, Any] | None = None,
        enabled: bool = True,
        task: TaskSupport = "forbidden",
        thread: bool = False,
    ) -> RegisteredTool:
        """Offer a tool to the host.

        Args:
            name: 1 to 128 of `A-Za-z0-9_.-`, unique.
            handler: sync or async; gets the arguments by keyword, and a `CallContext` if it has a
                parameter for one. What it returns becomes the result.
            title: a short name for people.
            description: what it does, for the model; the handler's docstring unless given.
            input_schema: a JSON Schema dict, a type, an object with `json_schema()` and
                `validate()`, or a sync function returning one of these, asked at every listing
                and call; from the handler's type hints unless given.
            output_schema: the same for the result; from the return annotation unless given.
            annotations: hints such as `{"readOnlyHint": True}`.
            visibility: who may call it, any of `"model"` and `"app"`; both unless given.
            meta: its `_meta`.
            enabled: whether hosts see it from the start.
            task: whether it may, or must, run as a task.
            thread: run the (sync) handler in a thread, so that it does not block the event loop.

        Raises:
            RegistrationError: the name is bad or taken, or the View is connected and did not
                declare `tools`. The registry is as it was.
            SchemaError: a schema cannot be used.
        """
        self._registry.check_name(name)
        self._want_tools(f"tool {name} was registered", commit=False)
        tool = RegisteredTool(
            self._registry,
            name,
            handler,
            title=title,
            description=description_of(handler) if description is None else description,
            input_schema=input_schema,
            output_schema=output_schema,
            annotations=annotations,
            visibility=visibility,
            meta=meta,
            enabled=enabled,
            task=task,
            thread=thread,
        )
        self._want_tools(f"tool {name} was registered")
        self._registry.add(tool)
        return tool

    @overload
    def tool(self, function: Callable[..., Any]) -> RegisteredTool: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: object = None,
        output_schema: object = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        visibility: Sequence[Visibility] | None = None,
        meta: Mapping[str, Any] | None = None,
        enabled: bool = True,
        task: TaskSupport = "forbidden",
        thread: bool = False,
    ) -> Callable[[Callable[..., Any]], RegisteredTool]: ...
    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Any:
        """Register a function as a tool: `@app.tool` or `@app.tool(annotations=...)`.

        The name is the function's, the description its docstring, the schemas come from its type
        hints; every keyword of `register_tool` says otherwise.
        """

        def register(function: Callable[..., Any]) -> RegisteredTool:
            return self.register_tool(name or name_of(function), function, **options)

        return register if function is None else register(function)

    def update_tool(self, name: str, **changes: Any) -> None:
        """Change a tool by name, as WebMCP does: `disabled`, `description`, `input_schema`.

        Raises:
            RegistrationError: there is no such tool.
            TypeError: something else was to be changed; the text says how to do that.
        """
        tool = self._registry.get(name)
        if tool is None:
            raise RegistrationError(f"Tool {name} is not registered")
        for key in changes:
            if key not in _UPDATABLE:
                raise TypeError(_how_else(name, key))
        disabled = changes.pop("disabled", None)
        if disabled is not None and not isinstance(disabled, bool):
            raise TypeError(f"disabled is True or False, not {disabled!r}")
        tool.update(**changes)
        if disabled is not None:
            if not disabled:
                tool.enable()
            elif tool.enabled:
                tool.disable()

    def _want_tools(self, why: str, *, commit: bool = True) -> None:
        if self._session is None:
            self._tools_wanted = self._tools_wanted or commit
        elif "tools" not in self._declared:
            raise RegistrationError(
                f"The View is connected and did not declare the tools capability, but {why}. "
                "Register a tool before connect(), or pass capabilities={'tools': {}} to App."
            )

    def _tool_changed(self, tool: RegisteredTool, listed: bool) -> None:
        if self.on_tool_change:
            self._run_aside(self.on_tool_change.fire(tool, on_problem=self.report))
        if listed and self._ready and self._changes.declared(self._declared):
            self._changes.tell_soon()

    async def send_tool_list_changed(self) -> None:
        """Tell the host that the tools have changed, now. Counts for changes made in this turn.

        Raises:
            NotConnected: there is no connection.
            RegistrationError: the View did not declare that its tools can change.
        """
        self._live()
        if not self._changes.declared(self._declared):
            raise RegistrationError(
                "The View did not declare tools: {'listChanged': True}, so the host does not listen"
            )
        if not self._ready:
            self._too_early("send_tool_list_changed")
        self._changes.tell()

    # --- what the host asks ------------------------------------------------------------------

    def _on_request(self, request: wire.Request) -> bytes | Awaitable[bytes]:
        method = request.method
        if method in self._service.methods and "tools" in self._declared:
            return self._service.serve(request)
        if method == "ping":
            return b"{}"
        if method == "ui/resource-teardown":
            return self._serve_teardown(request)
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found")

    def _serve_teardown(self, request: wire.Request) -> bytes | Awaitable[bytes]:
        reason = HOST["ui/resource-teardown"].read_params(request.params).reason
        results = self.on_teardown.fire(reason, on_problem=self.report)
        return _first_mapping(results) if isinstance(results, list) else _torn_down(results)

    def _on_notification(self, notification: wire.Notification) -> object:
        method = notification.method
        row = HOST.get(method)
        try:
            params = row.read_params(notification.params) if row else None
        except ProtocolError as error:
            self.report(PeerError(error.message))
            return None
        if method == "ui/notifications/host-context-changed":
            self._merge_context(notification)
            slot, arguments = self.on_host_context_changed, (params,)
        elif method in _DELIVERED:
            name, value = _DELIVERED[method]
            slot, arguments = getattr(self, name), (value(params),)
        else:
            decoded: Any = msgspec.json.decode(notification.params or b"{}")
            slot, arguments = self.on_notification, (method, decoded)
        return slot.fire(*arguments, on_problem=self.report)

    def _merge_context(self, notification: wire.Notification) -> None:
        """Shallow, as the spec has it; a key that is null is gone."""
        changes: dict[str, Any] = msgspec.json.decode(notification.params or b"{}")
        merged = {**self._context, **changes}
        self._context = {key: value for key, value in merged.items() if value is not None}


async def _torn_down(waiting: Awaitable[list[Any]]) -> bytes:
    return _first_mapping(await waiting)


def _first_mapping(results: list[Any]) -> bytes:
    """What the host is answered: the first object a handler returned, or `{}`."""
    for result in results:
        if isinstance(result, Mapping):
            return msgspec.json.encode(result)
    return b"{}"


def _how_else(name: str, key: str) -> str:
    if key == "enabled":
        return f"update_tool({name!r}) takes disabled, not enabled"
    if key in ("name", "title", "output_schema", "annotations", "visibility", "meta"):
        return (
            f"update_tool({name!r}) cannot change {key}: that would be another tool. "
            f"Use the handle that register_tool returned: handle.update({key}=...)"
        )
    return (
        f"update_tool({name!r}) has no {key}: it changes disabled, description and input_schema. "
        "For another handler, remove the tool and register it again"
    )
