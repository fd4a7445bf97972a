"""Which Views there are: those that live, in the order of their use, and those that were closed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from itertools import islice

import msgspec

from transom.errors import Refused
from transom.host.views import Origin, View

__all__ = ["ClosedView", "Shelf"]

_MAX_CLOSED = 1000
_MAX_CLOSED_BYTES = 32 * 1024 * 1024
_REASON_ONLY = 100  # bytes that a closed View costs without its input and result


class ClosedView(msgspec.Struct, frozen=True):
    """What is left of a View: why it closed, and how to open it again."""

    id: str
    reason: str
    origin: Origin
    size: int


class Shelf(Mapping[str, View]):
    """The Views that live, by id, the least recently used one first.

    Args:
        max_live: how many there may be.
    """

    def __init__(self, max_live: int) -> None:
        self._max_live = max_live
        self._live: OrderedDict[str, View] = OrderedDict()
        self._closed: OrderedDict[str, ClosedView] = OrderedDict()
        self._closed_bytes = 0
        self._numbers: dict[str, int] = {}

    def __getitem__(self, view_id: str) -> View:
        return self._live[view_id]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._live))

    def __len__(self) -> int:
        return len(self._live)

    def values(self) -> ValuesView[View]:
        """The Views there are now; they may come and go while these are looked at."""
        return dict(self._live).values()

    def items(self) -> ItemsView[str, View]:
        """The same, with their ids."""
        return dict(self._live).items()

    def new_id(self, server: str, taken: Mapping[str, object]) -> str:
        """An id that no View of this host had, and no server has for a name."""
        number = self._numbers.get(server, 0) + 1
        while f"{server}-{number}" in taken:
            number += 1
        self._numbers[server] = number
        return f"{server}-{number}"

    def is_view_id(self, name: str) -> bool:
        """Whether a View of this host has or had that id."""
        server, _, number = name.rpartition("-")
        return number.isdecimal() and int(number) <= self._numbers.get(server, 0)

    def add(self, view: View) -> list[View]:
        """Give a View its place. Returns those that have to be closed to make room for it.

        Raises:
            Refused: there is no room, and nothing that may be closed.
        """
        staying = [other for other in self._live.values() if other.state != "closing"]
        excess = max(len(staying) + 1 - self._max_live, 0)
        may_go = (other for other in staying if other.state == "live" and not other.pinned)
        victims = list(islice(may_go, excess))
        if len(victims) < excess:
            raise Refused(
                f"There are {len(staying)} Views open and none may be closed: they are pinned "
                "or opening. Close or unpin one, or raise Limits.max_live_views"
            )
        self._forget(view.id)
        self._live[view.id] = view
        for victim in victims:
            victim.retire(f"it was the least recently used of {self._max_live} Views")
        return victims

    def touch(self, view: View) -> None:
        """Note that a View was used."""
        if view.id in self._live:
            self._live.move_to_end(view.id)

    def remove(self, view: View) -> None:
        """Take a View that has ended off, and remember how to open it again."""
        if self._live.get(view.id) is not view:
            return
        del self._live[view.id]
        origin = view.origin
        size = _REASON_ONLY + len(msgspec.json.encode([origin.arguments, origin.result]))
        self._closed[view.id] = ClosedView(view.id, view.reason, origin, size)
        self._closed_bytes += size
        while len(self._closed) > _MAX_CLOSED or self._closed_bytes > _MAX_CLOSED_BYTES:
            _, oldest = self._closed.popitem(last=False)
            self._closed_bytes -= oldest.size

    def closed(self, view_id: str) -> ClosedView | None:
        """What is left of a View, unless it was too long ago."""
        return self._closed.get(view_id)

    def _forget(self, view_id: str) -> None:
        forgotten = self._closed.pop(view_id, None)
        if forgotten is not None:
            self._closed_bytes -= forgotten.size
