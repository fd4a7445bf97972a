"""A View with `transom.js` in a frame, in a host page that does what the test says.

In Chromium, or in Node for what needs no page: see `Node`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

from playwright.async_api import BrowserContext, ConsoleMessage, Error, Frame, Page, Route

from transom.server.resource import inline_transom

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "transom" / "web" / "static" / "transom.js"
PAGES = ROOT / "tests" / "web" / "js"
STRICT = "default-src 'none'; script-src 'unsafe-inline'"
HOST_URL = "https://host.invalid/"
VIEW_URL = "https://view.invalid/"
UNUSED = WeakSet[Page]()
"""Windows of earlier tests. They stay at the host's address: leaving it would end its process."""


def page_with(script: str, *, kind: str = "module", body: str = "") -> str:
    """An HTML page that asks for `transom.js` and runs a script."""
    asks = 'import { App, ToolError, ProtocolError } from "transom";' if kind == "module" else ""
    tag = "" if kind == "module" else '<script src="transom.js"></script>'
    return (
        f"<!doctype html><html><head><meta charset=utf-8><title>A View</title>{tag}</head>"
        f'<body>{body}<script type="{kind}">{asks}\n{script}\n</script></body></html>'
    )


class Node:
    """Views and their hosts in one process of Node: a View is shown in a few milliseconds.

    What is posted is cloned, and a View has a realm of its own, as in a browser. There is no
    document: what a page looks like, loads or is forbidden to do is for Chromium.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asked = 0
        self._shown = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator[Node]:
        """A process, until the block ends."""
        process = await asyncio.create_subprocess_exec(
            "node",
            str(PAGES / "node_host.mjs"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**26,
        )
        node = cls(process)
        try:
            yield node
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()
            await node._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            number, said = json.loads(line)
            self._answers.pop(number).set_result(said)

    async def ask(
        self, view: int, where: str, script: str | None, argument: Any = None
    ) -> dict[str, Any]:
        """Run something in a View or its host; the value, or the error, and the console."""
        assert self._process.stdin is not None
        self._asked += 1
        answer = asyncio.get_running_loop().create_future()
        self._answers[self._asked] = answer
        request = [self._asked, view, where, script, argument]
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        return await answer

    @asynccontextmanager
    async def window(self, html: str) -> AsyncIterator[NodePage]:
        """A host whose `mount` shows this page."""
        self._shown += 1
        page = NodePage(self, self._shown)
        await self.ask(page.number, "mount", inline_transom(html))
        yield page
        await self.ask(page.number, "mount", None)


class NodeRealm:
    """Where scripts run: in a View, or in its host."""

    def __init__(self, page: NodePage, where: str) -> None:
        self._page = page
        self._where = where

    async def evaluate(self, script: str, argument: Any = None) -> Any:
        """What a script comes to, as Playwright has it."""
        said = await self._page.node.ask(self._page.number, self._where, script, argument)
        for text in said["console"]:
            self._page.write(text)
        assert "error" not in said, said["error"]
        return said.get("value")


class NodePage:
    """What a `View` uses of a page."""

    def __init__(self, node: Node, number: int) -> None:
        self.node = node
        self.number = number
        self.frames = [NodeRealm(self, "host"), NodeRealm(self, "view")]
        self.evaluate = self.frames[0].evaluate
        self._listeners: list[Callable[[Any], object]] = []

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Have what is written to the console; errors are written there too."""
        if event == "console":
            self._listeners.append(listener)

    def write(self, text: str) -> None:
        """Something was written to the console: `error: something`."""
        kind, _, rest = text.partition(": ")
        for listener in self._listeners:
            listener(SimpleNamespace(type=kind, text=rest))


