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
from typing import Any, Final

import msgspec
from msgspec import Raw

from transom.background import stop
from transom.channel import Channel, Throttled
from transom.connections.upstream import CachingServer, announced_lists
from transom.connections.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVERY_VERSION,
    HANDSHAKE_VERSIONS,
    PROTOCOL_KEY,
    TASKS_EXTENSION,
    subscription_of,
    wants_task,
    with_envelope,
    with_extension,
    with_ui,
    without_task,
)
from transom.errors import (
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    PeerError,
    ProtocolError,
    TransomError,
    UsageError,
)
from transom.protocol import wire
from transom.protocol.peer import Peer
from transom.session import OnProgress, SentRequest, Session
from transom.version import __version__

_log = logging.getLogger("transom.connections")

Connect = Callable[[], Awaitable[Channel]]
"""Starts or reaches a server, and returns the pipe to it."""

Handler = Callable[[wire.Request], bytes | Awaitable[bytes | Raw]]
Envelope = Callable[[], Mapping[str, Raw] | None]

_BACKOFF: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_HEALTHY: Final = 60.0  # seconds after which the backoff begins at its first step again
_MAX_BYTES: Final = 32 * 1024 * 1024
_MAX_DEPTH: Final = 200
_MAX_IN_FLIGHT: Final = 10_000
_LOOKS: Final = 20  # how often to see whether a server that may hang has sent something
_DISCOVER_WITHIN: Final = 10.0
_UNSUPPORTED_VERSION: Final = -32022
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class ServerConnection(CachingServer):
    """A connection to a server. It implements `Server`.

    Args:
        name: what the server is called in messages.
        connect: starts or reaches it.
        reconnect: whether to reach it again when it is lost.
        resume: brings a reconnected server up to date; by default the handshake.
        resume_timeout: seconds for that; None: `resume` has its own limit.
        on_request: answers the server's requests; by default `ping` only.
        on_notification: called with each notification of the server, except the progress of our
            requests and what belongs to a subscription made with `listen`.
        on_lost: called with this connection and the reason when the server goes away.
        on_restored: called when it can be used again; after `start(resume=True)` also the first
            time.
        backpressure: called before each message is read; what it returns is awaited first. It
            returns None when the message can be handled at once.
        hung_after: seconds of silence after which a server that owes an answer is lost; 0: never.
    """

    def __init__(
        self,
        name: str,
        connect: Connect,
        *,
        reconnect: bool = False,
        resume: Callable[[ServerConnection], Awaitable[None]] | None = None,
        resume_timeout: float | None = 30.0,
        on_request: Handler | None = None,
        on_notification: Callable[[wire.Notification], object] | None = None,
        on_lost: Callable[[ServerConnection, str], object] | None = None,
        on_restored: Callable[[ServerConnection], object] | None = None,
        backpressure: Callable[[], Awaitable[None] | None] | None = None,
        hung_after: float = 0.0,
    ) -> None:
        super().__init__()
        self.name = name
        self.identity = ""
        """Identifies the server, also in the next run; "" if nothing does."""
        self.up = False
        """Whether the connection is up."""
        self.reason = "it was not started"
        """Why it is not up."""
        self.starts = 0
        """How often it was reached."""
        self.protocol_version: str | None = None
        """The version that `negotiate` agreed on."""
        self._connect = connect
        self._reconnect = reconnect
        self.resume = resume or _negotiate
        self.resume_timeout = resume_timeout
        self._on_request = on_request or _answer_ping
        self._on_notification = on_notification
        self.on_lost = on_lost
        self.on_restored = on_restored
        self._backpressure = backpressure
        self._hung_after = hung_after
        self._suspected: Session | None = None  # the session whose server may hang
        self.answer_input: Callable[[bytes], Awaitable[dict[str, Any]]] | None = None
        """Gives the `inputResponses` for a result that requires input; None: cannot be asked."""
        self._envelope: Envelope = _no_envelope
        self._channel: Channel | None = None
        self._incoming: Throttled | None = None
        self._session: Session | None = None
        self._subscriptions: dict[wire.RequestId, Callable[[wire.Notification], object]] = {}
        self._must_listen = False  # whether changed tools are announced only on a subscription
        self._listening = False
        self._listener: asyncio.Task[None] | None = None
        self._state_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    # --- life --------------------------------------------------------------------------------

    async def start(self, *, resume: bool = False) -> None:
        """Reach the server for the first time.

        Args:
            resume: whether it is up only after `resume` has run.

        Raises:
            NotConnected: it cannot be reached.
        """
        self._attach(await self._connect())
        if not resume:
            self._set_up()
        self._keep(0)

    def start_later(self, reason: str) -> None:
        """Keep trying, with backoff, to reach a server that cannot be reached now."""
        self.reason = reason
        self._keep(1)

    def _keep(self, attempts: int) -> None:
        self._task = asyncio.create_task(self._run(attempts), name=f"transom-server-{self.name}")

    async def wait_up(self, timeout: float | None) -> bool:
        """Wait until the connection is up, without limit for None; returns whether it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self.up and not self._closed:
                    self._state_changed.clear()
                    await self._state_changed.wait()
        return self.up

    @property
    def writable(self) -> bool:
        """Whether the server reads what it is sent."""
        return self._session is None or self._session.writable

    async def wait_writable(self) -> None:
        """Wait while the server is slow to read."""
        if self._session is not None:
            self._suspect()
            await self._session.wait_writable()

    async def drop(self, reason: str) -> None:
        """Treat the server as lost, for this reason; with `reconnect` it is reached again."""
        if self._session is not None:
            await self._session.aclose(reason)

    async def aclose(self) -> None:
        """Close the connection for good. Safe to repeat."""
        self._closed = True
        task, self._task = self._task, None
        await stop(task)
        session, self._session = self._session, None
        if session is not None:
            await session.aclose()
        if self._channel is not None:
            await self._channel.aclose()
        self._set_down("this side closed the connection")

    def _attach(self, channel: Channel) -> None:
        self._channel = channel
        if self._backpressure is not None:
            channel = self._incoming = Throttled(channel, self._backpressure)
        self._session = Session(
            channel,
            on_request=lambda request: self._on_request(request),
            on_notification=self._handle_notification,
            on_problem=self._report,
            on_closed=self._set_down,
            on_given_up=self._suspect,
            timeout=None,
            to_error=_to_error,
            label=f"Server {self.name}",
            peer=Peer(
                max_bytes=_MAX_BYTES,
                max_depth=_MAX_DEPTH,
                max_outgoing=_MAX_IN_FLIGHT,
                first_id=1,
                may_cancel_ours=True,
            ),
        )
        self._session.start()
        self.starts += 1
        self.tool_cache.invalidate()

    def _set_up(self) -> None:
        self.up = True
        self._state_changed.set()

    def _set_down(self, reason: str) -> None:
        self.up = False
        self.reason = reason
        self._listening = False
        self._subscriptions.clear()
        self._state_changed.set()
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None

    async def _run(self, attempts: int) -> None:
        """Run the connection until it is closed, or lost without `reconnect`."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            if self._session is None:
                attempts = await self._reach_again(attempts)
                began = clock()
            session = self._session
            assert session is not None  # noqa: S101 - for the type checker
            failure = None if self.up else await self._restore(session)
            reason = failure or await session.wait_closed()
            self._set_down(reason)
            self._session = None
            if self.on_lost is not None:
                self._guard(self.on_lost, self, reason)
            await session.aclose(reason)
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
                self.reason = _text(error)
                continue
            self._attach(channel)
            return attempts

    async def _restore(self, session: Session) -> str | None:
        """Run `resume`; returns why it failed, unless the server was lost again."""
        resuming = asyncio.ensure_future(self.resume(self))
        closed = asyncio.ensure_future(session.wait_closed())
        try:
            await asyncio.wait(
                [resuming, closed],
                timeout=self.resume_timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if session.closed:
                return None
            if not resuming.done():
                return f"it did not answer within {self.resume_timeout:g} s"
            if (error := resuming.exception()) is not None:
                return _text(error)
            self._set_up()
            if self.on_restored is not None:
                self._guard(self.on_restored, self)
            return None
        finally:
            resuming.cancel()
            closed.cancel()
            await asyncio.gather(resuming, closed, return_exceptions=True)

    def _suspect(self, _: object = None) -> None:
        """A request timed out, was cancelled or not sent: find out whether the server hangs."""
        session, incoming = self._session, self._incoming
        if session is None or incoming is None or not self._hung_after:
            return
        if self._suspected is not session and not session.closed:
            self._suspected = session
            session.background.start(self._drop_if_hung(session, incoming))

    async def _drop_if_hung(self, session: Session, incoming: Throttled) -> None:
        """Drop a server that sends nothing, not even an answer to a ping."""
        envelope = self._envelope()
        method = "ping" if envelope is None else "server/discover"
        try:
            answer = self.send_request(method, with_envelope(None, envelope))
        except TransomError:
            return
        silent, reads = 0, incoming.reads
        while silent < _LOOKS:
            # In steps: while this process is stopped, or does not read, a server does not count as
            # silent.
            if (await asyncio.wait([answer], timeout=self._hung_after / _LOOKS))[0]:
                self._suspected = None
                return
            silent = silent + 1 if incoming.reads == reads and not incoming.waiting else 0
            reads = incoming.reads
        await session.aclose(f"it has sent nothing for {self._hung_after:g} s, and hangs")

    # --- from the server ---------------------------------------------------------------------

    def _handle_notification(self, notification: wire.Notification) -> object:
        if notification.method.endswith("/list_changed"):
            self._list_changed(notification.method)
        if self._subscriptions:
            id = subscription_of(notification.params)
            callback = self._subscriptions.get(id) if isinstance(id, str | int) else None
            if callback is not None:
                return callback(notification)
        return None if self._on_notification is None else self._on_notification(notification)

    def _report(self, error: BaseException) -> None:
        if isinstance(error, PeerError):
            _log.debug("server %s: %s", self.name, error)
        else:
            _log.error("a message of server %s was lost", self.name, exc_info=error)

    def _guard(self, call: Callable[..., object], *arguments: object) -> None:
        try:
            call(*arguments)
        except Exception as error:  # noqa: BLE001 - a callback must not end the connection
            _log.error("server %s: a callback failed", self.name, exc_info=error)

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
            if self._session is not None:
                raw = None if params is None else bytes(params)
                return self._session.send(method, raw, on_progress=on_progress)
        except NotConnected:
            pass  # the session has ended, which is handled soon
        except UsageError as error:
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
        if self._session is not None:
            with suppress(NotConnected):
                self._session.notify_soon(method, None if params is None else bytes(params))

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
        self._subscriptions[ended.id] = on_notification
        ended.add_done_callback(lambda _: self._subscriptions.pop(ended.id, None))
        return ended

    async def _answer_input(self, result: bytes) -> dict[str, Any]:
        if self.answer_input is None:
            return await super()._answer_input(result)
        return await self.answer_input(result)

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
        return self._listening or not self._must_listen

    # --- the handshake -----------------------------------------------------------------------

    def introduced(self, capabilities: Mapping[str, Any], envelope: Envelope | None = None) -> None:
        """Record a handshake that was made elsewhere over this connection.

        Args:
            capabilities: the server's capabilities.
            envelope: what to add to the `_meta` of requests that are made here, if anything.
        """
        self._capabilities = capabilities
        self._envelope = envelope or _no_envelope
        self._must_listen = False
        self.tool_cache.invalidate()

    async def negotiate(self, *, timeout: float = 30.0) -> None:
        """Make the handshake: 2026-07-28 if the server speaks it, else `initialize`.

        The server learns that Views can be shown.

        Raises:
            NotConnected: the server does not answer in time, refuses, or is gone.
        """
        try:
            async with asyncio.timeout(timeout):
                if not await self._discover(min(_DISCOVER_WITHIN, timeout / 2)):
                    await self._initialize(timeout)
        except TimeoutError:
            raise NotConnected(f"it did not answer within {timeout:g} s") from None
        except ConnectionClosed:
            raise NotConnected(self.reason) from None
        except ProtocolError as error:
            raise NotConnected(f"it refused the connection: {error}") from None
        except InvalidResult as error:
            raise NotConnected(str(error)) from None

    async def _discover(self, timeout: float) -> bool:
        """Open with `server/discover`; returns whether the server supports it."""
        envelope = {
            PROTOCOL_KEY: wire.raw(DISCOVERY_VERSION),
            CLIENT_KEY: wire.raw(_CLIENT),
            CAPABILITIES_KEY: with_ui(None),
        }
        params = with_envelope(None, envelope)
        try:
            async with asyncio.timeout(timeout):
                raw = await self.forward("server/discover", params)
        except TimeoutError:
            return False  # some servers do not answer unknown methods
        except ProtocolError as error:
            # Any error but "unsupported version" comes from an older server.
            if is_unsupported_version(error):
                raise
            return False
        try:
            answer = msgspec.json.decode(raw, type=_Discovered)
        except msgspec.DecodeError:
            return False
        if DISCOVERY_VERSION not in answer.supported_versions:
            return False
        self.protocol_version = DISCOVERY_VERSION
        self.introduced(answer.capabilities, lambda: envelope)
        self.listen_to_lists()
        return True

    async def _initialize(self, timeout: float) -> None:
        params = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": with_ui(None),
            "clientInfo": _CLIENT,
        }
        try:
            raw = await self.forward("initialize", wire.encode(params))
        except ProtocolError as error:
            # A slow server that answered `server/discover` late does not go back to `initialize`.
            if DISCOVERY_VERSION in _supported(error) and await self._discover(timeout):
                return
            raise
        try:
            answer = msgspec.json.decode(raw, type=_Initialized)
        except msgspec.DecodeError:
            raise InvalidResult("its answer to initialize cannot be read") from None
        if answer.protocol_version not in HANDSHAKE_VERSIONS:
            version = answer.protocol_version[:40]
            raise InvalidResult(f"it speaks protocol version {version!r}, which is unknown here")
        self.protocol_version = answer.protocol_version
        self.introduced(answer.capabilities)
        self.notify("notifications/initialized")

    def listen_to_lists(self) -> None:
        """Subscribe to list changes of a 2026-07-28 server, as far as it announces them."""
        lists = announced_lists(self._capabilities)
        self._must_listen = "tools" in lists
        if self._listener is not None:
            self._listener.cancel()
        self._listener = asyncio.create_task(self._keep_listening(lists)) if lists else None

    async def _keep_listening(self, lists: list[str]) -> None:
        """Subscribe to changes of these lists, and again when the subscription is lost."""
        params = wire.encode({"notifications": {f"{kind}ListChanged": True for kind in lists}})
        attempts = 0

        def handle(notification: wire.Notification) -> None:
            nonlocal attempts
            if notification.method == _ACKNOWLEDGED:
                self._listening = True
                self.tool_cache.invalidate()  # a change may have been missed
                if attempts:
                    for kind in lists:
                        self._list_changed(f"notifications/{kind}/list_changed")
                attempts = 0

        while True:
            try:
                await self.listen(params, handle, stamp=True)
                return  # the server ended it: changes are not announced any more
            except ConnectionClosed:
                return
            except TransomError:
                if not self._listening:
                    return  # the server does not offer it
            finally:
                self._listening = False
            attempts += 1
            await asyncio.sleep(_BACKOFF[min(attempts, len(_BACKOFF) - 1)])


