"""Measure Transom and its peers in one run and print the ratios.

    python -m benchmarks [--quick] [--rounds 20] [--only call,list50] [--json FILE] [--write]

Each round measures each row by us and at once by every peer, a quarter of a second each, because a
machine's speed changes from second to second. Figures and ratios are the median of the rounds, by
the clock and by processor time, which hardly depends on what else the machine does. Ratios of one
run on one machine mean something; figures of two machines do not.
Exits with 1 when a budget is missed.
"""

import argparse
import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import bare, ours, page, peers, starting
from benchmarks.peers import PY, TS, TS_BEST
from benchmarks.rates import Rate

console = Console(width=None if sys.stdout.isatty() else 130)

BARE = "bare asyncio and msgspec"
GROUPS = (
    *("host", "browser", "drive", "testing", "dev", "gateway", "http", "clients", "bus", "users"),
)


class Measured(NamedTuple):
    """One line of the table: a figure, what it is compared with, and the budget for the ratio."""

    name: str
    ours: float
    unit: str
    against: str
    theirs: float | None
    ratio: float | None
    budget: str
    ok: bool | None
    processor: float | None = None
    """The ratio by processor time."""
    spread: float | None = None
    """How far our worst round is below our best: 0.1 is ten percent."""


class Row(NamedTuple):
    """Something both sides do; `budgets` says how many times as often we must."""

    key: str
    name: str
    callers: int
    budgets: dict[str, float | None]


COMPARED = [
    Row("ping", "request round trip", 1, {TS_BEST: None, PY: None}),
    Row("ping", "request round trip, 100 in flight", 100, {TS_BEST: None, PY: None}),
    Row("call", "validated tool call", 1, {TS_BEST: 2.5, TS: 3, PY: 8, BARE: 0.8}),
    Row("call", "validated tool call, 100 in flight", 100, {TS_BEST: 3, PY: None, BARE: None}),
    Row("wait", "call of a tool that waits, 100 in flight", 100, {TS_BEST: None, PY: None}),
    Row("list50", "list 50 tools", 1, {TS_BEST: 10, PY: None}),
    Row("list1000", "list 1,000 tools", 1, {TS: None}),
]
LAZY = [
    ("list50-one-lazy", "list 50 tools, one lazy", 1.2),
    ("list50-all-lazy", "list 50 tools, all lazy", None),
]

Samples = dict[tuple[str, str, int], list[Rate]]


async def _bare(callers: int, seconds: float) -> Rate:
    return await ours.warm_rate_of(bare.caller(), callers, seconds)


def take_round(samples: Samples, keys: set[str], seconds: float, running: list[peers.Peer]) -> None:
    """One round: each row by us, then at once by every peer."""
    lazy = [(key, 1) for key, _, _ in LAZY if key in keys]
    for key, callers in [(row.key, row.callers) for row in COMPARED if row.key in keys] + lazy:
        taken = {"Transom": asyncio.run(ours.per_second(key, callers, seconds))}
        if key == "call":
            taken[BARE] = asyncio.run(_bare(callers, seconds))
        for peer in running:
            if key in peer.rows:
                taken[peer.name] = peer.measure(key, callers, seconds)
        for who, rate in taken.items():
            samples.setdefault((who, key, callers), []).append(rate)


def _usual(rates: list[Rate]) -> float:
    return median(rate.wall for rate in rates)


def _ratio(mine: list[Rate], theirs: list[Rate]) -> Rate:
    """How many times as often `mine`: the median of the rounds."""
    pairs = list(zip(mine, theirs, strict=True))
    return Rate(
        median(ours.wall / peer.wall for ours, peer in pairs),
        median(ours.processor / peer.processor for ours, peer in pairs),
    )


def _spread(rates: list[Rate]) -> float:
    return 1 - min(rate.wall for rate in rates) / max(rate.wall for rate in rates)


