"""The UI resource of a View: which one a tool links, and what it holds.

1. `_meta.ui.resourceUri` names the resource; the older flat key is read only where that is missing.
2. It is one text, or one base64 of UTF-8, of exactly the type `text/html;profile=mcp-app`.
3. What its page needs (`_meta.ui`: csp, permissions, ...) is read from beside its content, or else
   from the server's listing. What a tool declares about it is not used.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from transom.connections.upstream import Server, list_all
from transom.errors import InvalidResult, ProtocolError
from transom.host.tools.tool_visibility import links_view
from transom.json_values import as_object, member
from transom.protocol.messages import LEGACY_URI_KEY, VIEW_MIME_TYPE
from transom.protocol.methods import read_result
from transom.types import ReadResourceResult, ResourceContents, Tool


class UIResource(msgspec.Struct, frozen=True, kw_only=True):
    """What a renderer shows: one View's HTML, and what it needs.

    All of it comes from the server. `csp`, `permissions` and `domain` are requests: a renderer
    grants as much of them as it wants to.
    """

    view_id: str
    server: str
    uri: str
    html: str
    identity: str = ""
    """Identifies its server among all of the user's; "" if nothing does: then nothing is stored."""
    csp: dict[str, Any] | None = None
    permissions: dict[str, Any] | None = None
    domain: str | None = None
    prefers_border: bool | None = None


def view_uri(tool: Tool) -> str | None:
    """The resource of the View that a tool opens; None if it opens none."""
    if not links_view(tool.meta):
        return None
    meta = tool.meta or {}
    nested = as_object(meta.get("ui"))
    uri: object = nested["resourceUri"] if "resourceUri" in nested else meta[LEGACY_URI_KEY]
    if not isinstance(uri, str) or not uri.startswith("ui://"):
        shown = msgspec.json.encode(uri).decode()[:200]
        raise InvalidResult(f"Tool {tool.name[:128]} links {shown}, which is not a ui:// resource")
    return uri


async def load_ui_resource(
    server: Server, *, view_id: str, server_name: str, uri: str, max_bytes: int
) -> UIResource:
    """Read a View's UI resource from its server; `InvalidResult` if it is not one."""
    try:
        raw = await server.request("resources/read", {"uri": uri})
    except ProtocolError as error:
        known = [str(member(each, "uri")) for each in await _listed(server)]
        views = [each[:200] for each in known if each.startswith("ui://") and each != uri]
        has = f"; it lists {', '.join(views[:5])}" if views else ""
        text = f"the tool links {uri[:200]}, which the server could not return: {error}{has}"
        raise InvalidResult(text) from error
    result: ReadResourceResult = read_result("resources/read", ReadResourceResult, raw)
    usable = [
        part
        for part in result.contents
        if part.mime_type == VIEW_MIME_TYPE and (part.text is None) != (part.blob is None)
    ]
    if len(usable) != 1:
        found = ", ".join(sorted({str(part.mime_type)[:60] for part in result.contents}))
        raise InvalidResult(
            f"{uri[:200]} must have one text or blob of type {VIEW_MIME_TYPE}; "
            f"it has {len(usable)} of these (found: {found})"
        )
    html = _html(usable[0], uri, max_bytes)
    meta = usable[0].meta or {}
    beside = isinstance(meta.get("ui"), dict)
    needs = as_object(meta.get("ui")) if beside else await _listed_ui(server, uri)
    domain, border = needs.get("domain"), needs.get("prefersBorder")
    return UIResource(
        view_id=view_id,
        server=server_name,
        uri=uri,
        html=html,
        identity=getattr(server, "identity", ""),
        csp=as_object(needs.get("csp")) or None,
        permissions=as_object(needs.get("permissions")) or None,
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
    # It goes to the browser as JSON, in which a control character takes six bytes.
    if size * 6 > max_bytes * 2 and len(msgspec.json.encode(html)) > max_bytes * 2:
        raise InvalidResult(f"{uri[:200]} has too many control characters")
    return html


async def _listed_ui(server: Server, uri: str) -> dict[str, Any]:
    """The metadata in the server's listing, where it need not be: then there is none."""
    found = (entry for entry in await _listed(server) if member(entry, "uri") == uri)
    return as_object(member(next(found, None), "_meta", "ui"))


async def _listed(server: Server) -> list[Any]:
    """The server's resources; none if it cannot list them."""
    try:
        return await list_all(
            lambda params: server.request("resources/list", params), "resources/list", "resources"
        )
    except (ProtocolError, InvalidResult):
        return []
