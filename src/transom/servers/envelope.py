"""The envelope that MCP 2026-07-28 puts into the `_meta` of every request, and marks in results.

Before 2026-07-28 a client introduces itself once, with `initialize`. Since then each request has an
envelope: the protocol version, the client's name and its capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw

from transom.json_values import Members, member, members
from transom.protocol import wire
from transom.protocol.messages import UI_EXTENSION, VIEW_MIME_TYPE

PROTOCOL_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions that open with `initialize`, oldest first."""

DISCOVERY_VERSION: Final = "2026-07-28"
"""The version that opens with `server/discover`."""

_MARK: Final = PROTOCOL_KEY.encode()
_HOP_KEYS: Final = ("resultType", "ttlMs", "cacheScope")


# --- requests --------------------------------------------------------------------------------


def with_ui(capabilities: Raw | bytes | None) -> Raw:
    """A client's capabilities, with MCP Apps added."""
    return with_extension(capabilities, UI_EXTENSION, {"mimeTypes": [VIEW_MIME_TYPE]})


def with_extension(capabilities: Raw | bytes | None, name: str, settings: object) -> Raw:
    """Capabilities with one more extension."""
    given = members(capabilities)
    extensions = members(given.get("extensions"))
    extensions[name] = wire.raw(settings)
    given["extensions"] = wire.raw(extensions)
    return wire.raw(given)


def envelope_of(params: Raw | bytes | None) -> Members | None:
    """The envelope of a 2026-07-28 request; None for a request without one."""
    meta = members(members(params).get("_meta"))
    version, capabilities = meta.get(PROTOCOL_KEY, b""), meta.get(CAPABILITIES_KEY, b"")
    # An incomplete envelope goes to the server unchanged, which will refuse it.
    if not bytes(version).startswith(b'"') or not bytes(capabilities).startswith(b"{"):
        return None
    return {key: meta[key] for key in (PROTOCOL_KEY, CLIENT_KEY, CAPABILITIES_KEY) if key in meta}


def is_modern(params: Raw | bytes | None) -> bool:
    """Whether a request is one of 2026-07-28: it has an envelope, maybe an incomplete one."""
    if params is None or _MARK not in bytes(params):
        return False
    return PROTOCOL_KEY in members(members(params).get("_meta"))


def with_envelope(params: Raw | bytes | None, envelope: Mapping[str, Raw] | None) -> bytes | None:
    """Params with an envelope, to which MCP Apps is added."""
    if envelope is None:
        return None if params is None else bytes(params)
    given = members(params)
    meta = members(given.get("_meta"))
    meta.update(envelope)
    meta[CAPABILITIES_KEY] = with_ui(envelope.get(CAPABILITIES_KEY))
    given["_meta"] = wire.raw(meta)
    return wire.encode(given)


def without_envelope(params: Raw | bytes | None) -> bytes | None:
    """Params as a server before 2026-07-28 expects them."""
    given = members(params)
    meta = members(given.pop("_meta", None))
    for key in (PROTOCOL_KEY, CLIENT_KEY, CAPABILITIES_KEY, LOG_LEVEL_KEY):
        meta.pop(key, None)
    for key in ("inputResponses", "requestState"):
        given.pop(key, None)
    if meta:
        given["_meta"] = wire.raw(meta)
    return wire.encode(given) if given else None


# --- results and notifications ---------------------------------------------------------------


def is_complete(result: Raw | bytes) -> bool:
    """Whether a result ends its request; a 2026-07-28 server may ask for input first."""
    kind = members(result).get("resultType")
    return kind is None or bytes(kind) == b'"complete"'


def without_hop_keys(method: str, result: Raw | bytes) -> bytes:
    """A result without what concerns one hop only, as a client before 2026-07-28 expects it.

    Structured content that is not an object, which 2026-07-28 allows, becomes `{"result": ...}`.
    """
    given = members(result)
    for key in _HOP_KEYS:
        given.pop(key, None)
    structured = given.get("structuredContent")
    if method == "tools/call" and structured and not bytes(structured).startswith(b"{"):
        given["structuredContent"] = wire.raw({"result": structured})
    return wire.encode(given)


def subscription_of(params: Raw | bytes | None) -> Any:
    """The id of the subscription that a notification belongs to, if it has one."""
    return member(params, "_meta", SUBSCRIPTION_KEY)
