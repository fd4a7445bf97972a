"""An App's connection to its host: the handshake, what the host is and can do, and requests to it.

1. The handshake is `ui/initialize`, its answer, and `ui/notifications/initialized`.
2. Where the spec requires a View to check the host's capabilities before a request, `ask` does; in
   strict mode it does so for every request.
3. A host may refuse in two ways: with a result that has `isError`, or with a JSON-RPC error.
   `verdict` turns both into a `Verdict` with `is_error`.
4. In a browser, under Pyodide, the channel is the parent window. Messages are posted as structured
   values, as other Views do it. Only those from the parent that are marked as JSON-RPC are read:
   pages post each other all kinds of messages. None is dropped: if too many wait unread, the
   connection is closed.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypedDict, Unpack

import msgspec
from msgspec import Raw

from transom.background import Background
from transom.channel import Channel, Pipe
from transom.errors import (
    SERVER_ERROR,
    CapabilityMissing,
    ChannelClosed,
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    ProtocolError,
    UsageError,
)
from transom.json_values import sendable
from transom.protocol import wire
from transom.protocol.messages import (
    MAX_PROBLEMS,
    PROBLEMS,
    PROTOCOL_VERSION,
    InitializeResult,
    Verdict,
)
from transom.protocol.methods import VIEW, read_result
from transom.protocol.peer import Progress
from transom.session import Session
from transom.types import HostContext, Implementation, Open, ProblemKind, ViewProblem
from transom.view.invoke import wording

_MAX_HANDLERS = 100  # async handlers that run at once, to bound memory

Params = Mapping[str, Any] | msgspec.Struct | Raw | None
"""The params of a request or notification."""


class RequestOptions(TypedDict, total=False):
    """The keywords of `App.request`."""

    meta: Mapping[str, Any] | None
    timeout: float | None
    on_progress: Callable[[Progress], object] | None
    result: type[Open] | None


class HostConnection:
    """One connection, from the handshake to the close."""

    def __init__(
        self,
        session: Session,
        declared: dict[str, Any],
        on_error: Callable[[BaseException], object],
        *,
        strict: bool,
    ) -> None:
        self.session = session
        self.declared = declared
        self.ready = False
        """Whether the handshake is done and the connection is open."""
        self.host: InitializeResult | None = None
        """What the host answered to the handshake."""
        self.background = Background(on_error, limit=_MAX_HANDLERS)
        """Async handlers that run in the background: `on_error` and `on_tool_change`."""
        self._context: dict[str, Any] = {}
        self._strict = strict
        self._problems = 0  # how many were sent

    async def handshake(self, info: Implementation, timeout: float | None) -> None:
        """Start the session, and make the handshake."""
        self.background.bind()
        self.session.start()
        params = {
            "appInfo": info,
            "appCapabilities": self.declared,
            "protocolVersion": PROTOCOL_VERSION,
        }
        raw = await self.session.request("ui/initialize", wire.encode(params), timeout=timeout)
        host: InitializeResult = VIEW["ui/initialize"].read_result(raw)
        try:
            context = msgspec.json.decode(host.host_context, type=dict[str, Any])
            HostContext.from_wire(context)
        except msgspec.ValidationError as error:
            text = f"Invalid result for ui/initialize: hostContext: {error}"
            raise InvalidResult(text) from None
        if self.session.closed:  # with the answer, or right after it
            reason = await self.session.wait_closed()
            raise ConnectionClosed(f"ui/initialize: connection closed: {reason}")
        self.host, self._context = host, context
        self.ready = True  # before the notification: the host may send requests when it gets it
        await self.session.notify("ui/notifications/initialized")

    async def aclose(self) -> None:
        """Close it. Calls that run are cancelled."""
        self.ready = False
        await self.session.aclose("the View closed it")
        await self.background.aclose()

    def end(self) -> None:
        """The session has closed: stop background handlers and tasks."""
        self.ready = False
        self.background.cancel()

    # --- the host's context ------------------------------------------------------------------

    @property
    def context(self) -> HostContext:
        """The View's surroundings as they are now."""
        return HostContext.from_wire(self._context)

    def merge_context(self, changes: Mapping[str, Any]) -> None:
        """Apply a change: shallow, as the spec requires; null removes a key."""
        merged = {**self._context, **changes}
        self._context = {key: value for key, value in merged.items() if value is not None}

    # --- what the host takes -----------------------------------------------------------------

    def announces(self, name: str) -> bool:
        """Whether the host has announced a capability of Transom's own."""
        experimental = None if self.host is None else self.host.host_capabilities.experimental
        return name in (experimental or {})

    @property
    def takes_list_changes(self) -> bool:
        """Whether to notify the host when tools change.

        A host that does not mention tools is older than that capability: a strict View sends none.
        """
        if not self.ready or self.host is None:
            return False
        capabilities = self.host.host_capabilities
        tools = capabilities.tools or capabilities.app_tools
        return not self._strict if tools is None else bool(tools.list_changed)

    def send_problem(self, error: BaseException, kind: ProblemKind, tool: str | None) -> None:
        """Report a problem in this View to a host that announces `transom/problems`."""
        if not self.ready or self._problems > MAX_PROBLEMS or not self.announces(PROBLEMS):
            return
        self._problems += 1
        if self._problems > MAX_PROBLEMS:
            problem = ViewProblem(kind, f"More than {MAX_PROBLEMS} problems")
        else:
            problem = ViewProblem(kind, sendable(wording(error)), tool)
        with suppress(NotConnected):  # it is just being closed
            self.notify("transom/notifications/problem", problem)

    # --- requests ----------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Params = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = -1,
        on_progress: Callable[[Progress], object] | None = None,
        result: type[Open] | None = None,
    ) -> Any:
        """Send a request; see `App.request`."""
        row = VIEW.get(method)
        if not self.ready and (row is None or not row.early):
            self.too_early(method)
        encoded = None if params is None else wire.encode(params)
        raw = await self.session.request(
            method, encoded, meta=meta, timeout=timeout, on_progress=on_progress
        )
        if result is not None:
            return read_result(method, result, raw)
        return msgspec.json.decode(raw) if row is None else row.read_result(raw)

    async def ask(
        self, method: str, params: Params = None, **options: Unpack[RequestOptions]
    ) -> Any:
        """Send a request, after checking the host's capabilities if required."""
        self.check(method)
        return await self.request(method, params, **options)

    async def verdict(self, method: str, params: Params) -> Verdict:
        """Send a request that the host may refuse."""
        try:
            return await self.ask(method, params)
        except ProtocolError as error:
            if error.code != SERVER_ERROR:
                raise
            return Verdict(is_error=True, extra={"message": error.message})

    def check(self, method: str) -> None:
        """Check the host's capabilities, if the spec or strict mode requires it."""
        row = VIEW[method]
        if row.needs is None or not (row.must or self._strict):
            return
        if self.host is None:
            if row.must:
                raise NotConnected("Not connected")
        elif getattr(self.host.host_capabilities, row.needs) is None:
            raise CapabilityMissing(f"{method}: the host did not declare {row.needs!r}")

    def too_early(self, what: str) -> None:
        """Warn, or in strict mode raise, that the handshake has not ended."""
        text = f"{what} was called before the handshake had ended: await connect() first"
        if self._strict:
            raise UsageError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=4)

    def notify(self, method: str, params: Params = None) -> None:
        """Send a notification."""
        self.session.notify_soon(method, None if params is None else wire.encode(params))


