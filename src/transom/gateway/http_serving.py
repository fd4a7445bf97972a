"""Serving the gateway at an address."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from mcp.server.transport_security import TransportSecuritySettings

from transom.errors import UsageError
from transom.gateway.config import Server
from transom.gateway.http import PATH, HttpGateway
from transom.gateway.run import connect_to
from transom.gateway.signals import on_signals
from transom.gateway.views import ClientViews
from transom.serving import listen, serve

__all__ = ["address_of", "serve_http", "serving"]

_MIN_TOKEN = 16


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
    servers: Sequence[Server],
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
        tell: told where the gateway listens.

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
    over = asyncio.Event()
    on_signals(over.set)
    async with serving(gateway, host, port) as url:
        tell(f"The gateway listens at {url}")
        await over.wait()


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
