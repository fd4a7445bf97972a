"""The client of a gateway: the door where its requests are read, and the order of its messages.

1. A request is read once, here or where it came in by HTTP (`ClientRequest`), and handled by a
   `ClientHandler`.
2. The client's messages are handled in order. Most requests run as tasks, which begin in the next
   turn of the event loop; messages that come in the same turn wait behind them.
3. A request that is only forwarded to a server is sent at once, without a task (`pass_on`).
4. Every request is answered once, whatever happens to the servers: with a result, or with an error.
   One that the client cancels is not answered.
5. The client is read only while it and the servers read what they are sent (back-pressure).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from msgspec import Raw

from transom.channel import Channel
from transom.errors import (
    SERVER_ERROR,
    NotConnected,
    PeerError,
    ProtocolError,
    TransomError,
)
from transom.gateway.eras import ClientIdentity, ClientRequest, read_request
from transom.json_values import members
from transom.protocol import wire
from transom.protocol.peer import Peer, Progress
from transom.session import OnProgress, SentRequest, Session

_log = logging.getLogger("transom.gateway")

Notify = Callable[[str, bytes | None], object]
"""Sends a notification: method, params."""

ReadRequest = Callable[[wire.Request], ClientRequest]
"""Reads a request of the client's."""

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 200
_MAX_INCOMING = 10_000  # requests of the client that are worked on at the same time
_MAX_OUTGOING = 100_000  # requests to the client; each server has a limit of its own


class ClientHandler(Protocol):
    """Handles the messages of a client."""

    def pass_on(self, request: ClientRequest) -> SentRequest | None:
        """Send a request to a server at once; None if it has to be handled otherwise."""
        ...

    def handle_request(self, request: ClientRequest) -> Awaitable[bytes]:
        """Answer a request; the result as JSON."""
        ...

    def handle_notification(self, notification: wire.Notification) -> None:
        """Handle a notification."""
        ...

    def wait_writable(self) -> Awaitable[None] | None:
        """An awaitable while the servers are slow to read, else None."""
        ...


class Client:
    """One client: who it is, and its session."""

    def __init__(
        self, channel: Channel, handler: ClientHandler, read: ReadRequest = read_request
    ) -> None:
        self.identity = ClientIdentity()
        self._handler = handler
        self._read = read
        self._queued = False
        self._session = Session(
            channel,
            on_request=self._handle_request,
            on_notification=self._handle_notification,
            on_error=_report,
            wait_for_room=self._wait_for_room,
            to_error=_as_error,
            timeout=None,
            peer=Peer(
                max_bytes=MAX_BYTES,
                max_depth=MAX_DEPTH,
                max_incoming=_MAX_INCOMING,
                max_outgoing=_MAX_OUTGOING,
            ),
        )

    async def serve(self) -> None:
        """Read and answer until the client is gone."""
        self._session.start()
        await self._session.wait_closed()

    async def aclose(self) -> None:
        """Stop all work for the client, and close the channel."""
        await self._session.aclose("the gateway ended")

    def wait_writable(self) -> Awaitable[None] | None:
        """An awaitable while the client is slow to read, else None."""
        return None if self._session.writable else self._session.wait_writable()

    def _wait_for_room(self) -> Awaitable[None] | None:
        return self._handler.wait_writable() or self.wait_writable()

    # --- from the client ---------------------------------------------------------------------

    def _handle_request(self, given: wire.Request) -> Awaitable[bytes | Raw]:
        request = self._read(given)
        if given.params is None and request.params is not None:
            # They came in by HTTP, and are as large in memory as if they had come in here.
            self._session.peer.count(given.id, len(request.params))
        passed = None if self._queued else self._handler.pass_on(request)
        if passed is not None:
            return passed
        self._queue()
        return self._handler.handle_request(request)

    def _handle_notification(self, notification: wire.Notification) -> None:
        handle = self._handler.handle_notification
        if self._queued:
            asyncio.get_running_loop().call_soon(_guarded, handle, notification)
        else:
            _guarded(handle, notification)

    def _queue(self) -> None:
        """Make later messages wait behind a task that is about to begin."""
        if not self._queued:
            self._queued = True
            # Runs right before the task begins, and nothing is read in between.
            asyncio.get_running_loop().call_soon(self._unqueue)

    def _unqueue(self) -> None:
        self._queued = False

    # --- to the client -----------------------------------------------------------------------

    def notify(self, method: str, params: Raw | bytes | None = None) -> None:
        """Send a notification, unless the client is gone."""
        with suppress(NotConnected):
            self._session.notify_soon(method, None if params is None else bytes(params))

    def send_request(
        self, method: str, params: Raw | bytes | None, on_progress: OnProgress | None = None
    ) -> SentRequest:
        """Send a request at once. The result fails with the client's error."""
        given = None if params is None else bytes(params)
        return self._session.send(method, given, on_progress=on_progress)

    def progress_relay(self, request: ClientRequest) -> OnProgress | None:
        """A handler that sends progress to the client; None if its request wants none."""
        return progress_relay(request.progress_token, self.notify)


def progress_relay(token: Raw | None, notify: Notify) -> OnProgress | None:
    """A handler that sends progress under a token; None without one."""
    if token is None:
        return None

    def relay(progress: Progress) -> None:
        if progress.params is None:
            relayed = progress.relayed(token)
        else:
            relayed = wire.encode({**members(progress.params), "progressToken": token})
        notify("notifications/progress", relayed)

    return relay


def _guarded(call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except Exception:  # noqa: BLE001 - one message must not cut off those after it
        _log.exception("a message could not be handled")


def _as_error(error: BaseException) -> ProtocolError | None:
    if isinstance(error, TransomError):
        return ProtocolError(SERVER_ERROR, str(error))
    return None


def _report(error: BaseException) -> None:
    if isinstance(error, PeerError):
        _log.info("the client broke a rule: %s", error)
    else:
        _log.error("a message of the client's could not be handled", exc_info=error)
