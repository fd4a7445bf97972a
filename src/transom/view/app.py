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

import logging
import warnings
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Self, cast

import msgspec
from msgspec import Raw

from transom.channel import Channel
from transom.errors import (
    METHOD_NOT_FOUND,
    AlreadyConnected,
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    PeerError,
    ProtocolError,
    UsageError,
    ValidationError,
)
from transom.events import Event, abandon, is_awaitable
from transom.protocol import wire
from transom.protocol.messages import PROTOCOL_VERSION, InitializeResult
from transom.protocol.methods import HOST, VIEW, read_result
from transom.protocol.peer import Peer
from transom.schema import to_json
from transom.session import Session
from transom.types import (
    AppCapabilities,
    HostCapabilities,
    HostContext,
    Implementation,
    Open,
)
from transom.view.asides import Asides
from transom.view.browser import parent_channel
from transom.view.host_requests import HostRequests
from transom.view.offering import ToolOffering
from transom.view.tool_service import ToolService

__all__ = ["App"]

_log = logging.getLogger("transom.view")

_DELIVERED: dict[str, tuple[str, Callable[[Any], object]]] = {
    "ui/notifications/tool-input": ("on_tool_input", lambda p: p.arguments or {}),
    "ui/notifications/tool-input-partial": ("on_tool_input_partial", lambda p: p.arguments or {}),
    "ui/notifications/tool-result": ("on_tool_result", lambda p: p),
    "ui/notifications/tool-cancelled": ("on_tool_cancelled", lambda p: p.reason),
}
"""The tool's data: which handler gets it, and in which form."""


class App(HostRequests, ToolOffering):
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
        self._heard: set[str] = set()
        self._session: Session | None = None
        self._asides: Asides | None = None
        self._next_id = 0
        self._ended: str | None = None
        self._ready = False
        self._declared: dict[str, Any] = {}
        self._host: InitializeResult | None = None
        self._context: dict[str, Any] = {}
        ToolOffering.__init__(self)
        self._service = ToolService(self, self._registry, page_size, self._ask_host)

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field; an event that does not exist is a mistake, not a new field."""
        if name.startswith("on_") and not hasattr(type(self), name):
            known = sorted(n for n in dir(type(self)) if n.startswith("on_"))
            near = ", ".join(get_close_matches(name, known, 3, 0.5) or known)
            raise AttributeError(f"Unknown event: {name}. Did you mean: {near}?")
        super().__setattr__(name, value)

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
        self.want_tools(f"{name} was set")

    on_tool_input = Event["App"](_check_late)
    on_tool_input_partial = Event["App"](_check_late)
    on_tool_result = Event["App"](_check_late)
    on_tool_cancelled = Event["App"](_check_late)
    on_host_context_changed = Event["App"]()
    on_teardown = Event["App"]()
    on_error = Event["App"]()
    on_notification = Event["App"]()
    on_list_tools = Event["App"](_check_tools)
    on_call_tool = Event["App"](_check_tools)

    def report(self, error: BaseException) -> None:
        """Tell `on_error`, or the log when nobody listens."""
        told = self.on_error and self.run_aside(
            self.on_error.fire(error, on_problem=self._report_failed)
        )
        if not told:
            _log.error("%s: %s", self.info.name, type(error).__name__, exc_info=error)

    def _report_failed(self, error: BaseException) -> None:
        _log.error("%s: on_error itself failed", self.info.name, exc_info=error)

    def run_aside(self, waiting: object) -> bool:
        """Await what handlers returned, if it has to be, beside everything else.

        Returns:
            False when that cannot be: there is no connection, or too many are at it already.
        """
        if not is_awaitable(waiting):
            return True
        if self._asides is None:
            abandon(waiting)
        elif self._asides.run(waiting):
            return True
        _log.error("%s: an async handler could not be run", self.info.name)
        return False

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
    def started(self) -> bool:
        """Whether `connect` was called and the connection has not ended."""
        return self._session is not None

    @property
    def capabilities(self) -> dict[str, Any]:
        """What `connect` declares, or has declared, in wire form."""
        if self._session is not None:
            return self._declared
        given: dict[str, Any] = {}
        if self._given is not None:
            given = msgspec.json.decode(msgspec.json.encode(self._given))
        if self.tools_wanted and "tools" not in given:
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
        self._asides = Asides(session)
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
        if session.closed:  # with the answer, or right after it
            raise ConnectionClosed(f"ui/initialize: connection closed: {self._ended}")
        self._host, self._context = host, context
        self._ready = True  # the notice goes out first, whatever the host does when it gets it
        await session.notify("ui/notifications/initialized")
        return self

    async def close(self) -> None:
        """End the connection. Calls that run are cancelled. Tools and handlers stay."""
        session = self._session
        if session is not None:
            self._ready = False
            await session.aclose("the View closed it")

    async def wait_closed(self) -> str:
        """Wait until the connection has ended; the reason. The last one's if there is none now.

        Raises:
            NotConnected: there never was one.
        """
        if self._session is not None:
            return await self._session.wait_closed()
        if self._ended is None:
            raise NotConnected("Not connected")
        return self._ended

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
        self._session = self._asides = None
        self._ended = reason
        self._host = None
        self._context = {}
        self._changes.forget()
        self._service.close()

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
            self.too_early(method)
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

    def notify(
        self, method: str, params: Mapping[str, Any] | msgspec.Struct | Raw | None = None
    ) -> None:
        """Tell the host. Params that are JSON already come as `Raw`.

        Raises:
            NotConnected: there is no connection.
        """
        self._live().notify_soon(method, None if params is None else msgspec.json.encode(params))

    def too_early(self, method: str) -> None:
        """Warn, or in strict mode raise, that the handshake has not ended."""
        text = f"{method} was called before the handshake had ended: await connect() first"
        if self.strict:
            raise UsageError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=4)

    async def _ask_host(self, method: str, params: bytes) -> bytes:
        return bytes(await self._live().request(method, params))

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
        return self._torn_down(results) if isinstance(results, list) else self._waited(results)

    async def _waited(self, results: Awaitable[list[Any]]) -> bytes:
        return self._torn_down(await results)

    def _torn_down(self, results: list[Any]) -> bytes:
        """What the host is answered: the first object a handler returned, or `{}`."""
        for result in results:
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
