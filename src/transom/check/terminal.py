"""A report for people: a table, a summary, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from transom.check.report import Report
from transom.check.rule import Finding, Rule
from transom.check.rules import RULES, SECTIONS

SHOWN_PER_RULE = 5
_STYLES = {"error": "bold red", "warn": "yellow", "info": "cyan"}
_OPTIONS = {"call": "--call", "text_call": "--call", "browser": "--browser"}
_NAMES = {"error": "error", "warn": "warning", "info": "note"}


def print_report(console: Console, report: Report, *, show_all: bool = False) -> None:
    """Print the report. Of many findings of one rule only the first are shown."""
    # Commands and paths are copied from these lines: only the terminal may break them.
    for line in _heading(report):
        console.print(line, soft_wrap=True)
    if not report.findings:  # a table starts with an empty line
        console.print()
    if report.failure is not None:
        what = "Not all was checked: " if report.checked else "Not checked: "
        console.print(Text.assemble((what, "bold red"), report.failure), soft_wrap=True)
        console.print()
    if report.findings:
        console.print(_table(report.findings, show_all=show_all, plain=not console.is_terminal))
    for note in report.notes:
        if note != report.failure:
            console.print(Text.assemble(("Remark: ", "bold"), note), soft_wrap=True)
    if report.notes:
        console.print()
    if report.failure is None or report.checked:
        console.print(_summary(report))


def rule_list() -> RenderableType:
    """All rules, by section."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Rule", no_wrap=True)
    table.add_column("Severity", no_wrap=True)
    table.add_column("What it wants", ratio=1)
    for letter, rules in groupby(RULES, key=lambda rule: rule.section):
        table.add_row("", "", Text(SECTIONS[letter], style="bold"))
        for rule in rules:
            severity = "-" if rule.not_checked else Text(rule.severity, _STYLES[rule.severity])
            why = f"not checked: {rule.not_checked}" if rule.not_checked else "heuristic"
            remark = f" ({why})" if rule.not_checked or rule.heuristic else ""
            table.add_row(_link(rule.id), severity, Text(rule.title + remark))
        table.add_section()
    return table


def explanation(rule: Rule) -> RenderableType:
    """What `--explain` prints."""
    heading = Text.assemble((rule.id, "bold"), "  ", (rule.title, "bold"))
    section = SECTIONS[rule.section]
    if rule.not_checked is not None:
        facts = Text(f"not checked on a server ({rule.not_checked}) · {section}")
    else:
        options = ["--heuristics"] if rule.heuristic else []
        options += [_OPTIONS[rule.surface]] if rule.surface in _OPTIONS else []
        when = f"with {' and '.join(options)}" if options else "always on"
        severity = (rule.severity, _STYLES[rule.severity])
        facts = Text.assemble(severity, f" at worst · {section} · {when}")
    paragraphs = (" ".join(part.split()) for part in rule.explanation.split("\n\n"))
    body = _marked("\n\n".join(paragraphs))
    source = Text(f"{rule.clause.title}\n{rule.clause.url}", style="dim")
    return Padding(Group(heading, facts, "", body, "", source), (0, 0, 1, 0))


def _heading(report: Report) -> list[Text]:
    seen = ""
    if report.failure is None or report.tools:
        seen = f"{_count(report.tools, 'tool')} · {_count(report.views, 'View')}"
    parts = [part for part in (report.server, seen) if part]
    heading = Text.assemble(("transom check ", "bold"), (report.target, "bold cyan"))
    return [heading, Text(" · ".join(parts), style="dim")] if parts else [heading]


def _table(findings: Sequence[Finding], *, show_all: bool, plain: bool) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("Severity", no_wrap=True)
    table.add_column("Rule", no_wrap=True)
    table.add_column("Finding", ratio=1, overflow="fold")
    last = findings[0].severity
    for (severity, rule), same in groupby(findings, key=lambda f: (f.severity, f.rule)):
        if severity != last:
            table.add_section()
        last, group = severity, list(same)
        shown = group if show_all else group[:SHOWN_PER_RULE]
        # A rule with several findings is named once.
        named = (Text(_NAMES[severity], _STYLES[severity]), _link(rule))
        for finding in shown:
            message = Text(finding.message) if plain else _marked(finding.message)
            if finding is shown[-1] and len(shown) < len(group):
                hidden = len(group) - len(shown)
                message.append(f"\n… and {hidden:,} more like this (--all shows them)", "dim")
            table.add_row(*(named if finding is shown[0] else ("", "")), message)
    return table


def _marked(message: str) -> Text:
    """The message with the parts between backquotes in bold."""
    text = Text()
    for position, part in enumerate(message.split("`")):
        text.append(part, "bold" if position % 2 else "")
    return text


def _link(rule_id: str) -> Text:
    url = next(rule.clause.url for rule in RULES if rule.id == rule_id)
    return Text(rule_id, style=f"bold link {url}")


def _summary(report: Report) -> RenderableType:
    counts = [
        Text(_count(count, _NAMES[severity]), _STYLES[severity] if count else "dim")
        for severity, count in msgspec.structs.asdict(report.summary).items()
    ]
    line = Text(" · ").join(counts)
    if not report.findings and report.checked:
        line = Text("No findings.", style="bold green")
    checked = Text(f"{_count(len(report.checked), 'rule')} checked", style="dim")
    if report.skipped:
        checked.append(f", {len(report.skipped)} skipped:")
    lines: list[RenderableType] = [line, checked]
    for reason, count in Counter(skip.reason for skip in report.skipped).most_common():
        lines.append(Padding(Text(f"{count:>3}  {reason}", style="dim"), (0, 0, 0, 2)))
    if report.findings:
        command = (f"transom check --explain {report.findings[0].rule}", "bold")
        lines.append(Text.assemble(command, " tells more about a rule."))
    return Group(*lines)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
