"""The client of a gateway: one conversation with it, and the order of its messages.

1. What the client sends is handled in the order in which it came. Most requests run as tasks, which
   begin in the next turn of the event loop; what comes in the same turn waits behind them.
2. A request that just passes on to a server is sent at once, without a task (`pass_on`).
3. Every request is answered once, whatever becomes of the servers: with a result, or with an error.
   One that the client cancels is not answered.
4. The client is read only while it and the servers take what they are sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from msgspec import Raw

from transom.channel import Channel, Throttled
from transom.errors import (
    SERVER_ERROR,
    NotConnected,
    PeerError,
    ProtocolError,
    TransomError,
)
from transom.json_values import members
from transom.protocol import wire
from transom.protocol.peer import Peer, Progress
from transom.session import OnProgress, SentRequest, Session

_log = logging.getLogger("transom.gateway")

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 200
_MAX_INCOMING = 10_000  # requests of the client that are worked on at the same time
_MAX_OUTGOING = 100_000  # requests to the client; each server has a limit of its own


class RequestHandler(Protocol):
    """What a proxy does with the messages of its client."""

    def pass_on(self, request: wire.Request) -> SentRequest | None:
        """Send a request to a server whose result is the answer; None when there is more to do."""
        ...

    async def handle_request(self, request: wire.Request) -> bytes:
        """Answer a request with a result as JSON."""
        ...

    def handle_notification(self, notification: wire.Notification) -> None:
        """Take a notification."""
        ...

    def wait_for_servers(self) -> Awaitable[None] | None:
        """What to await while the servers are slow to read."""
        ...


class Client:
    """One client.

    Args:
        channel: the connection to it.
        handler: what is done with its messages.
    """

    def __init__(self, channel: Channel, handler: RequestHandler) -> None:
        self._handler = handler
        self._queued = False
        self._session = Session(
            Throttled(channel, self._wait_for_room),
            on_request=self._handle_request,
            on_notification=self._handle_notification,
            on_problem=_report,
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
        """What to await while the client is slow to read."""
        return None if self._session.writable else self._session.wait_writable()

    def _wait_for_room(self) -> Awaitable[None] | None:
        return self._handler.wait_for_servers() or self.wait_writable()

    # --- from the client ---------------------------------------------------------------------

    def _handle_request(self, request: wire.Request) -> Awaitable[bytes | Raw]:
        passed = None if self._queued else self._handler.pass_on(request)
        if passed is not None:
            return passed
        self._queue()
        return self._handler.handle_request(request)

    def _handle_notification(self, notification: wire.Notification) -> None:
        if self._queued:
            handle = self._handler.handle_notification
            asyncio.get_running_loop().call_soon(_guarded, handle, notification)
        else:
            _guarded(self._handler.handle_notification, notification)

    def _queue(self) -> None:
        """Have what comes next wait behind a task that is about to begin."""
        if not self._queued:
            self._queued = True
            # Runs right before the task begins, and nothing is read in between.
            asyncio.get_running_loop().call_soon(self._unqueue)

    def _unqueue(self) -> None:
        self._queued = False

    # --- to the client -----------------------------------------------------------------------

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification. One that is gone gets nothing."""
        with suppress(NotConnected):
            self._session.notify_soon(method, params)

    def send_request(
        self, method: str, params: bytes | None, *, on_progress: OnProgress | None = None
    ) -> SentRequest:
        """Send a request at once. The result fails with the client's error.

        Raises:
            NotConnected: the client is gone.
        """
        return self._session.send(method, params, on_progress=on_progress)

    async def request(self, method: str, params: bytes | None) -> bytes:
        """Send a request; the result as JSON. Cancelling it is told to the client.

        Raises:
            ProtocolError: the client's error.
            ConnectionClosed, NotConnected: the client is gone.
        """
        return bytes(await self.send_request(method, params))

    def progress_relay(self, params: Raw | None) -> OnProgress | None:
        """What passes progress on to the client, under the token in its request's params.

        None when it did not ask for progress.
        """
        token = progress_token(params)
        if token is None:
            return None

        def relay(progress: Progress) -> None:
            params = wire.encode({**members(progress.params), "progressToken": token})
            self.notify("notifications/progress", params)

        return relay


def progress_token(params: Raw | bytes | None) -> Raw | None:
    """The progress token of a request, unread; None when it has none."""
    if params is None or b'"progressToken"' not in bytes(params):
        return None
    return members(members(params).get("_meta")).get("progressToken")


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
