"""Sessions joined for a test: to each other, or to a bare channel that the test speaks on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from transom.channel import Channel, memory_pair
from transom.protocol import wire
from transom.session import Session

Serve = Callable[[wire.Request], bytes | Awaitable[bytes]]


class Log:
    """What a session told its owner."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.problems: list[BaseException] = []
        self.closed: list[str] = []

    @property
    def complaints(self) -> list[str]:
        return [str(problem) for problem in self.problems]


def logged_session(channel: Channel, serve: Serve, **options: Any) -> tuple[Session, Log]:
    log = Log()
    options.setdefault("on_notification", lambda notice: log.heard.append(notice.method))
    session = Session(
        channel,
        on_request=serve,
        on_error=log.problems.append,
        on_closed=log.closed.append,
        **options,
    )
    return session, log


def empty(_: wire.Request) -> bytes:
    return b"{}"


@asynccontextmanager
async def joined(serve: Serve = empty, **options: Any) -> AsyncIterator[tuple[Session, Session]]:
    """A session that asks, with these options, and one that serves."""
    near, far = memory_pair()
    asking, _ = logged_session(near, empty, **options)
    serving, _ = logged_session(far, serve)
    async with asking, serving:
        yield asking, serving


class Wire:
    """The other end of a session's channel: speaks and hears bare messages."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel

    async def hear(self) -> dict[str, Any]:
        """The next message of the session."""
        return msgspec.json.decode(await self.channel.receive())

    def said(self) -> list[dict[str, Any]]:
        """All that the session has sent and nobody has heard yet."""
        messages = self.channel._incoming.messages  # type: ignore[attr-defined]
        unread = [msgspec.json.decode(message) for message in messages]
        messages.clear()
        return unread

    async def say(self, **members: object) -> None:
        await self.channel.send(msgspec.json.encode({"jsonrpc": "2.0", **members}))


class Bare:
    """A session and the bare wire at its other end."""

    def __init__(self, session: Session, log: Log, wire: Wire) -> None:
        self.session = session
        self.log = log
        self.wire = wire


@asynccontextmanager
async def bare(
    serve: Serve = empty, *, capacity: int = 1024, **options: Any
) -> AsyncIterator[Bare]:
    """A session with these options and the bare wire at its other end."""
    near, far = memory_pair(capacity=capacity)
    session, log = logged_session(near, serve, **options)
    async with session:
        yield Bare(session, log, Wire(far))


async def turns(count: int = 10) -> None:
    """Let everything that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)


class Clock:
    """Moves the time of the event loop on without waiting."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        real = loop.time
        self._ahead = 0.0
        loop.time = lambda: real() + self._ahead  # type: ignore[method-assign]

    async def advance(self, seconds: float) -> None:
        self._ahead += seconds
        await turns()
