"""The browser in which `transom doctor` and `transom dev` look at a View that is not seen."""

from __future__ import annotations

from transom.check.observing import BrowserWatch
from transom.web.headless import HeadlessRenderer


def headless_browser(watch: BrowserWatch, evals: bool) -> HeadlessRenderer:
    """A browser without a window that reports to `watch`: see `diagnose`."""
    return HeadlessRenderer(
        csp="compat" if evals else "strict",
        on_violation=watch.violation,
        on_console=watch.console,
        on_request=watch.request,
    )
