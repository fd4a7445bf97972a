"""HTTP requests and WebSockets that arrive at one worker and are served by another.

A worker claims a name first, and reaches the worker that has it if that fails (`claim_or_reach`).
The worker that has the connection sends its ASGI scope as the hello of a channel, then the messages
it receives; the other worker runs an ASGI application and sends back the application's messages.
The first worker has authenticated the request, and passes the result in the `context`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeVar

import msgspec

from transom.bus.bus import Bus
from transom.bus.channels import OnOpen
from transom.channel import Channel
from transom.errors import BusError, BusUnreachable, ChannelClosed, NoOwner, OutcomeUnknown

Scope = MutableMapping[str, Any]
"""What a request of ASGI is about."""
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
"""Gives the next event of an ASGI request."""
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
"""Takes the next event of the answer to an ASGI request."""
_Here = TypeVar("_Here")
_There = TypeVar("_There")
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

EXTENSION = "transom"
_PASSED_ON = (
    *("type", "http_version", "method", "scheme", "path", "raw_path", "query_string"),
    *("root_path", "headers", "client", "server", "subprotocols"),
)
_ATTEMPTS = 5  # to find the worker that has a name
_RESTARTING = 1012  # the close code after which a page reconnects

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


async def claim_or_reach(
    claim: Callable[[], Awaitable[_Here | None]], reach: Callable[[], Awaitable[_There]]
) -> _Here | _There:
    """What `claim` returns; if that is None, because another worker has it, what `reach` returns.

    A worker that could not be reached may have released it, or be dead: then it is claimed again.

    Raises:
        BusUnreachable, OutcomeUnknown: as `claim` and `reach` raise them.
        BusError: it was claimed by another worker each time, and that could not be reached.
    """
    moved: BusError | None = None
    for _ in range(_ATTEMPTS):
        if (here := await claim()) is not None:
            return here
        try:
            return await reach()
        except (BusUnreachable, OutcomeUnknown):
            raise
        except BusError as error:
            moved = error
    raise BusError(f"It moves from worker to worker, try again: {moved}") from moved


async def forward(
    bus: Bus,
    name: str,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    context: Mapping[str, Any] | None = None,
    kind: str = "asgi",
) -> None:
    """Forward an HTTP request or a WebSocket to the worker that has a name.

    Args:
        bus: connects the workers.
        name: the name of the other worker's lease.
        scope: of ASGI.
        receive: of ASGI.
        send: of ASGI.
        context: the user, and anything else that the other worker should rely on.
        kind: the kind that the other worker passed to `Bus.on_open`.

    Raises:
        OutcomeUnknown: the other worker was lost meanwhile. A WebSocket that was accepted by then
            is closed instead, with a code that tells its page to connect again.
        BusError: the other worker was not reached; the cases are those of `Bus.open`.
    """
    hello = {key: scope[key] for key in _PASSED_ON if key in scope}
    channel = await bus.open(name, kind, _encode((hello, context or {})))
    pump = asyncio.create_task(_pump(channel, receive))
    begun = False
    try:
        while True:
            message: MutableMapping[str, Any] = _decode(await channel.receive())
            begun = True
            await send(message)
            if _is_last(message):
                return
    except ChannelClosed as closed:
        if pump.done() and not pump.cancelled() and pump.exception() is None:
            return  # the client disconnected first
        if begun and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _RESTARTING, "reason": "Try again"})
            return
        if isinstance(error := getattr(channel, "error", None), NoOwner):
            raise error from None
        raise OutcomeUnknown(f"The worker that served it was lost: {closed}") from None
    finally:
        pump.cancel()
        await channel.aclose()
        await asyncio.wait([pump])


async def _pump(channel: Channel, receive: Receive) -> None:
    """Forward the client's messages until it disconnects."""
    while True:
        message = await receive()
        await channel.send(_encode(message))
        if message["type"].endswith(".disconnect"):
            return


def _is_last(message: MutableMapping[str, Any]) -> bool:
    if message["type"] == "http.response.body":
        return not message.get("more_body")
    return message["type"] == "websocket.close"


def serve_forwarded(app: Application) -> OnOpen:
    """A handler for `Bus.on_open` that serves forwarded requests with an ASGI application.

    The application finds the name and the context in `scope["extensions"]["transom"]`.
    """

    async def serve(name: str, hello: bytes, channel: Channel) -> None:
        passed_on, context = _decode(hello)
        scope: Scope = {
            **passed_on,
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "extensions": {EXTENSION: {"name": name, "context": context}},
            "state": {},
        }
        scope["headers"] = [(key, value) for key, value in passed_on["headers"]]
        for address in ("client", "server"):
            if passed_on.get(address) is not None:
                scope[address] = tuple(passed_on[address])
        gone: MutableMapping[str, Any] = {"type": f"{scope['type']}.disconnect"}
        if scope["type"] == "websocket":
            gone["code"] = 1006

        async def receive() -> MutableMapping[str, Any]:
            try:
                return _decode(await channel.receive())
            except ChannelClosed:
                return dict(gone)

        async def send(message: MutableMapping[str, Any]) -> None:
            try:
                await channel.send(_encode(message))
            except ChannelClosed as closed:
                if scope["type"] == "websocket":
                    raise OSError(str(closed)) from None

        await app(scope, receive, send)

    return serve
