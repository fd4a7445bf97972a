"""The gateway on streamable HTTP: several clients at once, each with servers and Views of its own.

1. Clients are told apart by their sessions, so there is one for each `initialize`. A 2026-07-28
   client has none: its requests are answered with the versions that do, and it falls back.
2. A session ends when its client says so (DELETE), when nothing of it has been open for a while,
   and with the gateway. Its servers and its Views end with it.
3. On a loopback address, Host and Origin must be that address: a page in a browser gets nothing.
   On any other, and wherever a token is set, each request must bear the token.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable, Sequence
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
)
from transom.gateway.adding import envelope_of, member
from transom.gateway.http_channel import HttpChannel
from transom.gateway.session import Connect, Session
from transom.gateway.views import ClientViews
from transom.json_values import clean
from transom.protocol import wire

__all__ = ["PATH", "HttpGateway"]

_log = logging.getLogger("transom.gateway")

PATH = "/mcp"
_MAX_BYTES = 32 * 1024 * 1024
_MAX_DEPTH = 200
_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_ENDS_WITHIN = 15.0


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
        self.clients: dict[str, _Client] = {}
        """By session: those that are there."""
        self._servers = servers
        self._views = views
        self._token = None if token is None else token.encode()
        self.security = security
        self._max_clients = max_clients
        self._idle = idle
        self._limited = RequestBodyLimitMiddleware(self._route, _MAX_BYTES)
        self._ending = False

    async def aclose(self) -> None:
        """End every session, with its servers and its Views."""
        self._ending = True
        clients = list(self.clients.values())
        for client in clients:
            client.end()
        if clients:
            await asyncio.wait([client.task for client in clients], timeout=_ENDS_WITHIN)

    # --- requests ----------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            return
        answer = await self._refusal(Request(scope, receive))
        app: ASGIApp = self._limited if answer is None else answer
        await app(scope, receive, send)

    async def _refusal(self, request: Request) -> Response | None:
        """Why a request is not let in."""
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
        """A request without a session: only `initialize` is in order."""
        body = await Request(scope, receive).body()
        try:
            message = wire.decode(body, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
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

    def _admit(self, name: object) -> _Client:
        label = clean(name, 60) if isinstance(name, str) else ""
        same = sum(client.label == label for client in self.clients.values())
        client = _Client(label, self._idle)
        self.clients[client.id] = client
        shown = f"{label} ({same + 1})" if same else label
        client.start(self._serve(client, shown))
        client.task.add_done_callback(lambda _: self._left(client))
        return client

    def _left(self, client: _Client) -> None:
        self.clients.pop(client.id, None)
        client.left()

    async def _serve(self, client: _Client, label: str) -> None:
        """One client, from its `initialize` to the end of its session."""
        try:
            async with client.transport.connect() as (read, write):
                channel = client.open(HttpChannel(read, write))
                try:
                    await Session(channel, self._servers, self._views(label)).run()
                except TransomError as error:
                    _log.warning("%s", error)
                    if channel.introduced:
                        return
                    async with asyncio.timeout(_ENDS_WITHIN):
                        await channel.refuse(str(error))
                        await client.quiet()
        except Exception:  # noqa: BLE001 - one client must not end the others
            _log.exception("a client's session failed")
        finally:
            await client.transport.terminate()


class _Client:
    """A client's session: what is open of it, and its end."""

    def __init__(self, label: str, idle: float) -> None:
        self.id = secrets.token_hex(16)
        self.label = label
        self.transport = StreamableHTTPServerTransport(self.id)
        self.task: asyncio.Task[None]
        self._idle = idle
        self._channel: HttpChannel | None = None
        self._opened = asyncio.Event()
        self._open = 0
        self._quiet = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.ending = False

    def start(self, work: Any) -> None:
        """Begin to serve it."""
        self.task = asyncio.create_task(work, name=f"transom-client-{self.id[:8]}")

    def open(self, channel: HttpChannel) -> HttpChannel:
        """Its requests can be taken now."""
        self._channel = channel
        self._opened.set()
        return channel

    def left(self) -> None:
        """It is over."""
        self.ending = True
        self._opened.set()
        if self._timer is not None:
            self._timer.cancel()

    def end(self) -> None:
        """Have it end, once."""
        if not self.ending:
            self.ending = True
            self.task.cancel()

    async def quiet(self) -> None:
        """Wait until nothing of it is open."""
        await self._quiet.wait()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one of its requests."""
        self._open += 1
        self._quiet.clear()
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
                self._quiet.set()
                if not self.ending:
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(self._idle, self.end)

    async def _serve(
        self, channel: HttpChannel, scope: Scope, receive: Receive, send: Send
    ) -> None:
        news = scope["method"] == "GET"
        soon: asyncio.Handle | None = None

        async def sending(message: Message) -> None:
            nonlocal soon
            await send(message)
            if news and message["type"] == "http.response.start" and message["status"] == 200:
                # The transport has its stream ready by the time that this runs.
                soon = asyncio.get_running_loop().call_soon(channel.listens)

        try:
            await self.transport.handle_request(scope, receive, sending)
        finally:
            if soon is not None:
                soon.cancel()
                channel.listens_no_more()
            channel.post_ended(scope)
            refused = scope["method"] == "POST" and not channel.introduced
            if refused or self.transport.is_terminated:
                self.end()


# --- answers ---------------------------------------------------------------------------------


def _problem(status: int, code: int, text: str, id: wire.RequestId | None = None) -> Response:
    error = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}
    return Response(wire.encode(error), status, media_type="application/json")


def _fall_back(id: wire.RequestId | None, requested: str | None) -> Response:
    """For a client of 2026-07-28: the versions that have sessions."""
    data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": requested or "2026-07-28"}
    error = {
        "code": UNSUPPORTED_PROTOCOL_VERSION,
        "message": "The gateway tells its HTTP clients apart by session: begin with initialize",
        "data": data,
    }
    body = wire.encode({"jsonrpc": "2.0", "id": id, "error": error})
    return Response(body, 400, media_type="application/json")


def _replay(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read again."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again