_CLIENT: Final = {"name": "transom", "version": __version__}


class _Discovered(msgspec.Struct, rename="camel"):
    supported_versions: list[str]
    capabilities: dict[str, Any] = {}


class _Initialized(msgspec.Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] = {}


async def _negotiate(connection: ServerConnection) -> None:
    await connection.negotiate()


def _to_error(error: BaseException) -> ProtocolError | None:
    """The error for a server whose request was forwarded to a client that is gone."""
    if isinstance(error, ConnectionClosed | NotConnected):
        return ProtocolError(SERVER_ERROR, "The client is gone")
    return None


def _no_envelope() -> None:
    return None


def _answer_ping(request: wire.Request) -> bytes:
    if request.method == "ping":
        return b"{}"
    raise ProtocolError(METHOD_NOT_FOUND, "Method not found")


def is_unsupported_version(error: BaseException) -> bool:
    """Whether a 2026-07-28 server refused the version of a request."""
    supported = _supported(error) if isinstance(error, ProtocolError) else []
    return bool(supported) and not any(version in HANDSHAKE_VERSIONS for version in supported)


def _supported(error: ProtocolError) -> list[str]:
    """The versions that a server names when it refuses another one."""
    if error.code != _UNSUPPORTED_VERSION or not isinstance(error.data, dict):
        return []
    named: object = error.data.get("supported")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return [each for each in named if isinstance(each, str)] if isinstance(named, list) else []  # pyright: ignore[reportUnknownVariableType]


def _text(error: BaseException) -> str:
    return str(error)[:500] or type(error).__name__
