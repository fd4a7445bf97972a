"""What a View in a browser costs, beside a bare WebSocket and two postMessage hops.

Both are pages of one Chromium, measured by turns. The bare one (`benchmarks/pages`) has the same
three frames and passes the same messages, and does nothing else: nothing is numbered, kept,
checked or answered for.

    python -m benchmarks.browser_rows
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.responses import FileResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from benchmarks.page import print_lines
from benchmarks.processes import held_by_descendants
from transom import Host, Limits, Policy
from transom.host.views.view import View
from transom.server.views import Views
from transom.web import HeadlessRenderer

__all__ = ["measure", "opening", "opening_many", "through_the_stage"]

PAGES = Path(__file__).parent / "pages"
URI = "ui://bench/view.html"
BUDGET = 1.3
OPENING_BUDGET = 1.5
IN_FLIGHT = 100

Call = Callable[[], Awaitable[object]]


# --- the bare one ----------------------------------------------------------------------------


class Bare:
    """A WebSocket to a page whose frame has a frame."""

    def __init__(self) -> None:
        self._socket: WebSocket | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next = 0
        self.ready = asyncio.Event()

    def app(self) -> Starlette:
        """Serves the three pages and the socket."""

        def page(name: str) -> Route:
            async def serve(_: object) -> FileResponse:
                return FileResponse(PAGES / name)

            return Route(f"/{name}", serve)

        pages = [page(name) for name in ("stage.html", "sandbox.html", "view.html")]
        return Starlette(routes=[*pages, WebSocketRoute("/socket", self._serve)])

    async def _serve(self, socket: WebSocket) -> None:
        await socket.accept()
        self._socket = socket
        try:
            while True:
                message = msgspec.json.decode(await socket.receive_text())
                if "method" in message:
                    self.ready.set()
                elif message["id"] in self._waiting:
                    self._waiting.pop(message["id"]).set_result(message["result"])
        except WebSocketDisconnect:
            pass

    async def call(self) -> object:
        """The request that a tool call is, and its answer."""
        assert self._socket is not None
        self._next += 1
        answer = self._waiting[self._next] = asyncio.get_running_loop().create_future()
        params = {"name": "add", "arguments": {"a": 1, "b": 2}}
        message = {"jsonrpc": "2.0", "id": self._next, "method": "tools/call", "params": params}
        await self._socket.send_text(msgspec.json.encode(message).decode())
        return await answer


class _Served(uvicorn.Server):
    """Uvicorn on a free port, until it is told to end."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                port=0,
                log_level="error",
                lifespan="off",
                ws="websockets-sansio",
                ws_per_message_deflate=False,
            )
        )
        self._up = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._up.set()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Its port."""
        task = asyncio.create_task(self._serve())
        await self._up.wait()
        yield self.servers[0].sockets[0].getsockname()[1]
        self.should_exit = self.force_exit = True
        await task


@asynccontextmanager
async def bare(renderer: HeadlessRenderer) -> AsyncIterator[Call]:
    """The bare arrangement, in a page of that renderer's browser; a call through it."""
    bare = Bare()
    assert renderer.page is not None
    async with _Served(bare.app()).serving() as port:
        page = await renderer.page.context.new_page()
        sandbox = f"http://bare.localhost:{port}"
        await page.goto(f"http://127.0.0.1:{port}/stage.html#{sandbox}")
        await bare.ready.wait()
        yield bare.call
        await page.close()


# --- ours ------------------------------------------------------------------------------------


class BrowserHost(NamedTuple):
    """A Host whose Views are in Chromium."""

    host: Host
    renderer: HeadlessRenderer

    async def open(self) -> View:
        """Open a View; it is initialised."""
        result = await self.host.call_tool("show")
        note = (result.meta or {})["transom/view"]
        assert note["state"] == "live", note
        return self.host.views[note["id"]]

    async def settled(self) -> None:
        """The page has loaded what the next View needs: that is not at the cost of the peer."""
        assert self.renderer.page is not None
        await self.renderer.page.wait_for_selector("iframe[data-spare=ready]", state="attached")


@asynccontextmanager
async def shown() -> AsyncIterator[BrowserHost]:
    """A server, its Host, and a browser that has started."""
    views = Views()
    page = views.add(URI, html=PAGES / "view.html")

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def show() -> str:
        """Open a View."""
        return "shown"

    renderer = HeadlessRenderer(timeout=60)
    async with Host(
        renderer=renderer,
        policy=Policy.trusting(),
        audit=None,
        limits=Limits(max_live_views=60),
        open_timeout=60,
    ) as host:
        await host.add_server("bench", MCPServer("bench", extensions=[views]))
        made = BrowserHost(host, renderer)
        view = await made.open()  # the browser starts here
        await made.settled()
        await view.close()
        yield made


def through(view: View) -> Call:
    """A call through host, Stage, sandbox and View."""
    return lambda: view.call_tool("add", {"a": 1, "b": 2})


# --- figures ---------------------------------------------------------------------------------


async def one_by_one(call: Call, calls: int) -> list[float]:
    """Seconds that each call takes, one after the other."""
    times: list[float] = []
    for _ in range(calls):
        began = time.perf_counter()
        await call()
        times.append(time.perf_counter() - began)
    return times


async def together(call: Call, calls: int) -> list[float]:
    """Seconds per call with 100 in flight."""
    each = calls // IN_FLIGHT

    async def some() -> None:
        for _ in range(each):
            await call()

    began = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(IN_FLIGHT)))
    return [(time.perf_counter() - began) / (each * IN_FLIGHT)]