def compared(samples: Samples, keys: set[str]) -> list[Measured]:
    """The rows that peers do too."""
    lines: list[Measured] = []
    for row in COMPARED:
        if row.key not in keys:
            continue
        mine = samples["Transom", row.key, row.callers]
        for peer, least in row.budgets.items():
            theirs = samples[peer, row.key, row.callers]
            ratio, processor = _ratio(mine, theirs)
            ok = None if least is None else ratio >= least
            budget = "" if least is None else f">= {least:g}x"
            lines.append(
                Measured(row.name, _usual(mine), "/s", peer, _usual(theirs), ratio, budget, ok,
                         processor, _spread(mine))
            )  # fmt: skip
    return lines


def lazies(samples: Samples, keys: set[str]) -> list[Measured]:
    """What lazy schemas cost a listing, against one without."""
    lines: list[Measured] = []
    if "list50" not in keys:
        return lines
    static = samples["Transom", "list50", 1]
    for key, name, most in LAZY:
        mine = samples["Transom", key, 1]
        ratio, processor = _ratio(static, mine)
        ok = None if most is None else ratio <= most
        budget = "" if most is None else f"<= {most:g}x the time"
        lines.append(
            Measured(name, _usual(mine), "/s", "all static", _usual(static), ratio, budget, ok,
                     processor, _spread(mine))
        )  # fmt: skip
    return lines


def lines_of(group: str, seconds: float) -> list[Measured]:
    """Rows of a module of its own: see benchmarks/host_rows.py and its like."""
    module = import_module(f"benchmarks.{group}_rows")
    return [Measured(*line) for line in module.measure(seconds)]


def starting_line(rounds: int) -> Measured:
    """What the first use of `App` costs."""
    cost = starting.first_use(rounds)
    name = "first use of transom.App"
    return Measured(
        name, cost, "ms", "over asyncio and msgspec", None, None, "<= 30 ms", cost <= 30
    )


def show(lines: list[Measured]) -> None:
    """The table."""
    table = Table(title="Transom against its peers", title_justify="left")
    for column in page.COLUMNS:
        table.add_column(column, justify="left" if column in ("what", "against") else "right")
    for line in lines:
        mark = {None: "", True: " [green]ok[/]", False: " [red]missed[/]"}[line.ok]
        *cells, budget = page.cells(line)
        table.add_row(*cells, budget + mark)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to measure each row")
    parser.add_argument("--rounds", type=int, default=20, help="how often peers are measured")
    everything = ",".join(
        ["ping", "call", "wait", "list50", "list1000", "start", *GROUPS, "growth"]
    )
    parser.add_argument("--only", default=everything, help="the rows to measure, by key")
    parser.add_argument(
        "--quick", action="store_true", help="less than a minute: fewer rows, seen for less long"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument(
        "--write", action="store_true", help="write docs/performance.md; with --only, its rows"
    )
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds = min(options.seconds, 0.2), 3
        if options.only == everything:
            options.only = "ping,call,list50,start,http"
    only = set(options.only.split(","))
    if unknown := only - set(everything.split(",")):
        parser.error(f"no such rows: {', '.join(sorted(unknown))}; there are {everything}")
    keys = only & set(ours.ROWS)
    if "list50" in keys:
        keys |= {key for key, _, _ in LAZY}
    samples: Samples = {}
    lines: list[Measured] = []
    growth: page.Growth = {}
    with console.status("measuring") as status:
        running = [peers.Peer(name) for name, rows in peers.ROWS.items() if rows & keys]
        for number in range(options.rounds if running else 0):
            status.update(f"round {number + 1} of {options.rounds}")
            take_round(samples, keys, options.seconds / 4, running)
        for peer in running:
            peer.close()
        lines += compared(samples, keys) + lazies(samples, keys)
        if "start" in only:
            status.update("start")
            lines.append(starting_line(options.rounds))
        for group in GROUPS:
            if group in only:
                status.update(group)
                lines += lines_of(group, options.seconds)
        if "growth" in only:
            status.update("growth")
            growth = import_module("benchmarks.growth").measure()
    show(lines)
    for what, figures in growth.items():
        console.print(f"{what}: " + ", ".join(f"{n:,}: {us:,.0f} us" for n, us in figures.items()))
    if options.json:
        rows = [line._asdict() for line in lines]
        found = {"versions": page.versions(), "rows": rows, "growth": growth}
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if options.write:
        page.write(lines, growth, whole=options.only == everything)
    return 1 if any(line.ok is False for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
