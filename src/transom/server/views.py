"""Declare Views and the tools that go with them, and put them on an MCP server."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, Unpack, cast, overload

import mcp.types as mcp
from mcp.server.extension import Extension, ToolBinding
from mcp.server.mcpserver import MCPServer

from transom.errors import RegistrationError, UsageError
from transom.mcptypes import UI_EXTENSION, supports_views
from transom.protocol.messages import LEGACY_URI_KEY, REUSE
from transom.server import declare
from transom.server.declare import ResourceOptions
from transom.server.official import OfficialServer, consuming_server
from transom.server.resource import HtmlSource, ViewResource, view_resource
from transom.server.tools import AppTool, AppToolOptions, app_tool
from transom.types import Visibility

Function = TypeVar("Function", bound=Callable[..., Any])


class HelperOptions(AppToolOptions, total=False):
    """The keywords of `Views.helper`."""

    opens: ViewResource | str | None
    name: str | None


class ViewToolOptions(HelperOptions, total=False):
    """The keywords of `Views.tool`."""

    visibility: Collection[Visibility] | None
    reuse: Literal["arguments", "always"] | None


class ViewsTarget(Protocol):
    """A server, of whichever framework, that takes tools and pages."""

    @property
    def server(self) -> object:
        """The framework's own object."""
        ...

    def add_tool(self, tool: AppTool) -> None:
        """Register a tool."""
        ...

    def add_resource(self, resource: ViewResource) -> None:
        """Register a View's page."""
        ...


