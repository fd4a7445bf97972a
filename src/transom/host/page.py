"""The page of a View: which resource a tool links, and what that resource holds.

1. `_meta.ui.resourceUri` names the resource; the older flat key is read only where that is missing.
2. A page is one text, or one base64 of UTF-8, of exactly the type `text/html;profile=mcp-app`.
3. What the page needs (`_meta.ui`: csp, permissions, ...) is read from beside its content, or else
   from the server's listing. What a tool declares about it is not used.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, cast

import msgspec

from transom.errors import InvalidResult, ProtocolError
from transom.mcptypes import LEGACY_URI_KEY, VIEW_MIME_TYPE
from transom.protocol.messages import ListResourcesResult
from transom.protocol.methods import read_result
from transom.servers.server import Server
from transom.types import Meta, ReadResourceResult, ResourceContents, Tool

__all__ = ["Page", "load_page", "view_uri"]

_MAX_LISTING_PAGES = 20


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a renderer shows: one View's HTML, and what it asks for.

    All of it comes from the server. `csp`, `permissions` and `domain` are wishes: a renderer
    grants them as far as it wants to.
    """

    view_id: str
    server: str
    uri: str
    html: str
    csp: dict[str, Any] | None = None
    permissions: dict[str, Any] | None = None
    domain: str | None = None
    prefers_border: bool | None = None


def view_uri(tool: Tool) -> str | None:
    """The resource whose View a tool opens; None when it opens none.

    Raises:
        InvalidResult: the tool links something that is no `ui://` resource.
    """
    meta = tool.meta or {}
    nested = _object(meta.get("ui")) or {}
    if "resourceUri" in nested:
        uri: object = nested["resourceUri"]
    elif LEGACY_URI_KEY in meta:
        uri = meta[LEGACY_URI_KEY]
    else:
        return None
    if not isinstance(uri, str) or not uri.startswith("ui://"):
        shown = msgspec.json.encode(uri).decode()[:200]
        raise InvalidResult(f"Tool {tool.name[:128]} links no ui:// resource but {shown}")
    return uri


async def load_page(
    upstream: Server, *, view_id: str, server: str, uri: str, max_bytes: int
) -> Page:
    """Read a View's page from its server.

    Raises:
        ProtocolError: the server's error.
        InvalidResult: what the server has there is not a page.
    """
    raw = await upstream.request("resources/read", {"uri": uri})
    result: ReadResourceResult = read_result("resources/read", ReadResourceResult, raw)
    usable = [
        part
        for part in result.contents
        if part.mime_type == VIEW_MIME_TYPE and (part.text is None) != (part.blob is None)
    ]
    if len(usable) != 1:
        found = ", ".join(sorted({str(part.mime_type)[:60] for part in result.contents}))
        raise InvalidResult(
            f"{uri[:200]} must hold one text or blob of type {VIEW_MIME_TYPE}; "
            f"it holds {len(usable)} of these among {len(result.contents)} parts ({found})"
        )
    html = _html(usable[0], uri, max_bytes)
    ui = _ui(usable[0].meta)
    if ui is None:
        ui = await _listed_ui(upstream, uri)
    wishes = ui or {}
    domain, border = wishes.get("domain"), wishes.get("prefersBorder")
    return Page(
        view_id=view_id,
        server=server,
        uri=uri,
        html=html,
        csp=_object(wishes.get("csp")),
        permissions=_object(wishes.get("permissions")),
        domain=domain if isinstance(domain, str) else None,
        prefers_border=border if isinstance(border, bool) else None,
    )


def _html(part: ResourceContents, uri: str, max_bytes: int) -> str:
    size = len(part.text or part.blob or "")
    if size > max_bytes * 4 // 3 + 4:
        raise InvalidResult(f"{uri[:200]} is over the limit of {max_bytes} bytes")
    if part.text is not None:
        html = part.text
        size = len(html.encode("utf-8", "surrogatepass"))
    else:
        try:
            data = base64.b64decode(part.blob or "", validate=True)
            html, size = data.decode("utf-8"), len(data)
        except (binascii.Error, ValueError):
            raise InvalidResult(f"{uri[:200]} has a blob that is not base64 of UTF-8") from None
    if size > max_bytes:
        raise InvalidResult(f"{uri[:200]} has {size} bytes, over the limit of {max_bytes}")
    return html


async def _listed_ui(upstream: Server, uri: str) -> dict[str, Any] | None:
    """The metadata in the server's listing. A page need not be listed: then there is none."""
    cursor: str | None = None
    for _ in range(_MAX_LISTING_PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        try:
            raw = await upstream.request("resources/list", params)
            listing: ListResourcesResult = read_result("resources/list", ListResourcesResult, raw)
        except (ProtocolError, InvalidResult):
            return None
        for resource in listing.resources:
            if resource.uri == uri:
                return _ui(resource.meta)
        cursor = listing.next_cursor
        if cursor is None:
            break
    return None


def _ui(meta: Meta | None) -> dict[str, Any] | None:
    return _object((meta or {}).get("ui"))


def _object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
