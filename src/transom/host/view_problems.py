"""What went wrong inside a View, for its author: errors, blocked requests, throwing schemas."""

from __future__ import annotations

import msgspec

from transom.host.view import View
from transom.json_values import clean
from transom.types import ViewProblem

_MAX_MESSAGE = 2000
_MAX_TOOL = 128
_MAX_SOURCE = 500
_MAX_PROBLEMS = 1000  # of one View, however often its page is loaded


def may_keep_from_connecting(problem: ViewProblem) -> bool:
    """Whether this may be why a page never connects: a script that failed, or was not loaded."""
    blocked = problem.kind == "blocked" and problem.message.startswith("script-src")
    return blocked or problem.kind in ("error", "rejection")


def record_problem(view: View, problem: ViewProblem) -> ViewProblem | None:
    """Write a View's problem to the audit.

    Returns:
        The problem, its texts cleaned and cut; None if the View has reported too many.
    """
    view.counts["problems"] += 1
    if view.counts["problems"] > _MAX_PROBLEMS:
        return None
    if view.counts["problems"] == _MAX_PROBLEMS:
        problem = ViewProblem(problem.kind, "There are more problems than are recorded")
    problem = msgspec.structs.replace(
        problem,
        message=clean(problem.message, _MAX_MESSAGE),
        tool=None if problem.tool is None else clean(problem.tool, _MAX_TOOL),
        source=None if problem.source is None else clean(problem.source, _MAX_SOURCE),
    )
    place = f" ({problem.source}:{problem.line})" if problem.source else ""
    detail = f"{problem.message}{place}"
    view.record("problem", problem.kind, tool=problem.tool, by=view.id, detail=detail)
    return problem
