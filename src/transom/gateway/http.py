"""The gateway on streamable HTTP: several clients at once, each with servers and Views of its own.

1. Before 2026-07-28, each client has a session, which begins with its `initialize`. It ends when
   the client ends it (DELETE), when no request or stream of it has been open for a while, and with
   the gateway. Its servers and its Views end with it.
2. Since 2026-07-28 there are no sessions: any request may come on any connection. Servers and Views
   belong to a principal: the token of a request, or else the user of this machine. Its first
   request creates it, and it ends like a session, except that no client can end it.
3. A 2026-07-28 request repeats its method and name in headers, and those arguments that its tool's
   schema marks (`x-mcp-header`). It is refused if they differ.
4. With several replicas of a gateway behind a load balancer, any of them accepts any request. Each
   session and principal is at one replica, which has a lease for it; the others check the token and
   forward the request there, never twice: if that replica is lost meanwhile, the answer says so. A
   session ends with its replica: its client gets "not found", and begins another. A principal is
   taken over by the replica that gets its next request.
5. On a loopback address, Host and Origin must be that address, so that no web page can use the
   gateway. On any other address, and wherever a token is set, each request must have the token.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import secrets
import socket
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from transom.bus import Bus, Lease, forward, serve_forwarded
from transom.bus.forwarding import claim_or_reach
from transom.connections.connection import Connect
from transom.connections.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVERY_VERSION,
    HANDSHAKE_VERSIONS,
    PROTOCOL_KEY,
)
from transom.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    SERVER_ERROR,
    BusError,
    MessageRefused,
    NoOwner,
    OutcomeUnknown,
    OwnerGone,
    ProtocolError,
    TransomError,
    UsageError,
)
from transom.gateway.client import MAX_BYTES, MAX_DEPTH
from transom.gateway.client_host import ViewOptions, ViewRecords
from transom.gateway.eras import ClientRequest, read_request, read_stateless_request
from transom.gateway.http_session import (
    HEADER_MISMATCH,
    SESSION_HEADER,
    UNSUPPORTED_VERSION,
    HttpClient,
    HttpRefusal,
    HttpSession,
    Principal,
    Serve,
    status_of,
)
from transom.gateway.proxy import Proxy
from transom.gateway.stdio import on_signals
from transom.gateway.turns import ClientTurns
from transom.json_values import clean, member
from transom.protocol import wire
from transom.recent import Recent
from transom.serving import listen, serve

_SIZES = wire.SizeLimits(max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
_log = logging.getLogger("transom.gateway")

_C = TypeVar("_C", bound=HttpClient)
PATH = "/mcp"
_ACCEPTED = {
    "POST": ("application/json", "text/event-stream"),
    "GET": ("text/event-stream",),
    "DELETE": (),
}
"""The content types that a client must accept, by HTTP method."""
_NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "task_id"),
}
"""Which text of the request the header Mcp-Name repeats, by method."""
_ONCE = frozenset(
    {
        *(b"host", b"origin", b"authorization", b"content-type", b"last-event-id"),
        *(b"mcp-protocol-version", SESSION_HEADER.encode()),
    }
)
"""Headers that decide whose request it is and how it is read."""
_MIN_TOKEN = 16
_SESSIONS_END_WITHIN = 15.0
_SESSION, _PRINCIPAL = "session:", "principal:"  # prefixes of their leases
_FORWARDED = "gateway"  # the kind of channels between replicas
_VIEWS = "views"  # the record of a principal's Views
_LOST = (
    "The replica of the gateway that served this was lost: whether it was carried out is not known"
)
_BODY_WITHIN = 60.0
_MAX_ELSEWHERE = 10_000


class HttpGateway:
    """An ASGI application: the gateway at `/mcp`.

    Args:
        servers: the servers behind it: a name, and what starts or reaches each of them.
        views: how the Views of clients are shown.
        token: the bearer token that each request must have; None: no token is needed.
        allowed_hosts: the values that the headers Host and Origin may have; None: any.
        max_clients: how many sessions and principals there may be at once.
        idle: seconds without an open request or stream after which one of them ends.
        hung_after: seconds of silence after which a server that owes an answer is restarted.
        bus: connects the replicas of this gateway, if there are several.

    Raises:
        UsageError: the token is too easy to guess.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, Connect]],
        views: ViewOptions,
        *,
        token: str | None = None,
        allowed_hosts: frozenset[str] | None = None,
        max_clients: int = 100,
        idle: float = 1800.0,
        hung_after: float = 300.0,
        bus: Bus | None = None,
    ) -> None:
        if token is not None and (len(token) < _MIN_TOKEN or not token.isascii() or " " in token):
            raise UsageError(
                f"The token must have at least {_MIN_TOKEN} ASCII characters and no spaces"
            )
        self._clients: dict[str, HttpSession] = {}
        """The open sessions, by id."""
        self._principals: dict[str, Principal] = {}
        """The principals, by a digest of the token."""
        self.allowed_hosts = allowed_hosts
        """The allowed values of Host and Origin; None: any."""
        self._servers = servers
        self._views = views
        self._token = None if token is None else token.encode()
        self._max_clients = max_clients
        self._idle = idle
        self._hung_after = hung_after
        self._bus = bus
        self._turns = ClientTurns()
        self._elsewhere: Recent[str, bool] = Recent(_MAX_ELSEWHERE)  # sessions of other replicas
        self._ending = False
        if bus is not None:
            bus.on_open(_FORWARDED, serve_forwarded(self._serve_forwarded))

    @property
    def needs_token(self) -> bool:
        """Whether each request must have a token."""
        return self._token is not None

    async def aclose(self) -> None:
        """End every session and principal, with their servers and Views."""
        self._ending = True
        clients = [*self._clients.values(), *self._principals.values()]
        for client in clients:
            client.end()
        if clients:
            await asyncio.wait([client.task for client in clients], timeout=_SESSIONS_END_WITHIN)

    # --- requests ----------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] == "http":
            await self._answer(_HttpRequest(scope, receive, send, self._bus))

    async def _serve_forwarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that another replica has authenticated and forwarded."""
        await self._answer(_HttpRequest(scope, receive, send, None), authenticated=True)

    async def _answer(self, request: _HttpRequest, *, authenticated: bool = False) -> None:
        try:
            if not authenticated:
                self._check(request)
            share = await self._turns.wait(self._client_of(request))
            request.receive = self._turns.charging(share, request.receive)
            if self._bus is not None:
                await self._bus.confirm()
            if request.in_session:
                await self._serve_session(request)
            else:
                await self._serve_stateless(request)
        except HttpRefusal as refusal:
            await request.respond(refusal.response(request.id))
        except BusError as error:
            refusal = HttpRefusal(503, SERVER_ERROR, str(error))
            await request.respond(refusal.response(request.id))

    def _check(self, request: _HttpRequest) -> None:
        """Refuse a request that is not allowed."""
        headers, method = request.headers, request.method
        if request.scope["path"].removeprefix(request.scope.get("root_path", "")) != PATH:
            raise HttpRefusal(404, INVALID_REQUEST, f"The gateway is at {PATH}")
        once = [name for name, _ in request.scope["headers"] if name in _ONCE]
        if len(once) != len(set(once)):  # what is in front of the gateway may read the other one
            text = f"A header is there more than once: {max(once, key=once.count).decode()}"
            raise HttpRefusal(400, INVALID_REQUEST, text)
        if self.allowed_hosts is not None:
            origin = headers.get("origin")
            if headers.get("host") not in self.allowed_hosts:
                raise HttpRefusal(421, INVALID_REQUEST, "Invalid Host header")
            if origin is not None and origin.removeprefix("http://") not in self.allowed_hosts:
                raise HttpRefusal(403, INVALID_REQUEST, "Invalid Origin header")
        given = _bearer_token(headers).encode()
        if self._token is not None and not hmac.compare_digest(given, self._token):
            text = "Send the gateway's token as a bearer token"
            raise HttpRefusal(401, SERVER_ERROR, text, **{"WWW-Authenticate": "Bearer"})
        kinds = _ACCEPTED.get(method)
        if kinds is None:
            raise HttpRefusal(
                405, INVALID_REQUEST, "Method not allowed", Allow=", ".join(_ACCEPTED)
            )
        accepted = headers.get("accept", "*/*")
        if "*/*" not in accepted and not all(kind in accepted for kind in kinds):
            text = f"The client must accept {' and '.join(kinds)}"
            raise HttpRefusal(406, INVALID_REQUEST, text)
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and content_type != "application/json":
            raise HttpRefusal(415, INVALID_REQUEST, "The body must be application/json")

    def _client_of(self, request: _HttpRequest) -> str:
        """Whose request it is: a session's, a principal's, or a stranger's at some address."""
        id = request.headers.get(SESSION_HEADER, "")
        if id in self._clients or id in self._elsewhere:
            return id
        if id or request.in_session:
            return f"at {(request.scope.get('client') or ['?'])[0]}"
        return _PRINCIPAL + _principal_key(request.headers)

    # --- sessions ----------------------------------------------------------------------------

    async def _serve_session(self, request: _HttpRequest) -> None:
        """Answer a request of before 2026-07-28, here or at the replica that has its session."""
        id = request.headers.get(SESSION_HEADER)
        client = None if id is None else self._clients.get(id)
        elsewhere = id is not None and (client is None or client.ending)
        if elsewhere and request.bus is None:
            raise HttpRefusal(404, INVALID_REQUEST, "Session not found")
        message = await request.read() if request.method == "POST" else None
        if elsewhere:
            try:
                await request.forward(f"{_SESSION}{id}")
                self._elsewhere[str(id)] = True
            except (NoOwner, OwnerGone):  # it has ended, alone or with its replica
                raise HttpRefusal(404, INVALID_REQUEST, "Session not found") from None
        elif message is not None:
            client = client or await self._begin_session(message, request.body)
            post = client.post(message, request.body, request.receive, request.send)
            await client.serve(post)
        elif client is None:
            raise HttpRefusal(400, INVALID_REQUEST, "Missing session ID")
        elif request.method == "GET":
            last_event = request.headers.get("last-event-id")
            await client.serve(client.listen(last_event, request.receive, request.send))
        else:
            client.end()
            await request.respond(Response(None, 200))

    async def _begin_session(self, message: wire.Message, body: bytes) -> HttpSession:
        method = message.method if isinstance(message, wire.Request) else ""
        if method != "initialize":
            if method == "server/discover" or PROTOCOL_KEY.encode() in body:
                raise _header_mismatch("mcp-protocol-version")
            raise HttpRefusal(400, INVALID_REQUEST, "Missing session ID")
        name = _client_name(member(getattr(message, "params", None), "clientInfo", "name"))
        id = secrets.token_hex(16)
        lease = None
        if self._bus is not None:
            lease = await self._bus.claim(_SESSION + id, lambda _: self._session_lost(id))

        def make(serve: Serve) -> HttpSession:
            return HttpSession(name, self._idle, serve, id)

        return self._admit(make, name, self._clients, id, lease)

    def _session_lost(self, id: str) -> None:
        """The bus has given up the lease of a session."""
        if (client := self._clients.get(id)) is not None:
            client.end()

    def _admit(
        self,
        make: Callable[[Serve], _C],
        name: str,
        among: dict[str, _C],
        key: str,
        lease: Lease | None,
    ) -> _C:
        """Begin to serve a new client of that name, unless there are too many."""
        if self._ending or len(self._clients) + len(self._principals) >= self._max_clients:
            if lease is not None and key not in among:
                lease.release()
            text = f"The gateway has as many clients as it may (--max-clients {self._max_clients})"
            raise HttpRefusal(503, SERVER_ERROR, text)
        every = [*self._clients.values(), *self._principals.values()]
        same = sum(each.name == name for each in every)
        shown = f"{name} ({same + 1})" if same else name
        client = among[key] = make(lambda client: self._serve(client, shown, lease))

        def ended(_: object) -> None:
            if among.get(key) is client:
                del among[key]
                if lease is not None:
                    lease.release()
            client.ended()

        client.task.add_done_callback(ended)
        return client

    # --- without sessions --------------------------------------------------------------------

    async def _serve_stateless(self, request: _HttpRequest) -> None:
        """Answer a request of 2026-07-28, or of an unknown version."""
        if request.method != "POST":
            text = "Since 2026-07-28 there is POST only"
            raise HttpRefusal(405, INVALID_REQUEST, text, Allow="POST")
        message = await request.read()
        key = _principal_key(request.headers)
        if isinstance(message, wire.Request):
            asked = _checked_request(message, request.headers)
            principal = await claim_or_reach(
                lambda: self._principal(key, asked), lambda: request.forward(_PRINCIPAL + key)
            )
            if principal is not None:
                post = principal.post(asked, request.headers, request.receive, request.send)
                await principal.serve(post)
            return
        if not isinstance(message, wire.Notification):
            text = "A client sends requests and notifications only"
            raise HttpRefusal(400, INVALID_REQUEST, text)
        _check_version(request.headers)
        principal = self._principals.get(key)
        if principal is not None and not principal.ending:
            await principal.notify(message, request.body)
        elif request.bus is not None:
            with suppress(NoOwner, OwnerGone):
                await request.forward(_PRINCIPAL + key)
                return
        await request.respond(Response(None, 202))

    async def _principal(self, key: str, request: ClientRequest) -> Principal | None:
        """The principal of a request; None if another replica has it."""
        lease = None
        while (principal := self._principals.get(key)) is None or principal.ending:
            if self._bus is None or (lease is not None and lease.held):
                name = _client_name(member(request.meta.get(CLIENT_KEY), "name"))
                make = partial(Principal, name, self._idle)
                return self._admit(make, name, self._principals, key, lease)
            lease = await self._bus.claim(_PRINCIPAL + key, lambda _: self._lost(key))
            if lease is None:
                return None
        return principal

    def _lost(self, key: str) -> None:
        """Another replica has taken over a principal."""
        principal = self._principals.pop(key, None)
        if principal is not None:
            principal.end()

    async def _serve(self, client: HttpClient, client_name: str, lease: Lease | None) -> None:
        """One session or principal, from its first request to its end."""
        try:
            records = None
            if lease is not None and isinstance(client, Principal):
                records = ViewRecords(
                    await self._read_views(lease), lambda data: lease.write({_VIEWS: data})
                )
            stateless = client if isinstance(client, Principal) else None
            proxy = Proxy(
                client,
                self._servers,
                self._views,
                client_name=client_name,
                records=records,
                hung_after=self._hung_after,
                check_call=None if stateless is None else stateless.check_call,
                read=read_request if stateless is None else stateless.read,
            )
            await proxy.run()
        except TransomError as error:
            _log.warning("%s", error)
            client.refuse(str(error))
        except Exception:  # noqa: BLE001 - one client must not end the others
            _log.exception("a client's session failed")

    async def _read_views(self, lease: Lease) -> bytes | None:
        """The records of a principal's Views, written by the replica that had it before."""
        assert self._bus is not None  # noqa: S101 - for the type checker
        try:
            return (await self._bus.records(lease.name)).get(_VIEWS)
        except BusError as error:
            _log.warning("what was open before is not known: %s", error)
            return None


