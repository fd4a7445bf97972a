"""The Views of a host: open ones, and records of closed ones.

When there are too many open Views, the least recently used one is closed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from itertools import islice
from typing import Literal

import msgspec

from transom.connections.upstream import Server
from transom.errors import Refused, ViewClosed
from transom.host.policy import GivenGrant, Reuse
from transom.host.renderers import Renderer
from transom.host.surface import view_stem
from transom.host.view import View, ViewEnvironment, ViewOrigin

_MAX_CLOSED = 1000
_MAX_CLOSED_BYTES = 32 * 1024 * 1024
_REASON_ONLY = 100  # bytes that a closed View costs without its input and result
_encode = msgspec.json.Encoder(order="deterministic").encode


class ViewRecord(msgspec.Struct, frozen=True):
    """What is needed to reopen a View, in its host or in another one."""

    origin: ViewOrigin
    reason: str = ""
    """Why it was closed; empty if it is open."""
    pinned_by: Literal["host", "view"] | None = None

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        origin = self.origin
        return len(_encode(origin.arguments)) + len(origin.result or b"") + _REASON_ONLY


class HostRecords(msgspec.Struct, frozen=True):
    """What another host needs to reopen the Views of this one: see `Host.records`."""

    views: dict[str, ViewRecord] = {}
    numbers: dict[str, int] = {}
    """The number of the last View of each server."""
    grants: list[GivenGrant] = []
    """The user's permanent grants."""


class OpenViews(Mapping[str, View]):
    """Opens Views, and maps ids to open Views, the least recently used one first."""

    def __init__(self, environment: ViewEnvironment) -> None:
        self._environment = environment
        self._max_live = environment.limits.max_live_views
        self._open: dict[str, View] = {}
        self._closed: OrderedDict[str, ViewRecord] = OrderedDict()
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
        """The Views that are open now, as a copy that does not change as Views open and close."""
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

    def closed(self, view_id: str) -> ViewRecord | None:
        """The record of a closed View, if it still exists."""
        return self._closed.get(view_id)

    def closed_error(self, view_id: str) -> ViewClosed:
        """The error for a request to a View that is not open."""
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
        """Remove a View that has ended, and store a record to reopen it."""
        if self._open.get(view.id, view) is not view:
            return
        self._open.pop(view.id, None)
        pinned_by = view.pinned_by if view.state == "failed" else None  # for a retry
        self._keep(view.id, ViewRecord(view.origin, view.reason, pinned_by))

    def _keep(self, view_id: str, record: ViewRecord) -> None:
        self._closed[view_id] = record
        self._closed_bytes += record.size
        while len(self._closed) > _MAX_CLOSED or self._closed_bytes > _MAX_CLOSED_BYTES:
            _, oldest = self._closed.popitem(last=False)
            self._closed_bytes -= oldest.size

    # --- records -----------------------------------------------------------------------------

    def records(self) -> tuple[dict[str, ViewRecord], dict[str, int]]:
        """The records of all Views, closed ones first, and the last number of each server's ids."""
        shown = {
            view.id: ViewRecord(view.origin, "", view.pinned_by)
            for view in self.values()
            if view.state != "closing"
        }
        return {**self._closed, **shown}, dict(self._numbers)

    def restore(self, views: Mapping[str, ViewRecord], numbers: Mapping[str, int]) -> None:
        """Take over the records of another host, as if its Views had been closed here."""
        for stem, number in numbers.items():
            self._numbers[stem] = max(number, self._numbers.get(stem, 0))
        for view_id, record in views.items():
            if view_id not in self._open and view_id not in self._closed:
                self._keep(view_id, record)

    def to_use_again(self, call: ViewOrigin, reuse: Reuse) -> View | None:
        """The open or opening View of another call of the same tool, if this call may reuse it."""
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
        """Add a View. Returns the Views to close to make room for it."""
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
            view.pinned_by = reopened.pinned_by
        try:
            # Here, not in the task, so that the id is taken from now on.
            view.begin_opening(self._add(view))
        except Refused as refusal:
            view.begin_opening(refusal)
        return view


def _last_used(view: View) -> float:
    return view.last_used
