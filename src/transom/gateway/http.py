"""The gateway on streamable HTTP: several clients at once, each with servers and Views of its own.

1. Before 2026-07-28, each client has a session, which begins with its `initialize`. It ends when
   the client ends it (DELETE), when no request or stream of it has been open for a while, and with
   the gateway. Its servers and its Views end with it.
2. Since 2026-07-28 there are no sessions: any request may come on any connection. Servers and Views
   belong to a principal: the token of a request, or else the user of this machine. Its first
   request creates it, and it ends like a session, except that no client can end it.
3. A 2026-07-28 request repeats its method and name in headers, and is refused if these differ.
4. With several replicas of a gateway (`replicas.py`), each session and principal is at one replica.
5. On a loopback address, Host and Origin must be that address, so that no web page can use the
   gateway. On any other address, and wherever a token is set, each request must have the token.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import socket
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from transom.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    SERVER_ERROR,
    BusError,
    MessageRefused,
    NoOwner,
    OwnerGone,
    ProtocolError,
    TransomError,
    UsageError,
)
from transom.gateway.client import MAX_BYTES, MAX_DEPTH
from transom.gateway.config import ServerConfig
from transom.gateway.http_session import (
    HEADER_MISMATCH,
    SESSION_HEADER,
    UNSUPPORTED_VERSION,
    HttpClient,
    HttpSession,
    Principal,
    problem,
)
from transom.gateway.members import connect_to
from transom.gateway.proxy import Proxy
from transom.gateway.stdio import on_signals
from transom.gateway.views import ClientViews
from transom.json_values import clean, member, members
from transom.protocol import wire
from transom.servers.connection import Connect
from transom.servers.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVERY_VERSION,
    HANDSHAKE_VERSIONS,
    PROTOCOL_KEY,
)
from transom.serving import listen, serve

if TYPE_CHECKING:
    from transom.bus import Lease
    from transom.gateway.replicas import Replicas

_log = logging.getLogger("transom.gateway")

_C = TypeVar("_C", bound=HttpClient)
PATH = "/mcp"
_ACCEPTED = {
    "POST": ("application/json", "text/event-stream"),
    "GET": ("text/event-stream",),
    "DELETE": (),
}
"""The content types that a client must accept, by HTTP method."""
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which member of the params the header Mcp-Name repeats, by method."""
_MIN_TOKEN = 16
_SESSIONS_END_WITHIN = 15.0
_SESSION, _PRINCIPAL = "session:", "principal:"  # prefixes of their leases
_ATTEMPTS = 6  # to find the replica that has a principal
_BODY_WITHIN = 60.0


