"""The contract of MCP Apps as tests: one for each rule of `transom check`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import cache

from transom.check import RULES, Report, Rule, check
from transom.connections.target_names import parse_target
from transom.connections.targets import Target


def _described(report: Report, rule: str | None = None) -> str:
    return "\n".join(
        f"{finding.rule} ({finding.severity}) {finding.subject}: {finding.message}"
        for finding in report.findings
        if rule in (None, finding.rule) and finding.severity != "info"
    )


async def _report(server: Target, rules: Sequence[Rule]) -> Report:
    target = parse_target(server) if isinstance(server, str) else server
    return await check("the server", target, rules=rules)


async def assert_contract(server: Target, *, ignore: Collection[str] = ()) -> None:
    """Check a server against the contract of MCP Apps.

    Args:
        server: a Python file, `module:server`, a URL or a command line; or a server object.
        ignore: ids of rules to leave out, such as `P11`.

    Raises:
        AssertionError: it breaks rules, or could not be checked; the text names them.
    """
    rules = [rule for rule in RULES if rule.id not in ignore]
    report = await _report(server, rules)
    if report.failure is not None:
        raise AssertionError(f"The server could not be checked: {report.failure}")
    if report.fails_on("warn"):
        raise AssertionError(f"The server breaks its contract\n{_described(report)}")


def contract_tests(server: Target, *, ignore: Collection[str] = ()) -> Callable[[str], None]:
    """A test for each rule of the contract, to be assigned to a name that pytest takes for a test.

        test_contract = contract_tests("orders.py")

    Args:
        server: as for `assert_contract`. A name of a file is relative to the folder in which pytest
            was started.
        ignore: ids of rules to leave out.
    """
    import pytest  # noqa: PLC0415 - it is there when this is used

    rules = [rule for rule in RULES if rule.id not in ignore]
    report = cache(lambda: asyncio.run(_report(server, rules)))  # once for all rules

    @pytest.mark.parametrize("rule", [rule.id for rule in rules])
    def test(rule: str) -> None:
        found = report()
        skipped = {skip.rule: skip.reason for skip in found.skipped}
        if found.failure is not None and rule in skipped:
            pytest.fail(f"The server could not be checked: {found.failure}", pytrace=False)
        if rule in skipped:  # it has nothing to check in this server, which is neither good nor bad
            pytest.skip(skipped[rule])
        if text := _described(found, rule):
            title = next(each.title for each in rules if each.id == rule)
            pytest.fail(f"{rule}: {title}\n{text}", pytrace=False)

    return test
