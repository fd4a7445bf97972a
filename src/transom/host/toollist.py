"""A list of tools that costs nothing to make anew when one owner of many has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import overload

from transom.types import Tool

__all__ = ["ToolList"]


class ToolList(Sequence[Tool]):
    """Tools, to be read like any list; they never change. `list(tools)` makes a list of them."""

    __slots__ = ("_flat", "_parts")

    def __init__(self, parts: Sequence[tuple[Tool, ...]]) -> None:
        self._parts = parts
        self._flat: list[Tool] | None = None

    def _all(self) -> list[Tool]:
        if self._flat is None:
            self._flat = list(chain.from_iterable(self._parts))
        return self._flat

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Tool]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tool]: ...
    def __getitem__(self, index: int | slice) -> Tool | list[Tool]:
        return self._all()[index]

    def __add__(self, other: Iterable[Tool]) -> list[Tool]:
        return [*self, *other]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ToolList | list | tuple):
            return self._all() == list(other)  # pyright: ignore[reportUnknownArgumentType]
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())
