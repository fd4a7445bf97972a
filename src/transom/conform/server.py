"""The server that a host under test connects to: its tools open Views that measure the host.

1. An instrument reports with the tool `conform_report`. One that has declared the origin of the
   probes also reports there, for hosts that forward no calls.
2. What no View can see, the server observes: what the client declares, which page it reads, which
   link is opened. What the host's model has received is told with the tool `conform_tell`, by the
   model itself or by whoever drives the host.
3. The host is a stranger: what it sends is bounded, and a run without results ends as such.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import tomllib
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from transom.background import ignore
from transom.conform.report import ConformReport, as_html
from transom.conform.requirements import Measurements
from transom.errors import INVALID_PARAMS
from transom.json_values import as_list, as_object
from transom.protocol.messages import UI_EXTENSION, VIEW_MIME_TYPE
from transom.serving import listen, serve
from transom.version import __version__

VIEWS = ("main", "declared", "failing", "waiting")
_FOLDER = files("transom.conform")
_MAX_REPORT = 256 * 1024
_MAX_NAMES = 10_000
_BINARY = base64.b64encode(bytes([0, 1, 2, 3, 254, 253, 254])).decode()
_PERMISSIONS: dict[str, Any] = {"camera": {}, "geolocation": {}, "clipboardWrite": {}}
_UNMEASURED = {
    "view": "no instrument reported it",
    "page": "no instrument reported it",
    "server": "no client connected, or it opened no View",
    "model": "nobody called conform_tell",
    "action": "nobody did it: change the theme, call the View's tool, cancel, close the View",
}
_PROBES = {
    "/probe": ("text/plain", "probe"),
    "/script.js": ("text/javascript", "globalThis.conformScript = true;"),
    "/style.css": ("text/css", ":root { --conform-style: loaded; }"),
    "/image.svg": ("image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"/>'),
    "/frame.html": ("text/html", "<script>parent.postMessage('conform-frame', '*')</script>"),
}

_PAGES = r"http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"  # a host that is a page, on this machine

_Context = ServerRequestContext[Any, Any]


class _AnnouncingServer(Server[Any]):
    """Announces that its lists change."""

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        options = NotificationOptions(resources_changed=True, tools_changed=True)
        return super().create_initialization_options(options, *args, **kwargs)


class ConformServer:
    """The server, its probes, and what has been measured of the hosts that connected.

    Use it with `async with server.probes():`, which listens on two ports of this machine; `mcp` is
    then the server to connect to.

    Args:
        timeout: seconds after which an answer of the host counts as missing.
        other: whether a second server, with the tool `conform_other`, is connected to the host.
        on_report: called with the report whenever something was measured.
    """

    def __init__(
        self,
        *,
        timeout: float = 5.0,
        other: bool = False,
        on_report: Callable[[ConformReport], object] = ignore,
    ) -> None:
        self.measured = Measurements("host", _UNMEASURED)
        self.stamp = secrets.token_hex(4)
        self.origins = ("", "")
        """Where the probes are: the origin that Views declare, and the one that they do not."""
        self.changed = asyncio.Event()
        """Set at each report; whoever waits clears it."""
        self.timeout = timeout
        self._other = other
        self._on_report = on_report
        self._done: set[str] = set()
        self._reported: set[str] = set()
        self._wait_reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._bus = InMemorySubscriptionBus()
        self._tools = tomllib.loads(_FOLDER.joinpath("tools.toml").read_text("utf-8"))
        self.mcp: Server[Any] = _AnnouncingServer(
            "transom-conform",
            version=__version__,
            instructions="Measures the MCP Apps host that is connected. Begin with conform_start.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    # --- for whoever drives the host ---------------------------------------------------------

    async def until(self, holds: Callable[[], bool], *, timeout: float) -> bool:
        """Wait until something was reported; False if it was not, in this many seconds."""
        try:
            async with asyncio.timeout(timeout):
                while not holds():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            return False
        return True

    def done(self, view: str) -> bool:
        """Whether an instrument has reported all that it measures by itself."""
        return view in self._done

    def reported(self, view: str) -> bool:
        """Whether an instrument has reported anything."""
        return view in self._reported

    def report(self, name: str = "the host") -> ConformReport:
        """What has been measured so far."""
        return ConformReport("host", name, tuple(self.measured.verdicts()))

    # --- tools and resources -----------------------------------------------------------------

    async def _list_tools(self, ctx: _Context, _: object) -> types.ListToolsResult:
        self._observe_client(ctx)
        return types.ListToolsResult(tools=[self._tool(name) for name in self._tools])

    def _tool(self, name: str) -> types.Tool:
        declared = self._tools[name]
        ui: dict[str, Any] = {}
        if "visibility" in declared:
            ui["visibility"] = declared["visibility"]
        if "view" in declared:
            ui["resourceUri"] = _uri(declared["view"])
        schema = {"type": "object", "additionalProperties": True}
        made = {"name": name, "description": declared["description"], "inputSchema": schema}
        made["annotations"] = {"readOnlyHint": True}
        return types.Tool.model_validate({**made, **({"_meta": {"ui": ui}} if ui else {})})

    async def _call_tool(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        name, arguments = params.name, params.arguments or {}
        match name:
            case "conform_start" | "conform_declared" | "conform_failing":
                sent = {"stamp": self.stamp, "received": arguments}
                return self._result(json.dumps(sent), sent, failed=name == "conform_failing")
            case "conform_waiting":
                await asyncio.Event().wait()
            case "conform_tell":
                self._hear_model(arguments)
            case "conform_fail":
                return self._result("It failed, as it should.", {}, failed=True)
            case "conform_error":
                raise MCPError(-32050, "It failed, as it should.")
            case "conform_progress":
                await ctx.session.report_progress(1, 2, "half")
            case "conform_wait":
                await self._wait()
            case "conform_waits":
                return self._result("", {"reached": await self._reached(arguments)})
            case "conform_change":
                await self._announce_changes(ctx)
            case "conform_report":
                self._hear_view(arguments)
            case _ if name not in self._tools:
                raise MCPError(INVALID_PARAMS, f"There is no tool {name[:100]}")
            case _:
                pass
        return self._result(self.stamp, {"stamp": self.stamp, "received": arguments})

    def _result(
        self, text: str, structured: dict[str, Any], *, failed: bool = False
    ) -> types.CallToolResult:
        return types.CallToolResult.model_validate(
            {
                "content": [{"type": "text", "text": text}],
                "structuredContent": structured,
                "isError": failed,
                "_meta": {"conform/stamp": self.stamp},
            }
        )

    async def _wait(self) -> None:
        self._wait_reached["started"].set()
        try:
            await asyncio.Event().wait()
        finally:
            self._wait_reached["cancelled"].set()

    async def _reached(self, arguments: dict[str, Any]) -> bool:
        state = "cancelled" if arguments.get("state") == "cancelled" else "started"
        try:
            async with asyncio.timeout(self.timeout / 2):
                return await self._wait_reached[state].wait()
        except TimeoutError:
            return False

    async def _announce_changes(self, ctx: _Context) -> None:
        for event in (ToolsListChanged(), ResourcesListChanged()):
            await self._bus.publish(event)
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_resource_list_changed()

    async def _list_resources(self, ctx: _Context, _: object) -> types.ListResourcesResult:
        self._observe_client(ctx)
        listed = [{"uri": _uri(v), "name": v, "mimeType": VIEW_MIME_TYPE} for v in VIEWS]
        return types.ListResourcesResult.model_validate({"resources": listed})

    async def _read_resource(
        self, ctx: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        self._observe_client(ctx)
        uri = str(params.uri)
        view = next((view for view in VIEWS if uri == _uri(view)), None)
        found: dict[str, Any] = {"uri": uri}
        if uri == "conform://text":
            found |= {"mimeType": "text/plain", "text": self.stamp}
        elif uri == "conform://binary":
            found |= {"mimeType": "application/octet-stream", "blob": _BINARY}
        elif view is None:
            raise MCPError(-32002, "There is no such resource")
        else:
            self.measured.add("ui-resource-read", "pass")
            found |= {"mimeType": VIEW_MIME_TYPE, **self._page(view)}
        return types.ReadResourceResult.model_validate({"contents": [found]})

    def _page(self, view: str) -> dict[str, Any]:
        """An instrument; one is a blob, and declares what it needs."""
        declared, undeclared = self.origins
        opener = next(name for name, tool in self._tools.items() if tool.get("view") == view)
        setup = {
            "view": view,
            "stamp": self.stamp,
            "tool": opener,
            "timeout": self.timeout * 1000,
            "declared": declared,
            "undeclared": undeclared,
            "other": self._other,
            "umlaut": "ü",
        }
        html = _FOLDER.joinpath("instrument.html").read_text("utf-8")
        code = _FOLDER.joinpath("instrument.js").read_text("utf-8")
        html = html.replace("/*SETUP*/ {}", json.dumps(setup, ensure_ascii=False))
        html = html.replace("/*INSTRUMENT*/", code)
        if view != "declared":
            return {"text": html}
        domains = [declared, "https://conform.example; img-src *"]
        fields = ("connectDomains", "resourceDomains", "frameDomains")
        csp = dict.fromkeys(fields, domains)
        ui = {"csp": csp, "permissions": _PERMISSIONS, "prefersBorder": False}
        return {"blob": base64.b64encode(html.encode()).decode(), "_meta": {"ui": ui}}

    # --- what is observed --------------------------------------------------------------------

    def _observe_client(self, ctx: _Context) -> None:
        declared: Any = ctx.session.client_capabilities
        extensions = as_object(getattr(declared, "extensions", None))
        self.measured.check("negotiation-extension", UI_EXTENSION in extensions, "it does not")
        mime_types = as_object(extensions.get(UI_EXTENSION)).get("mimeTypes")
        holds = isinstance(mime_types, list) and VIEW_MIME_TYPE in mime_types
        self.measured.check("negotiation-mime-types", holds, f"mimeTypes is {mime_types!r:.100}")

    def _hear_view(self, report: dict[str, Any]) -> None:
        if report.get("stamp") != self.stamp:
            return  # a View of another run
        self.measured.take(report.get("verdicts"))
        if (view := report.get("view")) in VIEWS:
            self._reported.add(view)
            if report.get("done") is True:
                self._done.add(view)
        self._reported_more()

    def _hear_model(self, told: dict[str, Any]) -> None:
        names = [str(each) for each in as_list(told.get("tools"))[:_MAX_NAMES]]
        read, check = str(told.get("read")), self.measured.check
        if names:
            tools = self._tools.items()
            hidden = [
                name for name, tool in tools if "model" not in tool.get("visibility", "model")
            ]
            shown = [name for name in names if name.endswith(tuple(hidden))]
            check("visibility-hidden", not shown, f"the model has {', '.join(shown)}")
            offered = [name for name in names if "conform_view_" in name]
            check("app-tools-offered", offered, "the model has no tool of the View")
        if "read" in told:
            if self.measured.outcome("message-conversation") != "skip":
                said = f"{self.stamp}-message" in read
                check("message-conversation", said, "the model did not receive it")
            if self.measured.outcome("model-context-provided") != "skip":
                known = f"{self.stamp}-context" in read
                check("model-context-provided", known, "the model did not receive it")
                stale = f"{self.stamp}-earlier" in read
                check("model-context-last", not stale, "the model received the earlier one as well")
        self._reported_more()

    def _reported_more(self) -> None:
        self.changed.set()
        self._on_report(self.report())

    # --- probes ------------------------------------------------------------------------------

    @asynccontextmanager
    async def probes(self, port: int = 0, *, mcp: bool = False) -> AsyncGenerator[str]:
        """Serve the probes and the results page; with `mcp` also the server itself, at `/mcp`.

        Args:
            port: where; 0 is any free one. The second origin has another port.
            mcp: whether hosts connect by HTTP.

        Yields:
            The address of the results page.
        """
        routes = [
            Route("/", self._results),
            Route("/report", self._report, methods=["POST"]),
            Route("/opened/{stamp}", self._opened),
            *(Route(path, _probe) for path in _PROBES),
        ]
        sockets = [listen("127.0.0.1", port), listen("127.0.0.1", 0)]
        first, second = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in sockets)
        self.origins = (first, second)
        if not mcp:
            async with serve(Starlette(routes=routes), sockets):
                yield first
            return
        served = self.mcp.streamable_http_app()
        pages = Middleware(
            CORSMiddleware,
            allow_origin_regex=_PAGES,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["Mcp-Session-Id"],
        )
        app = Starlette(routes=[*routes, Mount("/", served, middleware=[pages])])
        async with self.mcp.session_manager.run(), serve(app, sockets):
            yield first

    async def _results(self, _: Request) -> Response:
        return HTMLResponse(as_html(self.report()))

    async def _report(self, request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_REPORT:
                return PlainTextResponse("too large", 413)
        try:
            self._hear_view(as_object(json.loads(body)))
        except (ValueError, RecursionError):
            return PlainTextResponse("not a report", 400)
        return PlainTextResponse("", headers={"Access-Control-Allow-Origin": "*"})

    async def _opened(self, request: Request) -> Response:
        if request.path_params["stamp"] == self.stamp:
            self.measured.add("link-opened", "pass")
            self._reported_more()
        return PlainTextResponse("transom conform: the host opened this link. You may close it.")


async def _probe(request: Request) -> Response:
    kind, text = _PROBES[request.url.path]
    headers = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store"}
    return Response(text, media_type=kind, headers=headers)


def _uri(view: str) -> str:
    return f"ui://transom-conform/{view}.html"


def other_server() -> Server[Any]:
    """A second server, whose only tool no View of the first may call."""

    async def list_tools(_: _Context, __: object) -> types.ListToolsResult:
        meta = {"ui": {"visibility": ["app"]}}
        tool = {"name": "conform_other", "inputSchema": {"type": "object"}, "_meta": meta}
        return types.ListToolsResult.model_validate({"tools": [tool]})

    async def call_tool(_: _Context, __: types.CallToolRequestParams) -> types.CallToolResult:
        content = [{"type": "text", "text": "A View of another server called this."}]
        return types.CallToolResult.model_validate({"content": content})

    return Server("transom-conform-other", on_list_tools=list_tools, on_call_tool=call_tool)
