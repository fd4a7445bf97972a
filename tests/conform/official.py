"""The official `AppBridge` in a page (`official_host.mjs`), in a sandbox of its own origin."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from playwright.async_api import Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from tests.browser.bundling import bundled_page
from tests.browser.hosting import Chromium
from transom.conform.driving import measure
from transom.conform.report import ConformReport
from transom.conform.server import ConformServer
from transom.serving import listen, serve
from transom.web.csp import build_csp

HOST = Path(__file__).with_name("official_host.mjs")
SANDBOX = Path(__file__).with_name("official_sandbox.html")


async def _page(_: Request) -> HTMLResponse:
    return HTMLResponse(bundled_page(HOST))


async def _sandbox(request: Request) -> HTMLResponse:
    """With the policy that the page declares, as a header: nothing in the page can change it."""
    policy = build_csp(json.loads(request.query_params["csp"]), mode="strict", ancestors="*")
    return HTMLResponse(SANDBOX.read_text("utf-8"), headers={"Content-Security-Policy": policy})


@asynccontextmanager
async def _served() -> AsyncIterator[tuple[str, str]]:
    """The addresses of the host's page and of the sandbox, which are two origins."""
    sockets = [listen("127.0.0.1", 0), listen("127.0.0.1", 0)]
    routes = [Route("/", _page), Route("/sandbox", _sandbox)]
    async with serve(Starlette(routes=routes), sockets):
        host, sandbox = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in sockets)
        yield f"{host}/", f"{sandbox}/sandbox"


class OfficialHost:
    """The page; a `DrivenHost` without a model."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._numbers = count(1)

    async def list_tools(self) -> list[str]:
        return []

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> object:
        call = next(self._numbers)
        try:
            await self._page.evaluate("(all) => conform.call(...all)", [call, name, arguments])
        except asyncio.CancelledError:
            await self._page.evaluate("(call) => conform.cancel(call)", call)
            raise
        return None

    async def read(self) -> str | None:
        return None

    async def change_theme(self) -> bool:
        await self._page.evaluate("conform.darken()")
        return True

    async def close_view(self) -> bool:
        await self._page.evaluate("conform.close()")
        return True


async def measure_official(browser: Chromium, timeout: float) -> ConformReport:
    """Measure it."""
    server = ConformServer(timeout=timeout)
    async with (
        server.probes(mcp=True) as address,
        _served() as (host, sandbox),
        browser.user() as user,
    ):
        await user.open_page(host)
        await user.page.evaluate("(all) => conform.connect(...all)", [f"{address}/mcp", sandbox])
        await measure(server, OfficialHost(user.page))
    return server.report("official `AppBridge` (ext-apps 2.0.4) in a page")
