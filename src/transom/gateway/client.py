"""The client of a gateway: one conversation with it, and the order of its messages.

1. A request of the client's runs as a task, a notification as a callback. Both begin in the next
   turn of the event loop, in the order in which they arrived, so whatever a request sends on
   without waiting goes out before a notification that came after it.
2. Every request is answered once, whatever becomes of the servers: with a result, or with an error.
   One that the client cancels is not answered.
3. The client is read only while it and the servers take what they are sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Raw

from transom.channel import Channel, Throttled
from transom.errors import (
    INTERNAL_ERROR,
    SERVER_ERROR,
    NotConnected,
    PeerError,
    ProtocolError,
    TransomError,
)
from transom.json_values import members
from transom.protocol import wire
from transom.protocol.peer import Peer, Progress
from transom.session import OnProgress, Session

__all__ = ["MAX_BYTES", "MAX_DEPTH", "Client", "progress_token"]

_log = logging.getLogger("transom.gateway")

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 200
_MAX_INCOMING = 10_000  # requests of the client that are worked on at the same time
_MAX_OUTGOING = 100_000  # requests to the client; each server has a limit of its own

HandleRequest = Callable[[wire.Request], Awaitable[bytes]]
HandleNotification = Callable[[wire.Notification], object]


class Client:
    """One client.

    Args:
        channel: the connection to it.
        handle_request: answers a request with a result as JSON.
        handle_notification: takes a notification.
        wait_for_servers: waits while the servers are slow to read.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        handle_request: HandleRequest,
        handle_notification: HandleNotification,
        wait_for_servers: Callable[[], Awaitable[object]],
    ) -> None:
        self._handle_request = handle_request
        self._wait_for_servers = wait_for_servers
        self._session = Session(
            Throttled(channel, self._wait_for_room),
            on_request=self._answer,
            on_notification=lambda notification: self.in_order(handle_notification, notification),
            on_problem=_report,
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

    async def wait_writable(self) -> None:
        """Wait while the client is slow to read."""
        await self._session.wait_writable()

    async def _wait_for_room(self) -> None:
        await self._wait_for_servers()
        await self._session.wait_writable()

    # --- from the client ---------------------------------------------------------------------

    async def _answer(self, request: wire.Request) -> bytes:
        try:
            return await self._handle_request(request)
        except ProtocolError:
            raise
        except TransomError as error:
            raise ProtocolError(SERVER_ERROR, str(error)) from error
        except Exception as error:
            _log.exception("%s could not be answered", request.method[:200])
            raise ProtocolError(INTERNAL_ERROR, "The gateway failed") from error

    @staticmethod
    def in_order(call: Callable[..., object], *arguments: object) -> None:
        """Call a function when everything that arrived before has begun to be handled."""
        asyncio.get_running_loop().call_soon(_guarded, call, *arguments)

    # --- to the client -----------------------------------------------------------------------

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification. One that is gone gets nothing."""
        with suppress(NotConnected):
            self._session.notify_soon(method, params)

    async def request(
        self, method: str, params: bytes | None, *, on_progress: OnProgress | None = None
    ) -> bytes:
        """Send a request; the result as JSON. Cancelling it is told to the client.

        Raises:
            ProtocolError: the client's error.
            ConnectionClosed, NotConnected: the client is gone.
        """
        _, answer = self._session.send(method, params, on_progress=on_progress)
        return bytes(await answer)

    def progress_relay(self, params: Raw | None) -> OnProgress | None:
        """What passes progress on to the client, under the token in its request's params.

        None when it did not ask for progress.
        """
        token = progress_token(params)
        if token is None:
            return None

        def relay(progress: Progress) -> None:
            told = {**members(progress.params), "progressToken": token}
            self.in_order(self.notify, "notifications/progress", wire.encode(told))

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


def _report(error: BaseException) -> None:
    if isinstance(error, PeerError):
        _log.info("the client broke a rule: %s", error)
    else:
        _log.error("the conversation with the client failed", exc_info=error)
