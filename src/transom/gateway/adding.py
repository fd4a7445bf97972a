"""What the gateway adds to the messages that pass through it, and what it takes out of them.

Values that pass are kept as they came: only the members named here are read and written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from transom.host.policy import model_may_call
from transom.protocol import wire
from transom.protocol.extension import LEGACY_URI_KEY, UI_EXTENSION, VIEW_MIME_TYPE
from transom.types import Tool

__all__ = [
    "CAPABILITIES_KEY",
    "PROTOCOL_KEY",
    "SUBSCRIPTION_KEY",
    "ToolHead",
    "entries_of",
    "envelope_of",
    "is_complete",
    "member",
    "members",
    "text_block",
    "with_blocks",
    "with_capabilities",
    "with_entries",
    "with_envelope",
    "with_ui",
    "without_hidden",
]

PROTOCOL_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
_CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

Members = dict[str, Raw]

_read = msgspec.json.Decoder(Members).decode
_read_entries = msgspec.json.Decoder(list[Raw]).decode
_read_any = msgspec.json.Decoder().decode


def members(value: Raw | bytes | None) -> Members:
    """The members of an object, each left as it came; none of what is no object."""
    if value is None:
        return {}
    try:
        return _read(value)
    except msgspec.DecodeError:
        return {}


def member(value: Raw | bytes | None, *path: str) -> Any:
    """One value inside an object; None where there is none, or none that Python could hold."""
    for key in path:
        value = members(value).get(key)
        if value is None:
            return None
    try:
        return None if value is None else _read_any(value)
    except msgspec.DecodeError:
        return None  # a number such as 1e999 is JSON all the same


def entries_of(value: Raw | bytes | None) -> list[Raw]:
    """The entries of an array, each left as it came; none of what is no array."""
    try:
        return _read_entries(value or b"[]")
    except msgspec.DecodeError:
        return []


def _raw(value: object) -> Raw:
    return Raw(wire.encode(value))


# --- from client to server -------------------------------------------------------------------


def with_ui(capabilities: Raw | None) -> Raw:
    """A client's capabilities, with the word that Views can be shown."""
    given = members(capabilities)
    extensions = members(given.get("extensions"))
    extensions[UI_EXTENSION] = _raw({"mimeTypes": [VIEW_MIME_TYPE]})
    given["extensions"] = _raw(extensions)
    return _raw(given)


def envelope_of(params: Raw | bytes | None) -> Members | None:
    """What a 2026-07-28 client says about itself with each request; None for one before that."""
    meta = members(members(params).get("_meta"))
    version, capabilities = meta.get(PROTOCOL_KEY, b""), meta.get(CAPABILITIES_KEY, b"")
    # One that lacks something is the server's to refuse, as it came.
    if not bytes(version).startswith(b'"') or not bytes(capabilities).startswith(b"{"):
        return None
    return {key: meta[key] for key in (PROTOCOL_KEY, _CLIENT_KEY, CAPABILITIES_KEY) if key in meta}


def with_envelope(params: Raw | bytes | None, envelope: Mapping[str, Raw] | None) -> bytes | None:
    """Params that say of the client what `envelope` says, and that Views can be shown."""
    if envelope is None:
        return None if params is None else bytes(params)
    given = members(params)
    meta = members(given.get("_meta"))
    meta.update(envelope)
    meta[CAPABILITIES_KEY] = with_ui(envelope.get(CAPABILITIES_KEY))
    given["_meta"] = _raw(meta)
    return wire.encode(given)


# --- from server to client -------------------------------------------------------------------


def with_capabilities(result: Raw | bytes) -> tuple[bytes, dict[str, Any]]:
    """What a server says of itself and what the gateway can do; and the server's own part."""
    given = members(result)
    said: object = member(result, "capabilities")
    server: dict[str, Any] = said if isinstance(said, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    can = members(given.get("capabilities"))
    if "tools" in can:
        can["tools"] = _raw({**members(can["tools"]), "listChanged": True})
    can["resources"] = _raw(
        {**members(can.get("resources")), "subscribe": True, "listChanged": True}
    )
    given["capabilities"] = _raw(can)
    return wire.encode(given), server


class ToolHead(msgspec.Struct):
    """As much of a tool's definition as it takes to know what to do with it."""

    name: str
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def for_model(self) -> bool:
        """Whether a model may see it."""
        return model_may_call(Tool(name=self.name, meta=self.meta))

    @property
    def opens_view(self) -> bool:
        """Whether calling it opens a View."""
        meta = self.meta or {}
        ui: object = meta.get("ui")
        return (isinstance(ui, dict) and "resourceUri" in ui) or LEGACY_URI_KEY in meta


def without_hidden(entries: Raw | bytes | None) -> tuple[list[Raw], list[ToolHead]]:
    """Tools without those that a model may not see; and the head of each that is left."""
    kept: list[Raw] = []
    heads: list[ToolHead] = []
    for entry in _read_entries(entries or b"[]"):
        try:
            head = msgspec.json.decode(entry, type=ToolHead)
        except msgspec.DecodeError:
            kept.append(entry)  # no tool that a client could call: its to complain about
            continue
        if head.for_model:
            kept.append(entry)
            heads.append(head)
    return kept, heads


def with_entries(result: Raw | bytes, key: str, entries: Sequence[Raw | bytes]) -> bytes:
    """A listing with these entries in place of its own."""
    given = members(result)
    given[key] = Raw(b"[" + b",".join(bytes(entry) for entry in entries) + b"]")
    return wire.encode(given)


def is_complete(result: Raw | bytes) -> bool:
    """Whether a result is the end of a call; a 2026-07-28 server may want input first."""
    kind = members(result).get("resultType")
    return kind is None or bytes(kind) == b'"complete"'


def text_block(text: str) -> dict[str, Any]:
    """A text for the model."""
    return {"type": "text", "text": text}


def with_blocks(result: Raw | bytes, blocks: Iterable[object]) -> bytes:
    """A tool's result with more content at its end."""
    added = [wire.encode(block) for block in blocks]
    given = members(result)
    try:
        content = [bytes(entry) for entry in _read_entries(given.get("content", b"[]"))]
    except msgspec.DecodeError:
        return bytes(result)  # no result that anything could be added to
    return with_entries(result, "content", [*content, *added])
