"""Everything a stranger may send, read from bytes: to a gateway, over a page's link, to the check.

Each target raises when something escapes: an exception that nobody handled, an error that is
logged with a traceback, a gateway, a Stage or a check that does not answer any more.
`tests.fuzz.guided` looks for such bytes, and `corpus/` keeps those that reached something new.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from tests.check.fake import MIME, SHOW, URI, result
from tests.check.test_fuzz import Anything, report_on, require_whole
from tests.gateway.memory import Raw, Server, text
from transom import Host, InProcessRenderer, Limits, Policy
from transom.channel import Channel, ChannelClosed, memory_pair
from transom.check.rules.csp import DeclaredOrigins, WebOrigin, origin_of, unsafe
from transom.check.scan import HtmlScan
from transom.connections.connection import ServerConnection
from transom.errors import PeerError
from transom.gateway.client_host import ViewOptions
from transom.gateway.proxy import Proxy
from transom.host.asking.policy import Allow
from transom.host.views.ui_resource import UIResource
from transom.web.seat import MARK, Seat, SeatOptions
from transom.web.stage import Hello, Stage, StageListener

MAX_LINES = 40
_ANSWER_WITHIN = 20.0
_INTRODUCTION = {
    "appInfo": {"name": "fuzzed", "version": "1"},
    "appCapabilities": {"tools": {"listChanged": True}},
    "protocolVersion": "2026-01-26",
}
_VIEW_TOOLS = [
    {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "write", "inputSchema": {"type": "object"}},
]


class Escaped(AssertionError):
    """Something came through that should not have."""


class _Log(logging.Handler):
    """Keeps what is logged with a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            self.errors.append(logging.Formatter().format(record))


def _run(work: Callable[[], Awaitable[None]]) -> None:
    """Run it in a loop of its own. Whatever goes wrong beside it counts as well."""
    log, root = _Log(), logging.getLogger("transom")

    async def watched() -> None:
        def unhandled(_: Any, context: dict[str, Any]) -> None:
            log.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

        asyncio.get_running_loop().set_exception_handler(unhandled)
        async with asyncio.timeout(_ANSWER_WITHIN):
            await work()

    propagates = root.propagate
    root.addHandler(log)
    root.propagate = False
    try:
        asyncio.run(watched())
    finally:
        root.removeHandler(log)
        root.propagate = propagates
    if log.errors:
        raise Escaped(log.errors[0])


async def _turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# --- the gateway -----------------------------------------------------------------------------