class _HttpRequest:
    """One HTTP request; `bus` connects the replicas to which it may be forwarded."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, bus: Bus | None) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.bus = bus
        self.headers = Headers(scope=scope)
        self.method: str = scope["method"]
        version = self.headers.get("mcp-protocol-version")
        self.in_session = version is None or version in HANDSHAKE_VERSIONS
        """Whether its version has sessions."""
        self.body = b""
        self.id: wire.RequestId | None = None
        """The id of the JSON-RPC request in the body, once that was read."""

    async def respond(self, response: Response) -> None:
        """Send the response."""
        await response(self.scope, self.receive, self.send)

    async def read(self) -> wire.Message:
        """The message in the body."""
        parts: list[bytes] = []
        size, more = 0, True
        try:
            async with asyncio.timeout(_BODY_WITHIN):
                while more:
                    part = await self.receive()
                    if part["type"] != "http.request":
                        raise HttpRefusal(400, INVALID_REQUEST, "The client went away")
                    parts.append(part.get("body", b""))
                    size += len(parts[-1])
                    if size > MAX_BYTES:
                        text = f"Message of more than {MAX_BYTES} bytes, which is the limit"
                        raise HttpRefusal(400, INVALID_REQUEST, text)
                    more = part.get("more_body", False)
            self.body = b"".join(parts)
            message = wire.decode(self.body, _SIZES)
        except MessageRefused as refusal:
            raise HttpRefusal(400, refusal.code, str(refusal)) from None
        except TimeoutError:
            text = f"The body did not come within {_BODY_WITHIN:g} s"
            raise HttpRefusal(408, INVALID_REQUEST, text) from None
        if isinstance(message, wire.Request):
            self.id = message.id
        return message

    async def forward(self, name: str) -> None:
        """Forward it to the replica that has the lease of this name.

        Raises:
            BusError: it was not forwarded.
        """
        if self.bus is None:
            raise NoOwner("Another replica has taken this client over meanwhile: try again")
        whole: list[Message] = [{"type": "http.request", "body": self.body}]
        streams = begun = False

        async def receive() -> Message:
            return whole.pop() if whole else await self.receive()

        async def send(message: Message) -> None:
            nonlocal begun, streams
            begun = True
            if message["type"] == "http.response.start":
                streams = (b"content-type", b"text/event-stream") in message["headers"]
            await self.send(message)

        try:
            await forward(self.bus, name, self.scope, receive, send, kind=_FORWARDED)
        except OutcomeUnknown as error:
            _log.warning("%s", error)
            # Not a status after which a load balancer would retry with another replica.
            answer = HttpRefusal(200, SERVER_ERROR, _LOST).response(self.id)
            if not begun:
                await self.respond(answer)
            elif streams:
                last = b"event: message\ndata: " + bytes(answer.body) + b"\n\n"
                body = b"" if self.id is None else last
                await self.send({"type": "http.response.body", "body": body})
            else:
                raise


# --- 2026-07-28 ------------------------------------------------------------------------------


def _principal_key(headers: Headers) -> str:
    token = _bearer_token(headers)
    return hashlib.sha256(token.encode()).hexdigest() if token else ""


def _bearer_token(headers: Headers) -> str:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def _checked_request(given: wire.Request, headers: Headers) -> ClientRequest:
    """A request, read, unless it cannot be served or does not match its headers."""
    try:
        request = read_stateless_request(given)
    except ProtocolError as error:
        data = msgspec.UNSET if error.data is None else error.data
        raise HttpRefusal(status_of(error.code), error.code, error.message, data) from None
    _check_header(headers, "mcp-protocol-version", member(request.meta[PROTOCOL_KEY]))
    _check_header(headers, "mcp-method", request.method)
    named: str | None = getattr(request, _NAMED.get(request.method, ""), None)
    if named is not None:
        _check_header(headers, "mcp-name", named)
    if request.envelope is None:
        raise HttpRefusal(400, INVALID_PARAMS, f"{CAPABILITIES_KEY} must be an object")
    _check_version(headers)
    return request


def _check_version(headers: Headers) -> None:
    version = headers.get("mcp-protocol-version")
    if version != DISCOVERY_VERSION:
        data = {"supported": [DISCOVERY_VERSION], "requested": version}
        raise HttpRefusal(400, UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def _check_header(headers: Headers, name: str, value: object) -> None:
    given = headers.getlist(name)
    if len(given) != 1 or _decoded(given[0]) != value:
        raise _header_mismatch(name)


def _header_mismatch(name: str) -> HttpRefusal:
    text = f"The header {name} must be there once, with what the body has"
    return HttpRefusal(400, HEADER_MISMATCH, text)


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


def _client_name(name: object) -> str:
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
    gateway: HttpGateway, address: str, *, announce: Callable[[str], object]
) -> None:
    """Serve clients at an address until a signal comes; see `Gateway.serve_http`."""
    host, port = address_of(address)
    if not gateway.needs_token and not _is_loopback(host):
        raise UsageError(
            f"Anyone who reaches {host} could use the servers: set TRANSOM_TOKEN to a secret of at "
            f"least {_MIN_TOKEN} characters, which clients send as a bearer token"
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
    gateway.allowed_hosts = None
    if _is_loopback(host):
        names = ("127.0.0.1", "localhost", "[::1]", _bracketed(host))
        hosts = [f"{name}:{port}" for name in names] + (list(names) if port == 80 else [])
        gateway.allowed_hosts = frozenset(hosts)
    async with serve(gateway, [sock], ws="none"):
        try:
            yield f"http://{_bracketed(host)}:{port}{PATH}"
        finally:
            await gateway.aclose()


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
