"""A user's Host on another worker: an agent uses it like a local one.

1. Calls are requests of one `Session` on a channel of the bus. They end with the same result or
   error as on a local Host. If the other worker is lost first, the error says so, and nothing is
   retried.
2. `views` and `model_context` are sent whenever they change, and before the answer to each call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal

import msgspec

from transom import errors
from transom.background import Background, Debounced, logs_errors
from transom.channel import Channel
from transom.errors import (
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    BusError,
    ConnectionClosed,
    NotConnected,
    OutcomeUnknown,
    OwnerGone,
    ProtocolError,
    Refused,
    RequestTimeout,
    TransomError,
)
from transom.events import Event, is_awaitable
from transom.host.asking.policy import Allow, AllowAlways, ApprovalRequest, Decision, Deny
from transom.host.host import Host
from transom.host.tool_host import ToolHost
from transom.host.tools.tool_list import ToolList
from transom.host.views.bridge import OutgoingCall
from transom.host.views.liveness import ViewState
from transom.host.views.model_context import ModelContext
from transom.host.views.view import View
from transom.json_values import sendable
from transom.protocol import wire
from transom.protocol.messages import TaskRequest, check_arguments
from transom.protocol.peer import Peer, Progress
from transom.session import OnProgress, Session
from transom.types import ContentBlock, Task, Tool, ToolResult

_log = logging.getLogger("transom.web")
_report = logs_errors(_log)

_MAX_MESSAGE = 36 * 1024 * 1024  # bytes; a tool's result may have 10 MB
_TAKEN_WITHIN = 10.0  # seconds in which an agent takes a message of a View
_SOON = 0.05  # seconds after which changes are sent


class RemoteView(msgspec.Struct, frozen=True):
    """A View on another worker: its tools are called through the host."""

    id: str
    server: str
    uri: str
    state: ViewState
    reason: str
    """Why it is not live."""
    pinned_by: Literal["host", "view"] | None


class _Changes(msgspec.Struct):
    """A change: the open Views, and the context that some of them sent for the model."""

    views: list[RemoteView]
    contexts: list[ModelContext]


class _RemoteCall(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | None = None
    timeout: float | None = None
    task: TaskRequest | None = None
    open_view: bool = True
    call_id: str | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class _Arguments(msgspec.Struct):
    name: str
    text: str
    call_id: str


class _RemoteMessage(msgspec.Struct):
    view_id: str
    blocks: list[ContentBlock]


class _Decided(msgspec.Struct):
    call_id: str
    kind: str
    reason: str | None
    edited: bool

    @property
    def decision(self) -> Decision:
        match self.kind:
            case "Allow":
                return Allow()
            case "AllowAlways":
                return AllowAlways()
            case "Deny" if self.reason is not None:
                return Deny(self.reason)
            case "Deny":
                return Deny()
            case _:
                return Deny(f"The answer was {self.kind}; it has to be Allow, AllowAlways or Deny")


class _TaskCall(msgspec.Struct):
    id: str
    timeout: float | None = None


class _Error(msgspec.Struct):
    """An error: its name in `transom.errors`, and its arguments."""

    error: str
    given: list[Any]


class RemoteHost(ToolHost):
    """The Host of a user, on the worker that has it. Get it from `await views.host(user)`.

    It has what an agent needs of a `Host`; the rest, such as adding servers, is only possible on
    the Host's own worker. Events: `on_tools_changed()`, and `on_message(view, blocks)`, as on a
    `Host` that has no handler of its own for it; the agent that asked for them last gets a message.

    Whatever is called raises what it does on a `Host`; `OutcomeUnknown` when the other worker was
    lost before it answered, so that a call may have had its effect; and another `BusError` or
    `NotConnected` when nothing was sent.
    """

    on_tools_changed = Event["RemoteHost"]()
    on_message = Event["RemoteHost"](lambda host, _: host.ask_for_messages())

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._views: dict[str, RemoteView] = {}
        self._contexts: dict[str, ModelContext] = {}
        self._background = Background(_report)
        self._session = Session(
            channel,
            on_request=self._handle,
            on_notification=self._notified,
            on_error=_report,
            timeout=None,
            peer_name="The worker with the user's Views",
            peer=Peer(max_bytes=_MAX_MESSAGE),
        )

    async def connect(self) -> None:
        """Connect, and get the state of the Host.

        Raises:
            BusError, ConnectionClosed: the other worker is gone.
        """
        self._session.start()
        try:
            await self._request("host/views", b"{}", repeatable=True)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close the connection; the Host stays open."""
        await self._session.aclose()
        await self._background.aclose()

    @property
    def closed(self) -> bool:
        """Whether the connection to the other worker has ended: then call `views.host` again."""
        return self._session.closed

    async def close_user(self) -> None:
        """Close the Host, the Views and the pages of the user.

        Raises:
            BusError: the other worker was lost meanwhile; it can be tried again.
        """
        try:
            await self._request("host/close", b"{}", repeatable=True)
        except (ConnectionClosed, NotConnected) as error:
            raise OwnerGone(str(error)) from error
        await self._session.wait_closed()  # with the Host

    # --- tools -------------------------------------------------------------------------------

    async def list_tools(self) -> ToolList:
        """The tools a model may call right now: see `Host.list_tools`."""
        answer = await self._request("tools/list", b"{}", repeatable=True)
        return ToolList([msgspec.json.decode(answer, type=dict[str, tuple[Tool, ...]])["tools"]])

    async def _call(self, call: OutgoingCall) -> Any:
        """`call_tool` and `start_task`."""
        check_arguments(call.name, call.arguments)
        given = None if call.arguments is None else dict(call.arguments)
        name, id = sendable(call.name), None if call.call_id is None else sendable(call.call_id)
        sent = _RemoteCall(name, given, call.timeout, call.as_task, call.open_view, id)
        return _read_outcome(await self._request("tools/call", wire.encode(sent), call.on_progress))

    async def approval_needed(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, call_id: str
    ) -> ApprovalRequest | None:
        """What a user has to be asked before a call: see `Host.approval_needed`."""
        try:
            check_arguments(name, arguments)
        except ProtocolError:  # the call will raise it
            return None
        given = None if arguments is None else dict(arguments)
        call = _RemoteCall(sendable(name), given, call_id=sendable(call_id))
        answer = await self._request("host/approval", wire.encode(call))
        return msgspec.json.decode(answer, type=dict[str, ApprovalRequest | None])["request"]

    async def decide(self, call_id: str, decision: Decision, *, edited: bool = False) -> None:
        """Take what the user said about a call: see `Host.decide`."""
        reason = sendable(decision.reason) if isinstance(decision, Deny) else None
        decided = _Decided(sendable(call_id), type(decision).__name__, reason, edited)
        await self._request("host/decide", wire.encode(decided))

    def stream_arguments(self, name: str, text: str, *, call_id: str) -> None:
        """See `ToolHost.stream_arguments`; what a slow worker cannot take in time is dropped."""
        if self._session.writable and not self._session.closed:
            arguments = _Arguments(sendable(name), sendable(text), sendable(call_id))
            self._session.notify_soon("host/arguments", wire.encode(arguments))

    async def request_task(self, method: str, task_id: str, timeout: float | None = None) -> Any:
        """Send a request about a task to the worker with the Host."""
        params = wire.encode(_TaskCall(task_id, timeout))
        return _read_outcome(await self._request(method, params))

    async def _request(
        self,
        method: str,
        params: bytes,
        on_progress: OnProgress | None = None,
        *,
        repeatable: bool = False,
    ) -> msgspec.Raw:
        """`repeatable`: it changes nothing, so whether it was carried out does not matter."""
        try:
            return await self._session.request(method, params, on_progress=on_progress)
        except ProtocolError as error:
            raise _original(error) from None
        except (ConnectionClosed, NotConnected) as closed:
            if isinstance(closed, ConnectionClosed) and not repeatable:
                text = f"The worker with the user's Views was lost, and may have done it: {closed}"
                raise OutcomeUnknown(text) from closed
            error = getattr(self._channel, "error", None)
            if isinstance(error, BusError):
                raise error from closed
            raise

    # --- Views -------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, RemoteView]:
        """The open Views, by id; the least recently used one first."""
        return self._views

    def model_context(self) -> list[ModelContext]:
        """What each open View last wanted the model to know, the oldest first."""
        return sorted(self._contexts.values(), key=lambda each: each.when)

    def ask_for_messages(self) -> None:
        """Have the Host send what its Views say to the model: `on_message` has a handler."""
        self._session.notify_soon("host/messages", b"{}")

    async def _handle(self, request: wire.Request) -> bytes:
        if request.method != "host/message" or request.params is None:
            raise ProtocolError(METHOD_NOT_FOUND, f"{request.method} is not known here")
        message = msgspec.json.decode(request.params, type=_RemoteMessage)
        view = self._views.get(message.view_id)
        if view is None or not self.on_message:
            return wire.encode({"accepted": False})
        try:
            accepted = self.on_message.ask(view, message.blocks)
            if is_awaitable(accepted):
                accepted = await accepted
        except TransomError as error:
            raise _described(error) from error
        return wire.encode({"accepted": accepted is not False})

    def _notified(self, notification: wire.Notification) -> None:
        if notification.method == "host/tools-changed":
            self._background.fire(self.on_tools_changed)
        elif notification.method == "host/changes" and notification.params is not None:
            changes = msgspec.json.decode(notification.params, type=_Changes)
            self._views = {view.id: view for view in changes.views}
            known = {**self._contexts, **{each.view_id: each for each in changes.contexts}}
            self._contexts = {key: each for key, each in known.items() if key in self._views}


