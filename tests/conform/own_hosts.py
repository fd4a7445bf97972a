"""Hosts under `transom conform`: a `Host` on each renderer, web applications, the gateway.

Where a host shows Views on a page, a user sits at it: a program that agrees to every question,
changes the theme and closes Views, with Chromium's own mouse.
"""

import asyncio
import sys
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from playwright.async_api import Error, Page

from tests.browser.application import Site, site
from tests.browser.hosting import Chromium
from tests.conform.official import measure_official
from transom.background import ignore
from transom.channel import memory_pair
from transom.conform.driving import DrivenTransomHost, measure
from transom.conform.report import ConformReport
from transom.conform.server import ConformServer, other_server
from transom.gateway import Gateway
from transom.host.asking.policy import Policy
from transom.host.host import Host
from transom.host.views.renderers import Renderer
from transom.json_values import as_list, as_object
from transom.protocol import wire
from transom.protocol.methods import read_result
from transom.session import Session
from transom.types import HostContext, ToolResult
from transom.version import __version__
from transom.web.csp import CspMode
from transom.web.local.headless import HeadlessRenderer
from transom.web.local.renderers import BrowserRenderer

_LOOK = {
    "safeAreaInsets": {"top": 0, "right": 0, "bottom": 0, "left": 0},
    "styles": {"variables": {"--color-text-primary": "light-dark(#111, #eee)"}},
}
_CONTEXT = {
    **_LOOK,
    "theme": "light",
    "displayMode": "inline",
    "availableDisplayModes": ["inline", "fullscreen"],
    "containerDimensions": {"width": 500, "maxHeight": 600},
    "locale": "de-AT",
    "timeZone": "Europe/Vienna",
    "platform": "web",
    "deviceCapabilities": {"touch": False, "hover": True},
}

_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "transom-conform", "version": __version__},
}

_SECOND = [sys.executable, "-m", "transom", "conform", "host", "--second"]


async def measure_host(renderer: Renderer, timeout: float, name: str) -> ConformReport:
    """Measure a `Host` with a renderer that has no user."""
    server = ConformServer(timeout=timeout, other=True)
    context = HostContext.from_wire(_CONTEXT)
    host = Host(renderer=renderer, policy=Policy.trusting(), context=context)
    host.on_error(ignore)  # the instruments send what is wrong on purpose
    async with server.probes(), host:
        await _connect(host, server)
        await measure(server, DrivenTransomHost(host, server))
    return server.report(name)


async def measure_headless(csp: CspMode, _: Chromium, timeout: float) -> ConformReport:
    """Measure a `Host` whose Views are in Chromium, without a window."""
    name = f"`Host` with `HeadlessRenderer`, {csp} policy"
    return await measure_host(HeadlessRenderer(csp=csp), timeout, name)


async def measure_stage(browser: Chromium, timeout: float) -> ConformReport:
    """Measure a `Host` whose Views are on the Stage, a page in the user's browser."""
    server = ConformServer(timeout=timeout, other=True)
    look = HostContext.from_wire(_LOOK)
    async with (
        server.probes(),
        _stage(browser) as (renderer, page),
        Host(renderer=renderer.seat(), policy=Policy.trusting(), context=look) as host,
    ):
        host.on_error(ignore)
        await _connect(host, server)
        await measure(server, _HostOnPage(host, server, page))
    return server.report("`Host` with `BrowserRenderer`: the Stage, strict policy")


async def measure_application(browser: Chromium, timeout: float) -> ConformReport:
    """Measure a web application whose page has a `<transom-stage>`."""
    server = ConformServer(timeout=timeout, other=True)

    class Measured(Site):
        csp = "strict"

        async def connect(self, user: str, host: Host) -> None:
            host.on_error(ignore)
            await _connect(host, server)

    async with server.probes(), browser.user() as user, site(of=Measured) as application:
        page = await application.open(user.context)
        host = await application.views.host("ada")
        assert isinstance(host, Host)
        async with _agreeing(page):
            await measure(server, _HostOnPage(host, server, page))
    return server.report("`WebViews`: the page of a web application, strict policy")


async def measure_gateway(browser: Chromium, timeout: float) -> ConformReport:
    """Measure the gateway with a client, its Views on the Stage."""
    server = ConformServer(timeout=timeout, other=True)
    async with server.probes(mcp=True) as address, _stage(browser) as (renderer, page):
        servers = {"conform": f"{address}/mcp", "other": _SECOND}
        async with (
            Gateway(servers, renderer=_Screen(renderer), view_calls="spec") as gateway,
            _client(gateway) as client,
        ):
            await measure(server, _DrivenGateway(client, page))
    return server.report("`transom gateway`, its Views on the Stage, strict policy")


