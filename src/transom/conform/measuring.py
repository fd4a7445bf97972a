"""Measures a View: a page, the View of a server's tool, or one that is written in Python."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from transom.check.observing import BrowserWatch
from transom.check.schemas import fitting_arguments
from transom.conform.report import ConformReport
from transom.conform.requirements import Measurements
from transom.conform.strict_host import StrictHost
from transom.connections.connection import ServerConnection
from transom.connections.targets import Target, connect
from transom.errors import ProtocolError, Refused, UsageError
from transom.host.tools.tool_visibility import links_view, view_may_call
from transom.host.views.renderers import InProcessRenderer, MakeApp, Renderer
from transom.host.views.ui_resource import UIResource, load_ui_resource, view_uri
from transom.json_values import Json, JsonObject, as_object, clean
from transom.testing.page_server import page_server
from transom.types import Tool
from transom.web.local.headless import HeadlessRenderer

_MAX_PAGE = 10 * 1024 * 1024
_UNMEASURED = {
    "host": "the View did not start, or did not do that",
    "page": "needs a browser",
    "tools": "the View has no tool with which that could be tried",
    "bare": "the View did not start",
}


class ViewSource(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown to measure a View: its page, and the call that it shows."""

    resource: UIResource
    arguments: JsonObject = {}
    result: JsonObject = msgspec.field(default_factory=lambda: {"content": []})
    server: ServerConnection | None = None
    tools: dict[str, Tool] = {}

    async def call_server(self, method: str, params: JsonObject) -> Json:
        """Forward a request of the View to its server."""
        if self.server is None:
            raise Refused("There is no server")
        if method == "tools/call":
            tool = self.tools.get(str(params.get("name")))
            if tool is None or not view_may_call(tool):
                raise Refused("The View may not call that tool")
        return msgspec.json.decode(await self.server.request(method, params))


@asynccontextmanager
async def view_of_server(
    target: Target, tool: str | None = None, arguments: JsonObject | None = None
) -> AsyncGenerator[ViewSource]:
    """The View of a server's tool, which is called once, for real.

    Args:
        target: the server.
        tool: its tool; not needed if only one opens a View.
        arguments: those of the call; by default what its schema requires, made up.
    """
    server = await connect(target)
    try:
        tools = await server.tools()
        opening = [name for name, each in tools.items() if links_view(each.meta)]
        chosen = tool or (opening[0] if len(opening) == 1 else None)
        if chosen not in opening:
            has = ", ".join(opening[:20]) or "none"
            raise UsageError(
                f"Name the tool whose View is measured; these open one: {clean(has, 500)}"
            )
        found = tools[chosen]
        given = arguments
        if given is None:
            given = fitting_arguments(as_object(found.input_schema)) or {}
        uri = view_uri(found) or ""
        resource = await load_ui_resource(
            server, view_id="conform-1", server_name="conform", uri=uri, max_bytes=_MAX_PAGE
        )
        try:
            raw = await server.request("tools/call", {"name": chosen, "arguments": given})
            result = as_object(msgspec.json.decode(raw))
        except ProtocolError as error:
            text: JsonObject = {"type": "text", "text": f"{chosen} failed: {error}"}
            result: JsonObject = {"content": [text], "isError": True}
        yield ViewSource(
            resource=resource, arguments=given, result=result, server=server, tools=dict(tools)
        )
    finally:
        await server.aclose()


@asynccontextmanager
async def view_of_page(page: Path) -> AsyncGenerator[ViewSource]:
    """A page that has no server; transom.js is put into it where it asks for that."""
    async with view_of_server(page_server("ui://conform/page.html", page, {}, "")) as source:
        yield source


async def measure_view(source: ViewSource, name: str, *, timeout: float = 5.0) -> ConformReport:
    """Measure a View in Chromium."""
    watch = BrowserWatch()
    renderer = HeadlessRenderer(on_console=watch.console, on_violation=watch.violation)
    async with renderer:
        measured = await measure_in(renderer, source, timeout)
        if measured.outcome("initialized-sent") == "pass":
            sent = measured.outcome("size-sent") is not None
            if not sent:
                measured.add("size-sent", "fail", "it did not come")
            uncaught = [text for kind, text in watch.lines if kind == "uncaught"]
            measured.check("page-errors", not uncaught, "; ".join(uncaught[:3]))
            blocked = [f"{directive} {address}" for directive, address in watch.blocked]
            measured.check("page-policy", not blocked, "; ".join(blocked[:3]))
    return ConformReport("view", name, tuple(measured.verdicts()))


async def measure_app(make: MakeApp, name: str, *, timeout: float = 5.0) -> ConformReport:
    """Measure a View that is written in Python."""
    uri = "ui://conform/app.html"
    resource = UIResource(view_id="conform-1", server="conform", uri=uri, html="")
    async with InProcessRenderer({uri: make}) as renderer:
        measured = await measure_in(renderer, ViewSource(resource=resource), timeout)
    return ConformReport("view", name, tuple(measured.verdicts()))


async def measure_in(renderer: Renderer, source: ViewSource, timeout: float) -> Measurements:
    """Show the View in a host that offers everything, and in one that offers nothing."""
    measured = Measurements("view", _UNMEASURED)
    for bare in (False, True):
        view_id = "conform-2" if bare else "conform-1"  # a View is shown once
        resource = msgspec.structs.replace(source.resource, view_id=view_id)
        async with AsyncExitStack() as stack:
            channel = await renderer.open(resource)
            stack.push_async_callback(channel.aclose)
            host = StrictHost(
                channel,
                measured,
                call_server=source.call_server,
                arguments=source.arguments,
                result=source.result,
                bare=bare,
                timeout=timeout,
            )
            await host.run()
        if host.sent_size and not bare:
            measured.add("size-sent", "pass")
        if measured.outcome("initialized-sent") != "pass":
            break
    return measured
