"""The connection to one MCP server: requests, notifications, the handshake, and reconnecting.

1. Params and results are raw JSON and pass unchanged. Ids are this connection's own: a `Session`
   correlates requests and answers, progress and cancellation.
2. Every request in flight fails when the server is lost.
3. With `reconnect`, a lost server is reached again: at once, then with exponential backoff.
   `resume` brings the new one up to date, and only then is the connection up again.
4. If a server cannot be reached the first time, `start` raises; it is retried only after
   `start_later`.
5. With `hung_after`, a server counts as lost if a request to it timed out or was cancelled and it
   then sends nothing for that long, not even the answer to a ping.
6. Both protocol eras are spoken: `initialize`, and 2026-07-28 with `server/discover`, an envelope
   in every request and `subscriptions/listen`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from enum import Enum, auto
from typing import Any, Final

import msgspec
from msgspec import Raw

from transom.background import stop
from transom.channel import Channel
from transom.connections.handshake import IntroductionRefused, introduce
from transom.connections.upstream import CachingServer, InputRequired, announced_lists
from transom.connections.versions import (
    CAPABILITIES_KEY,
    CLIENT_INFO,
    DISCOVERY_VERSION,
    HANDSHAKE_VERSIONS,
    TASKS_EXTENSION,
    own_envelope,
    subscription_of,
    wants_task,
    with_envelope,
    with_extension,
    without_task,
)
from transom.errors import (
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    ConnectionClosed,
    NotConnected,
    PeerError,
    ProtocolError,
    TooManyRequests,
    TransomError,
)
from transom.protocol import wire
from transom.protocol.peer import Peer
from transom.session import OnProgress, SentRequest, Session
from transom.traffic import TrafficListener, observe

_log = logging.getLogger("transom.connections")

Connect = Callable[[], Awaitable[Channel]]
"""Starts or reaches a server, and returns the pipe to it."""

_Envelope = Callable[[], Mapping[str, Raw] | None]

_BACKOFF: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_HEALTHY: Final = 60.0  # seconds after which the backoff begins at its first step again
_MAX_BYTES: Final = 32 * 1024 * 1024
_MAX_DEPTH: Final = 200
_MAX_IN_FLIGHT: Final = 10_000
_LOOKS: Final = 20  # how often to see whether a server that may hang has sent something
_DISCOVER_WITHIN: Final = 10.0
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class ConnectionState(Enum):
    """Whether a connection can be used."""

    DOWN = auto()
    """The server was not reached yet, or was lost."""
    UP = auto()
    CLOSED = auto()
    """This side closed it, for good."""


class ServerListener:
    """What a connection asks of its owner, and notifies it of. Derive from it for its defaults."""

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What the server is told at the handshake that it may ask for; by default nothing."""
        return {}

    def on_request(self, request: wire.Request) -> bytes | Awaitable[bytes | Raw]:
        """Answer a request of the server; by default only `ping`."""
        if request.method == "ping":
            return b"{}"
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found")

    def on_notification(self, notification: wire.Notification) -> object:
        """The server sent a notification; by default it is ignored.

        The progress of our requests and what belongs to a subscription of `listen` do not come
        here.
        """

    def on_lost(self, reason: str) -> None:
        """The server has gone away."""

    def on_restored(self) -> None:
        """The server can be used again; after `start(resume=True)` also the first time."""

    async def resume(self, connection: ServerConnection) -> None:
        """Bring a server that was reached again up to date; by default the handshake.

        It has to end: what it raises counts as the loss of the server.
        """
        await connection.negotiate()

    async def answer_input(self, result: bytes) -> dict[str, Any]:
        """The `inputResponses` for a result that requires input; InputRequired if there are none.

        By default nobody can be asked.
        """
        raise InputRequired(result)

    def wait_writable(self) -> Awaitable[None] | None:
        """Called before each message is read: an awaitable while it could not be handled."""
        return None


