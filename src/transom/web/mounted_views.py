"""Views on a Stage, and their sandboxes: which View has which origin."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

import msgspec

from transom.host.asking.grants import Grant
from transom.host.views.ui_resource import UIResource
from transom.web.page_link import ViewChannel

GUARD = "guard"
"""The label of the guards' origin: see `js/src/guard.ts`. Labels of Views have a `-` in them."""

_MAX_VIOLATIONS = 100  # reports taken of one View
_ENDS_WITHIN = 15.0  # seconds that a browser may need to end the process of a page that is gone


MISSING = "missing"
"""The `directive` of a file that a page names beside itself, where there is none."""


class Violation(msgspec.Struct, frozen=True):
    """Something that a View's policy blocked, or a file that is not there (`missing`)."""

    view: str
    directive: str
    blocked: str
    source: str = ""
    client: str = ""
    """The client of its Host, if known: the one given to `renderer.seat(client)`."""


class ViewOwner(Protocol):
    """Who shows a View on a Stage: handles what the page reports of it, and what its user wants.

    A View is named by its key: see `Stage.mount`.
    """

    def set_view_context(self, key: str, changes: dict[str, Any]) -> None:
        """The View is shown in another way: these are the changes of its host context."""
        ...

    def lose_view(self, key: str, reason: str) -> None:
        """The View's page is gone, but not its place: it navigated away, or it crashed."""
        ...

    def close_view(self, key: str) -> bool:
        """The user wants the View closed. False: it is not known, and the Stage removes it."""
        ...

    def reopen_view(self, key: str) -> None:
        """The page was replaced, or the user wants a View back that is gone or does not respond."""
        ...

    def forget_view(self, key: str) -> None:
        """The user has dismissed the card of a View that is gone."""
        ...

    def withdraw(self, key: str, grant: Grant) -> None:
        """The user takes back that a tool always runs."""
        ...


class MountedView(msgspec.Struct, eq=False, kw_only=True):
    """A View on a Stage."""

    key: str
    resource: UIResource
    owner: ViewOwner | None
    client: str
    host: str
    """The `Host` of its origin, which Views of the same server and resource share."""
    number: int
    """Its number among all that have been in these sandboxes: see `Sandboxes.next_number`."""
    channel: ViewChannel
    title: str
    """What it calls itself, or its tool: untrusted."""
    tools: list[dict[str, Any]] = []
    """Its tools, as the page shows them."""
    on_violation: Callable[[Violation], object]
    csp: str = ""
    page_origin: str = ""
    """The origin of the page that shows it: no other may frame its sandbox."""
    violations: int = 0
    taken: bool = False
    """Whether the user has taken control: the model may look at it, and does nothing in it."""
    is_stuck: bool = False
    """Whether its page is in an endless loop: see `Stage.avoid_origin`."""

    def report_violation(self, directive: str, blocked: str, source: str = "") -> None:
        """It tried something that its policy does not allow."""
        if self.violations < _MAX_VIOLATIONS:
            self.violations += 1
            found = directive[:100], blocked[:500], source[:200]
            self.on_violation(Violation(self.resource.view_id, *found, self.client))


def is_guard(host: str) -> bool:
    """Whether this is the `Host` of the guards."""
    return host.partition(".")[0] == GUARD


class Sandboxes:
    """The Views of one or more Stages by the `Host` of their origin."""

    def __init__(self) -> None:
        self._views: dict[str, list[MountedView]] = {}
        self._numbers = count(1)
        self._ending: dict[str, float] = {}  # by `Host`, until when its process may be there

    def next_number(self) -> int:
        """A number that no other View has, on any Stage."""
        return next(self._numbers)

    def __contains__(self, host: str) -> bool:
        return host in self._views

    def find(self, host: str, number: str = "") -> MountedView | None:
        """The View with this `Host` and number; without such a number, the last one there."""
        views = self._views.get(host)
        if views is None:
            return None
        return next((each for each in reversed(views) if str(each.number) == number), views[-1])

    def is_stuck(self, host: str) -> bool:
        """Whether pages of this `Host` would wait for an endless loop: they share a process."""
        there = any(each.is_stuck for each in self._views.get(host, ()))
        return there or time.monotonic() < self._ending.get(host, 0.0)

    def add(self, mounted: MountedView) -> None:
        """Serve the sandbox of a View."""
        self._views.setdefault(mounted.host, []).append(mounted)

    def remove(self, mounted: MountedView) -> None:
        """Serve it no longer."""
        views = self._views[mounted.host]
        views.remove(mounted)
        if not views:
            del self._views[mounted.host]
        if mounted.is_stuck:
            now = time.monotonic()
            self._ending = {host: end for host, end in self._ending.items() if end > now}
            self._ending[mounted.host] = now + _ENDS_WITHIN