_MAX_UNREAD = 4096


def parent_channel() -> Channel:
    """A Channel to `window.parent`."""
    try:
        js: Any = importlib.import_module("js")
        ffi: Any = importlib.import_module("pyodide.ffi")
    except ImportError:
        raise UsageError(
            "connect() needs a channel outside a browser: connect(transom.channel.lines(...))"
        ) from None
    window: Any = getattr(js, "window", None)
    if window is None or window.parent == window:
        raise UsageError("connect() needs a host: this page is not inside another one")
    return _ParentChannel(js, ffi)


class _ParentChannel:
    def __init__(self, js: Any, ffi: Any) -> None:
        self._json = js.JSON
        self._window = js.window
        self._parent = js.window.parent
        self._incoming = Pipe(_MAX_UNREAD)
        self.receive = self._incoming.receive
        self._listener = ffi.create_proxy(self._on_message)
        self._window.addEventListener("message", self._listener)

    def _on_message(self, event: Any) -> None:
        if self._incoming.closed or event.source != self._parent:
            return
        if getattr(event.data, "jsonrpc", None) != "2.0":
            return
        if len(self._incoming.messages) >= _MAX_UNREAD:
            self._close(f"{_MAX_UNREAD} messages of the host wait unread")
        else:
            self._incoming.put(self._json.stringify(event.data).encode())

    async def send(self, data: bytes) -> None:
        if self._incoming.closed:
            raise ChannelClosed(self._incoming.reason)
        self._parent.postMessage(self._json.parse(data.decode()), "*")

    async def aclose(self) -> None:
        if not self._incoming.closed:
            self._incoming.messages.clear()
            self._close("The channel is closed")

    def _close(self, why: str) -> None:
        self._incoming.reason = why
        self._window.removeEventListener("message", self._listener)
        self._listener.destroy()
        self._incoming.close()
