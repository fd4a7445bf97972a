"""Plain functions for servers that exist already."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import mcp.types as mcp

from transom.mcptypes import UI_EXTENSION, supports_views
from transom.server.csp import Csp
from transom.server.html import Source
from transom.server.page import ViewPage, view_page
from transom.server.targets import target
from transom.server.tools import Handler, app_tool
from transom.types import ToolAnnotations

__all__ = ["register_app_resource", "register_app_tool", "ui_capability"]


def register_app_tool(
    server: object,
    name: str,
    handler: Handler,
    *,
    meta: Mapping[str, Any] | None = None,
    title: str | None = None,
    description: str | None = None,
    annotations: ToolAnnotations | Mapping[str, Any] | None = None,
    text: Callable[[Any], str] | None = None,
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

    From then on clients that do not show Views get this server's tools without links to Views.

    Raises:
        RegistrationError: something about it is wrong; the text says what to write instead.
        UsageError: `server` is no such server.
    """
    place = target(server)
    tool = app_tool(
        name,
        handler,
        title=title,
        description=description,
        annotations=annotations,
        meta=meta,
        text=text,
    )
    place.add_tool(tool)


def register_app_resource(
    server: object,
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
    """Register a View's page on an `MCPServer` or a FastMCP server; see `Views.add`.

    Raises:
        RegistrationError: something about it is wrong; the text says what to write instead.
        UsageError: `server` is no such server.
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
    target(server).add_page(page)
    return page


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
        extensions = cast("Mapping[str, Any]", capabilities.extensions)
    else:
        extensions = cast(
            "Mapping[str, Any]", cast("Mapping[str, Any]", capabilities)["extensions"]
        )
    return dict(extensions[UI_EXTENSION])


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
