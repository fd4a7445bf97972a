"""`App`: the object inside a View that talks to its host.

1. Set handlers and tools before `connect`: messages that the host sends once are not stored for
   handlers that are set later.
2. Tools are offered when the `tools` capability is declared: by the first tool or tool handler that
   is set before `connect`, or by the author. Once connected it is too late to declare it, and a
   registration without it changes nothing.
3. `notifications/tools/list_changed` is sent for real changes, once in a turn of the event loop.
4. Nothing is sent before the handshake or after the close.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self, Unpack, cast, overload

import msgspec

from transom.background import Debounced
from transom.channel import Channel
from transom.errors import (
    METHOD_NOT_FOUND,
    AlreadyConnected,
    CapabilityMissing,
    InvalidResult,
    NotConnected,
    PeerError,
    ProtocolError,
    RegistrationError,
    TransomError,
    UsageError,
    ValidationError,
)
from transom.events import Event, abandon, is_awaitable
from transom.protocol import wire
from transom.protocol.messages import (
    PIN,
    CreateTaskResult,
    DisplayModeResult,
    InitializeResult,
    ListResourcesResult,
    ListToolsResult,
    PinParams,
    Verdict,
)
from transom.protocol.methods import HOST
from transom.protocol.pagination import Pagination
from transom.protocol.peer import Peer, Progress
from transom.schema import to_json
from transom.session import Session
from transom.types import (
    AppCapabilities,
    ContentBlock,
    HostCapabilities,
    HostContext,
    Implementation,
    LogLevel,
    ProblemKind,
    ReadResourceResult,
    Task,
    TextContent,
    Tool,
    ToolResult,
)
from transom.view.connection import HostConnection, Params, RequestOptions, parent_channel
from transom.view.invoke import RunningCall, name_of
from transom.view.tool_service import ToolService
from transom.view.tools import RegisteredTool, Registry, ToolOptions

Content = str | ContentBlock | Mapping[str, Any] | Sequence[ContentBlock | Mapping[str, Any]]
"""Text, a content block, or several; blocks as structs or as on the wire."""

_MAX_PAGES = 1000

_log = logging.getLogger("transom.view")

_TOOL_DATA: dict[str, tuple[str, Callable[[Any], object]]] = {
    "ui/notifications/tool-input": ("on_tool_input", lambda p: p.arguments or {}),
    "ui/notifications/tool-input-partial": ("on_tool_input_partial", lambda p: p.arguments or {}),
    "ui/notifications/tool-result": ("on_tool_result", lambda p: p),
    "ui/notifications/tool-cancelled": ("on_tool_cancelled", lambda p: p.reason),
}
"""The tool's data: which handler gets it, and in which form."""


async def _pong() -> bytes:
    """In a task, after handlers of earlier notifications have begun: a host waits for that."""
    return b"{}"


def _ignore_progress(_: Progress) -> None:
    """With a progress handler, each notification resets the timeout; this one ignores them."""


