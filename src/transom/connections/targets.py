"""The kinds of targets that can be a server, and how to connect to each."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeGuard, cast

import msgspec

from transom.channel import Channel
from transom.connections.connection import Connect, ServerConnection, ServerListener
from transom.connections.oauth_client import OAuthClient
from transom.connections.process import MAX_LINE, ServerProcess
from transom.connections.upstream import Server
from transom.connections.urls import is_http_url, server_of
from transom.errors import NotConnected, UsageError
from transom.traffic import TrafficListener

Target = Any
"""A command as a list of words, the URL of a streamable HTTP server or a `RemoteServer`, an
`MCPServer` or `FastMCP` object, a connected client of the SDK, a `ServerOpener` or a `Server` of
your own."""


class RemoteServer(msgspec.Struct, frozen=True):
    """A streamable HTTP server that needs more than its URL.

    If it requires a login, the one that `transom login URL` stored is used. With `ask`, the user
    logs in when it is needed.

    Args:
        url: where it is.
        headers: sent with every request. `Authorization` replaces a login.
        ask: called with the address of a login page, to show it to the user, as `webbrowser.open`
            does. None: nobody can be asked, and a missing login is an error.
        logins: the folder in which logins are stored, for a program with many users; by default
            that of the process's user.
        client: the client for logins, where the server's issuer does not register one by itself.
        scope: the scopes that a login asks for, with spaces between them; by default what the
            server needs.
    """

    url: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    ask: Callable[[str], object] | None = None
    logins: Path | None = None
    client: OAuthClient | None = None
    scope: str | None = None


class ServerOpener(msgspec.Struct, frozen=True):
    """A server that is reached in a way of your own.

    Args:
        open: called once for each connection; returns the `Channel` to the server.
        identity: identifies the server, as `identity_of` does.
    """

    open: Connect
    identity: str = ""


async def connect(
    target: Target,
    *,
    name: str = "server",
    timeout: float = 30.0,
    listener: ServerListener | None = None,
    traffic: TrafficListener | None = None,
) -> ServerConnection:
    """Connect to a server and make the handshake as a client that shows Views.

    Args:
        target: a command as a list of words, the URL of a streamable HTTP server or a
            `RemoteServer`, or an `MCPServer` or `FastMCP` object, which then runs in this process.
        name: what the server is called in messages.
        timeout: seconds for all of this, without the time that a user takes to log in.
        listener: answers the server, and is notified of what it sends and of its end.
        traffic: gets every message.

    Returns:
        The connection, which is a `Server`. Close it with `aclose`.

    Raises:
        UsageError: `target` is none of these.
        NotConnected: the server cannot be reached; the text says why.
    """
    connection = ServerConnection(
        name, way_to(target), listener, traffic=traffic, identity=identity_of(target)
    )
    try:
        may_ask = isinstance(target, RemoteServer) and target.ask is not None
        async with asyncio.timeout(None if may_ask else timeout):  # a login has its own limit
            await connection.start()
            await connection.negotiate(timeout=timeout)
    except BaseException as error:
        await connection.aclose()
        if isinstance(error, TimeoutError):
            text = f"Server {name} ({_named(target)}) did not answer within {timeout:g} s"
            raise NotConnected(text) from None
        if isinstance(error, NotConnected):
            text = f"Server {name} ({_named(target)}) could not be connected: {error}"
            raise NotConnected(text) from error
        raise
    return connection


def identity_of(
    target: Target, *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> str:
    """Identifies a server among all of this user's, also in the next run; "" if nothing does.

    It is the whole URL, or the command with its folder and the variables set for it: the same
    command elsewhere may be another program. It may contain secrets: never show it.
    """
    if isinstance(target, str | RemoteServer):
        return target if isinstance(target, str) else target.url
    if isinstance(target, ServerOpener):
        return target.identity
    if not _is_command(target):
        return ""
    words = [os.fspath(word) for word in target]
    folder = os.path.abspath(cwd or os.curdir)  # noqa: PTH100 - without following links
    return msgspec.json.encode([folder, words, sorted((env or {}).items())]).decode()


def connected_server(target: Target) -> Server | None:
    """A `Server`, or the server of a connected SDK client, if `target` is one of these."""
    if isinstance(target, Server):
        return target
    # If the target is an object of the SDK or FastMCP, that is loaded already; else do not load it.
    kinds = [*_classes("mcp", "Client", "ClientSession"), *_classes("fastmcp", "Client")]
    if isinstance(target, tuple(kinds)):
        return cast("Server", import_module("transom.connections.sdk_client").sdk_server(target))
    return None


def _classes(module: str, *names: str) -> list[type]:
    return [getattr(sys.modules[module], name) for name in names] if module in sys.modules else []


def way_to(
    target: Target,
    *,
    inherit_env: bool = False,
    forward_stderr: bool = True,
    max_bytes: int = MAX_LINE,
) -> Connect:
    """A function that connects to a target."""
    if isinstance(target, str | RemoteServer):
        remote = RemoteServer(target) if isinstance(target, str) else target
        if not is_http_url(remote.url):
            words = ["python", "server.py"]
            with suppress(ValueError):
                words = shlex.split(remote.url) or words
            raise UsageError(
                f"{remote.url!r} is not an http or https URL; a command is a list, as in {words}"
            )
        return lambda: reach_remote(remote, max_bytes=max_bytes)
    if isinstance(target, ServerOpener):
        return target.open
    if _is_command(target):
        return lambda: ServerProcess.start(
            [os.fspath(word) for word in target],
            inherit_env=inherit_env,
            forward_stderr=forward_stderr,
            max_line=max_bytes,
        )
    if "mcp.server" in sys.modules:
        in_memory = import_module("transom.connections.in_memory")
        if (server := in_memory.lowlevel_server(target)) is not None:
            return lambda: in_memory.connect_in_memory(server)
    raise UsageError(
        f"{type(target).__name__} is not a server: give a command as a list, a URL, an MCPServer "
        "or FastMCP object, a connected client or a Server"
    )


def _named(target: Target) -> str:
    """The name of a target in messages."""
    if isinstance(target, str | RemoteServer):
        return server_of(target if isinstance(target, str) else target.url)
    return shlex.join([os.fspath(word) for word in target]) if _is_command(target) else "in memory"


async def reach_remote(remote: RemoteServer, *, max_bytes: int = MAX_LINE) -> Channel:
    """Connect to a server by its URL; NotConnected if that fails."""
    # In a thread, because loading the SDK takes half a second.
    http: Any = await asyncio.to_thread(import_module, "transom.connections.http")
    login = http.LoginOptions(
        ask=remote.ask, folder=remote.logins, client=remote.client, scope=remote.scope
    )
    channel = await http.connect_http(
        remote.url, headers=remote.headers, login=login, max_bytes=max_bytes
    )
    return cast("Channel", channel)


def _is_command(target: Target) -> TypeGuard[Sequence[str | Path]]:
    if not isinstance(target, list | tuple) or not target:
        return False
    return all(isinstance(word, str | Path) for word in cast("Sequence[object]", target))