class HttpGateway:
    """An ASGI application: the gateway at `/mcp`.

    Args:
        servers: the servers behind it: a name, and what starts or reaches each of them.
        views: makes the Views of a client, given the client's name.
        token: the bearer token that each request must have; None: no token is needed.
        max_clients: how many sessions and principals there may be at once.
        idle: seconds without an open request or stream after which one of them ends.
        hung_after: seconds of silence after which a server that owes an answer is restarted.
        replicas: the other replicas of this gateway, if there are any.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, Connect]],
        views: Callable[[str], ClientViews],
        *,
        token: str | None = None,
        max_clients: int = 100,
        idle: float = 1800.0,
        hung_after: float = 300.0,
        replicas: Replicas | None = None,
    ) -> None:
        self.clients: dict[str, HttpSession] = {}
        """The open sessions, by id."""
        self.principals: dict[str, Principal] = {}
        """The principals, by a digest of the token."""
        self.allowed_hosts: frozenset[str] | None = None
        """The allowed values of Host and Origin; None: any."""
        self._servers = servers
        self._views = views
        self._token = None if token is None else token.encode()
        self._max_clients = max_clients
        self._idle = idle
        self._hung_after = hung_after
        self._replicas = replicas
        self._ending = False
        if replicas is not None:
            replicas.serve(self._serve_forwarded)

    async def aclose(self) -> None:
        """End every session and principal, with their servers and Views."""
        self._ending = True
        clients = [*self.clients.values(), *self.principals.values()]
        for client in clients:
            client.end()
        if clients:
            await asyncio.wait([client.task for client in clients], timeout=_SESSIONS_END_WITHIN)

    # --- requests ----------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._route(scope, receive, send, self._replicas)

    async def _serve_forwarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that another replica has authenticated and forwarded."""
        await self._route(scope, receive, send, None)

    async def _route(
        self, scope: Scope, receive: Receive, send: Send, others: Replicas | None
    ) -> None:
        """Answer an authenticated request, here or at one of `others`."""
        headers = Headers(scope=scope)
        if _version(headers) is not None:
            await self._serve_stateless(scope, receive, send, others)
            return
        session = headers.get(SESSION_HEADER)
        client = None if session is None else self.clients.get(session)
        if session is not None and (client is None or client.ending):
            await self._serve_elsewhere(session, scope, receive, send, others)
        elif scope["method"] == "POST":
            message, body = await self._read(scope, receive, send)
            if message is not None:
                await self._post(client, message, body, receive, send)
        elif client is None:
            await problem(400, INVALID_REQUEST, "Missing session ID")(scope, receive, send)
        elif scope["method"] == "GET":
            await client.serve(client.listen(receive, send))
        else:
            client.end()
            await Response(None, 200)(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The response that refuses a request; None if it is allowed."""
        if scope["path"] != PATH:
            return problem(404, INVALID_REQUEST, f"The gateway is at {PATH}")
        if self.allowed_hosts is not None:
            origin = headers.get("origin")
            if headers.get("host") not in self.allowed_hosts:
                return problem(421, INVALID_REQUEST, "Invalid Host header")
            if origin is not None and origin.removeprefix("http://") not in self.allowed_hosts:
                return problem(403, INVALID_REQUEST, "Invalid Origin header")
        if self._token is not None and not self._bears_token(headers):
            refused = problem(401, SERVER_ERROR, "Send the gateway's token as a bearer token")
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        kinds = _ACCEPTED.get(scope["method"])
        if kinds is None:
            refused = problem(405, INVALID_REQUEST, "Method not allowed")
            refused.headers["Allow"] = ", ".join(_ACCEPTED)
            return refused
        accepted = headers.get("accept", "*/*")
        if "*/*" not in accepted and not all(kind in accepted for kind in kinds):
            return problem(406, INVALID_REQUEST, f"The client must accept {' and '.join(kinds)}")
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and content_type != "application/json":
            return problem(415, INVALID_REQUEST, "The body must be application/json")
        return None

    def _bears_token(self, headers: Headers) -> bool:
        assert self._token is not None  # noqa: S101 - for the type checker
        scheme, _, given = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode(), self._token)
        return right and scheme.lower() == "bearer"

    @staticmethod
    async def _read(
        scope: Scope, receive: Receive, send: Send
    ) -> tuple[wire.Message | None, bytes]:
        """The message in a body, and the body; no message if an error was sent."""
        try:
            async with asyncio.timeout(_BODY_WITHIN):
                body = await _read_body(receive)
            return wire.decode(body, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH), body
        except MessageRefused as refusal:
            await problem(400, refusal.code, str(refusal))(scope, receive, send)
        except TimeoutError:
            text = f"The body did not come within {_BODY_WITHIN:g} s"
            await problem(408, INVALID_REQUEST, text)(scope, receive, send)
        return None, b""

    # --- sessions ----------------------------------------------------------------------------

    async def _serve_elsewhere(
        self, session: str, scope: Scope, receive: Receive, send: Send, others: Replicas | None
    ) -> None:
        """Forward a request of a session that is at another replica."""
        answer = problem(404, INVALID_REQUEST, "Session not found")
        if others is not None:
            id, body = None, b""
            if scope["method"] == "POST":
                message, body = await self._read(scope, receive, send)
                if message is None:
                    return
                id = message.id if isinstance(message, wire.Request) else None
            try:
                await others.forward(_SESSION + session, id, body, scope, receive, send)
                return
            except (NoOwner, OwnerGone):
                pass  # the session has ended, alone or with its replica
            except BusError as error:
                answer = problem(503, SERVER_ERROR, str(error), id)
        await answer(scope, receive, send)

    async def _post(
        self,
        client: HttpSession | None,
        message: wire.Message,
        body: bytes,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer a message of a session, or one that begins a session."""
        if client is None:
            id = message.id if isinstance(message, wire.Request) else None
            method = message.method if isinstance(message, wire.Request) else ""
            if method == "initialize":
                name = member(getattr(message, "params", None), "clientInfo", "name")
                client = HttpSession(_label(name), self._idle)
                refusal = await self._begin_session(client, id)
            elif method == "server/discover" or PROTOCOL_KEY.encode() in body:
                refusal = _refused(_header_mismatch("mcp-protocol-version"), id)
            else:
                refusal = problem(400, INVALID_REQUEST, "Missing session ID", id)
            if refusal is not None:
                await refusal({"type": "http"}, receive, send)
                return
        assert client is not None  # noqa: S101 - for the type checker
        await client.serve(client.post(message, body, receive, send))

    async def _begin_session(
        self, client: HttpSession, id: wire.RequestId | None
    ) -> Response | None:
        lease = None
        if self._replicas is not None:
            try:
                lease = await self._replicas.claim(_SESSION + client.id, client.end)
            except BusError as error:
                return problem(503, SERVER_ERROR, str(error), id)
        return self._admit(client, self.clients, client.id, id, lease)

    def _admit(
        self,
        client: _C,
        among: dict[str, _C],
        key: str,
        id: wire.RequestId | None,
        lease: Lease | None,
    ) -> Response | None:
        """Begin to serve a new client; returns a refusal if there are too many."""
        if self._ending or len(self.clients) + len(self.principals) >= self._max_clients:
            if lease is not None and key not in among:
                lease.release()
            text = f"The gateway has as many clients as it may (--max-clients {self._max_clients})"
            return problem(503, SERVER_ERROR, text, id)
        every = [*self.clients.values(), *self.principals.values()]
        same = sum(each.label == client.label for each in every)
        among[key] = client

        def ended(_: object) -> None:
            if among.get(key) is client:
                del among[key]
                if lease is not None:
                    lease.release()
            client.ended()

        label = f"{client.label} ({same + 1})" if same else client.label
        client.start(self._serve(client, label, lease))
        client.task.add_done_callback(ended)
        return None

    # --- without sessions --------------------------------------------------------------------

    async def _serve_stateless(
        self, scope: Scope, receive: Receive, send: Send, others: Replicas | None
    ) -> None:
        """Answer an HTTP request of 2026-07-28, or of an unknown version."""
        if scope["method"] != "POST":
            refused = problem(405, INVALID_REQUEST, "Since 2026-07-28 there is POST only")
            refused.headers["Allow"] = "POST"
            await refused(scope, receive, send)
            return
        message, body = await self._read(scope, receive, send)
        if message is None:
            return
        id = message.id if isinstance(message, wire.Request) else None
        headers = Headers(scope=scope)
        try:
            _check_headers(message, headers)
        except ProtocolError as error:
            await _refused(error, id)(scope, receive, send)
            return
        key = _principal_key(headers)

        async def forward() -> None:
            if others is None:
                raise NoOwner("Another replica has taken this client over meanwhile: try again")
            await others.forward(_PRINCIPAL + key, id, body, scope, receive, send)

        try:
            if isinstance(message, wire.Notification):
                principal = self.principals.get(key)
                if principal is not None and not principal.ending:
                    await principal.notify(message, body)
                elif others is not None:
                    with suppress(NoOwner, OwnerGone):
                        await forward()
                        return
                await Response(None, 202)(scope, receive, send)
                return
            assert isinstance(message, wire.Request)  # noqa: S101 - see `_check_headers`
            principal = await self._principal(key, message, forward)
        except BusError as error:
            await problem(503, SERVER_ERROR, str(error), id)(scope, receive, send)
            return
        if isinstance(principal, Response):
            await principal(scope, receive, send)
        elif principal is not None:
            await principal.serve(principal.post(message, receive, send))

    async def _principal(
        self, key: str, request: wire.Request, forward: Callable[[], Awaitable[None]]
    ) -> Principal | Response | None:
        """The principal of a request; None if it was forwarded, a refusal if there are too many.

        Raises:
            BusError: the replica that has it cannot be found or reached.
        """
        replicas, lease = self._replicas, None
        for _ in range(_ATTEMPTS):
            principal = self.principals.get(key)
            if principal is not None and not principal.ending:
                return principal
            if replicas is not None and (lease is None or not lease.held):
                lease = await replicas.claim(_PRINCIPAL + key, lambda: self._lost(key))
                if lease is None:
                    with suppress(NoOwner, OwnerGone):  # it was lost since it was claimed
                        await forward()
                        return None
                continue  # another request may have created it meanwhile
            name = member(request.params, "_meta", CLIENT_KEY, "name")
            principal = Principal(_label(name), self._idle)
            refusal = self._admit(principal, self.principals, key, request.id, lease)
            return principal if refusal is None else refusal
        raise NoOwner("No replica of the gateway has this client for long: try again")

    def _lost(self, key: str) -> None:
        """Another replica has taken over a principal."""
        principal = self.principals.pop(key, None)
        if principal is not None:
            principal.end()

    async def _serve(self, client: HttpClient, label: str, lease: Lease | None) -> None:
        """One session or principal, from its first request to its end."""
        try:
            views = self._views(label)
            if lease is not None and self._replicas is not None and isinstance(client, Principal):
                views.remember(await self._replicas.records(lease), self._replicas.keep(lease))
            await Proxy(client, self._servers, views, hung_after=self._hung_after).run()
        except TransomError as error:
            _log.warning("%s", error)
            client.refuse(str(error))
        except Exception:  # noqa: BLE001 - one client must not end the others
            _log.exception("a client's session failed")


# --- answers ---------------------------------------------------------------------------------


async def _read_body(receive: Receive) -> bytes:
    """The body of a request.

    Raises:
        MessageRefused: it is too large, or the client went away.
    """
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        part = await receive()
        if part["type"] != "http.request":
            raise MessageRefused(INVALID_REQUEST, "The client went away")
        parts.append(part.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BYTES:
            text = f"Message of more than {MAX_BYTES} bytes, which is the limit"
            raise MessageRefused(INVALID_REQUEST, text)
        more = part.get("more_body", False)
    return b"".join(parts)


# --- 2026-07-28 ------------------------------------------------------------------------------


def _version(headers: Headers) -> str | None:
    """The protocol version of a request, unless it is one that has sessions."""
    version = headers.get("mcp-protocol-version")
    return None if version in HANDSHAKE_VERSIONS else version


def _principal_key(headers: Headers) -> str:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    token = given.strip() if scheme.lower() == "bearer" else ""
    return hashlib.sha256(token.encode()).hexdigest() if token else ""


def _check_headers(message: wire.Message, headers: Headers) -> None:
    """Check that a message can be served, and matches its headers.

    Raises:
        ProtocolError: it cannot, or does not.
    """
    version = headers.get("mcp-protocol-version")
    if isinstance(message, wire.Request):
        meta = members(members(message.params).get("_meta"))
        missing = [key for key in (PROTOCOL_KEY, CAPABILITIES_KEY) if key not in meta]
        if missing:
            raise ProtocolError(INVALID_PARAMS, f"The _meta lacks {' and '.join(missing)}")
        _check_header(headers, "mcp-protocol-version", member(meta[PROTOCOL_KEY]))
        _check_header(headers, "mcp-method", message.method)
        named = member(message.params, _NAMED.get(message.method, ""))
        if isinstance(named, str):
            _check_header(headers, "mcp-name", named)
        if not bytes(meta[CAPABILITIES_KEY]).startswith(b"{"):
            raise ProtocolError(INVALID_PARAMS, f"{CAPABILITIES_KEY} must be an object")
    elif not isinstance(message, wire.Notification):
        raise ProtocolError(INVALID_REQUEST, "A client sends requests and notifications only")
    if version != DISCOVERY_VERSION:
        supported = [DISCOVERY_VERSION, *reversed(HANDSHAKE_VERSIONS)]
        data = {"supported": supported, "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _check_header(headers: Headers, name: str, value: object) -> None:
    given = headers.getlist(name)
    if len(given) != 1 or _decoded(given[0]) != value:
        raise _header_mismatch(name)


def _header_mismatch(name: str) -> ProtocolError:
    text = f"The header {name} must be there once, with what the body has"
    return ProtocolError(HEADER_MISMATCH, text)


def _decoded(value: str) -> str | None:
    """The decoded text of a header; None if it is invalid."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    given = value[9:-2]
    try:
        decoded = b64decode(given, validate=True)
        return decoded.decode() if b64encode(decoded).decode() == given else None
    except ValueError:
        return None


def _refused(error: ProtocolError, id: wire.RequestId | None) -> Response:
    return problem(400, error.code, error.message, id, error.data)


def _label(name: object) -> str:
    return clean(name, 60) if isinstance(name, str) else ""


# --- serving at an address -------------------------------------------------------------------


def address_of(text: str) -> tuple[str, int]:
    """The host and the port of `[HOST:]PORT`.

    Raises:
        UsageError: it is not an address.
    """
    host, _, number = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not number.isdecimal() or not number.isascii() or int(number) > 65535:
        raise UsageError(f"--http {text!r} is not an address: give a port, or HOST:PORT")
    return host or "127.0.0.1", int(number)


async def serve_http(
    servers: Sequence[ServerConfig],
    views: Callable[[str], ClientViews],
    address: str,
    *,
    token: str | None,
    max_clients: int,
    idle: float,
    hung_after: float,
    announce: Callable[[str], object],
    replicas: Replicas | None = None,
) -> None:
    """Serve clients at an address until a signal comes.

    Args:
        servers: the servers behind the gateway; each client has its own.
        views: makes the Views of a client, given the client's name.
        address: `[HOST:]PORT`; without a host, the loopback address.
        token: the bearer token of each request; required unless the address is loopback.
        max_clients: how many clients there may be at once.
        idle: seconds without an open request or stream after which a client ends.
        hung_after: seconds of silence after which a server that owes an answer is restarted.
        announce: called with a text that says where the gateway listens.
        replicas: the other replicas of this gateway, if there are any.

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
        hung_after=hung_after,
        replicas=replicas,
    )
    stopped = asyncio.Event()
    on_signals(stopped.set)
    async with serving(gateway, host, port) as url:
        announce(f"The gateway listens at {url}")
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
        gateway.allowed_hosts = frozenset(hosts)
    async with serve(gateway, [sock], ws="none"):
        try:
            yield f"http://{_bracketed(host)}:{port}{PATH}"
        finally:
            await gateway.aclose()


def _checked(token: str | None, host: str) -> str | None:
    if token is None and not _is_loopback(host):
        raise UsageError(
            f"Anyone who reaches {host} could use the servers: set TRANSOM_TOKEN to a secret of at "
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
        text = (
            f"{_bracketed(host)}:{port} cannot be used: {error.strerror or error}; choose another"
        )
        raise UsageError(text) from error
