"""A register of limited size: what others make us remember must not grow without end."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(UserDict[Key, Value]):
    """The entries that were set last, such as which server has a task; older ones are forgotten.

    Args:
        limit: how many there are at most.
        on_forgotten: called with the value of an entry that makes room.
    """

    def __init__(self, limit: int, on_forgotten: Callable[[Value], object] | None = None) -> None:
        super().__init__()
        self._limit = limit
        self._on_forgotten = on_forgotten

    def __setitem__(self, key: Key, item: Value) -> None:
        self.data.pop(key, None)
        self.data[key] = item
        if len(self.data) > self._limit:
            oldest = self.data.pop(next(iter(self.data)))
            if self._on_forgotten is not None:
                self._on_forgotten(oldest)