async def _connect(host: Host, server: ConformServer) -> None:
    await host.add_server("conform", server.mcp)
    await host.add_server("other", other_server())


# --- the user --------------------------------------------------------------------------------


@asynccontextmanager
async def _stage(browser: Chromium) -> AsyncIterator[tuple[BrowserRenderer, Page]]:
    """The Stage, and its page with a user before it."""
    async with (
        browser.user() as user,
        user.renderer(csp="strict", ephemeral=True) as renderer,
    ):
        await renderer.show_page()
        async with _agreeing(user.page):
            yield renderer, user.page


@asynccontextmanager
async def _agreeing(page: Page) -> AsyncIterator[None]:
    """While this runs, the user agrees to whatever the page asks."""
    button = page.get_by_role("alertdialog").get_by_role("button").first

    async def agree() -> None:
        while True:
            with suppress(Error):  # it was withdrawn meanwhile
                await button.click(timeout=0)

    task = asyncio.create_task(agree())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _darken(page: Page) -> bool:
    await page.emulate_media(color_scheme="dark")
    await page.evaluate("document.documentElement.className = 'dark'")  # for an application's page
    return True


async def _close_last(page: Page) -> bool:
    await page.get_by_role("button", name="Close: ").last.click()
    return True


class _HostOnPage(DrivenTransomHost):
    """A `Host` whose Views a user has before them."""

    def __init__(self, host: Host, server: ConformServer, page: Page) -> None:
        super().__init__(host, server, opens_links=False)
        self._page = page

    async def change_theme(self) -> bool:
        return await _darken(self._page)

    async def close_view(self) -> bool:
        return await _close_last(self._page)


# --- the gateway -----------------------------------------------------------------------------


class _Screen:
    """A Stage that was open before the gateway."""

    pictures = False
    drives = True

    def __init__(self, renderer: BrowserRenderer) -> None:
        self._renderer = renderer

    async def seat(self, client_name: str) -> Renderer:
        return self._renderer.seat(client_name)

    def where(self) -> str | None:
        return None


@asynccontextmanager
async def _client(gateway: Gateway) -> AsyncIterator[Session]:
    """A client of the gateway with the handshake of MCP, as most agents are."""
    ours, theirs = memory_pair()
    serving = asyncio.create_task(gateway.serve(theirs))
    client = Session(ours, on_request=lambda _: b"{}", on_notification=ignore)
    try:
        async with client:
            await client.request("initialize", wire.encode(_HELLO))
            await client.notify("notifications/initialized")
            yield client
    finally:
        await serving


class _DrivenGateway:
    """The gateway under test, as its client, that client's model and the user have it."""

    def __init__(self, client: Session, page: Page) -> None:
        self._client = client
        self._page = page
        self._texts: list[str] = []

    async def list_tools(self) -> list[str]:
        listed = as_list(msgspec.json.decode(await self._client.request("tools/list"))["tools"])
        return [str(as_object(tool)["name"]) for tool in listed]

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> object:
        named = next(each for each in await self.list_tools() if each.endswith(name))
        params = wire.encode({"name": named, "arguments": arguments})
        raw = await self._client.request("tools/call", params)
        self._texts.append(read_result("tools/call", ToolResult, raw).text)
        return raw

    async def read(self) -> str:
        await self.call_tool("conform_model_only", {})  # what Views said is in the next result
        return "\n".join(self._texts)

    async def change_theme(self) -> bool:
        return await _darken(self._page)

    async def close_view(self) -> bool:
        return await _close_last(self._page)


LEGS: dict[str, Callable[[Chromium, float], Awaitable[ConformReport]]] = {
    "headless": partial(measure_headless, "strict"),
    "compat": partial(measure_headless, "compat"),
    "stage": measure_stage,
    "application": measure_application,
    "gateway": measure_gateway,
    "official": measure_official,
}
"""What is measured, by its name in differences.toml."""


def differences() -> dict[str, dict[str, dict[str, str]]]:
    """What is known not to hold, or not to be measured, and why: leg, outcome, requirement."""
    return tomllib.loads(Path(__file__).with_name("differences.toml").read_text("utf-8"))