class SharedHost:
    """A local Host, served to agents on other workers.

    `on_used` is called with each request, `on_close` when another worker closes the user.
    """

    def __init__(
        self,
        host: Host,
        on_used: Callable[[], object],
        on_close: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._host = host
        self._on_used = on_used
        self._on_close = on_close
        self._sessions: set[Session] = set()
        self._takers: list[Session] = []  # of agents that take messages of Views
        self._contexts: set[str] = set()  # ids of Views with a new context
        self._changed = Debounced(self._send_changes, _report, delay=_SOON)
        for slot in (
            *(host.on_view_opened, host.on_view_closed, host.on_view_changed),
            *(host.on_view_unresponsive, host.on_view_responsive),
        ):
            slot(self._changed.trigger)
        host.on_model_context(self._context_changed)
        host.on_tools_changed(lambda: self._notify("host/tools-changed", b"{}"))

    async def serve(self, channel: Channel) -> None:
        """Serve an agent on another worker until it disconnects."""

        def handle(request: wire.Request) -> Coroutine[Any, Any, bytes]:
            return self._handle(session, request)

        def notified(notification: wire.Notification) -> None:
            self._notified(session, notification)

        session = Session(
            channel,
            on_request=handle,
            on_notification=notified,
            on_error=_report,
            timeout=None,
            peer=Peer(max_bytes=_MAX_MESSAGE),
        )
        async with session:
            self._sessions.add(session)
            try:
                await session.wait_closed()
            finally:
                self._sessions.discard(session)
                if session in self._takers:
                    self._takers.remove(session)

    def close(self) -> None:
        """Send nothing more."""
        self._changed.close()

    # --- requests ----------------------------------------------------------------------------

    def _notified(self, session: Session, notification: wire.Notification) -> None:
        if notification.method == "host/messages":
            self._host.on_message.remove(self._forward)
            self._host.on_message(self._forward)
            if session not in self._takers:
                self._takers.append(session)
        elif notification.method == "host/arguments" and notification.params is not None:
            written = msgspec.json.decode(notification.params, type=_Arguments)
            self._host.stream_arguments(written.name, written.text, call_id=written.call_id)

    async def _forward(self, view: View, blocks: list[ContentBlock]) -> bool:
        """Give a message of a View to an agent on another worker."""
        if not self._takers:
            raise Refused("No agent takes messages of Views now")
        message = wire.encode(_RemoteMessage(view.id, blocks))
        try:
            answer = await self._takers[-1].request("host/message", message, timeout=_TAKEN_WITHIN)
        except ProtocolError as error:
            raise _original(error) from None
        except (ConnectionClosed, NotConnected, RequestTimeout) as error:
            raise Refused("The agent does not answer") from error
        return msgspec.json.decode(answer, type=dict[str, bool])["accepted"]

    async def _handle(self, session: Session, request: wire.Request) -> bytes:
        self._on_used()
        try:
            answer = await self._answer(session, request)
        except TransomError as error:
            raise _described(error) from error
        finally:
            self._changed.flush()
        return answer

    async def _answer(self, session: Session, request: wire.Request) -> bytes:
        host, params = self._host, request.params or msgspec.Raw(b"{}")
        match request.method:
            case "host/views":
                contexts = host.model_context()
                session.notify_soon("host/changes", wire.encode(_Changes(self._views(), contexts)))
                return b"{}"
            case "host/close":
                session.background.start(self._on_close())
                return b"{}"
            case "tools/list":
                return wire.encode({"tools": tuple(await host.list_tools())})
            case "tools/call":
                call = msgspec.json.decode(params, type=_RemoteCall)
                relay = _relay(session, (call.meta or {}).get("progressToken"))
                given = (call.name, call.arguments, call.timeout, relay)
                outgoing = OutgoingCall(*given, call.task, call.open_view, call.call_id)
                return _write_outcome(await host._call(outgoing))
            case "host/approval":
                call = msgspec.json.decode(params, type=_RemoteCall)
                needed = await host.approval_needed(
                    call.name, call.arguments, call_id=call.call_id or ""
                )
                return wire.encode({"request": needed})
            case "host/decide":
                decided = msgspec.json.decode(params, type=_Decided)
                await host.decide(decided.call_id, decided.decision, edited=decided.edited)
                return b"{}"
            case "tasks/get" | "tasks/result" | "tasks/cancel":
                task = msgspec.json.decode(params, type=_TaskCall)
                return _write_outcome(
                    await host.request_task(request.method, task.id, task.timeout)
                )
            case _:
                raise ProtocolError(METHOD_NOT_FOUND, f"{request.method} is not known here")

    # --- changes -----------------------------------------------------------------------------

    def _views(self) -> list[RemoteView]:
        return [
            RemoteView(view.id, view.server, view.uri, view.state, view.reason, view.pinned_by)
            for view in self._host.views.values()
        ]

    def _context_changed(self, view: View) -> None:
        self._contexts.add(view.id)
        self._changed.trigger()

    def _send_changes(self) -> None:
        changed, self._contexts = self._contexts, set()
        contexts = [each for each in self._host.model_context() if each.view_id in changed]
        self._notify("host/changes", wire.encode(_Changes(self._views(), contexts)))

    def _notify(self, method: str, params: bytes) -> None:
        for session in list(self._sessions):
            if not session.closed:
                session.notify_soon(method, params)


async def refuse(channel: Channel, error: Exception) -> None:
    """Answer an agent on another worker whose Host could not be created."""
    if not isinstance(error, TransomError):
        _report(error)
        error = TransomError("The user's Host could not be made: see the log of its worker")
    answer = _described(error)

    def fail(_: wire.Request) -> bytes:
        raise answer

    session = Session(channel, on_request=fail, on_notification=lambda _: None)
    async with session:
        await session.wait_closed()


def _relay(session: Session, token: object) -> OnProgress | None:
    """Sends progress to the caller, if it asked for that."""
    if token is None:
        return None

    def relay(progress: Progress) -> None:
        if session.writable and not session.closed:
            session.notify_soon("notifications/progress", progress.relayed(token))

    return relay


def _write_outcome(outcome: ToolResult | Task) -> bytes:
    if isinstance(outcome, Task):
        return b'{"task":%b}' % wire.encode(outcome)
    return b'{"result":%b}' % outcome.to_wire()


def _read_outcome(data: msgspec.Raw) -> Any:
    members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    if "task" in members:
        return msgspec.json.decode(members["task"], type=Task)
    return ToolResult.from_wire(members["result"])


def _described(error: TransomError) -> ProtocolError:
    """An error in a form that the other worker can raise."""
    try:
        data = msgspec.to_builtins(_Error(type(error).__name__, list(error.args)))
    except (TypeError, ValueError):  # its arguments are not JSON
        data = None
    return ProtocolError(SERVER_ERROR, str(error), data)


def _original(error: ProtocolError) -> TransomError:
    try:
        described = msgspec.convert(error.data, _Error)
        kind: Any = getattr(errors, described.error)
        return kind(*described.given)
    except (msgspec.ValidationError, AttributeError, TypeError):
        return TransomError(error.message)
