"""A register of limited size: what others make us remember must not grow without end."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """The newest entries by key, such as which server has a task; the oldest are forgotten."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: dict[Key, Value] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        self._entries[key] = value
        if len(self._entries) > self._limit:
            del self._entries[next(iter(self._entries))]

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Value | None:
        """The value of a key; None if there is none, or it was forgotten."""
        return self._entries.get(key)

    def pop(self, key: Key) -> Value | None:
        """Remove a key; its value, if it has one."""
        return self._entries.pop(key, None)

    def clear(self) -> None:
        """Forget them all."""
        self._entries.clear()
