"""A View with `transom.js` in a frame, in a host page that does what the test says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
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


class View:
    """A View in its frame, and the host around it."""

    def __init__(self, page: Page) -> None:
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
    def frame(self) -> Frame:
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
    context: BrowserContext, *, host: str | None = None, view: str = "", csp: str = STRICT
) -> AsyncIterator[View]:
    """A host page and the page of a View at their addresses; `mount(VIEW_URL)` shows the View.

    A window is used again, since making one costs more than most tests.
    """

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
    context: BrowserContext, view: str, *, ready: bool = True, refuse: str = "", **options: Any
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
