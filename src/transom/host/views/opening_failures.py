"""Why a View is not open: for whoever called its tool, and in more words for its author."""

from __future__ import annotations

import asyncio

from transom.errors import RequestTimeout, TransomError
from transom.types import ViewProblem

PAGE_FAILED = "its page failed before `connect()`"


def why_not_opened(
    error: BaseException,
    late_after: float | None,
    known: str,
    *,
    is_shown: bool,
    began_to_connect: bool,
) -> str:
    """What prevented a View from opening.

    Args:
        error: what ended its opening.
        late_after: the seconds that it had, if it took all of them.
        known: why its page has not connected so far, if that is known.
        is_shown: whether the renderer had opened its page.
        began_to_connect: whether its `ui/initialize` was answered.
    """
    match error:
        case TimeoutError() | RequestTimeout() if known:
            return known
        case TimeoutError() if late_after is not None:  # not one of the renderer's own
            if not is_shown:
                place = "its page had not come from the server, or its place was not ready"
                return f"it was not shown within {late_after:g} s: {place}"
            late = f"it was not initialised within {late_after:g} s: its page"
            if began_to_connect:
                said = "and no `ui/notifications/initialized`, or does not list its tools"
                return f"{late} sent `ui/initialize`, {said}"
            duty = "has to load and call `connect()`, and a script error before that prevents it"
            return f"{late} {duty}"
        case asyncio.CancelledError():
            return str(error) or "its opening was cancelled"
        case TransomError():
            return str(error).removeprefix("initialized: ").removeprefix("connection closed: ")
        case _:
            return f"it could not be shown: {type(error).__name__}"


def for_author(reason: str, problem: ViewProblem | None) -> str:
    """A reason, with the problem of the page that may be the cause; models never see that."""
    if problem is None:
        return reason
    text = f"{reason}: {problem.message}"
    if not problem.source:
        return text
    page = "the page" if problem.is_in_page else problem.source
    return f"{text} ({page}, line {problem.line}, column {problem.column})"
