"""One server behind the gateway, for one client: kept up, asked, and listened to.

1. The client's requests go to the server under the client's own ids, byte for byte where nothing
   has to be added. What the gateway itself asks goes out under ids that no client uses.
2. Whatever is in flight when the server goes is answered: nobody waits for one that is gone.
3. A server that goes comes back: at once, then after a pause that doubles each time. It is made to
   know again what it was told before (`resume`), and only then does anybody else reach it.
4. A server that cannot be started at all the first time is a failure that `start` raises; it is
   tried again only when told so (`start_later`).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from transom.channel import Channel
from transom.errors import (
    SERVER_ERROR,
    ChannelClosed,
    ConnectionClosed,
    MessageRefused,
    ProtocolError,
)
from transom.events import is_awaitable
from transom.protocol import wire
from transom.protocol.peer import Progress
from transom.queues import Outbox
from transom.session import OnProgress

__all__ = ["Connect", "Leg", "LegEvents", "Relay"]

_log = logging.getLogger("transom.gateway")

Connect = Callable[[], Awaitable[Channel]]
"""Starts a server and returns the pipe to it."""

Relay = OnProgress

_PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_HEALTHY = 60.0  # seconds after which a fall counts as the first one
_RESUME_WITHIN = 30.0
_MAX_BYTES = 32 * 1024 * 1024
_MAX_DEPTH = 200


class LegEvents(Protocol):
    """Who listens to the server."""

    def server_said(self, leg: Leg, message: wire.Message, data: bytes) -> None:
        """A message that answers nothing the gateway asked."""
        ...

    async def room_for(self, leg: Leg) -> None:
        """Wait until there is room for more of what the server says."""
        ...

    def server_lost(self, leg: Leg, reason: str) -> None:
        """The server is gone; it will be started again."""
        ...

    def server_back(self, leg: Leg) -> None:
        """It is there again, and knows what it was told before."""
        ...


class _Progress(msgspec.Struct, rename="camel"):
    progress_token: str | int
    progress: float
    total: float | None = None
    message: str | None = None


class _Head(msgspec.Struct):
    id: str | int
    method: object = msgspec.UNSET


class _Asked:
    __slots__ = ("answer", "relay")

    def __init__(self, answer: asyncio.Future[wire.Response], relay: Relay | None) -> None:
        self.answer = answer
        self.relay = relay


class Leg:
    """One server.

    Args:
        name: what it is called.
        connect: starts it and returns the pipe to it.
        events: told of everything that the gateway did not ask for.
        resume: makes a server that was started anew know what the one before knew.
        resume_within: seconds for that. None: `resume` sees to it itself.
    """

    def __init__(
        self,
        name: str,
        connect: Connect,
        events: LegEvents,
        resume: Callable[[Leg], Awaitable[None]],
        *,
        resume_within: float | None = _RESUME_WITHIN,
    ) -> None:
        self.name = name
        self.up = False
        """Whether requests reach it."""
        self.reason = "it was not started"
        """Why they do not."""
        self.starts = 0
        """How often it was started."""
        self._connect = connect
        self._events = events
        self._resume = resume
        self._resume_within = resume_within
        self._channel: Channel | None = None
        self._outbox: Outbox | None = None
        self._asked: dict[str, _Asked] = {}
        self._prefix = f"transom-{secrets.token_hex(4)}-"
        self._numbers = itertools.count(1)
        self._turn = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._relays: set[asyncio.Future[Any]] = set()
        self._closed = False

    # --- life --------------------------------------------------------------------------------

    async def start(self, *, resume: bool = False) -> None:
        """Start it for the first time.

        Args:
            resume: whether it has to be told something first, as one that comes back has.

        Raises:
            NotConnected: it cannot be started.
        """
        channel = await self._connect()
        self._attach(channel)
        if not resume:
            self._set_up()
        self._task = asyncio.create_task(self._run(channel, 0), name=f"transom-leg-{self.name}")

    def start_later(self, reason: str) -> None:
        """It could not be started, for this reason: keep trying, with pauses."""
        self.reason = reason
        self._task = asyncio.create_task(self._run(None, 1), name=f"transom-leg-{self.name}")

    async def aclose(self) -> None:
        """Stop it for good. Safe to repeat."""
        self._closed = True
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if self._channel is not None:
            await self._channel.aclose()
        self._down("the gateway ended")

    async def ready(self, timeout: float) -> bool:
        """Wait until it can be asked; whether it can be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self.up and not self._closed:
                    self._turn.clear()
                    await self._turn.wait()
        return self.up

    async def room(self) -> None:
        """Wait while it is slow to read."""
        if self._outbox is not None:
            await self._outbox.room()

    def _attach(self, channel: Channel) -> None:
        self._channel = channel
        self._outbox = Outbox(channel, lambda _: None)  # its end is seen where it is read
        self.starts += 1

    def _set_up(self) -> None:
        self.up = True
        self._turn.set()

    def _down(self, reason: str) -> None:
        self.up = False
        self.reason = reason
        self._turn.set()
        if self._outbox is not None:
            self._outbox.close()
        asked, self._asked = self._asked, {}
        for each in asked.values():
            if not each.answer.done():
                each.answer.set_exception(ConnectionClosed(f"Server {self.name} is gone: {reason}"))
                each.answer.exception()  # its asker may have given up

    async def _run(self, channel: Channel | None, falls: int) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        reader: asyncio.Task[str] | None = None
        try:
            while True:
                if channel is None:
                    channel, falls = await self._start_again(falls)
                    since = loop.time()
                reader = asyncio.create_task(self._read(channel))
                failure = None if self.up else await self._bring_back(reader)
                reason = failure or await reader
                reader.cancel()
                self._down(reason)
                self._events.server_lost(self, reason)
                await channel.aclose()
                channel = None
                falls = 0 if loop.time() - since > _HEALTHY else falls
        finally:
            if reader is not None:
                reader.cancel()

    async def _start_again(self, falls: int) -> tuple[Channel, int]:
        while True:
            await asyncio.sleep(_PAUSES[min(falls, len(_PAUSES) - 1)])
            falls += 1
            try:
                channel = await self._connect()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next try may go better
                self.reason = str(error)[:500] or type(error).__name__
                continue
            self._attach(channel)
            return channel, falls

    async def _bring_back(self, reader: asyncio.Task[str]) -> str | None:
        """Have it know what it must; why that failed, unless it is because it is gone again."""
        resuming = asyncio.ensure_future(self._resume(self))
        try:
            await asyncio.wait(
                [resuming, reader],
                timeout=self._resume_within,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if reader.done():
                return None
            if not resuming.done():
                return f"it did not answer within {self._resume_within:g} s"
            if (error := resuming.exception()) is not None:
                return str(error)[:500] or type(error).__name__
            self._set_up()
            self._events.server_back(self)
            return None
        finally:
            resuming.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await resuming

    # --- from the server ---------------------------------------------------------------------

    async def _read(self, channel: Channel) -> str:
        """Read until the server is gone; why it went."""
        while True:
            try:
                data = await channel.receive()
            except ChannelClosed as error:
                return str(error)
            try:
                message = wire.decode(data, max_bytes=_MAX_BYTES, max_depth=_MAX_DEPTH)
            except MessageRefused as refusal:
                refused = self._refused(data, refusal)
                if refused is None:
                    continue
                message, data = refused
            try:
                if not self._answers(message):
                    self._events.server_said(self, message, data)
                    await self._events.room_for(self)
            except Exception:  # noqa: BLE001 - one message must not cut everybody off
                _log.exception("a message of server %s was lost", self.name)

    def _refused(
        self, data: bytes, refusal: MessageRefused
    ) -> tuple[wire.ErrorResponse, bytes] | None:
        """The error in place of an answer that cannot be read: whoever asked must not wait on.

        None for a line of something else, as a server that prints makes.
        """
        try:
            head = msgspec.json.decode(data, type=_Head)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
            return None
        if head.method is not msgspec.UNSET:
            return None
        text = f"Server {self.name} gave an answer that cannot be read: {refusal}"
        error = wire.WireError(SERVER_ERROR, text)
        return wire.ErrorResponse(head.id, error), wire.encode_error(head.id, SERVER_ERROR, text)

    def _answers(self, message: wire.Message) -> bool:
        if isinstance(message, wire.Notification):
            return message.method == "notifications/progress" and self._progressed(message)
        if isinstance(message, wire.Request):
            return False
        if not isinstance(message.id, str) or not message.id.startswith(self._prefix):
            return False
        asked = self._asked.pop(message.id, None)
        if asked is not None and not asked.answer.done():
            if isinstance(message, wire.Response):
                asked.answer.set_result(message)
            else:
                error = message.error
                data = None if error.data is msgspec.UNSET else error.data
                asked.answer.set_exception(ProtocolError(error.code, error.message, data))
        return True

    def _progressed(self, message: wire.Notification) -> bool:
        try:
            progress = msgspec.json.decode(message.params or b"", type=_Progress)
        except msgspec.DecodeError:
            return False
        token = progress.progress_token
        if not isinstance(token, str) or not token.startswith(self._prefix):
            return False
        asked = self._asked.get(token)
        if asked is not None and asked.relay is not None:
            told = Progress(token, progress.progress, progress.total, progress.message)
            telling = asked.relay(told)
            if is_awaitable(telling):
                task = asyncio.ensure_future(telling)
                self._relays.add(task)
                task.add_done_callback(self._relays.discard)
        return True

    # --- to the server -----------------------------------------------------------------------

    def post(self, data: bytes) -> None:
        """Send a message as it is. One that is gone gets nothing."""
        if self._outbox is not None:
            self._outbox.post(data)

    async def ask(
        self, method: str, params: msgspec.Raw | bytes | None, *, on_progress: Relay | None = None
    ) -> bytes:
        """Ask the server for the gateway's own sake; the result as JSON.

        Cancelling it tells the server to stop.

        Raises:
            ProtocolError: the server's error.
            ConnectionClosed: it is gone.
        """
        if self._closed or self._outbox is None:
            raise ConnectionClosed(f"Server {self.name} is gone: {self.reason}")
        id = f"{self._prefix}{next(self._numbers)}"
        if on_progress is not None:
            params = _with_token(params, id)
        asked = _Asked(asyncio.get_running_loop().create_future(), on_progress)
        self._asked[id] = asked
        self.post(wire.encode_request(id, method, None if params is None else bytes(params)))
        try:
            response = await asked.answer
        except asyncio.CancelledError as cancelled:
            if self._asked.pop(id, None) is not None and method != "initialize":
                reason = str(cancelled) or "The caller gave up"
                cancel = wire.encode({"requestId": id, "reason": reason})
                self.post(wire.encode_notification("notifications/cancelled", cancel))
            raise
        return bytes(response.result)


def _with_token(params: msgspec.Raw | bytes | None, token: str) -> bytes:
    given = {} if params is None else msgspec.json.decode(params, type=dict[str, msgspec.Raw])
    meta = msgspec.json.decode(given.get("_meta", b"{}"), type=dict[str, msgspec.Raw])
    meta["progressToken"] = msgspec.Raw(wire.encode(token))
    given["_meta"] = msgspec.Raw(wire.encode(meta))
    return wire.encode(given)
