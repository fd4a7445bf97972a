"""What went wrong inside a View, for its author: errors, blocked requests, throwing schemas."""

from __future__ import annotations

import re

import msgspec

from transom.host.views.view import View
from transom.json_values import clean
from transom.types import ViewProblem

_MAX_MESSAGE = 2000
_MAX_TOOL = 128
_MAX_SOURCE = 500
_FRAME = re.compile(r"(?:^|[\s(@])([^\s()@]{1,500}):(\d{1,7}):(\d{1,7})\)?$", re.MULTILINE)
# What browsers report of pages that go on: a layout that took two turns, and a try of `eval`.
_HARMLESS = re.compile(r"ResizeObserver loop |script-src\S* blocked eval$")
_LIBRARY = 1000  # columns that nobody writes: code of a library, in one line
_MAX_PROBLEMS = 1000  # of one View, however often its page is loaded


def _may_keep_from_connecting(problem: ViewProblem) -> bool:
    """Whether this may be why a page never connects: a script that failed, or was blocked."""
    if _HARMLESS.match(problem.message):
        return False
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
    problem = _placed(problem)
    problem = msgspec.structs.replace(
        problem,
        message=clean(problem.message, _MAX_MESSAGE),
        tool=None if problem.tool is None else clean(problem.tool, _MAX_TOOL),
        source=None if problem.source is None else clean(problem.source, _MAX_SOURCE),
    )
    if view.app is None and view.failure is None and _may_keep_from_connecting(problem):
        view.failure = problem
    place = ":".join(str(each) for each in (problem.source, problem.line, problem.column) if each)
    detail = f"{problem.message} ({place})" if problem.source else problem.message
    view.record("problem", problem.kind, tool=problem.tool, by=view.id, detail=detail)
    return problem


def _placed(problem: ViewProblem) -> ViewProblem:
    """With the place that its stack names, if it has no other: in the author's own code first.

    A place in a library that is part of the page, such as transom.js, would be a line that the
    author has not written.
    """
    stack, problem = problem.stack, msgspec.structs.replace(problem, stack=None)
    if not stack or problem.source:
        return problem
    frames = [(source, int(line), int(column)) for source, line, column in _FRAME.findall(stack)]
    own = [frame for frame in frames if frame[2] < _LIBRARY]
    others = [frame for frame in frames if not frame[0].startswith("about:")]
    for source, line, column in own or others:
        return msgspec.structs.replace(problem, source=source, line=line, column=column)
    return problem
