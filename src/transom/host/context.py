"""What a View knows of its surroundings, and what it has still to be told.

1. A change is a difference in value: the order of keys does not count, setting a key to what it is
   changes nothing.
2. Changed keys go out in one `host-context-changed`. A key that was taken away goes out as null in
   one of its own: the protocol has no word for "gone", Transom's Views understand null as that,
   and a View that refuses null loses nothing else with it.
3. Until the View has asked `ui/initialize` there is nothing to tell: the answer will have it all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from transom.types import HostContext

__all__ = ["Context"]

_WIRE_NAMES = {f.name: f.encode_name for f in msgspec.structs.fields(HostContext)}
_encode = msgspec.json.Encoder(order="deterministic").encode


class Context:
    """The host's context as the wire has it, and the part of it that the View was told."""

    def __init__(self, context: HostContext | Mapping[str, Any] | None) -> None:
        if isinstance(context, HostContext):
            self.values: dict[str, Any] = msgspec.json.decode(context.to_wire())
        else:
            self.values = msgspec.json.decode(msgspec.json.encode(dict(context or {})))
        self._told: dict[str, bytes] | None = None

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set keys, by their Python or their wire name; None takes one away."""
        for name, value in changes.items():
            key = _WIRE_NAMES.get(name, name)
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = msgspec.json.decode(msgspec.json.encode(value))

    def tell_all(self) -> bytes:
        """All of it, for `ui/initialize`."""
        self._told = {key: _encode(value) for key, value in self.values.items()}
        return msgspec.json.encode(self.values)

    def tell_changes(self) -> list[bytes]:
        """The params of the notices that bring the View up to date; none when it is."""
        if self._told is None:
            return []
        now = {key: _encode(value) for key, value in self.values.items()}
        changed = {key: self.values[key] for key in now if self._told.get(key) != now[key]}
        gone = {key: None for key in self._told if key not in now}
        self._told = now
        return [msgspec.json.encode(part) for part in (changed, gone) if part]
