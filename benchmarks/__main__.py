"""Measure Transom and its peers in one run and print the ratios.

    python -m benchmarks [--seconds 1] [--rounds 3] [--only call,list50] [--json FILE]

Each round measures us and every peer, one after the other; a figure is the median over the rounds.
Ratios of one run on one machine mean something; figures of two machines do not. Exits with 1 when
a budget is missed.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import ours, peers, starting

console = Console(stderr=False)

TS, PY = "TypeScript SDK", "Python SDK"


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


class Row(NamedTuple):
    """Something both sides do; `budgets` says how many times as often we must."""

    key: str
    name: str
    mode: str
    budgets: dict[str, float | None]


COMPARED = [
    Row("ping", "request round trip", "sequential", {TS: None, PY: None}),
    Row("ping", "request round trip, 100 in flight", "inflight", {TS: None, PY: None}),
    Row("call", "validated tool call", "sequential", {TS: 3, PY: 8}),
    Row("call", "validated tool call, 100 in flight", "inflight", {TS: None, PY: None}),
    Row("list50", "list 50 tools", "sequential", {TS: 10, PY: None}),
    Row("list1000", "list 1,000 tools", "sequential", {TS: None}),
]
LAZY = [
    ("list50-one-lazy", "list 50 tools, one lazy", 1.2),
    ("list50-all-lazy", "list 50 tools, all lazy", None),
]

Samples = dict[tuple[str, str, str], list[float]]


def take_round(
    samples: Samples, keys: set[str], seconds: float, say: Callable[[str], None]
) -> None:
    """One round: each of our rows, then each peer."""
    for key in ours.ROWS:
        for mode in ("sequential", "inflight"):
            if key in keys and (mode == "sequential" or key in ("ping", "call")):
                say(f"Transom {key} {mode}")
                value = asyncio.run(ours.per_second(key, mode, seconds))
                samples.setdefault(("Transom", key, mode), []).append(value)
    for peer in peers.PEERS:
        say(peer)
        for (key, mode), value in peers.measure(peer, sorted(keys), seconds).items():
            samples.setdefault((peer, key, mode), []).append(value)


def compared(samples: Samples, keys: set[str]) -> list[Measured]:
    """The rows that peers do too."""
    lines: list[Measured] = []
    for row in COMPARED:
        if row.key not in keys:
            continue
        mine = median(samples["Transom", row.key, row.mode])
        for peer, least in row.budgets.items():
            theirs = median(samples[peer, row.key, row.mode])
            ratio = mine / theirs
            ok = None if least is None else ratio >= least
            budget = "" if least is None else f">= {least:g}x"
            lines.append(Measured(row.name, mine, "/s", peer, theirs, ratio, budget, ok))
    return lines


def lazies(samples: Samples, keys: set[str]) -> list[Measured]:
    """What lazy schemas cost a listing, against one without."""
    lines: list[Measured] = []
    if "list50" not in keys:
        return lines
    static = median(samples["Transom", "list50", "sequential"])
    for key, name, most in LAZY:
        mine = median(samples["Transom", key, "sequential"])
        ratio = static / mine
        ok = None if most is None else ratio <= most
        budget = "" if most is None else f"<= {most:g}x the time"
        lines.append(Measured(name, mine, "/s", "all static", static, ratio, budget, ok))
    return lines


def lines_of(group: str, seconds: float) -> list[Measured]:
    """Rows of a module of its own: see benchmarks/host_rows.py and its like."""
    module = import_module(f"benchmarks.{group}_rows")
    return [Measured(*line) for line in module.measure(seconds)]


def show(lines: list[Measured]) -> None:
    """The table."""
    table = Table(title="Transom against its peers", title_justify="left")
    for column in ("what", "Transom", "against", "", "ratio", "budget"):
        table.add_column(column, justify="left" if column in ("what", "against") else "right")
    for line in lines:
        mark = {None: "", True: " [green]ok[/]", False: " [red]missed[/]"}[line.ok]
        table.add_row(
            line.name,
            f"{line.ours:,.3g} {line.unit}" if line.ours < 100 else f"{line.ours:,.0f} {line.unit}",
            line.against,
            "" if line.theirs is None else f"{line.theirs:,.0f}",
            "" if line.ratio is None else f"{line.ratio:.2f}x",
            line.budget + mark,
        )
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to measure each row")
    parser.add_argument("--rounds", type=int, default=3, help="how often; figures are medians")
    parser.add_argument(
        "--only", default="ping,call,list50,list1000,import,host,browser,gateway,http"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    only = set(options.only.split(","))
    keys = only & {"ping", "call", "list50", "list1000"}
    if "list50" in keys:
        keys |= {key for key, _, _ in LAZY}
    samples: Samples = {}
    lines: list[Measured] = []
    with console.status("measuring") as status:
        for number in range(options.rounds if keys else 0):
            take_round(
                samples,
                keys,
                options.seconds,
                lambda what, n=number: status.update(f"round {n + 1}: {what}"),
            )
        lines += compared(samples, keys) + lazies(samples, keys)
        if "import" in only:
            status.update("import time")
            cost = starting.import_cost(options.rounds)
            ok = cost <= 60
            lines.append(
                Measured("import transom", cost, "ms", "bare Python", None, None, "<= 60 ms", ok)
            )
        for group in ("host", "browser", "gateway", "http"):
            if group in only:
                status.update(group)
                lines += lines_of(group, options.seconds)
    show(lines)
    if options.json:
        options.json.write_text(json.dumps([line._asdict() for line in lines], indent=2) + "\n")
    return 1 if any(line.ok is False for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