class Views(Extension):
    """The Views of one MCP server.

    ```python
    views = Views()
    orders = views.add("ui://orders/list.html", html=Path(__file__).with_name("orders.html"))

    @views.tool(opens=orders, annotations={"readOnlyHint": True})
    def show_orders(status: str) -> Orders:
        "Show the orders with this status."
        ...

    @views.helper
    def refresh_orders(query: str) -> Orders:
        "Search again. Called by the View."
        ...

    server = MCPServer("orders", extensions=[views])
    ```

    With FastMCP, and with a server that exists already, write `views.install(server)` instead of
    the last line. What is declared later is put on the server at once.

    A client that does not show Views (it did not list `text/html;profile=mcp-app` in
    `capabilities.extensions["io.modelcontextprotocol/ui"].mimeTypes`) gets the same tools for its
    model without the link to a View, no helpers and no pages. A tool's result always has text.
    """

    identifier = UI_EXTENSION

    def __init__(self, *, assume_views: bool = False) -> None:
        """Start with no Views.

        Args:
            assume_views: how to treat a client whose capabilities are not known. Before protocol
                2026-07-28 a client declares them once, when it connects, and a stateless HTTP
                server has lost them at the next request. False treats such a client as one
                without Views, True as one with them. Elsewhere it makes no difference.
        """
        self._assume_views = assume_views
        self._resources: dict[str, ViewResource] = {}
        self._tools: dict[str, AppTool] = {}
        self._targets: list[ViewsTarget] = []

    def add(
        self, uri: str, *, html: HtmlSource, **options: Unpack[ResourceOptions]
    ) -> ViewResource:
        """Declare a View: a page at a `ui://` URI.

        Args:
            uri: such as `ui://orders/list.html`.
            html: the page itself, the `Path` of a file (read again when it changes), or a
                function that returns the page (called at every read). Keep data out of it: that
                comes with the tool's result. `<script src="transom.js"></script>`, or an import
                from `"transom"` in an inline module, gets `transom.js` put in.
            csp: the origins it may reach. None at all unless listed.
            permissions: what it asks for, out of `camera`, `microphone`, `geolocation`,
                `clipboardWrite` and `tools`. Hosts may say no.
            domain: the sandbox origin to ask a host for; each host documents its own form. Only
                needed for an API that allows certain origins alone.
            prefers_border: whether the host should draw a border. Hosts differ when it is left out.
            name: what the resource is called; the URI's end when left out.
            title: its name for people.
            description: what it shows.

        Returns:
            The View, for `tool(opens=...)`.

        Raises:
            RegistrationError: it is declared wrongly; the text says what to write instead.
        """
        resource = view_resource(uri, html, **options)
        if resource.uri in self._resources:
            raise RegistrationError(
                f"there is already a View at {resource.uri}. Choose another URI."
            )
        self._resources[resource.uri] = resource
        for place in self._targets:
            place.add_resource(resource)
        return resource

    def tool(
        self, function: Callable[..., Any] | None = None, **options: Unpack[ViewToolOptions]
    ) -> Callable[[Function], Function]:
        """Declare a tool that opens a View when the model calls it.

        The function may be sync or async and may ask for the framework's own `Context`. What it
        returns becomes `structuredContent` for the View, described by `outputSchema`, and text
        for the model: a struct, dataclass, TypedDict, pydantic model, dict, str, content blocks or
        a whole `ToolResult`, in its wire form too. Raise `ToolError` for a "no" that the model
        should read.

        Args:
            function: never passed: write `@views.tool(opens=...)`.
            opens: the View, as `add` returned it, or its URI.
            name: the function's name when left out.
            title: its name for people.
            description: the docstring when left out.
            annotations: hints such as `{"readOnlyHint": True}`.
            visibility: who may call it: `"model"`, `"app"` or both, which is the default.
            reuse: use the View of an earlier call, if it is still open, in place of another one:
                `"arguments"` for a call with the same arguments, `"always"` for any call. The page
                gets the new input and result as it got the first. Only hosts made with Transom do
                so; None, as others: every call opens a View.
            meta: more `_meta` keys.
            text: makes the text for the model out of what the function returned. The data as
                JSON when left out.
            input_schema: a JSON Schema dict, a type, or an object with `json_schema()` and
                `validate()`; from the type hints when left out.
            output_schema: the same for the result.

        Raises:
            RegistrationError: it is declared wrongly; the text says what to write instead.
        """
        known = options.keys() <= ViewToolOptions.__optional_keys__
        if function is not None or (options.get("opens") is None and known):
            raise RegistrationError(
                "say which View the tool opens: @views.tool(opens=...). A tool without one is "
                "declared on the server itself, and one for the View alone with @views.helper."
            )
        return self._decorator(options)

    @overload
    def helper(self, function: Function) -> Function: ...

    @overload
    def helper(self, **options: Unpack[HelperOptions]) -> Callable[[Function], Function]: ...

    def helper(
        self, function: Function | None = None, **options: Unpack[HelperOptions]
    ) -> Function | Callable[[Function], Function]:
        """Declare a tool that only a View calls: to refresh, turn pages, save.

        Write `@views.helper`, or `@views.helper(...)` with the keywords of `tool`. Give `opens`
        only when calling it should open a View. Its visibility is `["app"]`: hosts keep it from
        the model, and clients that do not show Views never see it. That is not protection: a
        client that says it shows Views may call it, so check who calls as in any tool.

        Raises:
            RegistrationError: it is declared wrongly; the text says what to write instead.
        """
        if "visibility" in options:
            raise RegistrationError(
                "a helper is for the View alone. Write @views.tool(opens=..., visibility=[...]) "
                "for a tool that the model may call too."
            )
        declared = self._decorator({**options, "visibility": ("app",)})
        return declared if function is None else declared(function)

    @property
    def installed(self) -> bool:
        """Whether a server has these Views."""
        return bool(self._targets)

    def install(self, server: object) -> None:
        """Put the Views on a server: FastMCP, or an `MCPServer` that exists already.

        Raises:
            UsageError: it is not such a server, or already has these Views.
        """
        if any(place.server is server for place in self._targets):
            raise UsageError("these Views are already on this server.")
        place = _target(server, assume_views=self._assume_views)
        for resource in self._resources.values():
            place.add_resource(resource)
        for tool in self._tools.values():
            place.add_tool(tool)
        self._targets.append(place)

    def tools(self) -> Sequence[ToolBinding]:
        """Put the Views on the `MCPServer(extensions=[views])` that asks for the tools to add.

        It has no more to add then, for they are on it.

        Raises:
            UsageError: it was not called by an `MCPServer`, so its lists cannot be changed.
        """
        server = consuming_server()
        if server is None:
            raise UsageError(
                "Views cannot find the server that takes them. Write views.install(server)."
            )
        self.install(server)
        return ()

    # --- the work ---

    def _resource_of(self, tool: str, opens: object) -> ViewResource:
        if isinstance(opens, ViewResource):
            if self._resources.get(opens.uri) is not opens:
                raise RegistrationError(
                    f"tool {tool}: the View {opens.uri} was added to other Views. Add it to these."
                )
            return opens
        if not isinstance(opens, str):
            raise RegistrationError(
                f"tool {tool}: opens is what views.add(...) returned, or its URI, not {opens!r}."
            )
        if opens not in self._resources:
            near = difflib.get_close_matches(opens, self._resources, n=1)
            hint = (
                f"Did you mean {near[0]!r}?" if near else "Declare it first, with views.add(...)."
            )
            raise RegistrationError(f"tool {tool}: there is no View {opens!r}. {hint}")
        return self._resources[opens]

    def _decorator(self, options: ViewToolOptions) -> Callable[[Function], Function]:
        def declared(function: Function) -> Function:
            name = options.get("name")
            called = name or getattr(function, "__name__", "?")
            declare.refuse_unknown(called, options, ViewToolOptions.__optional_keys__)
            meta = options.get("meta") or {}
            for key in ("ui", LEGACY_URI_KEY):
                if key in meta:
                    raise RegistrationError(
                        f"tool {called}: _meta[{key!r}] is written for you. "
                        "Use opens= and visibility=."
                    )
            ui: dict[str, Any] = {}
            if (opens := options.get("opens")) is not None:
                ui["resourceUri"] = self._resource_of(called, opens).uri
            if (visibility := options.get("visibility")) is not None:
                ui["visibility"] = declare.check_visibility(called, visibility)
            if (reuse := options.get("reuse")) not in (None, "arguments", "always"):
                raise RegistrationError(
                    f'tool {called}: reuse is "arguments" or "always", not {reuse!r}.'
                )
            rest: Any = {k: v for k, v in options.items() if k in AppToolOptions.__optional_keys__}
            rest["meta"] = {**meta, "ui": ui, **({} if reuse is None else {REUSE: reuse})}
            tool = app_tool(name, function, **rest)
            if tool.name in self._tools:
                raise RegistrationError(
                    f"there is already a tool {tool.name}. Give this one a name=."
                )
            self._tools[tool.name] = tool
            for place in self._targets:
                place.add_tool(tool)
            return function

        return declared


