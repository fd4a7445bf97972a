"""Replicas of a gateway behind a load balancer: any of them accepts any request.

1. Each session and principal is at one replica, which has a lease for it. Any other replica checks
   the token and forwards the request there.
2. A session ends with its replica: its client gets "not found", and begins another. A principal is
   taken over by the replica that gets its next request.
3. A request is never forwarded twice: if its replica is lost meanwhile, it is answered with an
   error that says so.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transom.bus import Bus, Lease, forward, serve_forwarded
from transom.errors import SERVER_ERROR, BusError, OutcomeUnknown
from transom.gateway.http_session import problem
from transom.protocol import wire

_log = logging.getLogger("transom.gateway")

_KIND: Final = "gateway"
_UNKNOWN: Final = (
    "The replica of the gateway that served this was lost: whether it was carried out is not known"
)
_VIEWS: Final = "views"  # the record of a principal's Views


class Replicas:
    """The other replicas of a gateway, reached through a bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def serve(self, app: ASGIApp) -> None:
        """Serve forwarded requests with this application."""
        self._bus.on_open(_KIND, serve_forwarded(app))

    async def claim(self, name: str, on_lost: Callable[[], object]) -> Lease | None:
        """Claim a session or a principal; None if another replica has it.

        Raises:
            BusUnreachable: Redis cannot be reached.
        """
        return await self._bus.claim(name, lambda _: on_lost())

    async def records(self, lease: Lease) -> bytes | None:
        """The records of a principal's Views, written by the replica that had it before."""
        try:
            return (await self._bus.records(lease.name)).get(_VIEWS)
        except BusError as error:
            _log.warning("what was open before is not known: %s", error)
            return None

    @staticmethod
    def keep(lease: Lease) -> Callable[[bytes], Awaitable[None]]:
        """A function that stores what the principal's next replica needs."""
        return lambda records: lease.write({_VIEWS: records})

    async def forward(
        self,
        name: str,
        id: wire.RequestId | None,
        body: bytes,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Forward a request to the replica that has the session or principal.

        Args:
            name: of the lease.
            id: the request's id.
            body: the request's body, which has been received.
            scope: as ASGI has it.
            receive: as ASGI has it.
            send: as ASGI has it.

        Raises:
            BusError: it was not forwarded.
        """
        whole: list[Message] = [{"type": "http.request", "body": body}]
        streams = begun = False

        async def receive_again() -> Message:
            return whole.pop() if whole else await receive()

        async def watch(message: Message) -> None:
            nonlocal begun, streams
            begun = True
            if message["type"] == "http.response.start":
                streams = (b"content-type", b"text/event-stream") in message["headers"]
            await send(message)

        try:
            await forward(self._bus, name, scope, receive_again, watch, kind=_KIND)
        except OutcomeUnknown as error:
            _log.warning("%s", error)
            # Not a status after which a load balancer would retry with another replica.
            answer = problem(200, SERVER_ERROR, _UNKNOWN, id)
            if not begun:
                await answer(scope, receive, send)
            elif streams:
                last = b"event: message\ndata: " + bytes(answer.body) + b"\n\n"
                await send({"type": "http.response.body", "body": last if id is not None else b""})
            else:
                raise