class View:
    """A View in its frame, and the host around it."""

    def __init__(self, page: Page | NodePage) -> None:
        self.page = page
        self.console: list[str] = []
        """What the View and the host wrote to the console, and errors nobody caught."""
        page.on("console", self._note)
        page.on("pageerror", self._note_error)

    def _note(self, message: ConsoleMessage) -> None:
        self.console.append(f"{message.type}: {message.text}")

    def _note_error(self, error: Error) -> None:
        self.console.append(f"uncaught: {error.message}")

    async def leave(self) -> None:
        """Leave the page to the next test, without the View."""
        self.page.remove_listener("console", self._note)
        self.page.remove_listener("pageerror", self._note_error)
        await self.page.evaluate("document.body.replaceChildren()")
        UNUSED.add(self.page)

    @property
    def frame(self) -> Frame | NodeRealm:
        """The View's own frame."""
        return self.page.frames[1]

    async def run(self, script: str, argument: Any = None) -> Any:
        """Evaluate something in the View."""
        return await self.frame.evaluate(script, argument)

    async def until(self, condition: str) -> None:
        """Wait until something holds in the View, whose policy forbids Playwright's own way."""
        await self.frame.evaluate(
            f"async () => {{ while (!({condition})) await new Promise((go) => setTimeout(go)); }}"
        )

    async def ask(self, method: str, params: Any = None) -> Any:
        """Ask the View; the whole answer, `{"result": ...}` or `{"error": ...}`."""
        return await self.page.evaluate("([m, p]) => ask(m, p ?? undefined)", [method, params])

    async def tell(self, method: str, params: Any = None) -> None:
        """Notify the View, and wait until it has heard."""
        await self.page.evaluate("([m, p]) => tell(m, p ?? undefined)", [method, params])
        await self.ask("ping")

    async def post(self, message: Any) -> None:
        """Post anything to the View."""
        await self.page.evaluate("m => post(m)", message)

    async def heard(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until the View has sent `count` messages of a method; all of them."""
        return await self.page.evaluate("([m, n]) => heard(m, n)", [method, count])

    async def seen(self, method: str | None = None) -> list[dict[str, Any]]:
        """The messages the View has sent so far. A ping makes sure that all have arrived."""
        await self.ask("ping")
        messages: list[dict[str, Any]] = await self.page.evaluate("seen")
        return [m for m in messages if method is None or m.get("method") == method]

    async def tools(self) -> list[dict[str, Any]]:
        """The tools the View lists."""
        return (await self.ask("tools/list"))["result"]["tools"]

    async def names(self) -> list[str]:
        """The names of the tools the View lists."""
        return [tool["name"] for tool in await self.tools()]

    async def call(self, name: str, arguments: Any = None, **more: Any) -> Any:
        """Call a tool; the result.

        Raises:
            AssertionError: the View answered with an error.
        """
        answer = await self.ask("tools/call", {"name": name, "arguments": arguments, **more})
        assert "result" in answer, answer
        return answer["result"]

    async def text(self, name: str, arguments: Any = None) -> str:
        """Call a tool; the text of its result."""
        return (await self.call(name, arguments))["content"][0]["text"]


@asynccontextmanager
async def host_page(
    context: BrowserContext | Node, *, host: str | None = None, view: str = "", csp: str = STRICT
) -> AsyncIterator[View]:
    """A host page and the page of a View at their addresses; `mount(VIEW_URL)` shows the View.

    A window is used again, since making one costs more than most tests.
    """
    if isinstance(context, Node):
        async with context.window(view) as window:
            yield View(window)
        return

    async def answer(route: Route) -> None:
        if route.request.url == HOST_URL:
            body = (PAGES / "host.html").read_text() if host is None else host
            await route.fulfill(body=body, content_type="text/html")
        elif route.request.url == VIEW_URL:
            headers = {"content-type": "text/html", "content-security-policy": csp}
            await route.fulfill(body=inline_transom(view), headers=headers)
        elif route.request.url in (VIEW_URL + "transom.js", VIEW_URL + "webmcp.js"):
            file = LIBRARY.with_name(route.request.url.removeprefix(VIEW_URL))
            headers = {"content-type": "text/javascript", "access-control-allow-origin": "*"}
            await route.fulfill(body=file.read_text(), headers=headers)
        else:
            await route.abort()

    await context.route("**/*", answer)
    unused = [each for each in context.pages if each in UNUSED]
    page = unused[0] if unused and host is None else await context.new_page()
    UNUSED.discard(page)
    shown = View(page)
    await page.goto(HOST_URL)
    yield shown
    await (shown.leave() if host is None else page.close())
    await context.unroute("**/*", answer)


@asynccontextmanager
async def mounted(
    context: BrowserContext | Node,
    view: str,
    *,
    ready: bool = True,
    refuse: str = "",
    **options: Any,
) -> AsyncIterator[View]:
    """A View, shown; with `ready` (the default) once it has said that it is initialised."""
    async with host_page(context, view=view, **options) as shown:
        if refuse:
            error = {"error": {"code": -32000, "message": refuse}}
            await shown.page.evaluate("answer => { answers['ui/initialize'] = answer }", error)
        await shown.page.evaluate("url => mount(url)", VIEW_URL)
        if ready:
            await shown.heard("ui/notifications/initialized")
        yield shown
