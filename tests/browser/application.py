"""An application whose page shows Views, in Chromium."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import BrowserContext
from playwright.async_api import Page as BrowserPage
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route as AppRoute

from tests.browser.hosting import server
from transom import Host, Policy
from transom.host.views.view import View
from transom.serving import listen, serve
from transom.web import Sandbox, UserLimits, WebViews
from transom.web.csp import CspMode
from transom.web.seat import Seat

COUNT = """
let calls = 0;
tools.count = () => { calls += 1; return calls; };
tools.theme = () =>
  told.reduce((theme, { params }) => params?.theme ?? theme, host.hostContext.theme);
"""
PAGE = """<!doctype html><meta charset="utf-8" />
<style>:root { color-scheme: light; } .dark { color-scheme: dark; }
button, iframe { border: 9px solid red !important; }</style>
%s
<script>
globalThis.seen = [];
for (const name of ["opened", "closed", "problem", "recovered"]) {
  document.addEventListener(name, ({ detail }) => seen.push([name, detail.view ?? detail.kind]));
}
</script>
<body>%s</body>"""


class Site:
    """A page at `/`, for whoever the cookie `user` names; and their Hosts."""

    csp: CspMode = "compat"

    def __init__(self, origin: str, show_within: float) -> None:
        self.origin = origin
        self.views = WebViews(
            authenticate=self.who,
            servers=self.connect,
            make_host=self.make_host,
            limits=UserLimits(show_within=show_within),
            sandbox=Sandbox(csp=self.csp),
        )
        self.script = '<script type="module" src="/transom/elements.js"></script>'
        self.body = "<transom-stage></transom-stage>"
        self.view_script = COUNT
        self.asks = False

    def who(self, connection: HTTPConnection) -> str | None:
        return connection.cookies.get("user")

    async def connect(self, user: str, host: Host) -> None:
        made, _ = server(self.view_script)
        await host.add_server("tests", made)

    def make_host(self, _: str, seat: Seat) -> Host:
        policy = Policy(approve=seat.approve) if self.asks else Policy.trusting()
        return Host(renderer=seat, policy=policy, open_timeout=40, audit=None)

    async def page(self, _: Request) -> HTMLResponse:
        return HTMLResponse(PAGE % (self.script, self.body))

    async def orders(self, request: Request) -> JSONResponse:
        host = await self.views.host(request.cookies["user"])
        result = await host.call_tool("show")
        return JSONResponse({"text": result.text, "view": result.meta["transom/view"]["id"]})

    async def open(self, context: BrowserContext, user: str = "ada") -> BrowserPage:
        """That user's page, when it is connected."""
        await context.add_cookies([{"name": "user", "value": user, "url": self.origin}])
        page = await context.new_page()
        welcomed = asyncio.Event()
        page.on("websocket", lambda opened: opened.on("framereceived", lambda _: welcomed.set()))
        await page.goto(self.origin)
        async with asyncio.timeout(30):
            await welcomed.wait()
        return page


@asynccontextmanager
async def site(show_within: float = 30, of: type[Site] = Site) -> AsyncIterator[Site]:
    sock = listen("127.0.0.1", 0)
    made = of(f"http://localhost:{sock.getsockname()[1]}", show_within)
    routes = [AppRoute("/", made.page), AppRoute("/orders", made.orders, methods=["POST"])]
    app = made.views.middleware(Starlette(routes=routes))
    async with serve(app, [sock], ws="websockets-sansio", ws_max_size=20 * 1024 * 1024):
        yield made
        await made.views.aclose()


async def opened(host: Host) -> View:
    told: asyncio.Queue[View] = asyncio.Queue()
    host.on_view_opened(told.put_nowait)
    return await told.get()


def live(page: BrowserPage, view_id: str = "tests-1") -> Any:
    return page.locator(f'transom-view[view="{view_id}"][data-state=live]')
