"""The gateway on streamable HTTP: several clients at once, each with servers and Views of its own.

1. Clients are told apart by their sessions, so there is one for each `initialize`. A 2026-07-28
   client has no session: its requests are answered with the versions that have, and it falls back
   to those.
2. A session ends when its client says so (DELETE), when no request and no stream of it has been
   open for a while, and with the gateway. Its servers and its Views end with it.
3. On a loopback address, Host and Origin must be that address, so that no web page can use the
   gateway. On any other address, and wherever a token is set, each request must bear the token.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import secrets
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from mcp_types.jsonrpc import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transom.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    SERVER_ERROR,
    MessageRefused,
    TransomError,
    UsageError,
)
from transom.gateway.client import MAX_BYTES, MAX_DEPTH
from transom.gateway.config import ServerConfig
from transom.gateway.http_channel import HttpClientChannel
from transom.gateway.members import connect_to
from transom.gateway.proxy import Proxy
from transom.gateway.stdio import on_signals
from transom.gateway.views import ClientViews
from transom.json_values import clean, member
from transom.protocol import wire
from transom.servers.connection import Connect
from transom.servers.envelope import envelope_of
from transom.serving import listen, serve

_log = logging.getLogger("transom.gateway")

PATH = "/mcp"
_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_MIN_TOKEN = 16
_SESSIONS_END_WITHIN = 15.0


class HttpGateway:
    """An ASGI application: the gateway at `/mcp`.

    Args:
        servers: the servers behind it: a name, and what starts or reaches each of them.
        views: makes the Views of a client, given what it calls itself.
        token: what each request must bear (`Authorization: Bearer ...`); None: nothing.
        security: which Host and Origin are let in; None: any.
        max_clients: how many sessions there may be at once.
        idle: seconds after which a session ends that has no request and no stream open.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, Connect]],
        views: Callable[[str], ClientViews],
        *,
        token: str | None = None,
        security: TransportSecuritySettings | None = None,
        max_clients: int = 100,
        idle: float = 1800.0,
    ) -> None:
        self.clients: dict[str, _HttpSession] = {}
        """The sessions there are, by id."""
        self._servers = servers
        self._views = views
        self._token = None if token is None else token.encode()
        self.security = security
        self._max_clients = max_clients
        self._idle = idle
        self._limited = RequestBodyLimitMiddleware(self._route, MAX_BYTES)
        self._ending = False

    async def aclose(self) -> None:
        """End every session, with its servers and its Views."""
        self._ending = True
        clients = list(self.clients.values())
        for client in clients:
            client.end()
        if clients:
            await asyncio.wait([client.task for client in clients], timeout=_SESSIONS_END_WITHIN)

    # --- requests ----------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            return
        answer = await self._refusal(Request(scope, receive))
        app: ASGIApp = self._limited if answer is None else answer
        await app(scope, receive, send)

    async def _refusal(self, request: Request) -> Response | None:
        """The answer to a request that is not let in; None for one that is."""
        if request.url.path != PATH:
            return _problem(404, INVALID_REQUEST, f"The gateway is at {PATH}")
        if self.security is not None:
            checking = TransportSecurityMiddleware(self.security)
            refused = await checking.validate_request(request)
            if refused is not None:
                return refused
        if self._token is not None and not self._bears_token(request):
            refused = _problem(401, SERVER_ERROR, "Send the gateway's token as a bearer token")
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        return None

    def _bears_token(self, request: Request) -> bool:
        assert self._token is not None  # noqa: S101 - for the type checker
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode(), self._token)
        return right and scheme.lower() == "bearer"

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        session = request.headers.get(_SESSION)
        version = request.headers.get(_VERSION)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await _fall_back(None, version)(scope, receive, send)
        elif session is not None:
            client = self.clients.get(session)
            if client is None or client.ending:
                await _problem(404, INVALID_REQUEST, "Session not found")(scope, receive, send)
            else:
                await client.serve(scope, receive, send)
        elif request.method == "POST":
            await self._begin(scope, receive, send)
        else:
            await _problem(400, INVALID_REQUEST, "Missing session ID")(scope, receive, send)

    # --- sessions ----------------------------------------------------------------------------

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request without a session, which must be `initialize`."""
        body = await Request(scope, receive).body()
        try:
            message = wire.decode(body, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
        except MessageRefused as refusal:
            await _problem(400, refusal.code, str(refusal))(scope, receive, send)
            return
        id = message.id if isinstance(message, wire.Request) else None
        if not isinstance(message, wire.Request) or message.method != "initialize":
            answer = _problem(400, INVALID_REQUEST, "Missing session ID", id)
            if isinstance(message, wire.Request) and (
                message.method == "server/discover" or envelope_of(message.params) is not None
            ):
                answer = _fall_back(id, None)
            await answer(scope, receive, send)
        elif self._ending or len(self.clients) >= self._max_clients:
            text = f"The gateway has as many clients as it may (--max-clients {self._max_clients})"
            await _problem(503, SERVER_ERROR, text, id)(scope, receive, send)
        else:
            client = self._admit(member(message.params, "clientInfo", "name"))
            await client.serve(scope, _replay(body, receive), send)

    def _admit(self, name: object) -> _HttpSession:
        label = clean(name, 60) if isinstance(name, str) else ""
        same = sum(client.label == label for client in self.clients.values())
        client = _HttpSession(label, self._idle)
        self.clients[client.id] = client
        shown = f"{label} ({same + 1})" if same else label
        client.start(self._serve(client, shown))
        client.task.add_done_callback(lambda _: self._session_ended(client))
        return client

    def _session_ended(self, client: _HttpSession) -> None:
        self.clients.pop(client.id, None)
        client.ended()

    async def _serve(self, client: _HttpSession, label: str) -> None:
        """One client, from its `initialize` to the end of its session."""
        try:
            async with client.transport.connect() as (read, write):
                channel = client.open(HttpClientChannel(read, write))
                try:
                    await Proxy(channel, self._servers, self._views(label)).run()
                except TransomError as error:
                    _log.warning("%s", error)
                    if channel.introduced:
                        return
                    async with asyncio.timeout(_SESSIONS_END_WITHIN):
                        await channel.refuse(str(error))
                        await client.wait_idle()
        except Exception:  # noqa: BLE001 - one client must not end the others
            _log.exception("a client's session failed")
        finally:
            await client.transport.terminate()


class _HttpSession:
    """One client's session: its open requests and streams, and its end."""

    def __init__(self, label: str, idle: float) -> None:
        self.id = secrets.token_hex(16)
        self.label = label
        self.transport = StreamableHTTPServerTransport(self.id)
        self.task: asyncio.Task[None]
        self._idle = idle
        self._channel: HttpClientChannel | None = None
        self._opened = asyncio.Event()
        self._open = 0
        self._nothing_open = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.ending = False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the session."""
        self.task = asyncio.create_task(work, name=f"transom-client-{self.id[:8]}")

    def open(self, channel: HttpClientChannel) -> HttpClientChannel:
        """Take requests from now on."""
        self._channel = channel
        self._opened.set()
        return channel

    def ended(self) -> None:
        """The session is over."""
        self.ending = True
        self._opened.set()
        if self._timer is not None:
            self._timer.cancel()

    def end(self) -> None:
        """End the session, unless it is ending already."""
        if not self.ending:
            self.ending = True
            self.task.cancel()

    async def wait_idle(self) -> None:
        """Wait until no request and no stream is open."""
        await self._nothing_open.wait()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request of the session."""
        self._open += 1
        self._nothing_open.clear()
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._opened.wait()
            if self._channel is None:
                gone = _problem(503, INTERNAL_ERROR, "The gateway is ending")
                await gone(scope, receive, send)
            else:
                await self._serve(self._channel, scope, receive, send)
        finally:
            self._open -= 1
            if not self._open:
                self._nothing_open.set()
                if not self.ending:
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(self._idle, self.end)

    async def _serve(
        self, channel: HttpClientChannel, scope: Scope, receive: Receive, send: Send
    ) -> None:
        opens_stream = scope["method"] == "GET"
        opened: asyncio.Handle | None = None

        async def sending(message: Message) -> None:
            nonlocal opened
            await send(message)
            start = message["type"] == "http.response.start"
            if opens_stream and start and message["status"] == 200:
                # The transport has its stream ready by the time that this runs.
                opened = asyncio.get_running_loop().call_soon(channel.stream_opened)

        try:
            await self.transport.handle_request(scope, receive, sending)
        finally:
            if opened is not None:
                opened.cancel()
                channel.stream_closed()
            channel.request_ended(scope)
            refused = scope["method"] == "POST" and not channel.introduced
            if refused or self.transport.is_terminated:
                self.end()