class App:
    """A View's end of the conversation with its host.

    Args:
        name: the name of the View's app.
        version: its version.
        title: a name for people.
        capabilities: what the View can do, besides what is detected (`tools`); sent as
            given, unknown keys included.
        strict: raise where the default is to warn: handlers set too late, requests made before
            the handshake has ended.
        page_size: how many tools one answer to `tools/list` has at most.
        timeout: seconds a request to the host may take without an answer or a progress
            notification.

    Handlers, assigned or as decorators, sync or async: `on_tool_input(arguments)`,
    `on_tool_input_partial(arguments)`, `on_tool_result(result)`, `on_tool_cancelled(reason)`,
    `on_host_context_changed(changes)`, `on_teardown(reason)`, `on_tool_change(tool)`,
    `on_error(error)`, `on_list_tools(cursor)`, `on_call_tool(name, arguments, ctx)`, and
    `on_notification(method, params)` for every other notification of the host.
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
        self._strict = strict
        self._timeout = timeout
        self._given_capabilities = capabilities
        self._offers_tools = False
        self._handled: set[str] = set()  # one-shot events that have had a handler
        self._connection: HostConnection | None = None
        self._next_id = 0
        self._close_reason: str | None = None  # of the last connection
        self._registry = Registry(self._tool_changed, self.report)
        self._list_changed = Debounced(self._notify_list_changed, self.report)
        self._service = ToolService(
            self._registry,
            page_size=page_size,
            on_list_tools=self.on_list_tools,
            on_call_tool=self.on_call_tool,
            make_context=lambda tool, meta: CallContext(self, tool, meta),
            flush_changes=self._list_changed.flush,
            request_host=self._request_host,
            report=self.report,
        )

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field; an event that does not exist is a mistake, not a new field."""
        if name.startswith("on_") and not hasattr(type(self), name):
            from difflib import get_close_matches  # noqa: PLC0415 - for mistakes only

            known = sorted(n for n in dir(type(self)) if n.startswith("on_"))
            near = ", ".join(get_close_matches(name, known, 3, 0.5) or known)
            raise AttributeError(f"Unknown event: {name}. Did you mean: {near}?")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        state = "connected" if self.connected else "not connected"
        return f"<App {self.info.name!r} {self.info.version} {state}, {len(self._registry)} tools>"

    # --- handlers ----------------------------------------------------------------------------

    def _check_late(self, name: str) -> None:
        """Warn about the first handler of a one-shot event that is set after the handshake."""
        if name in self._handled:
            return
        if self.connected:
            text = f"{name} was set after the handshake and may have missed its event; set it first"
            if self._strict:
                raise UsageError(text)
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        self._handled.add(name)

    def _check_tools(self, name: str) -> None:
        self._offer_tools(f"{name} was set")

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

    def report(
        self, error: BaseException, kind: ProblemKind = "error", tool: str | None = None, /
    ) -> None:
        """Pass an error to `on_error`, or to the log where there is no handler.

        A host that announces `transom/problems` gets it, too.
        """
        # What the host did wrong is no problem of the page; asking it for what it cannot do is.
        of_host = isinstance(error, PeerError) and not isinstance(error, CapabilityMissing)
        if self._connection is not None and not of_host:
            self._connection.send_problem(error, kind, tool)
        handled = self.on_error and self._run_in_background(
            self.on_error.fire(error, on_error=self._on_error_failed)
        )
        if not handled:
            _log.error("%s: %s", self.info.name, type(error).__name__, exc_info=error)

    def _on_error_failed(self, error: BaseException) -> None:
        _log.error("%s: on_error itself failed", self.info.name, exc_info=error)

    def _run_in_background(self, waiting: object) -> bool:
        """Await what handlers returned in the background, if it has to be awaited."""
        if not is_awaitable(waiting):
            return True
        if self._connection is None:
            abandon(waiting)
        elif self._connection.background.start(waiting):
            return True
        _log.error("%s: an async handler could not be run", self.info.name)
        return False

    # --- state -------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the handshake is done and the connection is open."""
        return self._connection is not None and self._connection.ready

    @property
    def _host(self) -> InitializeResult | None:
        return None if self._connection is None else self._connection.host

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
        connection = self._connection
        return None if connection is None or connection.host is None else connection.context

    @property
    def protocol_version(self) -> str | None:
        """The version the host answered with; None before the handshake."""
        return None if self._host is None else self._host.protocol_version

    @property
    def capabilities(self) -> dict[str, Any]:
        """What `connect` declares, or has declared, in wire form."""
        if self._connection is not None:
            return self._connection.declared
        declared: dict[str, Any] = {}
        if self._given_capabilities is not None:
            declared = msgspec.json.decode(wire.encode(self._given_capabilities))
        if self._offers_tools and "tools" not in declared:
            declared["tools"] = {"listChanged": True}
        return declared

    # --- the connection ----------------------------------------------------------------------

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
        if self._connection is not None:
            raise AlreadyConnected(
                "App is already connected. Call close() before connecting again."
            )
        session = Session(
            parent_channel() if channel is None else channel,
            on_request=self._on_request,
            on_notification=self._on_notification,
            on_error=self.report,
            on_closed=self._on_closed,
            timeout=self._timeout,
            peer=Peer(first_id=self._next_id),  # no two connections use the same ids
        )
        connection = HostConnection(session, self.capabilities, self.report, strict=self._strict)
        self._connection = connection
        self._list_changed.bind()
        try:
            await connection.handshake(self.info, timeout)
        except BaseException:
            await connection.aclose()
            raise
        return self

    async def close(self) -> None:
        """End the connection. Calls that run are cancelled. Tools and handlers stay."""
        if self._connection is not None:
            await self._connection.aclose()

    async def wait_closed(self) -> str:
        """Wait until the connection has ended; returns the reason, or that of the last connection.

        Raises:
            NotConnected: there never was one.
        """
        if self._connection is not None:
            return await self._connection.session.wait_closed()
        if self._close_reason is None:
            raise NotConnected("Not connected")
        return self._close_reason

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def _on_closed(self, reason: str) -> None:
        if self._connection is not None:
            self._connection.end()
            self._next_id = self._connection.session.peer.next_id
        self._connection = None
        self._close_reason = reason
        self._list_changed.drop()
        self._service.close()

    def _live(self) -> HostConnection:
        if self._connection is None or self._connection.session.closed:
            raise NotConnected("Not connected")
        return self._connection

    async def _request_host(self, method: str, params: bytes) -> bytes:
        return bytes(await self._live().session.request(method, params))

    # --- messages from the host --------------------------------------------------------------

    def _on_request(self, request: wire.Request) -> bytes | Awaitable[bytes]:
        method = request.method
        connection = self._connection
        serve = self._service.methods.get(method)
        if serve is not None and connection is not None and "tools" in connection.declared:
            return serve(HOST[method].read_params(request.params))
        if method == "ping":
            return _pong()
        if method == "ui/resource-teardown":
            return self._serve_teardown(HOST[method].read_params(request.params).reason)
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found")

    async def _serve_teardown(self, reason: str | None) -> bytes:
        """Answer with the first object that a handler returned, or `{}`."""
        results = self.on_teardown.fire(reason, on_error=self.report)
        for result in results if isinstance(results, list) else await results:
            if isinstance(result, Mapping):
                try:
                    return to_json(cast("object", result))
                except ValidationError as error:
                    self.report(error)
        return b"{}"

    def _on_notification(self, notification: wire.Notification) -> object:
        method = notification.method
        row = HOST.get(method)
        try:
            params = row.read_params(notification.params) if row else None
        except ProtocolError as error:
            self.report(PeerError(error.message))
            return None
        if method in _TOOL_DATA:
            name, value = _TOOL_DATA[method]
            return getattr(self, name).fire(value(params), on_error=self.report)
        decoded: dict[str, Any] = msgspec.json.decode(notification.params or b"{}")
        if method == "ui/notifications/host-context-changed":
            if self._connection is not None:
                self._connection.merge_context(decoded)
            return self.on_host_context_changed.fire(params, on_error=self.report)
        return self.on_notification.fire(method, decoded, on_error=self.report)

    # --- tools -------------------------------------------------------------------------------

    @property
    def tools(self) -> tuple[RegisteredTool, ...]:
        """Every registered tool, disabled ones too, in the order of registration."""
        return tuple(self._registry)

    def register_tool(
        self, name: str, handler: Callable[..., Any], **options: Unpack[ToolOptions]
    ) -> RegisteredTool:
        """Offer a tool to the host.

        Args:
            name: 1 to 128 of `A-Za-z0-9_.-`, unique.
            handler: sync or async; gets the arguments by keyword, and a `CallContext` if it has a
                parameter for one. What it returns becomes the result.
            title: a short name for people.
            description: what it does, for the model; the handler's docstring unless given.
            input_schema: a JSON Schema dict, a type, an object with `json_schema()` and
                `validate()`, or a sync function returning one of these, called at every listing
                and call; from the handler's type hints unless given.
            output_schema: the same for the result; from the return annotation unless given.
            annotations: hints such as `{"readOnlyHint": True}`.
            visibility: who may call it, any of `"model"` and `"app"`; both unless given.
            meta: its `_meta`.
            enabled: whether hosts see it from the start; True unless given.
            task: whether it may, or must, run as a task: `"forbidden"` unless given.
            thread: run the (sync) handler in a thread, so that it does not block the event loop.

        Raises:
            RegistrationError: the name is bad or taken, or the View is connected and did not
                declare `tools`. The registry is as it was.
            SchemaError: a schema cannot be used.
        """
        self._registry.check_name(name)
        tool = RegisteredTool(self._registry, name, handler, **options)
        self._offer_tools(f"tool {name} was registered")
        self._registry.add(tool)
        return tool

    @overload
    def tool(self, function: Callable[..., Any]) -> RegisteredTool: ...
    @overload
    def tool(
        self, *, name: str | None = None, **options: Unpack[ToolOptions]
    ) -> Callable[[Callable[..., Any]], RegisteredTool]: ...
    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        **options: Unpack[ToolOptions],
    ) -> RegisteredTool | Callable[[Callable[..., Any]], RegisteredTool]:
        """Register a function as a tool: `@app.tool` or `@app.tool(annotations=...)`.

        The name is the function's, the description its docstring, and the schemas come from its
        type hints, unless keywords of `register_tool` say otherwise.
        """

        def register(function: Callable[..., Any]) -> RegisteredTool:
            return self.register_tool(name or name_of(function), function, **options)

        return register if function is None else register(function)

    def update_tool(self, name: str, /, **changes: Any) -> None:
        """Change a tool by name, as WebMCP does: `disabled`, `description`, `input_schema`.

        Raises:
            RegistrationError: there is no such tool.
            TypeError: another field was given; the text says how to change that one.
        """
        self._registry.update(name, changes)

    async def send_tool_list_changed(self) -> None:
        """Notify the host now that the tools have changed. Counts for changes made in this turn.

        A host that announces `tools` without `listChanged` is not notified.

        Raises:
            NotConnected: there is no connection.
            RegistrationError: the View did not declare that its tools can change.
        """
        if self._connection is None:
            raise NotConnected("Not connected")
        if not self._declares_changes():
            raise RegistrationError(
                "The View did not declare tools: {'listChanged': True}, so the host does not listen"
            )
        if not self.connected:
            self._connection.too_early("send_tool_list_changed")
        self._list_changed.drop()
        self._notify_list_changed()

    def _notify_list_changed(self) -> None:
        if self._connection is not None and self._connection.takes_list_changes:
            self.notify("notifications/tools/list_changed", {})

    def _tool_changed(self, tool: RegisteredTool, listed: bool) -> None:
        if self.on_tool_change:
            self._run_in_background(self.on_tool_change.fire(tool, on_error=self.report))
        if listed and self.connected and self._declares_changes():
            self._list_changed.trigger()

    def _declares_changes(self) -> bool:
        tools: object = self.capabilities.get("tools")
        if not isinstance(tools, Mapping):
            return False
        return bool(cast("Mapping[str, object]", tools).get("listChanged"))

    def _offer_tools(self, why: str) -> None:
        """Declare the `tools` capability at the next handshake, if it is not declared already."""
        if self._connection is not None and "tools" not in self._connection.declared:
            raise RegistrationError(
                f"The View is connected and did not declare the tools capability, but {why}. "
                "Register a tool before connect(), or pass capabilities={'tools': {}} to App."
            )
        self._offers_tools = True

    # --- requests to the host ----------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | msgspec.Struct | None = None,
        **options: Unpack[RequestOptions],
    ) -> Any:
        """Send the host a request by the name of its method.

        There are methods for the requests of the spec, such as `call_server_tool`.

        Args:
            method: the method.
            params: its params.
            meta: the `_meta` of the params.
            timeout: seconds without an answer or a progress notification; None: no limit; the
                App's own unless given.
            on_progress: called with each progress notification.
            result: the struct to read the result as; the method's own unless given.

        Returns:
            The result as a struct, or as plain JSON where the method is not known.
        """
        return await self._live().request(method, params, **options)

    def notify(self, method: str, params: Params = None) -> None:
        """Send the host a notification. Params that are JSON already come as `msgspec.Raw`.

        Raises:
            NotConnected: there is no connection.
        """
        self._live().notify(method, params)

    async def call_server_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = -1,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> ToolResult:
        """Call a tool of the server this View came from.

        Args:
            name: the tool.
            arguments: its arguments.
            timeout: seconds without an answer or a progress notification; None: no limit.
            on_progress: called with each progress notification.

        Returns:
            The result; a tool's own failure is a result with `is_error`.

        Raises:
            ProtocolError: the call itself failed.
        """
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("call_server_tool(name, arguments): the name is a string")
        params = {"name": name, "arguments": dict(arguments or {})}
        listener = on_progress or _ignore_progress
        return await self._live().ask("tools/call", params, timeout=timeout, on_progress=listener)

    async def start_server_task(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: int | None = None,
        timeout: float | None = -1,
    ) -> Task:
        """Call a tool of the server as a task, and get its handle.

        A tool of the View that returns the handle leaves the work to the server: the host can
        follow it there, also after the View was closed.

        Raises:
            InvalidResult: the server answered the call at once.
        """
        task = {} if ttl is None else {"ttl": ttl}
        params = {"name": name, "arguments": dict(arguments or {}), "task": task}
        made: CreateTaskResult = await self._live().ask(
            "tools/call",
            params,
            timeout=timeout,
            on_progress=_ignore_progress,
            result=CreateTaskResult,
        )
        return made.task

    async def list_server_tools(self) -> list[Tool]:
        """The tools of the server that this View may call."""
        tools: list[Tool] = []
        pages = Pagination(_MAX_PAGES)
        while True:
            page: ListToolsResult = await self._live().ask("tools/list", _page(pages.cursor))
            tools += page.tools
            if not pages.follow(page.next_cursor):
                break
        if pages.failure is not None:
            raise InvalidResult(f"tools/list: the list of the server's tools {pages.failure}")
        return tools

    async def read_resource(self, uri: str) -> ReadResourceResult:
        """Read a resource of the server."""
        return await self._live().ask("resources/read", {"uri": uri})

    async def list_resources(self, cursor: str | None = None) -> ListResourcesResult:
        """A page of the server's resources; pass its `next_cursor` for the next page."""
        return await self._live().ask("resources/list", _page(cursor))

    async def create_message(
        self,
        messages: Sequence[Mapping[str, Any]] | str,
        *,
        max_tokens: int,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        timeout: float | None = -1,
        **options: Any,
    ) -> Mapping[str, Any]:
        """Ask the host's model for a message (MCP sampling).

        Args:
            messages: the conversation, in MCP's form; a plain text is one message of the user.
            max_tokens: how long the answer may be.
            tools: tools the model may use; needs `sampling.tools`.
            timeout: seconds to wait.
            **options: other params of `sampling/createMessage`, by their wire names.

        Raises:
            CapabilityMissing: the host does not sample, or not with tools.
        """
        connection = self._live()
        connection.check("sampling/createMessage")
        sampling = self.host_capabilities.sampling if self.host_capabilities else None
        if tools is not None and (sampling is None or sampling.tools is None):
            raise CapabilityMissing("The host does not offer tools while sampling (sampling.tools)")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
        params = {"messages": messages, "maxTokens": max_tokens, **options}
        if tools is not None:
            params["tools"] = tools
        return await connection.request("sampling/createMessage", params, timeout=timeout)

    async def send_message(self, content: Content) -> Verdict:
        """Add a message to the conversation, as the user."""
        params = {"role": "user", "content": _blocks(content)}
        return await self._live().verdict("ui/message", params)

    async def update_model_context(
        self,
        content: Content | None = None,
        structured_content: Mapping[str, Any] | None = None,
    ) -> Verdict:
        """Set what the model should know in its next turn. The last update counts."""
        params: dict[str, Any] = {}
        if content is not None:
            params["content"] = _blocks(content)
        if structured_content is not None:
            params["structuredContent"] = structured_content
        return await self._live().verdict("ui/update-model-context", params)

    async def open_link(self, url: str) -> Verdict:
        """Ask the host to open a link."""
        return await self._live().verdict("ui/open-link", {"url": url})

    async def download_file(self, contents: Sequence[ContentBlock | Mapping[str, Any]]) -> Verdict:
        """Ask the host to offer files for download: embedded resources or resource links."""
        return await self._live().verdict("ui/download-file", {"contents": list(contents)})

    async def request_display_mode(self, mode: str) -> str:
        """Ask for `inline`, `fullscreen` or `pip`; the mode the View is in afterwards.

        Raises:
            CapabilityMissing: the host does not have that mode.
        """
        connection = self._live()
        modes = None if connection.host is None else connection.context.available_display_modes
        if mode not in (modes or ()) and (modes is not None or self._strict):
            offered = ", ".join(modes or ()) or "none"
            raise CapabilityMissing(f"The host has no display mode {mode!r}; it has: {offered}")
        result: DisplayModeResult = await connection.ask("ui/request-display-mode", {"mode": mode})
        return result.mode

    async def send_log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send a log message to the host."""
        params: dict[str, Any] = {"level": level, "data": data}
        self.notify("notifications/message", params | ({"logger": logger} if logger else {}))

    async def send_size_changed(
        self, *, width: float | None = None, height: float | None = None
    ) -> None:
        """Tell the host how much room the View's content takes."""
        size = {"width": width, "height": height}
        params = {key: value for key, value in size.items() if value is not None}
        self.notify("ui/notifications/size-changed", params)

    async def request_pin(self, reason: str | None = None) -> bool:
        """Ask the host to keep this View open; whether it does.

        False is a normal answer, also from hosts that do not support the request.

        Args:
            reason: why, for the user.
        """
        connection = self._live()
        if not connection.announces(PIN):
            return False
        try:
            verdict: Verdict = await connection.ask("transom/request-pin", PinParams(reason))
        except TransomError:
            return False
        return not verdict.is_error

    async def request_teardown(self) -> None:
        """Ask the host to close this View. The host decides."""
        self.notify("ui/notifications/request-teardown", {})

    async def ping(self) -> None:
        """Check that the host answers."""
        await self.request("ping")


class CallContext(RunningCall):
    """One call of one tool. A handler that has a parameter for it gets it.

    `progress` and `log` work in sync handlers, async ones and threads alike; awaiting them is
    optional. When the host cancels the call, an async handler gets `asyncio.CancelledError`; a
    handler in a thread looks at `cancelled` from time to time.
    """

    def __init__(self, app: App, tool: str, meta: Mapping[str, Any] | None = None) -> None:
        super().__init__(app.notify, tool, meta)
        self.app = app
        """The App the tool is in."""


def _page(cursor: str | None) -> dict[str, Any] | None:
    return None if cursor is None else {"cursor": cursor}


def _blocks(content: Content) -> list[Any]:
    if isinstance(content, str):
        return [TextContent(content)]
    if isinstance(content, Mapping | msgspec.Struct):
        return [content]
    blocks = list(cast("Sequence[object]", content))
    for block in blocks:
        if not isinstance(block, Mapping | msgspec.Struct):
            raise UsageError(f"Content is text, a content block or a list of them, not {block!r}")
    return blocks
