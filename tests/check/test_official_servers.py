"""The official example servers: two that differ here, all of them in docs."""

import re
from pathlib import Path

import pytest

from transom.check import Calling, Options, check
from transom.check.rules import RULES

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "tests" / "servers" / "node_modules" / "@modelcontextprotocol"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "tools", "found"),
    [
        ("debug", 3, {"A2", "N1", "C11", "B12"}),
        ("map", 2, {"A2", "B8", "N1", "C11", "D3", "P4"}),
    ],
)
async def test_an_official_server_is_checked_without_a_false_alarm(name, tools, found):
    command = ["node", str(PACKAGES / f"server-{name}" / "dist" / "index.js"), "--stdio"]
    options = Options(timeout=30, calling=Calling(all=True))

    report = await check(name, command, options=options)

    assert report.failure is None
    assert report.tools == tools
    assert report.summary.error == 0
    assert {finding.rule for finding in report.findings} == found
    documented = {rule.not_checked for rule in RULES if rule.not_checked}
    assert {skip.reason for skip in report.skipped} - documented == {
        "needs --browser",
        "a heuristic: needs --heuristics",
        "the server does not speak MCP 2026-07-28: Method not found (-32601)",
    }


def test_the_documentation_has_all_twenty():
    page = (ROOT / "docs" / "check-official-servers.md").read_text()
    rows = re.findall(r"^\| ([a-z-]+) \| \d+\.\d+\.\d+ \| 0 \|", page, re.MULTILINE)
    assert len(rows) == 20
    assert set(re.findall(r"^### (.+)$", page, re.MULTILINE)) == set(rows)
