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
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from transom.errors import (
    INVALID_REQUEST,
    SERVER_ERROR,
    MessageRefused,
    TransomError,
    UsageError,
)
from transom.gateway.client import MAX_BYTES, MAX_DEPTH
from transom.gateway.config import ServerConfig
from transom.gateway.http_session import SESSION_HEADER, HttpSession, problem
from transom.gateway.members import connect_to
from transom.gateway.proxy import Proxy
from transom.gateway.stdio import on_signals
from transom.gateway.views import ClientViews
from transom.json_values import clean, member
from transom.protocol import wire
from transom.servers.connection import Connect
from transom.servers.envelope import DISCOVERY_VERSION, HANDSHAKE_VERSIONS, envelope_of
from transom.serving import listen, serve

_log = logging.getLogger("transom.gateway")

PATH = "/mcp"
_ACCEPTED = {
    "POST": ("application/json", "text/event-stream"),
    "GET": ("text/event-stream",),
    "DELETE": (),
}
"""What a client must accept in answer to each method."""
_UNSUPPORTED_PROTOCOL_VERSION = -32022
_MIN_TOKEN = 16
_SESSIONS_END_WITHIN = 15.0
_BODY_WITHIN = 60.0


class HttpGateway:
    """An ASGI application: the gateway at `/mcp`.

    Args:
        servers: the servers behind it: a name, and what starts or reaches each of them.
        views: makes the Views of a client, given what it calls itself.
        token: what each request must bear (`Authorization: Bearer ...`); None: nothing.
        max_clients: how many sessions there may be at once.
        idle: seconds after which a session ends that has no request and no stream open.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, Connect]],
        views: Callable[[str], ClientViews],
        *,
        token: str | None = None,
        max_clients: int = 100,
        idle: float = 1800.0,
    ) -> None:
        self.clients: dict[str, HttpSession] = {}
        """The sessions there are, by id."""
        self.allowed_hosts: frozenset[str] | None = None
        """What a request may have for a Host, and for an Origin; None: anything."""
        self._servers = servers
        self._views = views
        self._token = None if token is None else token.encode()
        self._max_clients = max_clients
        self._idle = idle
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
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        session = headers.get(SESSION_HEADER)
        if session is None:
            client = None
        else:
            client = self.clients.get(session)
            if client is None or client.ending:
                await problem(404, INVALID_REQUEST, "Session not found")(scope, receive, send)
                return
        if scope["method"] == "POST":
            await self._post(client, scope, receive, send)
        elif client is None:
            await problem(400, INVALID_REQUEST, "Missing session ID")(scope, receive, send)
        elif scope["method"] == "GET":
            await client.serve(client.listen(receive, send))
        else:
            client.end()
            await Response(None, 200)(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that is not let in; None for one that is."""
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
        version = headers.get("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE_VERSIONS:
            return _fall_back(None, version)
        return None

    def _bears_token(self, headers: Headers) -> bool:
        assert self._token is not None  # noqa: S101 - for the type checker
        scheme, _, given = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode(), self._token)
        return right and scheme.lower() == "bearer"

    async def _post(
        self, client: HttpSession | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            async with asyncio.timeout(_BODY_WITHIN):
                body = await _read_body(receive)
            message = wire.decode(body, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
        except MessageRefused as refusal:
            await problem(400, refusal.code, str(refusal))(scope, receive, send)
            return
        except TimeoutError:
            text = f"The body did not come within {_BODY_WITHIN:g} s"
            await problem(408, INVALID_REQUEST, text)(scope, receive, send)
            return
        if client is None:
            admitted = self._admit(message)
            if isinstance(admitted, Response):
                await admitted(scope, receive, send)
                return
            client = admitted
        await client.serve(client.post(message, body, receive, send))

    # --- sessions ----------------------------------------------------------------------------

    def _admit(self, message: wire.Message) -> HttpSession | Response:
        """The session that a message begins, which must be `initialize`; or the refusal."""
        id = message.id if isinstance(message, wire.Request) else None
        if not isinstance(message, wire.Request) or message.method != "initialize":
            if isinstance(message, wire.Request) and (
                message.method == "server/discover" or envelope_of(message.params) is not None
            ):
                return _fall_back(id, None)
            return problem(400, INVALID_REQUEST, "Missing session ID", id)
        if self._ending or len(self.clients) >= self._max_clients:
            text = f"The gateway has as many clients as it may (--max-clients {self._max_clients})"
            return problem(503, SERVER_ERROR, text, id)
        name = member(message.params, "clientInfo", "name")
        label = clean(name, 60) if isinstance(name, str) else ""
        same = sum(client.label == label for client in self.clients.values())
        client = HttpSession(label, self._idle)
        self.clients[client.id] = client
        client.start(self._serve(client, f"{label} ({same + 1})" if same else label))
        client.task.add_done_callback(lambda _: self._session_ended(client))
        return client

    def _session_ended(self, client: HttpSession) -> None:
        self.clients.pop(client.id, None)
        client.ended()

    async def _serve(self, client: HttpSession, label: str) -> None:
        """One client, from its `initialize` to the end of its session."""
        try:
            await Proxy(client, self._servers, self._views(label)).run()
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


def _fall_back(id: wire.RequestId | None, requested: str | None) -> Response:
    """The answer that makes a 2026-07-28 client use a version that has sessions."""
    error = {
        "code": _UNSUPPORTED_PROTOCOL_VERSION,
        "message": "The gateway tells its HTTP clients apart by session: begin with initialize",
        "data": {"supported": HANDSHAKE_VERSIONS, "requested": requested or DISCOVERY_VERSION},
    }
    body = wire.encode({"jsonrpc": "2.0", "id": id, "error": error})
    return Response(body, 400, media_type="application/json")


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
    announce: Callable[[str], object],
) -> None:
    """Serve clients at an address until a signal comes.

    Args:
        servers: the servers behind the gateway; each client has its own.
        views: makes the Views of a client, given what it calls itself.
        address: `[HOST:]PORT`; without a host, this machine alone.
        token: what each request must bear; needed unless the address is this machine's own.
        max_clients: how many clients there may be at once.
        idle: seconds after which a client is gone that has nothing open.
        announce: called with a text that says where the gateway listens.

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
