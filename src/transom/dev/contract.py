"""The contract of MCP Apps, checked again after each start of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from transom.check import RULES, Report, check
from transom.connections.targets import Target

_QUIET_FOR = 1.5  # seconds without another start: a check starts the server several times

_RULES = {rule.id: rule for rule in RULES}


async def check_when_quiet(shown: str, server: Target, show: Callable[[object], object]) -> None:
    """Check the server, unless it is started again soon, and show what was found.

    `show` is called with the state of the check and its findings, each with the rule it breaks.
    """
    await asyncio.sleep(_QUIET_FOR)
    show({"state": "checking", "findings": []})
    show(_described(await check(shown, server)))


def _described(report: Report) -> dict[str, Any]:
    findings: list[dict[str, Any]] = []
    for finding in report.findings:
        rule = _RULES[finding.rule]
        about = {"title": rule.title, "explanation": rule.explanation}
        findings.append({**msgspec.to_builtins(finding), **about})
    return {
        "state": "failed" if report.failure else "done",
        "reason": report.failure or "",
        "findings": findings,
        "checked": len(report.checked),
    }
