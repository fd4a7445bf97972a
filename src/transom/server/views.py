"""Declare Views and the tools that go with them, and put them on an MCP server."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, overload

from mcp.server.extension import Extension, ResourceBinding, ToolBinding

from transom.errors import RegistrationError, UsageError
from transom.mcptypes import LEGACY_URI_KEY, UI_EXTENSION
from transom.server import declare
from transom.server.csp import Csp
from transom.server.html import Source
from transom.server.official import OfficialServer, consuming_server, function_of, resource_of
from transom.server.page import ViewPage, view_page
from transom.server.targets import Target, target
from transom.server.tools import AppTool, app_tool
from transom.types import ToolAnnotations, Visibility

__all__ = ["Views"]

Function = TypeVar("Function", bound=Callable[..., Any])

_TOOL_KEYWORDS = (
    "opens",
    "name",
    "title",
    "description",
    "annotations",
    "visibility",
    "meta",
    "text",
)


class Views(Extension):
    """The Views of one MCP server.

    ```python
    views = Views()
    orders = views.add("ui://orders/list.html", html=Path("orders.html"))

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
            assume_views: what to think of a client that nothing is known of. Before protocol
                2026-07-28 a client says what it can do once, when it connects, and a stateless
                HTTP server has forgotten it at the next request. False treats such a client as
                one without Views, True as one with them. Elsewhere it makes no difference.
        """
        self._assume_views = assume_views
        self._pages: dict[str, ViewPage] = {}
        self._tools: dict[str, AppTool] = {}
        self._targets: list[Target] = []

    def add(
        self,
        uri: str,
        *,
        html: Source,
        csp: Csp | None = None,
        permissions: Collection[str] | None = None,
        domain: str | None = None,
        prefers_border: bool | None = None,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
    ) -> ViewPage:
        """Declare a View: a page at a `ui://` URI.

        Args:
            uri: such as `ui://orders/list.html`.
            html: the page itself, the `Path` of a file (read again when it changes), or a
                function that returns the page (called at every read). Keep data out of it: that
                comes with the tool's result. `<script src="transom.js"></script>`, or an import
                from `"transom"` in an inline module, gets `transom.js` put in.
            csp: the origins it may reach. None at all unless listed.
            permissions: what it asks for, out of `camera`, `microphone`, `geolocation` and
                `clipboardWrite`. Hosts may say no.
            domain: the sandbox origin to ask a host for; each host documents its own form. Only
                needed for an API that allows certain origins alone.
            prefers_border: whether the host should draw a border. Hosts differ when it is left out.
            name: what the resource is called; the URI's end when left out.
            title: its name for people.
            description: what it shows.

        Returns:
            The View, for `tool(opens=...)`.

        Raises:
            RegistrationError: something about it is wrong; the text says what to write instead.
        """
        page = view_page(
            uri,
            html=html,
            csp=csp,
            permissions=permissions,
            domain=domain,
            prefers_border=prefers_border,
            name=name,
            title=title,
            description=description,
        )
        if page.uri in self._pages:
            raise RegistrationError(f"there is a View at {page.uri} already. Choose another URI.")
        self._pages[page.uri] = page
        for place in self._targets:
            place.add_page(page)
        return page

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        opens: ViewPage | str | None = None,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        visibility: Collection[Visibility] | None = None,
        meta: Mapping[str, Any] | None = None,
        text: Callable[[Any], str] | None = None,
        **unknown: object,
    ) -> Callable[[Function], Function]:
        """Declare a tool that opens a View when the model calls it.

        The function may be sync or async and may ask for the framework's own `Context`. What it
        returns becomes `structuredContent` for the View, described by `outputSchema`, and text
        for the model: a struct, dataclass, TypedDict, pydantic model, dict, str, content blocks or
        a whole `ToolResult`. Raise `ToolError` for a "no" that the model should read.

        Args:
            function: not for you to pass: write `@views.tool(opens=...)`.
            opens: the View, as `add` returned it, or its URI.
            name: the function's name when left out.
            title: its name for people.
            description: the docstring when left out.
            annotations: hints such as `{"readOnlyHint": True}`.
            visibility: who may call it: `"model"`, `"app"` or both, which is the default.
            meta: more `_meta` keys.
            text: makes the text for the model out of what the function returned. The data as
                JSON when left out.
            **unknown: refused, with a word on where it belongs.

        Raises:
            RegistrationError: something about it is wrong; the text says what to write instead.
        """
        if function is not None or (opens is None and not unknown):
            raise RegistrationError(
                "say which View the tool opens: @views.tool(opens=...). A tool without one is "
                "declared on the server itself, and one for the View alone with @views.helper."
            )

        return self._decorator(
            opens,
            visibility,
            unknown,
            name=name,
            title=title,
            description=description,
            annotations=annotations,
            meta=meta,
            text=text,
        )

    @overload
    def helper(self, function: Function) -> Function: ...

    @overload
    def helper(
        self,
        *,
        opens: ViewPage | str | None = None,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        text: Callable[[Any], str] | None = None,
        **unknown: object,
    ) -> Callable[[Function], Function]: ...

    def helper(
        self,
        function: Function | None = None,
        *,
        opens: ViewPage | str | None = None,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        text: Callable[[Any], str] | None = None,
        **unknown: object,
    ) -> Function | Callable[[Function], Function]:
        """Declare a tool that only a View calls: to refresh, turn pages, save.

        Write `@views.helper`, or `@views.helper(...)` with the keywords of `tool`. Give `opens`
        only when calling it should open a View. Its visibility is `["app"]`: hosts keep it from
        the model, and clients that do not show Views never hear of it. That is not protection: a
        client that says it shows Views may call it, so check who asks as in any tool.

        Raises:
            RegistrationError: something about it is wrong; the text says what to write instead.
        """
        if "visibility" in unknown:
            raise RegistrationError(
                "a helper is for the View alone. Write @views.tool(opens=..., visibility=[...]) "
                "for a tool that the model may call too."
            )
        declared = self._decorator(
            opens,
            ("app",),
            unknown,
            name=name,
            title=title,
            description=description,
            annotations=annotations,
            meta=meta,
            text=text,
        )
        return declared if function is None else declared(function)

    def install(self, server: object) -> None:
        """Put the Views on a server: FastMCP, or an `MCPServer` that exists already.

        Raises:
            UsageError: it is no such server, or these Views are on it already.
        """
        if any(place.server is server for place in self._targets):
            raise UsageError("these Views are on this server already.")
        place = target(server, assume_views=self._assume_views)
        for page in self._pages.values():
            place.add_page(page)
        for tool in self._tools.values():
            place.add_tool(tool)
        self._targets.append(place)

    # --- what the SDK asks an extension for ---

    def tools(self) -> Sequence[ToolBinding]:
        """Return the tools, for `MCPServer(extensions=[views])`.

        Raises:
            UsageError: no `MCPServer` asks, so its lists could not be made to fit its clients.
        """
        server = consuming_server()
        if server is None:
            raise UsageError(
                "Views cannot find the server that takes them. Write views.install(server)."
            )
        place = OfficialServer(server, assume_views=self._assume_views)
        self._targets.append(place)
        bindings: list[ToolBinding] = []
        for tool in self._tools.values():
            place.hide(tool)
            keywords = {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "annotations": tool.annotations,
            }
            bindings.append(ToolBinding(fn=function_of(tool), meta=tool.meta, kwargs=keywords))
        return bindings

    def resources(self) -> Sequence[ResourceBinding]:
        """Return the pages, for `MCPServer(extensions=[views])`."""
        return [ResourceBinding(resource=resource_of(page)) for page in self._pages.values()]

    # --- the work ---

    def _page(self, tool: str, opens: object) -> ViewPage:
        if isinstance(opens, ViewPage):
            if self._pages.get(opens.uri) is not opens:
                raise RegistrationError(
                    f"tool {tool}: the View {opens.uri} was added to other Views. Add it to these."
                )
            return opens
        if not isinstance(opens, str):
            raise RegistrationError(
                f"tool {tool}: opens is what views.add(...) returned, or its URI, not {opens!r}."
            )
        if opens not in self._pages:
            near = difflib.get_close_matches(opens, self._pages, n=1)
            hint = (
                f"Did you mean {near[0]!r}?" if near else "Declare it first, with views.add(...)."
            )
            raise RegistrationError(f"tool {tool}: there is no View {opens!r}. {hint}")
        return self._pages[opens]

    def _decorator(
        self,
        opens: object,
        visibility: object,
        unknown: Mapping[str, object],
        *,
        name: str | None,
        meta: Mapping[str, Any] | None,
        **keywords: Any,
    ) -> Callable[[Function], Function]:
        def declared(function: Function) -> Function:
            called = name or getattr(function, "__name__", "?")
            declare.refuse_unknown(called, unknown, _TOOL_KEYWORDS)
            for key in ("ui", LEGACY_URI_KEY):
                if meta is not None and key in meta:
                    raise RegistrationError(
                        f"tool {called}: _meta[{key!r}] is written for you. "
                        "Say it with opens= and visibility=."
                    )
            ui: dict[str, Any] = {}
            if opens is not None:
                ui["resourceUri"] = self._page(called, opens).uri
            if visibility is not None:
                ui["visibility"] = declare.check_visibility(called, visibility)
            tool = app_tool(name, function, meta={**(meta or {}), "ui": ui}, **keywords)
            if tool.name in self._tools:
                raise RegistrationError(
                    f"there is a tool {tool.name} already. Give this one a name=."
                )
            self._tools[tool.name] = tool
            for place in self._targets:
                place.add_tool(tool)
            return function

        return declared
