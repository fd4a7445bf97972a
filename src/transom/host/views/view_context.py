"""The host's context, which tells a View about its surroundings.

1. A change is a difference in value: the order of keys does not matter, and setting a key to the
   value it has changes nothing.
2. Changed keys are sent in one `host-context-changed`. Removed keys are sent as null, in a
   notification of their own: the protocol has no other way to remove a key, Transom's Views
   understand null, and a View that refuses null still gets the changed keys.
3. Until the View has sent `ui/initialize` nothing is sent: the answer will contain all of it.
4. What the program sets goes before what a page that shows Views says of its user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from transom.types import HostContext

_WIRE_NAMES = {
    each.name: each.encode_name
    for each in msgspec.structs.fields(HostContext)
    if each.name in HostContext.__annotations__  # its own, not what keeps unknown keys
}
_encode = msgspec.json.Encoder(order="deterministic").encode


def _wire_name(name: str) -> str:
    return _WIRE_NAMES.get(name, name)


class SharedContext:
    """The context that all Views of a host have."""

    def __init__(self, context: HostContext | Mapping[str, Any] | None) -> None:
        self._set: dict[str, Any] = {}
        self._said: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        self.value = HostContext()
        self.change(ViewContext(context).values, by_page=False)

    def change(self, changes: Mapping[str, Any], *, by_page: bool) -> dict[str, Any]:
        """Set keys as `ViewContext.change` does; returns what that changes for Views.

        A page often says again what it has said: then a View keeps a value of its own.

        Raises:
            msgspec.ValidationError: a value is invalid. Nothing is changed.
        """
        changed = ViewContext(self._said if by_page else self._set)
        changed.change(changes)
        HostContext.from_wire(changed.values)  # also what the program's values hide
        layers = (changed.values, self._set) if by_page else (self._said, changed.values)
        values = {**layers[0], **layers[1]}
        self.value = HostContext.from_wire(values)
        self._said, self._set = layers
        before, self._values = self._values, values
        return {
            key: values.get(key)
            for key in map(_wire_name, changes)
            if not by_page or _encode(values.get(key)) != _encode(before.get(key))
        }


class ViewContext:
    """The host's context in its wire form, and the part of it that the View has."""

    def __init__(self, context: HostContext | Mapping[str, Any] | None) -> None:
        if isinstance(context, HostContext):
            self.values: dict[str, Any] = msgspec.json.decode(context.to_wire())
        else:
            self.values = msgspec.json.decode(msgspec.json.encode(dict(context or {})))
        self._sent: dict[str, bytes] | None = None

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set keys, by their Python or their wire name; None removes one."""
        for name, value in changes.items():
            key = _wire_name(name)
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = msgspec.json.decode(msgspec.json.encode(value))

    def take_all(self) -> bytes:
        """All of it as JSON, for `ui/initialize`."""
        self._sent = {key: _encode(value) for key, value in self.values.items()}
        return msgspec.json.encode(self.values)

    def take_changes(self) -> list[bytes]:
        """The params of the notifications that bring the View up to date, if any are needed."""
        if self._sent is None:
            return []
        now = {key: _encode(value) for key, value in self.values.items()}
        changed = {key: self.values[key] for key in now if self._sent.get(key) != now[key]}
        removed = {key: None for key in self._sent if key not in now}
        self._sent = now
        return [msgspec.json.encode(part) for part in (changed, removed) if part]