class _View(Raw):
    """A View that answers like any other, and sends what it is made to send."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(
            channel,
            {
                "tools/list": {"tools": _VIEW_TOOLS},
                "tools/call": text("done"),
                "ping": {},
                "ui/resource-teardown": {},
            },
        )

    async def introduce(self) -> None:
        await self.ask("ui/initialize", _INTRODUCTION)
        await self.tell("ui/notifications/initialized")


class _Renderer(InProcessRenderer):
    def __init__(self, views: list[_View]) -> None:
        super().__init__({})
        self._views = views
        self._introducing: set[asyncio.Task[None]] = set()

    async def open(self, page: UIResource) -> Channel:
        ours, theirs = memory_pair()
        view = _View(theirs)
        self._views.append(view)
        task = asyncio.create_task(view.introduce())
        self._introducing.add(task)
        task.add_done_callback(self._introducing.discard)
        return ours

    async def approve(self, request: Any) -> Allow:
        return Allow()

    async def screenshot(self, view_id: str) -> bytes:
        return b"\x89PNG"


class _Screen:
    pictures = drives = True

    def __init__(self) -> None:
        self.views: list[_View] = []

    async def seat(self, client: str) -> _Renderer:
        return _Renderer(self.views)

    def where(self) -> str:
        return "http://stage.test/"


def gateway(data: bytes) -> None:
    """Lines to a gateway with an open View: `s` from its server, `v` from the View, else client."""

    async def work() -> None:
        server, screen = Server({"tools/call": text("called")}), _Screen()
        ours, theirs = memory_pair()
        views = ViewOptions(screen, approval="page")  # type: ignore[arg-type]
        running = asyncio.create_task(Proxy(ours, [("shop", server.connect)], views).run())
        client = Raw(theirs, {"sampling/createMessage": None, "roots/list": {"roots": []}})
        try:
            await client.ask(
                "initialize",
                {
                    "protocolVersion": "2025-11-25",
                    "clientInfo": {"name": "raw", "version": "1"},
                    "capabilities": {"sampling": {}, "roots": {}},
                },
            )
            await client.tell("notifications/initialized")
            await client.ask("tools/list")
            await client.ask("tools/call", {"name": "show"})
            for line in data.split(b"\n")[:MAX_LINES]:
                sender, rest = line[:1], line[1:]
                if sender == b"s":
                    await server.now.channel.send(rest)
                elif sender == b"v" and screen.views and not screen.views[-1].task.done():
                    with suppress(ChannelClosed):  # as the View is told in the same moment
                        await screen.views[-1].channel.send(rest)
                else:
                    await client.channel.send(rest)
                await _turns()
            # An id that is in none of the lines, since one that is in use is not answered.
            id = hashlib.sha256(data).hexdigest()
            answer = asyncio.get_running_loop().create_future()
            client._waiting[id] = answer
            await client.say({"id": id, "method": "tools/call", "params": {"name": "plain"}})
            message = await answer
            if ("result" in message) == ("error" in message):
                raise Escaped(f"an answer that is none: {message}")
            if running.done():
                raise Escaped("the gateway ended")
        finally:
            await client.aclose()
            await running
            for raw in [*server.starts, *screen.views]:
                await raw.aclose()

    _run(work)


# --- the link to a page ----------------------------------------------------------------------


@asynccontextmanager
async def _connected() -> AsyncIterator[ServerConnection]:
    server = Server()
    connection = ServerConnection("shop", server.connect)
    await connection.start()
    await connection.negotiate(timeout=5)
    try:
        yield connection
    finally:
        await connection.aclose()
        for start in server.starts:
            await start.aclose()


class OnePage(StageListener):
    """A user with one page, whose Stage is not served."""

    url = "http://127.0.0.1:1/"

    def __init__(self) -> None:
        self.options = SeatOptions(confirm=True, keeps_closed=True)
        self.stage = Stage(listener=self, origin=self.url[:-1], sandbox="http://*.localhost:2")
        self.stages = [self.stage]
        self.seats: list[Seat] = []

    def surroundings_changed(self, stage: Stage) -> None:
        for seat in self.seats:
            seat.set_surroundings(stage.surroundings)

    def stage_of(self, _: str) -> Stage:
        return self.stage

    async def show_page(self, _: str) -> Stage:
        return self.stage

    async def label(self, *_: object) -> None:
        return None

    def take(self, seat: Seat) -> None:
        self.seats.append(seat)

    def leave(self, seat: Seat) -> None:
        self.seats.remove(seat)


def link(data: bytes) -> None:
    """What a page sends to its Stage, parted by zero bytes.

    A frame after `+` gets its number, and `v` is the View there is. `=` stands for a socket that
    is lost and comes back.
    """

    async def work() -> None:
        pages = OnePage()
        stage, seat = pages.stage, Seat(pages, f"{MARK}1", "fuzzed")
        policy, limits = Policy(approve=seat.approve), Limits(teardown_timeout=0.01)
        async with (
            Host(renderer=seat, policy=policy, limits=limits) as host,
            _connected() as server,
        ):
            await host.add_server("shop", server)
            page, sent = stage.connect_page(Hello(token=stage.token), stage.origin)[0], list[str]()
            page.attach(sent.append, 0)
            page.feed('1 -\n{"do":"surroundings","value":{}}')
            opening = asyncio.create_task(host.call_tool("show", {}))
            while not stage.views:  # noqa: ASYNC110 - it is shown within a few turns
                await asyncio.sleep(0)
            for piece in data.split(b"\0")[:MAX_LINES]:
                frame = piece.decode("utf-8", "replace")  # a socket takes nothing else
                view, _, message = frame[1:].partition("\n")
                with suppress(PeerError):  # the socket is closed, and another one comes
                    if frame[:1] == "=":
                        page.detach(sent.append, leaving=view == "leaving")
                        page.attach(sent.append, 0)
                    elif frame[:1] == "+":
                        view = next(iter(stage.views), view) if view == "v" else view
                        page.feed(f"{page.received + 1} {view}\n{message}")
                    else:
                        page.feed(frame)
                await _turns()
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            if not page.over:
                sent.clear()
                page.feed("0")
                for _ in range(100):  # several pings may share an answer, so it takes a moment
                    if not sent:
                        await asyncio.sleep(0.01)
                if not sent:
                    raise Escaped("the link does not answer any more")
            stage.close()

    _run(work)


# --- transom check ---------------------------------------------------------------------------

_NO_ORIGIN = WebOrigin("https", "a.example", 443)


def check(data: bytes) -> None:
    """A server's answers, parted by zero bytes: page, tools, resources, a page and a result."""
    html, *parts = data.split(b"\0")
    page = html.decode("utf-8", "replace")
    for reference in HtmlScan(page).references:
        DeclaredOrigins([page, reference.url]).cover(origin_of(reference.url) or _NO_ORIGIN)
    unsafe(page)
    given: list[Any] = []
    for part in [*parts, b"", b"", b"", b""][:4]:
        try:
            given.append(msgspec.json.decode(part))
        except (ValueError, RecursionError):  # msgspec has its own for bytes that are no text
            given.append(None)
    tools, resources, read, called = given
    if read is None:
        read = {"contents": [{"uri": URI, "mimeType": MIME, "text": page}]}

    async def work() -> None:
        require_whole(
            await report_on(
                Anything(
                    [SHOW] if tools is None else tools,
                    [{"uri": URI, "mimeType": MIME}] if resources is None else resources,
                    read,
                    result() if called is None else called,
                )
            )
        )

    _run(work)


TARGETS = {"gateway": gateway, "link": link, "check": check}