# --- answers ---------------------------------------------------------------------------------


def _problem(status: int, code: int, text: str, id: wire.RequestId | None = None) -> Response:
    error = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}
    return Response(wire.encode(error), status, media_type="application/json")


def _fall_back(id: wire.RequestId | None, requested: str | None) -> Response:
    """The answer that makes a 2026-07-28 client use a version that has sessions."""
    data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": requested or "2026-07-28"}
    error = {
        "code": UNSUPPORTED_PROTOCOL_VERSION,
        "message": "The gateway tells its HTTP clients apart by session: begin with initialize",
        "data": data,
    }
    body = wire.encode({"jsonrpc": "2.0", "id": id, "error": error})
    return Response(body, 400, media_type="application/json")


def _replay(body: bytes, receive: Receive) -> Receive:
    """What receives a body that was read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


# --- serving at an address -------------------------------------------------------------------


def address_of(text: str) -> tuple[str, int]:
    """The host and the port of `[HOST:]PORT`.

    Raises:
        UsageError: it is neither.
    """
    host, _, number = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not number.isdecimal() or not number.isascii() or int(number) > 65535:
        raise UsageError(f"--http {text!r} is no address: give a port, or HOST:PORT")
    return host or "127.0.0.1", int(number)


async def serve_http(
    servers: Sequence[ServerConfig],
    views: Callable[[str], ClientViews],
    address: str,
    *,
    token: str | None,
    max_clients: int,
    idle: float,
    tell: Callable[[str], object],
) -> None:
    """Serve clients at an address until a signal comes.

    Args:
        servers: the servers behind the gateway; each client has its own.
        views: makes the Views of a client, given what it calls itself.
        address: `[HOST:]PORT`; without a host, this machine alone.
        token: what each request must bear; needed unless the address is this machine's own.
        max_clients: how many clients there may be at once.
        idle: seconds after which a client is gone that has nothing open.
        tell: called with a text that says where the gateway listens.

    Raises:
        UsageError: the address cannot be used.
    """
    host, port = address_of(address)
    gateway = HttpGateway(
        [(each.name, connect_to(each)) for each in servers],
        views,
        token=_checked(token, host),
        max_clients=max_clients,
        idle=idle,
    )
    stopped = asyncio.Event()
    on_signals(stopped.set)
    async with serving(gateway, host, port) as url:
        tell(f"The gateway listens at {url}")
        await stopped.wait()


@asynccontextmanager
async def serving(gateway: HttpGateway, host: str, port: int) -> AsyncGenerator[str]:
    """Serve a gateway while the block runs; its URL.

    Raises:
        UsageError: the address cannot be used.
    """
    sock = _listen(host, port)
    port = sock.getsockname()[1]
    if _is_loopback(host):
        names = ("127.0.0.1", "localhost", "[::1]", _bracketed(host))
        hosts = [f"{name}:{port}" for name in names] + (list(names) if port == 80 else [])
        gateway.security = TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"http://{each}" for each in hosts]
        )
    async with serve(gateway, [sock], ws="none"):
        try:
            yield f"http://{_bracketed(host)}:{port}{PATH}"
        finally:
            await gateway.aclose()


def _checked(token: str | None, host: str) -> str | None:
    if token is None and not _is_loopback(host):
        raise UsageError(
            f"Whoever reaches {host} could use the servers: set TRANSOM_TOKEN to a secret of at "
            f"least {_MIN_TOKEN} characters, which clients send as a bearer token"
        )
    if token is not None and (len(token) < _MIN_TOKEN or not token.isascii() or " " in token):
        raise UsageError(
            f"The token must have at least {_MIN_TOKEN} ASCII characters and no spaces"
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen("127.0.0.1" if host == "localhost" else host, port)
    except OSError as error:
        text = f"{_bracketed(host)}:{port} cannot be used: {error.strerror or error}"
        raise UsageError(text) from error
