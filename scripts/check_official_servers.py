"""Checks the official example servers and writes docs/check-official-servers.md.

    .venv/bin/python scripts/check_official_servers.py [NAME …]

With names, only those are checked and the page is left alone. The servers come from npm; install
them with `scripts/setup` first.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path

from transom.check import Calling, Options, Report, check
from transom.check.report import SEVERITIES
from transom.check.rules import RULES

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "tests" / "servers" / "node_modules" / "@modelcontextprotocol"
PAGE = ROOT / "docs" / "check-official-servers.md"
SERVERS = (
    "basic-preact", "basic-react", "basic-solid", "basic-svelte", "basic-vanillajs", "basic-vue",
    "budget-allocator", "cohort-heatmap", "customer-segmentation", "debug", "map", "pdf",
    "scenario-modeler", "shadertoy", "sheet-music", "system-monitor", "threejs", "transcript",
    "video-resource", "wiki-explorer",
)  # fmt: skip

OPENING = """\
# The official example servers, checked

What `transom check --call-all --heuristics` says of the 20 example servers of the MCP Apps project
(npm `@modelcontextprotocol/server-*`). Written by `scripts/check_official_servers.py`; each finding
was compared with the server's source. There was no network: `geocode` and `display_pdf` answered
with an error, `get-first-degree-links` with an empty result.

| Server | Version | Errors | Warnings | Notes | Rules |
| --- | --- | --- | --- | --- | --- |
"""
READING = """
## Read one by one

- **A2**: none of the examples looks at the client's capabilities before it lists its tools; a
  client without MCP Apps gets the links too. The specification says SHOULD, so it is a warning.
- **B8**: these tools open no View, state no visibility and are not marked read-only, so any View
  may call them.
- **N1**, **N4**: none of the examples annotates its tools.
- **C11**: none of the examples sets `prefersBorder`.
- **D3**: correct. The Views of `show-map`, `render-shadertoy` and `play-sheet-music` use only the
  tool's input and that of `transcribe` the microphone, so their authors have little reason to
  change it; the `get-time` Views parse the time out of the text.
- **P4** in `map`: tiles come from many subdomains, so this is only a note.
- **B12** in `debug`: both helpers name the View they belong to, which is allowed.
- **N9** in `pdf`: judged by the name, and correct: the four tools pass data on or write a file.
- `poll_pdf_commands` of `pdf` waits for commands by design; the call ends with the timeout.

False alarms that were found here and fixed in the rules: an origin declared in two lists was
reported twice (P4); pictures in custom properties of a style sheet load nothing by themselves (P9).
"""


async def report_on(name: str) -> Report:
    """Check one of them, calling every tool it has."""
    entry = PACKAGES / f"server-{name}" / "dist" / "index.js"
    options = Options(timeout=30, calling=Calling(all=True))
    heuristics = [rule.id for rule in RULES if rule.heuristic]
    return await check(
        name,
        ["node", str(entry), "--stdio"],
        options=options,
        heuristics=heuristics,
    )


def row(report: Report) -> str:
    """A line of the table."""
    package = (PACKAGES / f"server-{report.target}" / "package.json").read_text()
    version = package.partition('"version": "')[2].partition('"')[0]
    counts = Counter(finding.rule for finding in report.findings)
    rules = ", ".join(f"{rule} x{n}" if n > 1 else rule for rule, n in counts.items())
    numbers = " | ".join(str(getattr(report.summary, severity)) for severity in SEVERITIES)
    return f"| {report.target} | {version} | {numbers} | {rules or 'none'} |\n"


def meanings(reports: list[Report]) -> str:
    """What the rules that spoke want, and in how many servers."""
    servers = Counter(
        rule for report in reports for rule in {finding.rule for finding in report.findings}
    )
    lines = ["\n| Rule | Servers | What it wants |\n| --- | --- | --- |\n"]
    lines += [
        f"| {rule.id} | {servers[rule.id]} | {rule.title} |\n" for rule in RULES if servers[rule.id]
    ]
    return "".join(lines)


def details(report: Report) -> str:
    """Every finding of one server."""
    lines = [f"\n### {report.target}\n\n"]
    lines += [f"- {f.severity} **{f.rule}** {f.message}\n" for f in report.findings]
    lines += [f"- remark: {note}\n" for note in report.notes]
    return "".join(lines)


async def main(names: list[str]) -> int:
    """Check them one by one: they share the machine with whoever works on it."""
    reports: list[Report] = []
    for name in names or SERVERS:
        report = await report_on(name)
        reports.append(report)
        sys.stderr.write(row(report))
        if report.failure is not None:
            sys.stderr.write(f"{name}: {report.failure}\n")
    if not names:
        page = OPENING + "".join(map(row, reports)) + meanings(reports) + READING
        PAGE.write_text(page + "\n## Every finding\n" + "".join(map(details, reports)))
    return 2 if any(report.failure for report in reports) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
