"""The tools of one View as of its last listing, and when it is listed again.

A View is listed again when it announces a change; one that never announces changes, after each
call; one with lazy schemas, whose every listing may differ, also for each model that lists tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from transom.host.tools.refresh import Refresh, wait_refreshed
from transom.host.tools.tool_visibility import model_may_call
from transom.types import AppCapabilities, Tool

_FIRST_LISTING = 3.0  # seconds
_MAX_LEFT_OUT = 5  # tools named in a report of those that are left out
_MAX_REPORTS = 20  # texts about tools that are left out, for one View


class KnownTools:
    """One View's tools.

    Args:
        list_tools: lists the View.
        interval: seconds between two listings, on average.
        stale: the outdated lists of the host.
        pulled: those that are listed again for each model that lists tools.
        on_error: called with what a listing raises.
        on_late: called when the previous list is used because a listing took too long.
    """

    def __init__(
        self,
        list_tools: Callable[[], Awaitable[None]],
        interval: float,
        stale: set[Refresh],
        pulled: set[Refresh],
        on_error: Callable[[BaseException], object],
        on_late: Callable[[], object],
    ) -> None:
        self.by_name: dict[str, Tool] = {}
        self.for_model: dict[str, Tool] = {}
        """Those that a model may call."""
        self.left_out = ""
        """Which tools no model can call, and why."""
        self._announces_changes = True
        self._reported: set[str] = set()
        self._pulled = pulled
        self._refresh = Refresh(list_tools, interval, stale, on_error, on_late)

    @property
    def may_differ(self) -> bool:
        """Whether every listing may differ."""
        return self._refresh in self._pulled

    @property
    def pulling(self) -> bool:
        """Whether the running listing is only for a model that lists, not for a change."""
        return self._refresh.pulling

    def update(self, listed: Iterable[Tool], *, may_differ: bool) -> None:
        """Replace them by those of a new listing."""
        self.by_name = {tool.name: tool for tool in listed}
        self.for_model = {name: t for name, t in self.by_name.items() if model_may_call(t)}
        (self._pulled.add if may_differ else self._pulled.discard)(self._refresh)

    def changed(self, app: AppCapabilities | None) -> None:
        """List the View, which declares these capabilities now, again soon."""
        tools = None if app is None else app.tools
        self._announces_changes = tools is None or tools.list_changed is True
        self._refresh.trigger()

    def called(self) -> None:
        """One of them was called, which may have changed them."""
        if not self._announces_changes:
            self._refresh.trigger()

    def report_once(self, text: str) -> bool:
        """Whether what is wrong with the listing was not reported before."""
        if text in self._reported or len(self._reported) >= _MAX_REPORTS:
            return False
        self._reported.add(text)
        return True

    async def wait_first(self) -> None:
        """Wait for the first listing: no earlier one can be used, so it may take longer."""
        await wait_refreshed([self._refresh], _FIRST_LISTING)

    async def refreshed(self, seconds: float, *, list_again: bool = False) -> None:
        """Wait briefly for a pending listing, or for the one that a lazy schema needs.

        With `list_again`, it is listed now if no listing is pending, as often as the rate allows.
        """
        if self.may_differ:
            self._refresh.pull()
        elif list_again and self._refresh.listing(seconds) is None:
            self._refresh.trigger()
        await wait_refreshed([self._refresh], seconds, slow_ones=True)

    def close(self) -> None:
        """The View has ended: it has no tools, and is not listed again."""
        self._refresh.stop()
        self.update((), may_differ=False)


def describe_left_out(reasons: Mapping[str, str]) -> str:
    """Which tools no model can call, and why; "" if there are none."""
    told = [f"{name}: {why}" if name else why for name, why in reasons.items()]
    more = len(told) - _MAX_LEFT_OUT
    text = "; ".join(told[:_MAX_LEFT_OUT]) + (f"; and {more} more" if more > 0 else "")
    if any("(max_" in reason for reason in reasons.values()):
        text += ". Limits(...), or --limit NAME=NUMBER of the gateway, raises a limit"
    return text
