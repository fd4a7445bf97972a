"""The Views of a host: those that are open, and those that were closed.

There are never more live Views than allowed: the least recently used one is closed first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from itertools import islice

import msgspec

from transom.errors import Refused, ViewClosed
from transom.host.policy import Reuse
from transom.host.renderers import Renderer
from transom.host.surface import view_stem
from transom.host.view import View, ViewEnvironment, ViewOrigin
from transom.servers.server import Server

_MAX_CLOSED = 1000
_MAX_CLOSED_BYTES = 32 * 1024 * 1024
_REASON_ONLY = 100  # bytes that a closed View costs without its input and result
_encode = msgspec.json.Encoder(order="deterministic").encode


class ClosedView(msgspec.Struct, frozen=True):
    """What is kept of a closed View: why it closed, and how to open it again."""

    reason: str
    origin: ViewOrigin
    size: int


class OpenViews(Mapping[str, View]):
    """Opens Views, and has those that are open by id, the least recently used one first."""

    def __init__(self, environment: ViewEnvironment) -> None:
        self._environment = environment
        self._max_live = environment.limits.max_live_views
        self._open: dict[str, View] = {}
        self._closed: OrderedDict[str, ClosedView] = OrderedDict()
        self._closed_bytes = 0
        self._numbers: dict[str, int] = {}

    # --- which there are ---------------------------------------------------------------------

    def __getitem__(self, view_id: str) -> View:
        return self._open[view_id]

    def __iter__(self) -> Iterator[str]:
        return iter([view.id for view in self.values()])

    def __len__(self) -> int:
        return len(self._open)

    def values(self) -> ValuesView[View]:
        """The Views that are open now: a copy, which does not change as Views open and close."""
        return self._in_order().values()

    def items(self) -> ItemsView[str, View]:
        """The same, with their ids."""
        return self._in_order().items()

    def _in_order(self) -> dict[str, View]:
        return {view.id: view for view in sorted(self._open.values(), key=_last_used)}

    def new_id(self, server: str, taken: list[str]) -> str:
        """An id that no View of this host had, and that is not in `taken`."""
        stem = view_stem(server)
        number = self._numbers.get(stem, 0) + 1
        while f"{stem}-{number}" in taken:
            number += 1
        self._numbers[stem] = number
        return f"{stem}-{number}"

    def is_view_id(self, name: str) -> bool:
        """Whether a View of this host has or had that id."""
        stem, _, number = name.rpartition("-")
        short = len(number) < 10  # Python refuses to read thousands of digits
        return short and number.isdecimal() and int(number) <= self._numbers.get(stem, 0)

    def closed(self, view_id: str) -> ClosedView | None:
        """What is kept of a closed View, unless it was too long ago."""
        return self._closed.get(view_id)

    def closed_error(self, view_id: str) -> ViewClosed:
        """The error for a caller that wants a View which is not open."""
        closed = self._closed.get(view_id)
        if closed is not None:
            opener = closed.origin.tool.name[:128]
            text = f"View {view_id} is closed: {closed.reason}. Call {opener} to open another one"
        elif self.is_view_id(view_id):
            text = f"View {view_id} is closed"
        else:
            text = f"There is no View {view_id[:128]}"
        return ViewClosed(view_id, text)

    def remove(self, view: View) -> None:
        """Remove a View that has ended, and keep how to open it again."""
        if self._open.get(view.id, view) is not view:
            return
        self._open.pop(view.id, None)
        origin = view.origin
        size = len(msgspec.json.encode(origin.arguments)) + len(origin.result or b"")
        self._closed[view.id] = ClosedView(view.reason, origin, size + _REASON_ONLY)
        self._closed_bytes += size + _REASON_ONLY
        while len(self._closed) > _MAX_CLOSED or self._closed_bytes > _MAX_CLOSED_BYTES:
            _, oldest = self._closed.popitem(last=False)
            self._closed_bytes -= oldest.size

    def to_use_again(self, call: ViewOrigin, reuse: Reuse) -> View | None:
        """The View, open or opening, that another call of the same tool has, if this may use it."""
        if reuse == "never":
            return None
        for view in reversed(list(self.values())):
            last = view.newest_call
            if (
                view.state in ("opening", "live")
                and (last.server, last.uri) == (call.server, call.uri)
                and last.tool.name == call.tool.name
                and (reuse == "always" or _encode(last.arguments) == _encode(call.arguments))
            ):
                return view
        return None

    def _add(self, view: View) -> list[View]:
        """Add a View. Returns those that have to be closed to make room for it."""
        staying = [other for other in self.values() if other.state != "closing"]
        excess = max(len(staying) + 1 - self._max_live, 0)
        may_close = (v for v in staying if v.state in ("live", "unresponsive") and not v.pinned)
        closing = list(islice(may_close, excess))
        if len(closing) < excess:
            raise Refused(
                f"There are {len(staying)} Views open and none may be closed: they are pinned "
                "or opening. Close or unpin one, or raise Limits.max_live_views"
            )
        self._open[view.id] = view
        for other in closing:
            other.begin_closing(f"it was the least recently used of {self._max_live} Views")
        return closing

    # --- opening -----------------------------------------------------------------------------

    def open(self, view_id: str, origin: ViewOrigin, server: Server, renderer: Renderer) -> View:
        """Begin to open a View; `view.opened()` waits until it is live or has failed."""
        view = View(view_id, origin, self._environment, server, renderer)
        if (reopened := self._closed.pop(view_id, None)) is not None:
            self._closed_bytes -= reopened.size
        try:
            # Here, not in the task: the id is taken from now on.
            view.begin_opening(self._add(view))
        except Refused as refusal:
            view.begin_opening(refusal)
        return view


def _last_used(view: View) -> float:
    return view.last_used