class Compared(NamedTuple):
    """The medians of ours and theirs, in seconds."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """How many times as long ours takes."""
        return self.ours / self.theirs


async def by_turns(
    ours: Call, theirs: Call, figure: Callable[..., Awaitable[list[float]]], calls: int, turns: int
) -> Compared:
    """A few calls of ours, a few of theirs, and again: what else the machine does hits both."""
    mine: list[float] = []
    its: list[float] = []
    for turn in range(turns + 2):
        one, other = await figure(ours, calls), await figure(theirs, calls)
        if turn > 1:  # the first ones are for warming up
            mine += one
            its += other
    return Compared(median(mine), median(its))


async def through_the_stage(seconds: float = 1.0) -> dict[str, Compared]:
    """Calls through the Stage and through the bare arrangement."""
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(shown())
        ours = through(await made.open())
        theirs = await stack.enter_async_context(bare(made.renderer))
        return {
            "one by one": await by_turns(ours, theirs, one_by_one, 20, int(100 * seconds)),
            "together": await by_turns(ours, theirs, together, 500, int(20 * seconds)),
        }


_FRAMES = """({count, port}) =>
Promise.all(Array.from({length: count}, () => new Promise((done) => {
  const frame = document.createElement("iframe");
  addEventListener("message", ({source}) => source === frame.contentWindow && done());
  frame.src = `http://${crypto.randomUUID()}.localhost:${port}/sandbox.html#${location.origin}`;
  document.body.append(frame);
})))"""
_NO_FRAMES = "() => document.querySelectorAll('iframe').forEach((frame) => frame.remove())"


@asynccontextmanager
async def bare_frames(renderer: HeadlessRenderer) -> AsyncIterator[Callable[..., Awaitable[float]]]:
    """Opens so many pairs of nested frames, each on a fresh origin; seconds until they talk."""
    assert renderer.page is not None
    async with _Served(Bare().app()).serving() as port:
        page = await renderer.page.context.new_page()
        await page.goto(f"http://127.0.0.1:{port}/stage.html")
        await page.evaluate(_NO_FRAMES)

        async def open_frames(count: int) -> float:
            began = time.perf_counter()
            await page.evaluate(_FRAMES, {"count": count, "port": port})
            took = time.perf_counter() - began
            await page.evaluate(_NO_FRAMES)
            return took

        yield open_frames
        await page.close()


async def opening(views: int = 15) -> Compared:
    """From a tool's call to its initialised View, by turns with bare frames; the medians."""
    async with shown() as made, bare_frames(made.renderer) as frames:
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(views):
            began = time.perf_counter()
            view = await made.open()
            ours.append(time.perf_counter() - began)
            await made.settled()
            await view.close()
            theirs.append(await frames(1))
        return Compared(median(ours), median(theirs))


async def opening_many(views: int = 50, turns: int = 2) -> Compared:
    """The same with so many at once; the best of each."""
    async with shown() as made, bare_frames(made.renderer) as frames:
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(turns):
            began = time.perf_counter()
            opened = await asyncio.gather(*(made.open() for _ in range(views)))
            ours.append(time.perf_counter() - began)
            await made.settled()
            await asyncio.gather(*(view.close() for view in opened))
            theirs.append(await frames(views))
        return Compared(min(ours), min(theirs))


async def fifty_views(seconds: float = 1.0, views: int = 50) -> tuple[Compared, float]:
    """A call to one of so many Views beside a call to one alone; MB of the browser for each."""
    async with shown() as made:
        alone = await made.open()
        before = median(await one_by_one(through(alone), int(500 * seconds)))
        memory = held_by_descendants(os.getpid())
        await asyncio.gather(*(made.open() for _ in range(views - 1)))
        memory = (held_by_descendants(os.getpid()) - memory) / (views - 1) / 1024
        after = median(await one_by_one(through(alone), int(500 * seconds)))
        return Compared(after, before), memory


def measure(seconds: float = 1.0) -> list[tuple[Any, ...]]:
    """The rows of `make bench`."""
    calls = asyncio.run(through_the_stage(seconds))
    names = {"one by one": "call through Stage and View", "together": "the same, 100 in flight"}
    lines: list[tuple[Any, ...]] = [
        _line(names[key], found, "bare WebSocket, 2 hops", BUDGET) for key, found in calls.items()
    ]
    for name, found in (
        ("tool call to initialised View", asyncio.run(opening())),
        ("50 Views opened at once", asyncio.run(opening_many())),
    ):
        ours, theirs, ratio = found.ours * 1000, found.theirs * 1000, found.ratio
        ok = ratio <= OPENING_BUDGET
        budget = f"<= {OPENING_BUDGET}x the time"
        lines.append((name, ours, "ms", "bare frames", theirs, ratio, budget, ok))
    many, memory = asyncio.run(fifty_views(seconds))
    return [
        *lines,
        _line("call, 50 live Views", many, "1 live View"),
        ("memory of a View in Chromium", memory, "MB", "", None, None, "", None),
    ]


def _line(name: str, found: Compared, against: str, budget: float | None = None) -> tuple[Any, ...]:
    ok = None if budget is None else found.ratio <= budget
    most = "" if budget is None else f"<= {budget}x the time"
    return name, 1 / found.ours, "/s", against, 1 / found.theirs, found.ratio, most, ok


if __name__ == "__main__":
    print_lines(measure())
