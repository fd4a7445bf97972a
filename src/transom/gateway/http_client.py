"""The HTTP client with which the gateway reaches servers: what it sees, and how it begins.

1. Nothing times out once it is connected, but the operating system probes idle connections.
2. Whatever shows that the server is gone is told at once: a connection that cannot be made or
   breaks, and a session that the server does not know.
3. A failure without words of the server's own is put into words.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from transom.errors import METHOD_NOT_FOUND, SERVER_ERROR, NotConnected
from transom.protocol import wire

__all__ = ["MAX_BYTES", "Watched", "knock", "options_for", "shown", "words"]

MAX_BYTES = 32 * 1024 * 1024
_MAX_CONNECTIONS = 1000
_CONNECT_WITHIN = 15.0
_ACCEPT = "application/json, text/event-stream"
_PING = wire.encode_request("transom-knock", "ping", None)
_KNOCK_HEADERS = {"accept": _ACCEPT, "content-type": "application/json"}
_NO_SESSION = re.compile(rb"session.{0,3}id", re.IGNORECASE)
_NO_METHOD = str(METHOD_NOT_FOUND).encode()
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

Lost = Callable[[str], None]
"""Told, with a reason, that the server is gone."""


class Watched(httpx2.AsyncClient):
    """An HTTP client which tells when the server is gone, and answers for it when it fails."""

    def __init__(self, lost: Lost, **options: Any) -> None:
        super().__init__(**options)
        self._lost = lost
        self._listened = False
        self.session: httpx2.Headers | None = None

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """As httpx does it, and watched."""
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            self._lost(f"it cannot be reached: {words(error)}")
            raise
        if options.get("stream"):
            response.stream = _WatchedStream(response, self._lost)
        if MCP_SESSION_ID in request.headers:
            await self._check_session(request, response)
        elif MCP_SESSION_ID in response.headers:
            self.session = httpx2.Headers(
                {MCP_SESSION_ID: response.headers[MCP_SESSION_ID], "accept": _ACCEPT}
            )
        if request.method == "POST" and response.status_code >= 400:
            return await _spoken(request, response)
        return response

    async def _check_session(self, request: httpx2.Request, response: httpx2.Response) -> None:
        status = response.status_code
        if request.method == "DELETE":
            return
        if (status == HTTPStatus.NOT_FOUND and _NO_METHOD not in await response.aread()) or (
            # Some servers answer so where 404 is due.
            status == HTTPStatus.BAD_REQUEST and _NO_SESSION.search(await response.aread())
        ):
            self._lost("it does not know this session any more")
        elif request.method == "GET":
            if status >= 500 and self._listened:
                self._lost(f"it answered {_status(response)}")
            self._listened = self._listened or response.is_success

    async def leave(self, url: str) -> None:
        """Say that the session is over."""
        if self.session is not None:
            await self.request("DELETE", url, headers=self.session)


class _WatchedStream(httpx2.AsyncByteStream):
    """A response's body, whose breaking off is told."""

    def __init__(self, response: httpx2.Response, lost: Lost) -> None:
        self._stream: Any = response.stream
        self._lost = lost
        events = response.headers.get("content-type", "").startswith("text/event-stream")
        self._left = None if events else MAX_BYTES

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                if self._left is not None:
                    self._left -= len(part)
                    if self._left < 0:
                        raise httpx2.StreamError(f"it is larger than {MAX_BYTES} bytes")
                yield part
        except httpx2.TransportError as error:
            self._lost(f"its answer broke off: {words(error)}")
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _spoken(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """A failure as JSON-RPC: the server's own error, or what its status means."""
    is_json = response.headers.get("content-type", "").startswith("application/json")
    plain_404 = response.status_code == HTTPStatus.NOT_FOUND  # the transport knows what it means
    if is_json and _is_error(await response.aread()):
        return response
    await response.aclose()
    headers = {} if plain_404 else {"content-type": "application/json"}
    text = f"The server answered {_status(response)}"
    if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        text += ": the headers configured for it do not let the gateway in"
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": SERVER_ERROR, "message": text}}
    return httpx2.Response(
        response.status_code, headers=headers, content=wire.encode(error), request=request
    )


def _is_error(body: bytes) -> bool:
    try:
        found = jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        return False
    return hasattr(found, "error")


# --- the beginning ---------------------------------------------------------------------------


async def knock(client: httpx2.AsyncClient, url: str) -> None:
    """See whether an MCP server listens there.

    Raises:
        NotConnected: nothing answers, or not with MCP; the text says what to do.
    """
    name = shown(url)
    try:
        async with asyncio.timeout(_CONNECT_WITHIN):
            request = client.build_request("POST", url, content=_PING, headers=_KNOCK_HEADERS)
            response = await httpx2.AsyncClient.send(client, request, stream=True)
            try:
                if response.is_redirect:
                    _refuse_redirect(response, name)
                events = response.headers.get("content-type", "").startswith("text/event-stream")
                body = b"" if events else await _beginning(response)
            finally:
                await response.aclose()
    except TimeoutError:
        raise NotConnected(f"{name} did not answer within {_CONNECT_WITHIN:.0f} seconds") from None
    except httpx2.ConnectError as error:
        raise NotConnected(
            f"Nothing answers at {name}: start the server, or correct the URL ({words(error)})"
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NotConnected(f"{name} cannot be reached: {words(error)}") from error
    if not events and b'"jsonrpc"' not in body:
        _refuse_stranger(response, name)


async def _beginning(response: httpx2.Response) -> bytes:
    """As much of a body as it takes to know what it is."""
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
        return  # a slash more or less, which the transport follows
    where = "elsewhere" if target is None else shown(str(target.url))
    raise NotConnected(f"{name} redirects to {where}: use that URL if it is the server you mean")


def _refuse_stranger(response: httpx2.Response, name: str) -> None:
    status = response.status_code
    if response.is_redirect or status in (
        HTTPStatus.ACCEPTED,
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_ACCEPTABLE,
    ):
        return  # it may well be one: its answer to the first message tells
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            advice = (
                'it wants to know who asks: put its server in a file for --config with "headers", '
                'such as {"Authorization": "Bearer ${TOKEN}"}'
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


def options_for(url: str) -> dict[str, Any]:
    """How an HTTP client for this URL is made: patient, but not with a dead network."""
    probing = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if (option := getattr(socket, name, None)) is not None:
            probing.append((socket.IPPROTO_TCP, option, value))
    limits = httpx2.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=20)
    return {
        "timeout": httpx2.Timeout(None, connect=_CONNECT_WITHIN),
        "transport": httpx2.AsyncHTTPTransport(
            limits=limits, socket_options=probing, proxy=_proxy(url)
        ),
    }


def _proxy(url: str) -> str | None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in _LOOPBACK or host.endswith(".localhost") or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def shown(url: str) -> str:
    """A URL without what may be secret in it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _status(response: httpx2.Response) -> str:
    return f"{response.status_code} {response.reason_phrase}".strip()


def words(error: BaseException) -> str:
    """What went wrong, in a few words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return str(error)[:300] or type(error).__name__  # pyright: ignore[reportUnknownArgumentType]
