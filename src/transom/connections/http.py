"""A server that is reached by streamable HTTP, as a Channel.

1. The SDK's transport carries the messages. This module adds the headers that the SDK's session
   would have added.
2. Before the first message one `server/discover` is sent, to find out whether an MCP server listens
   there. A server of an earlier version refuses it, which tells as much.
3. A request that fails with an HTTP status is answered with a JSON-RPC error.
4. When the server cannot be reached any more, or has lost the session, the channel ends, and its
   owner reconnects. Nothing times out once it is connected, so slow answers are fine; the operating
   system probes idle connections, so that a dead network is noticed.
5. A tool of a 2026-07-28 server whose `x-mcp-header` is invalid is neither listed nor called.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from transom.background import stop
from transom.channel import Pipe
from transom.connections.login import LoginOptions, ServerLogin, is_challenge, tls_context
from transom.connections.urls import is_loopback, server_of
from transom.connections.versions import (
    DISCOVERY_VERSION,
    PROTOCOL_KEY,
    own_envelope,
    with_envelope,
)
from transom.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    ChannelClosed,
    NotConnected,
)
from transom.json_values import as_object
from transom.protocol import wire
from transom.recent import Recent

_log = logging.getLogger("transom.connections")

MAX_BYTES = 32 * 1024 * 1024
_MAX_CONNECTIONS = 1000
_CONNECT_WITHIN = 15.0
_LEAVE_WITHIN = 2.0
_MAX_RENEWALS = 2  # of the login for one request: by another process, then by us
_ACCEPT = "application/json, text/event-stream"
_PROBE = wire.encode_request(
    "transom-probe", "server/discover", with_envelope(None, own_envelope())
)
_PROBE_HEADERS = {
    "accept": _ACCEPT,
    "content-type": "application/json",
    MCP_PROTOCOL_VERSION_HEADER: DISCOVERY_VERSION,
    MCP_METHOD_HEADER: "server/discover",
}
_NO_SESSION = re.compile(rb"session.{0,3}id", re.IGNORECASE)
_NO_METHOD = str(METHOD_NOT_FOUND).encode()

OnLost = Callable[[str], None]
"""Called with a reason when the server is gone."""


async def connect_http(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    login: LoginOptions | None = None,
    max_bytes: int = MAX_BYTES,
) -> HttpChannel:
    """Reach a server. With `Authorization` among the headers, no login is used."""
    try:
        channel = HttpChannel(url, headers or {}, login, max_bytes)
    except (httpx2.InvalidURL, ValueError) as error:
        raise NotConnected(f"{server_of(url)} cannot be used: {error}") from error
    await channel.open()
    return channel


class HttpChannel:
    """A Channel to a URL. Make it with `connect_http`."""

    def __init__(
        self, url: str, headers: Mapping[str, str], login: LoginOptions | None, max_bytes: int
    ) -> None:
        self._url = url
        self._max_bytes = max_bytes
        options = _client_options(url)
        has_token = "authorization" in map(str.lower, headers)
        self.login = None if has_token else ServerLogin(url, login)
        """The login at the server; None if the headers have the `Authorization`."""
        self._client = _WatchedClient(
            self._lose, self.login, max_bytes, headers=dict(headers), **options
        )
        self._headers = HttpHeaders()
        self._incoming = Pipe(64)
        self.receive = self._incoming.receive
        self._write: Any = None
        self._reason: str | None = None
        self._opened = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect."""
        try:
            await _probe(self._client, self._url)
        except BaseException:
            await self._client.aclose()
            raise
        name = f"transom-http-{server_of(self._url)}"
        self._task = asyncio.create_task(self._run(), name=name)
        await self._opened.wait()

    async def send(self, data: bytes) -> None:
        """Send one message."""
        if self._reason is not None:
            raise ChannelClosed(self._reason)
        try:
            message: JSONRPCMessage = jsonrpc_message_adapter.validate_json(data, by_name=False)
        except ValidationError:
            text = "This message cannot be sent to an HTTP server"
            await self._refuse(data, INVALID_REQUEST, text)
            return
        unusable = self._headers.why_not(message)
        if unusable is not None:
            await self._refuse(data, INVALID_PARAMS, unusable)
            return
        headers = self._headers.headers_for(message)
        metadata = ClientMessageMetadata(headers=headers) if headers else None
        try:
            await self._write.send(SessionMessage(message, metadata))
        except Exception as error:
            raise ChannelClosed(self._reason or "the connection is closed") from error

    async def _refuse(self, data: bytes, code: int, text: str) -> None:
        """Answer a message that cannot be sent as an HTTP request, so that nobody waits for it."""
        if (id := wire.id_of_request(data)) is not None:
            await self._incoming.send(wire.encode_error(id, code, text))

    async def aclose(self) -> None:
        """End the session and the connections. Safe to repeat."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._reason is None:
            self._reason = "this side closed the connection"
            with suppress(Exception):
                async with asyncio.timeout(_LEAVE_WITHIN):
                    await self._client.delete_session(self._url)
        await stop(self._task)
        if self.login is not None:
            await self.login.aclose()

    def _lose(self, reason: str) -> None:
        if self._reason is None:
            self._reason = reason
            if self._task is not None:
                self._task.cancel()

    async def _run(self) -> None:
        transport = streamable_http_client(
            self._url,
            http_client=self._client,
            terminate_on_close=False,  # see `delete_session`
            max_sse_event_size=self._max_bytes,
        )
        try:
            async with aclosing(self._client), transport as (read, write):
                self._write = write
                self._opened.set()
                async for item in read:
                    if self._reason is None:  # the transport's own errors at the end do not count
                        await self._incoming.send(self._received(item))
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection is over
            self._lose(_describe(error))
        finally:
            self._incoming.reason = self._reason = self._reason or "the connection was closed"
            self._opened.set()
            self._incoming.close()

    def _received(self, item: SessionMessage | Exception) -> bytes:
        if isinstance(item, Exception):
            return str(item)[:200].encode()  # not a message; the reader will refuse it
        self._headers.learn(item.message)
        return item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()


class _WatchedClient(httpx2.AsyncClient):
    """An HTTP client that notices when the server is gone, and turns HTTP errors into JSON-RPC.

    The server is gone if a connection cannot be made or breaks, or if it does not know the session.
    """

    def __init__(
        self, on_lost: OnLost, login: ServerLogin | None, max_bytes: int, **options: Any
    ) -> None:
        super().__init__(**options)
        self._on_lost = on_lost
        self._login = login
        self._max_bytes = max_bytes
        self._streamed = False  # whether the stream of the server's own messages was ever open
        self._session: httpx2.Headers | None = None

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """As in httpx; failures are noticed."""
        try:
            response = await self.send_authorized(request, **options)
        except httpx2.TransportError as error:
            self._on_lost(f"it cannot be reached: {_describe(error)}")
            raise
        except NotConnected as error:
            return _failure(request, HTTPStatus.UNAUTHORIZED, str(error))
        if options.get("stream"):
            response.stream = _WatchedStream(response, self._on_lost, self._max_bytes)
        if MCP_SESSION_ID in request.headers:
            await self._check_session(request, response)
        elif MCP_SESSION_ID in response.headers:
            self._session = httpx2.Headers(
                {MCP_SESSION_ID: response.headers[MCP_SESSION_ID], "accept": _ACCEPT}
            )
        if request.method == "POST" and response.status_code >= 400:
            return await _as_json_rpc(request, response)
        return response

    async def send_authorized(
        self, request: httpx2.Request, *, within: float | None = None, **options: Any
    ) -> httpx2.Response:
        """Send a request with the login at the server, which is renewed if it is refused.

        It is answered `within` seconds; a login by the user may take longer.

        Raises:
            NotConnected: there is no login that the server accepts; the text says what to do.
        """
        renewals = 0
        while True:
            if self._login is not None:
                await self._login.authorize(request)
            async with asyncio.timeout(within):
                response = await super().send(request, **options)
            # Ending a session needs no login.
            if self._login is None or request.method == "DELETE" or not is_challenge(response):
                return response
            await response.aclose()
            is_new = self._login.asked and response.status_code == HTTPStatus.UNAUTHORIZED
            if renewals == _MAX_RENEWALS or (renewals and is_new):
                text = f"{server_of(str(request.url))} refuses the login it has asked for"
                raise NotConnected(text)
            await self._login.renew(response)
            renewals += 1

    async def _check_session(self, request: httpx2.Request, response: httpx2.Response) -> None:
        status = response.status_code
        if request.method == "DELETE":
            return
        if (status == HTTPStatus.NOT_FOUND and _NO_METHOD not in await response.aread()) or (
            # Some servers answer this instead of 404.
            status == HTTPStatus.BAD_REQUEST and _NO_SESSION.search(await response.aread())
        ):
            self._on_lost("it does not know this session any more")
        elif request.method == "GET":
            if status >= 500 and self._streamed:
                self._on_lost(f"it answered {_status(response)}")
            self._streamed = self._streamed or response.is_success

    async def delete_session(self, url: str) -> None:
        """Tell the server that the session has ended."""
        if self._session is not None:
            await self.request("DELETE", url, headers=self._session)


class _WatchedStream(httpx2.AsyncByteStream):
    """A response's body: reports when it breaks off, and is capped unless it is an event stream."""

    def __init__(self, response: httpx2.Response, on_lost: OnLost, max_bytes: int) -> None:
        self._stream: Any = response.stream
        self._on_lost = on_lost
        self._max_bytes = max_bytes
        self._left = None if _is_event_stream(response) else max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                if self._left is not None:
                    self._left -= len(part)
                    if self._left < 0:
                        size = self._max_bytes // (1024 * 1024)
                        raise httpx2.StreamError(f"the answer is longer than {size} MB")
                yield part
        except httpx2.TransportError as error:
            self._on_lost(f"its answer broke off: {_describe(error)}")
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _as_json_rpc(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """An HTTP error as JSON-RPC: the server's own error, or one made from its status."""
    if response.status_code == HTTPStatus.NOT_FOUND:
        return response  # the transport handles it
    is_json = response.headers.get("content-type", "").startswith("application/json")
    if is_json and _is_error(await response.aread()):
        return response
    await response.aclose()
    text = f"The server answered {_status(response)}"
    if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        text += ": the headers do not authorize the request"
    return _failure(request, response.status_code, text)


def _failure(request: httpx2.Request, status: int, text: str) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": SERVER_ERROR, "message": text}}
    return httpx2.Response(status, headers=headers, content=wire.encode(error), request=request)


def _is_error(body: bytes) -> bool:
    with suppress(ValidationError):
        found = jsonrpc_message_adapter.validate_json(body, by_name=False)
        return isinstance(found, JSONRPCError)
    return False


# --- the beginning ---------------------------------------------------------------------------


async def _probe(client: _WatchedClient, url: str) -> None:
    """Check that an MCP server listens there."""
    name = server_of(url)
    try:
        request = client.build_request("POST", url, content=_PROBE, headers=_PROBE_HEADERS)
        # Not the watched `send`: there is no connection yet that could be lost.
        response = await client.send_authorized(request, within=_CONNECT_WITHIN, stream=True)
        try:
            if response.is_redirect:
                _refuse_redirect(response, name)
            events = _is_event_stream(response)
            async with asyncio.timeout(_CONNECT_WITHIN):
                body = b"" if events else await _beginning(response)
        finally:
            await response.aclose()
    except TimeoutError:
        raise NotConnected(f"{name} did not answer within {_CONNECT_WITHIN:.0f} seconds") from None
    except httpx2.ConnectError as error:
        raise NotConnected(
            f"Nothing answers at {name}: start the server, or correct the URL ({_describe(error)})"
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NotConnected(f"{name} cannot be reached: {_describe(error)}") from error
    if not events and b'"jsonrpc"' not in body:
        _refuse_stranger(response, name)


async def _beginning(response: httpx2.Response) -> bytes:
    """The beginning of a body, enough to recognise its content."""
    found = b""
    async for part in response.aiter_bytes():
        found += part
        if len(found) > 65536:
            break
    return found


def _refuse_redirect(response: httpx2.Response, name: str) -> None:
    target = response.next_request
    sent = response.request
    if target is not None and (target.method, target.url.host) == (sent.method, sent.url.host):
        return  # only a trailing slash differs: the transport follows that
    where = "elsewhere" if target is None else server_of(str(target.url))
    raise NotConnected(f"{name} redirects to {where}: use that URL if it is the server you mean")


def _refuse_stranger(response: httpx2.Response, name: str) -> None:
    status = response.status_code
    if response.is_redirect or status in (
        HTTPStatus.ACCEPTED,
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_ACCEPTABLE,
    ):
        return  # it may be a server: its answer to the first message will tell
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            advice = (
                'it does not accept the Authorization header: see --header, or "headers" '
                "in the gateway's file"
            )
        case HTTPStatus.NOT_FOUND:
            advice = "there is no MCP server at that path: most are at /mcp"
        case HTTPStatus.METHOD_NOT_ALLOWED:
            advice = "it does not speak streamable HTTP there: most servers do at /mcp"
        case _ if status >= 500:
            advice = "the server fails: see its log"
        case _:
            advice = "that is no answer of an MCP server: correct the URL"
    raise NotConnected(f"{name} answered {_status(response)}: {advice}")


def _client_options(url: str) -> dict[str, Any]:
    """Options of the HTTP client for this URL: no timeouts, but TCP keep-alive."""
    probing = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if (option := getattr(socket, name, None)) is not None:
            probing.append((socket.IPPROTO_TCP, option, value))
    limits = httpx2.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=20)
    return {
        "timeout": httpx2.Timeout(None, connect=_CONNECT_WITHIN),
        "transport": httpx2.AsyncHTTPTransport(
            limits=limits, socket_options=probing, proxy=_proxy(url), verify=tls_context()
        ),
    }


def _proxy(url: str) -> str | None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(url) or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _is_event_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")


def _status(response: httpx2.Response) -> str:
    return f"{response.status_code} {response.reason_phrase}".strip()


def _describe(error: BaseException) -> str:
    """What went wrong, in a few words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return str(error)[:300] or type(error).__name__  # pyright: ignore[reportUnknownArgumentType]


# --- headers ---------------------------------------------------------------------------------


_MAX_PENDING = 1000
_MAX_TOOLS = 10_000


_TASK_METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})  # of the extension


class HttpHeaders:
    """Makes the headers of one connection. It must see every message, both ways."""

    def __init__(self) -> None:
        self._version: str | None = None
        # Requests whose results decide later headers, and whether each is of 2026-07-28; cancelled
        # ones may never be answered.
        self._pending: Recent[RequestId, tuple[str, bool]] = Recent(_MAX_PENDING)
        self._parameters: dict[str, dict[tuple[str, ...], str]] = {}  # by tool: path -> header
        self._unusable: dict[str, str] = {}  # by tool: what is wrong with its headers

    def headers_for(self, message: JSONRPCMessage) -> dict[str, str]:
        """The headers for a message to the server."""
        if not isinstance(message, JSONRPCRequest | JSONRPCNotification):
            return {}  # the transport sends the last version again
        params = message.params or {}
        version = as_object(params.get("_meta")).get(PROTOCOL_KEY)
        if isinstance(message, JSONRPCRequest) and message.method in ("initialize", "tools/list"):
            self._pending[message.id] = (message.method, isinstance(version, str))
        if isinstance(version, str):
            return self._stateless_headers(version, message.method, params)
        return {} if self._version is None else {MCP_PROTOCOL_VERSION_HEADER: self._version}

    def _stateless_headers(
        self, version: str, method: str, params: Mapping[str, Any]
    ) -> dict[str, str]:
        headers = {
            MCP_PROTOCOL_VERSION_HEADER: encode_header_value(version),
            MCP_METHOD_HEADER: encode_header_value(method),
        }
        key = "taskId" if method in _TASK_METHODS else NAME_BEARING_METHODS.get(method)
        name: object = None if key is None else params.get(key)
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            if method == "tools/call" and name in self._parameters:
                arguments = as_object(params.get("arguments"))
                headers |= mcp_param_headers(self._parameters[name], arguments)
        return headers

    def why_not(self, message: JSONRPCMessage) -> str | None:
        """Why a message cannot be sent: it calls a tool whose headers are invalid."""
        if not isinstance(message, JSONRPCRequest) or message.method != "tools/call":
            return None
        name: object = (message.params or {}).get("name")
        reason = self._unusable.get(name) if isinstance(name, str) else None
        return None if reason is None else f"Tool {name} cannot be called by HTTP: {reason}"

    def learn(self, message: JSONRPCMessage) -> None:
        """Read from a message of the server what later headers need.

        Tools whose headers are invalid are taken out of it.
        """
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return
        pending = self._pending.pop(message.id, None)
        if pending is None or isinstance(message, JSONRPCError):
            return
        method, stateless = pending
        if method == "initialize":
            version: object = message.result.get("protocolVersion")
            self._version = version if isinstance(version, str) else None
        elif stateless and isinstance(message.result.get("tools"), list):
            tools = cast("list[object]", message.result["tools"])
            message.result["tools"] = [each for each in tools if self._learn_tool(as_object(each))]

    def _learn_tool(self, tool: Mapping[str, Any]) -> bool:
        """Whether a tool that was listed can be called."""
        name: object = tool.get("name")
        schema: object = tool.get("inputSchema")
        if not isinstance(name, str):
            return True
        self._parameters.pop(name, None)
        self._unusable.pop(name, None)
        reason = find_invalid_x_mcp_header(schema)
        room = len(self._parameters) + len(self._unusable) < _MAX_TOOLS
        if reason is not None:
            _log.warning("a server's tool %.128r is left out: %.500s", name, reason)
            if room:
                self._unusable[name] = reason
        elif room and (marked := x_mcp_header_map(schema)):
            self._parameters[name] = marked
        return reason is None