# --- plain functions, for servers that exist already -------------------------------------------


def register_app_tool(
    server: object, name: str, handler: Callable[..., Any], **options: Unpack[AppToolOptions]
) -> None:
    """Register a tool that belongs to a View on an `MCPServer` or a FastMCP server.

    Args:
        server: the server.
        name: the tool's name.
        handler: what runs, as with `Views.tool`.
        meta: its `_meta`, such as `{"ui": {"resourceUri": "ui://orders/list.html"}}` or
            `{"ui": {"visibility": ["app"]}}`. A link under `ui.resourceUri` is copied to the older
            `ui/resourceUri`, and the other way round. May be left out.
        title: its name for people.
        description: the handler's docstring when left out.
        annotations: hints such as `{"readOnlyHint": True}`.
        text: makes the text for the model out of what the handler returned.
        input_schema: a JSON Schema dict, a type, or an object with `json_schema()` and
            `validate()`; from the handler's type hints when left out.
        output_schema: the same for the result.

    From then on clients that do not show Views get this server's tools without links to Views.

    Raises:
        RegistrationError: it is declared wrongly; the text says what to write instead.
        UsageError: `server` is not such a server.
    """
    place = _target(server)
    place.add_tool(app_tool(name, handler, **options))


def register_app_resource(
    server: object, uri: str, *, html: HtmlSource, **options: Unpack[ResourceOptions]
) -> ViewResource:
    """Register a View's page on an `MCPServer` or a FastMCP server; see `Views.add`.

    Raises:
        RegistrationError: it is declared wrongly; the text says what to write instead.
        UsageError: `server` is not such a server.
    """
    resource = view_resource(uri, html, **options)
    _target(server).add_resource(resource)
    return resource


def ui_capability(ctx: object) -> dict[str, Any] | None:
    """Return what the client said about MCP Apps, or None when it does not show Views.

    Args:
        ctx: the `Context` a tool of `MCPServer` or FastMCP gets, the SDK's request context, or
            the client's capabilities themselves. None is fine too.

    A client shows Views when it lists `text/html;profile=mcp-app` in `mimeTypes`. One that names
    the extension without that type does not.
    """
    capabilities = _capabilities(ctx)
    if not supports_views(capabilities):
        return None
    if isinstance(capabilities, mcp.ClientCapabilities):
        extensions: object = capabilities.extensions
    else:
        extensions = cast("Mapping[str, Any]", capabilities)["extensions"]
    return dict(cast("Mapping[str, Any]", extensions)[UI_EXTENSION])


def _capabilities(ctx: object) -> mcp.ClientCapabilities | Mapping[str, Any] | None:
    if ctx is None or isinstance(ctx, mcp.ClientCapabilities):
        return ctx
    if isinstance(ctx, Mapping):
        return cast("Mapping[str, Any]", ctx)
    try:
        # Both frameworks and the SDK's own request context have a session.
        session: object = getattr(ctx, "session", None)
    except (RuntimeError, ValueError):
        return None  # outside a request
    found = getattr(session, "client_capabilities", None)
    return found if isinstance(found, mcp.ClientCapabilities) else None


def _target(server: object, *, assume_views: bool = False) -> ViewsTarget:
    if isinstance(server, MCPServer):
        return OfficialServer(cast("MCPServer[Any]", server), assume_views=assume_views)
    if "fastmcp" in sys.modules:
        # Here and not above: FastMCP takes long to load, and most servers are not made with it.
        from fastmcp import FastMCP  # noqa: PLC0415

        if isinstance(server, FastMCP):
            from transom.server.fastmcp import FastServer  # noqa: PLC0415

            return FastServer(cast("FastMCP[Any]", server), assume_views=assume_views)
    raise UsageError(
        f"Views can be put on an MCPServer or a FastMCP server, not on {type(server).__name__}."
    )