class ServerConnection(CachingServer):
    """A connection to a server. It implements `Server`.

    Args:
        name: what the server is called in messages.
        connect: starts or reaches it.
        listener: answers the server, and is notified of what it sends and of its end.
        reconnect: whether to reach it again when it is lost.
        hung_after: seconds of silence after which a server that owes an answer is lost; 0: never.
        traffic: gets every message.
        identity: identifies the server, also in the next run; "" if nothing does.
    """

    def __init__(
        self,
        name: str,
        connect: Connect,
        listener: ServerListener | None = None,
        *,
        reconnect: bool = False,
        hung_after: float = 0.0,
        traffic: TrafficListener | None = None,
        identity: str = "",
    ) -> None:
        super().__init__()
        self.name = name
        self.identity = identity
        self.state = ConnectionState.DOWN
        self.reason = "it was not started"
        """Why it is not up."""
        self.protocol_version: str | None = None
        """The version that `negotiate` agreed on."""
        self._connect = connect
        self._listener = ServerListener() if listener is None else listener
        self._reconnect = reconnect
        self._hung_after = hung_after
        self._traffic = traffic
        self._envelope: _Envelope = _no_envelope
        self._link: _Link | None = None
        self._list_changes: _ListChanges | None = None
        self._state_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures: int | None = 0  # of starts; None once it has sent anything

    # --- life --------------------------------------------------------------------------------

    @property
    def up(self) -> bool:
        """Whether the server can be used."""
        return self.state is ConnectionState.UP

    async def start(self, *, resume: bool = False) -> None:
        """Reach the server for the first time.

        Args:
            resume: whether it is up only after the listener's `resume`.

        Raises:
            NotConnected: it cannot be reached.
        """
        self._open_link(await self._connect())
        if not resume:
            self._set_state(ConnectionState.UP)
        self._keep(0)

    def start_later(self, reason: str) -> None:
        """Keep trying, with backoff, to reach a server that cannot be reached now."""
        self.reason = reason
        self._keep(1)

    def _keep(self, attempts: int) -> None:
        self._task = asyncio.create_task(self._run(attempts), name=f"transom-server-{self.name}")

    async def wait_up(self, timeout: float | None, *, tries: int | None = None) -> bool:
        """Wait until the connection is up; returns whether it is.

        Args:
            timeout: how many seconds; None: without limit.
            tries: after so many failures do not wait for a server that never sent anything.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.state is ConnectionState.DOWN:
                    if tries is not None and self._failures is not None and self._failures >= tries:
                        break
                    self._state_changed.clear()
                    await self._state_changed.wait()
        return self.up

    @property
    def writable(self) -> bool:
        """Whether the server reads what it is sent."""
        return self._link is None or self._link.session.writable

    async def wait_writable(self) -> None:
        """Wait while the server is slow to read."""
        if self._link is not None:
            self._suspect()
            await self._link.session.wait_writable()

    async def drop(self, reason: str) -> None:
        """Treat the server as lost, for this reason; with `reconnect` it is reached again."""
        if self._link is not None:
            await self._link.session.aclose(reason)

    async def aclose(self) -> None:
        """Close the connection for good. Safe to repeat."""
        self.state = ConnectionState.CLOSED
        task, self._task = self._task, None
        await stop(task)
        link, self._link = self._link, None
        if link is not None:
            await link.session.aclose()
        self._set_down("this side closed the connection")

    def _open_link(self, channel: Channel) -> None:
        session = Session(
            observe(channel, "server", self.name, self._traffic),
            on_request=self._listener.on_request,
            on_notification=self._handle_notification,
            on_error=self._report,
            on_closed=self._set_down,
            on_given_up=self._suspect,
            wait_for_room=self._listener.wait_writable,
            timeout=None,
            to_error=_to_error,
            peer_name=f"Server {self.name}",
            peer=Peer(
                max_bytes=_MAX_BYTES,
                max_depth=_MAX_DEPTH,
                max_outgoing=_MAX_IN_FLIGHT,
                first_id=1,
                may_cancel_ours=True,
            ),
        )
        self._link = _Link(session)
        session.start()
        self.tool_cache.invalidate()

    def _set_state(self, state: ConnectionState) -> None:
        self.state = state
        self._state_changed.set()

    def _set_down(self, reason: str) -> None:
        if self._link is not None and self._link.session.last_message_at:
            self._failures = None
        self._failed(reason)
        if self._list_changes is not None:
            self._list_changes.stop()
        closed = self.state is ConnectionState.CLOSED
        self._set_state(ConnectionState.CLOSED if closed else ConnectionState.DOWN)

    def _failed(self, reason: str) -> None:
        self.reason = reason
        if self._failures is not None:
            self._failures += 1
            self._state_changed.set()

    async def _run(self, attempts: int) -> None:
        """Run the connection until it is closed, or lost without `reconnect`."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            if self._link is None:
                attempts = await self._reach_again(attempts)
                began = clock()
            assert self._link is not None  # noqa: S101 - for the type checker
            session = self._link.session
            failure = None if self.up else await self._restore(session)
            reason = failure or await session.wait_closed()
            self._set_down(reason)
            self._notify(lambda reason=reason: self._listener.on_lost(reason))
            await session.aclose(reason)
            self._link = None  # only now: `aclose` ends what this could not
            if not self._reconnect:
                return
            attempts = 0 if clock() - began > _HEALTHY else attempts

    async def _reach_again(self, attempts: int) -> int:
        """Reach the server, with backoff, until that works; returns the number of attempts."""
        while True:
            await asyncio.sleep(_BACKOFF[min(attempts, len(_BACKOFF) - 1)])
            attempts += 1
            try:
                channel = await self._connect()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next try may work
                self._failed(_text(error))
                continue
            self._open_link(channel)
            return attempts

    async def _restore(self, session: Session) -> str | None:
        """Have the server brought up to date; why that failed, unless it was lost again."""
        resuming = asyncio.ensure_future(self._listener.resume(self))
        closed = asyncio.ensure_future(session.wait_closed())
        try:
            await asyncio.wait([resuming, closed], return_when=asyncio.FIRST_COMPLETED)
            if session.closed:
                return None
            if (error := resuming.exception()) is not None:
                return _text(error)
            self._set_state(ConnectionState.UP)
            self._notify(self._listener.on_restored)
            return None
        finally:
            resuming.cancel()
            closed.cancel()
            await asyncio.gather(resuming, closed, return_exceptions=True)

    def _suspect(self, _: object = None) -> None:
        """A request timed out, was cancelled or not sent: find out whether the server hangs."""
        link = self._link
        if link is not None and self._hung_after and not link.suspected and not link.session.closed:
            link.suspected = True
            link.session.background.start(self._drop_if_hung(link))

    async def _drop_if_hung(self, link: _Link) -> None:
        """Drop a server that sends nothing, not even an answer to a ping."""
        envelope = self._envelope()
        method = "ping" if envelope is None else "server/discover"
        try:
            answer = self.send_request(method, with_envelope(None, envelope))
        except TransomError:
            return
        session = link.session
        silent, last = 0, session.last_message_at
        while silent < _LOOKS:
            # In steps: while this process is stopped, or does not read, a server does not count as
            # silent.
            if (await asyncio.wait([answer], timeout=self._hung_after / _LOOKS))[0]:
                link.suspected = False
                return
            is_silent = session.last_message_at == last and not session.inbox.waiting
            silent, last = silent + 1 if is_silent else 0, session.last_message_at
        await session.aclose(f"it has sent nothing for {self._hung_after:g} s, and hangs")

    # --- from the server ---------------------------------------------------------------------

    def _handle_notification(self, notification: wire.Notification) -> object:
        if notification.method.endswith("/list_changed"):
            self._list_changed(notification.method)
        if self._link is not None and self._link.subscriptions:
            id = subscription_of(notification.params)
            callback = self._link.subscriptions.get(id) if isinstance(id, str | int) else None
            if callback is not None:
                return callback(notification)
        return self._listener.on_notification(notification)

    def _report(self, error: BaseException) -> None:
        if isinstance(error, PeerError):
            _log.debug("server %s: %s", self.name, error)
        else:
            _log.error("a message of server %s was lost", self.name, exc_info=error)

    def _notify(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - a listener must not end the connection
            _log.error("server %s: a listener failed", self.name, exc_info=error)

    # --- raw JSON to the server --------------------------------------------------------------

    def send_request(
        self,
        method: str,
        params: bytes | Raw | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> SentRequest:
        """Send a request at once: what `notify` sends afterwards goes out after it.

        Returns:
            The future of the raw result. It fails with `ProtocolError`, `InvalidResult` or
            `ConnectionClosed`. Cancelling it cancels the request at the server.

        Raises:
            ConnectionClosed: the server is gone.
            ProtocolError: too many requests wait for it.
        """
        try:
            if self._link is not None:
                raw = None if params is None else bytes(params)
                return self._link.session.send(method, raw, on_progress=on_progress)
        except NotConnected:
            pass  # the session has ended, which is handled soon
        except TooManyRequests as error:
            raise ProtocolError(SERVER_ERROR, f"Server {self.name}: {error}") from None
        raise ConnectionClosed(f"Server {self.name} is gone: {self.reason}")

    async def forward(
        self,
        method: str,
        params: bytes | Raw | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> bytes:
        """Send a request with these params; the raw result, `input_required` included.

        Cancelling it cancels the request at the server, with the same reason.

        Raises:
            ProtocolError: the server's error.
            InvalidResult: the answer cannot be read.
            ConnectionClosed: the server is gone.
        """
        return bytes(await self.send_request(method, params, on_progress=on_progress))

    def notify(self, method: str, params: bytes | Raw | None = None) -> None:
        """Send a notification, unless the server is gone."""
        if self._link is not None:
            with suppress(NotConnected):
                self._link.session.notify_soon(method, None if params is None else bytes(params))

    def listen(
        self,
        params: bytes | Raw | None,
        on_notification: Callable[[wire.Notification], object],
        *,
        stamp: bool = False,
    ) -> asyncio.Future[Raw]:
        """Open a 2026-07-28 subscription (`subscriptions/listen`).

        Args:
            params: what to subscribe to, with the envelope unless it is added here.
            on_notification: called with what belongs to this subscription: the acknowledgement,
                then the changes, each with the subscription's id in its `_meta`.
            stamp: whether to add the envelope of requests that are made here.

        Returns:
            The future of the result, which comes when the subscription has ended.

        Raises:
            ConnectionClosed: the server is gone.
        """
        given = with_envelope(params, self._envelope()) if stamp else params
        ended = self.send_request("subscriptions/listen", given)
        subscriptions = self._link.subscriptions if self._link is not None else {}
        subscriptions[ended.id] = on_notification
        ended.add_done_callback(lambda _: subscriptions.pop(ended.id, None))
        return ended

    async def _answer_input(self, result: bytes) -> dict[str, Any]:
        return await self._listener.answer_input(result)

    async def _send(
        self, method: str, params: bytes | None, on_progress: OnProgress | None = None
    ) -> bytes:
        envelope = self._envelope()
        task = envelope is not None and wants_task(method, params)
        if envelope is not None and (task or method.startswith("tasks/")):
            can = with_extension(envelope.get(CAPABILITIES_KEY), TASKS_EXTENSION, {})
            envelope = {**envelope, CAPABILITIES_KEY: can}
        if task:
            params = without_task(params)
        stamped = with_envelope(params, envelope)
        return await self.forward(method, stamped, on_progress=on_progress)

    def _has_tasks_by_extension(self) -> bool:
        return self._envelope() is not None

    def _announces_tools(self) -> bool:
        return self._list_changes is None or self._list_changes.announces_tools

    # --- the handshake -----------------------------------------------------------------------

    def introduced(
        self, capabilities: Mapping[str, Any], envelope: _Envelope | None = None
    ) -> None:
        """Record a handshake that was made elsewhere over this connection.

        Args:
            capabilities: the server's capabilities.
            envelope: what to add to the `_meta` of requests that are made here, if anything.
        """
        self._capabilities = capabilities
        self._envelope = envelope or _no_envelope
        self._stop_listening()
        self.tool_cache.invalidate()

    async def negotiate(self, *, timeout: float = 30.0) -> None:
        """Make the handshake: 2026-07-28 if the server speaks it, else `initialize`.

        The server learns that Views can be shown.

        Raises:
            NotConnected: the server does not answer in time, refuses, or is gone.
        """
        envelope = own_envelope(self._listener.client_capabilities)
        params = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": envelope[CAPABILITIES_KEY],
            "clientInfo": CLIENT_INFO,
        }
        introductions = [
            ("server/discover", with_envelope(None, envelope)),
            ("initialize", wire.encode(params)),
        ]
        within = min(_DISCOVER_WITHIN, timeout / 2)
        try:
            async with asyncio.timeout(timeout):
                method, raw = await introduce(self.forward, introductions, discover_within=within)
        except TimeoutError:
            raise NotConnected(f"it did not answer within {timeout:g} s") from None
        except ConnectionClosed:
            raise NotConnected(self.reason) from None
        except IntroductionRefused as refused:
            # Otherwise it answered something that cannot be read.
            refusal = isinstance(refused.refusals[-1], ProtocolError)
            prefix = "it refused the connection: " if refusal else ""
            raise NotConnected(f"{prefix}{refused}") from None
        try:
            answer = msgspec.json.decode(raw, type=_Introduced)
        except msgspec.DecodeError:
            raise NotConnected(f"its answer to {method} cannot be read") from None
        if method == "server/discover":
            self.protocol_version = DISCOVERY_VERSION
            self.introduced(answer.capabilities, lambda: envelope)
            self.listen_to_lists()
            return
        if answer.protocol_version not in HANDSHAKE_VERSIONS:
            version = answer.protocol_version[:40]
            raise NotConnected(f"it speaks protocol version {version!r}, which is unknown here")
        self.protocol_version = answer.protocol_version
        self.introduced(answer.capabilities)
        self.notify("notifications/initialized")

    def listen_to_lists(self) -> None:
        """Subscribe to list changes of a 2026-07-28 server, as far as it announces them."""
        self._stop_listening()
        lists = announced_lists(self._capabilities)
        self._list_changes = _ListChanges(self, lists, self._list_changed)

    def _stop_listening(self) -> None:
        if self._list_changes is not None:
            self._list_changes.stop()
            self._list_changes = None


class _Link:
    """A running server: the session with it, and the subscriptions at it. Lost with the server."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.subscriptions: dict[wire.RequestId, Callable[[wire.Notification], object]] = {}
        self.suspected = False
        """Whether the server may hang, which is being found out."""


class _ListChanges:
    """Keeps a subscription to changes of these lists at a 2026-07-28 server."""

    def __init__(
        self, connection: ServerConnection, lists: list[str], on_changed: Callable[[str], object]
    ) -> None:
        self._connection = connection
        self._lists = lists
        self._on_changed = on_changed
        self._subscribed = False
        self._attempts = 0
        self._task = asyncio.create_task(self._keep_subscribed()) if lists else None

    @property
    def announces_tools(self) -> bool:
        """Whether a change of the tools will be known, or the server never changes them."""
        return self._subscribed or "tools" not in self._lists

    def stop(self) -> None:
        """Subscribe no more."""
        self._subscribed = False
        if self._task is not None:
            self._task.cancel()

    def _handle(self, notification: wire.Notification) -> None:
        if notification.method != _ACKNOWLEDGED:
            return
        self._subscribed = True
        self._connection.tool_cache.invalidate()  # a change may have been missed
        if self._attempts:
            for kind in self._lists:
                self._on_changed(f"notifications/{kind}/list_changed")
        self._attempts = 0

    async def _keep_subscribed(self) -> None:
        wanted = {f"{kind}ListChanged": True for kind in self._lists}
        params = wire.encode({"notifications": wanted})
        while True:
            try:
                await self._connection.listen(params, self._handle, stamp=True)
                return  # the server ended it: changes are not announced any more
            except ConnectionClosed:
                return
            except TransomError:
                if not self._subscribed:
                    return  # the server does not offer it
            finally:
                self._subscribed = False
            self._attempts += 1
            await asyncio.sleep(_BACKOFF[min(self._attempts, len(_BACKOFF) - 1)])


class _Introduced(msgspec.Struct, rename="camel"):
    protocol_version: str = ""
    capabilities: dict[str, Any] = {}


def _to_error(error: BaseException) -> ProtocolError | None:
    """The error for a server whose request was forwarded to a client that is gone."""
    if isinstance(error, ConnectionClosed | NotConnected):
        return ProtocolError(SERVER_ERROR, "The client is gone")
    return None


def _no_envelope() -> None:
    return None


def _text(error: BaseException) -> str:
    return str(error)[:500] or type(error).__name__
