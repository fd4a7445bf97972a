"""Checks an MCP server against the contract of MCP Apps (contract.md).

`runner` collects the facts, `facts` holds them, `rules` judge them, `report` sums up and writes
it for machines, `terminal` for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from transom.background import ignore
from transom.check.report import Report, Summary, apply_rules, nothing_checked
from transom.check.rule import Clause, Finding, Rule, RuleSurface, Severity, Skip
from transom.check.rules import RULES
from transom.check.runner import Calling, CheckProgress, NothingToCheck, Options, collect
from transom.connections.connection import Connect
from transom.connections.targets import Target, way_to

__all__ = [
    "RULES",
    "Calling",
    "CheckProgress",
    "Clause",
    "Finding",
    "Options",
    "Report",
    "Rule",
    "RuleSurface",
    "Severity",
    "Skip",
    "Summary",
    "check",
]

_MAX_MESSAGE = 16 * 1024 * 1024


async def check(
    target: str,
    server: Target | Connect,
    *,
    rules: Sequence[Rule] = RULES,
    heuristics: Iterable[str] = (),
    options: Options | None = None,
    progress: CheckProgress = ignore,
) -> Report:
    """Check one server. Whatever the server does becomes part of the report; nothing is raised.

    Args:
        target: what the report calls the server.
        server: a command as a list of words, the URL of a streamable HTTP server, an `MCPServer` or
            `FastMCP` object; or a function that opens a `Channel` to the server. It is connected
            several times, as the different clients that the rules are about.
        rules: the rules to check.
        heuristics: ids of heuristic rules to check as well; without it they are skipped.
        options: how to look at the server; which tools to call.
        progress: called as the work goes on.

    Raises:
        UsageError: `server` is none of these.
    """
    enabled = set(heuristics)
    surfaces = {rule.surface for rule in rules if not rule.heuristic or rule.id in enabled}
    options = options or Options()
    twice = options.read_twice or "C15" in enabled
    options = msgspec.structs.replace(options, surfaces=frozenset(surfaces), read_twice=twice)
    # A server under test gets our whole environment, and its standard error is not ours.
    connect = cast("Connect", server)
    if not callable(server):
        connect = way_to(server, inherit_env=True, forward_stderr=False, max_bytes=_MAX_MESSAGE)
    try:
        seen = await collect(connect, options, progress=progress)
    except NothingToCheck as error:
        return nothing_checked(target, str(error), rules)
    return apply_rules(target, seen, rules, heuristics=enabled)
