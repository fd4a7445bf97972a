"""Checks an MCP server against the contract of MCP Apps: 84 rules, each a small function.

    from transom.check import check
    from transom.check.connect import process

    report = await check("orders.py", process(["python", "orders.py"]))

`snapshot` holds the facts, `runner` collects them, `rules` judge them, `report` sums up, `formats`
and `terminal` write it down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from transom.check.catalogue import Finding, Rule, Severity, Skip
from transom.check.connect import Connect
from transom.check.report import Report, apply_rules, nothing_checked
from transom.check.rules import RULES
from transom.check.runner import Options, Progress, Unreachable, collect, unseen
from transom.version import __version__

__all__ = ["Finding", "Options", "Report", "Rule", "Severity", "Skip", "check"]


async def check(
    target: str,
    connect: Connect,
    *,
    rules: Sequence[Rule] = RULES,
    heuristics: Iterable[str] = (),
    options: Options | None = None,
    version: str = __version__,
    progress: Progress = unseen,
) -> Report:
    """Check one server. Never raises for what a server does: that is what the report is for.

    Args:
        target: what the report calls the server.
        connect: opens a connection (`connect.process`, `streams.url`, `streams.in_process`).
        rules: the rules to check.
        heuristics: ids of heuristic rules to check as well; without it they are skipped.
        options: how to look at the server; which tools to call.
        version: our own version, told to the server.
        progress: called as the work goes on.
    """
    enabled = set(heuristics)
    options = options or Options()
    if "C15" in enabled:
        options = msgspec.structs.replace(options, read_twice=True)
    try:
        collected = await collect(connect, options, version=version, progress=progress)
    except Unreachable as error:
        return nothing_checked(target, str(error), rules)
    return apply_rules(target, collected.snapshot, rules, heuristics=enabled, notes=collected.notes)
