"""Our own host, asked what it would do with a server's tools: the subject of rule B17."""

from __future__ import annotations

from collections.abc import Iterable

from transom.check.facts import ListedTool
from transom.check.snapshot import VisibilityDecision
from transom.host.policy import model_may_call, view_may_call
from transom.types import Tool

__all__ = ["visibility_decisions"]


def visibility_decisions(tools: Iterable[ListedTool]) -> tuple[VisibilityDecision, ...]:
    """Whether the host would offer each tool to the model, and let a View call it."""
    decisions: list[VisibilityDecision] = []
    for listed in tools:
        tool = Tool(listed.name, meta=listed.meta)
        told = (listed.name, listed.visibility)
        decisions.append(VisibilityDecision(*told, "model", model_may_call(tool)))
        decisions.append(VisibilityDecision(*told, "view", view_may_call(tool)))
    return tuple(decisions)
