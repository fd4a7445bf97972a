"""How the lists of a server with Views depend on the client.

A client that does not show Views gets the same tools for its model, without the link to a View; no
tools that only a View may call; and no pages in the list of resources. It may still read a page
whose URI it knows, which is harmless. For a client that shows Views, tools that were not declared
for Views are for the model only, unless they declare a visibility. Everything here works on JSON in
wire form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import mcp.types as mcp

from transom.mcptypes import supports_views
from transom.protocol.messages import LEGACY_URI_KEY, REUSE


def is_plain(capabilities: mcp.ClientCapabilities | None, assume_views: bool) -> bool:
    """Whether a client does not show Views.

    `assume_views` decides where its capabilities are not known: a client of a protocol version
    before 2026-07-28, on stateless HTTP.
    """
    return not assume_views if capabilities is None else not supports_views(capabilities)


def hidden(meta: Mapping[str, Any] | None) -> bool:
    """Whether this `_meta` hides a tool from the model."""
    ui = (meta or {}).get("ui")
    if not isinstance(ui, Mapping):
        return False
    visibility = cast("Mapping[str, object]", ui).get("visibility")
    return isinstance(visibility, list) and "model" not in visibility


def model_only(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """A plain tool's `_meta`: for the model only, unless it has a visibility or opens a View."""
    known = dict(meta or {})
    ui = known.get("ui", {})
    if not isinstance(ui, Mapping) or LEGACY_URI_KEY in known:
        return known
    given = cast("Mapping[str, Any]", ui)
    if "resourceUri" not in given:
        known["ui"] = {"visibility": ["model"], **given}
    return known


def without_view(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a tool's `_meta` without what MCP Apps put there; None when nothing is left."""
    ours = ("ui", LEGACY_URI_KEY, REUSE)
    rest = {key: value for key, value in (meta or {}).items() if key not in ours}
    return rest or None


def without_views(tools: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a tool list for a client that does not show Views."""
    kept: list[dict[str, Any]] = []
    for tool in tools:
        meta = tool.get("_meta")
        if hidden(meta):
            continue
        plain = {key: value for key, value in tool.items() if key != "_meta"}
        if rest := without_view(meta):
            plain["_meta"] = rest
        kept.append(plain)
    return kept


def is_page(uri: object) -> bool:
    """Whether this is the URI, or the URI template, of a View's page."""
    return str(uri).startswith("ui://")


def without_pages(
    resources: Iterable[Mapping[str, Any]], key: str = "uri"
) -> list[Mapping[str, Any]]:
    """Return a resource list for a client that does not show Views."""
    return [resource for resource in resources if not is_page(resource.get(key))]


def unknown_tool(name: str) -> str:
    """Return the error text for such a client that calls a tool which only a View may call."""
    return f"Unknown tool: {name}"
