"""docs/performance.md: what `make bench ARGS=--write` found, and the part of it in the README."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from math import log10
from pathlib import Path
from typing import Any

from benchmarks.peers import CONFIGURED

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
PLOT = ROOT / "docs" / "images" / "growth.svg"
COLUMNS = ("what", "Transom", "against", "", "ratio", "by processor", "spread", "budget")
BEGIN, END = "<!-- from docs/performance.md -->", "<!-- end -->"

Growth = dict[str, dict[int, float]]
"""Microseconds by how many there are, for each thing that is done."""

_CHOSEN = {
    ("validated tool call", "TypeScript SDK, best"),
    ("validated tool call", "Python SDK"),
    ("list 50 tools", "TypeScript SDK, best"),
    ("list 50 tools, one lazy", "all static"),
    ("call through Stage and View", "bare WebSocket, 2 hops"),
    ("tool call to initialised View", "bare frames"),
    ("one of 1,000 Views changes", "one of 10"),
    ("memory of an idle View", ""),
    ("first use of transom.App", "over asyncio and msgspec"),
    ("start before a Python server", "the server alone"),
    ("added to a server's call, small results", "FastMCP's proxy"),
    ("HTTP call", "bare Starlette"),
    ("calls of 20 HTTP clients", "FastMCP's proxy"),
}


def cells(line: Any) -> tuple[str, ...]:
    """A line of the table, as text."""
    figure = f"{line.ours:,.3g}" if line.ours < 100 else f"{line.ours:,.0f}"
    return (
        line.name,
        f"{figure} {line.unit}",
        line.against,
        "" if line.theirs is None else f"{line.theirs:,.0f}",
        "" if line.ratio is None else f"{line.ratio:.2f}x",
        "" if line.processor is None else f"{line.processor:.2f}x",
        "" if line.spread is None else f"{line.spread:.0%}",
        line.budget,
    )


def print_lines(lines: Sequence[Sequence[Any]]) -> None:
    """Print the rows of one module, when it is run by itself."""
    for name, ours, unit, against, theirs, ratio, budget, *_ in lines:
        beside = "" if theirs is None else f"   {against} {theirs:,.0f}   {ratio:.2f}x {budget}"
        print(f"{name:<44} {ours:10,.1f} {unit}{beside}")
    print(f"load {os.getloadavg()[0]:.1f}")


def versions() -> dict[str, str]:
    """What was measured with what."""
    found = {"Python": platform.python_version(), "cores": str(os.cpu_count())}
    for name in ("msgspec", "mcp", "fastmcp", "uvicorn", "uvloop"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    package = ROOT / "node_modules" / "@modelcontextprotocol" / "ext-apps" / "package.json"
    if package.exists():
        found["ext-apps"] = json.loads(package.read_text())["version"]
    for name, command in (("Node", ["node", "--version"]), ("Chromium", ["chromium", "--version"])):
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        found[name] = re.sub(r"^\D*", "", run.stdout.split(" built")[0]).strip()
    return found


def _row(line: Any) -> str:
    *shown, budget = cells(line)
    mark = {None: "", True: ", met", False: ", **missed**"}[line.ok]
    return "| " + " | ".join([*shown, budget + mark]) + " |"


def _table(lines: Sequence[Any]) -> str:
    head = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    return "\n".join(head + [_row(line) for line in lines])


def _growth_table(growth: Growth) -> str:
    counts = sorted({count for figures in growth.values() for count in figures})
    head = ["microseconds", *(f"{count:,}" for count in counts)]
    rows = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for what, figures in growth.items():
        shown = [f"{figures[count]:,.0f}" if count in figures else "" for count in counts]
        rows.append(f"| {what} | " + " | ".join(shown) + " |")
    return "\n".join(rows)


def plot(growth: Growth) -> str:
    """The growth as a picture: both axes by powers of ten."""
    left, top, width, height = 60, 20, 420, 260
    counts = [count for figures in growth.values() for count in figures]
    times = [time for figures in growth.values() for time in figures.values()]
    low, high = int(log10(min(times))), int(log10(max(times))) + 1
    last = max(log10(max(counts)), 1)

    def at(count: int, time: float) -> tuple[float, float]:
        x = left + width * log10(count) / last
        return x, top + height * (1 - (log10(time) - low) / (high - low))

    box = f'viewBox="0 0 720 {top + height + 50}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box}>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for power in range(low, high + 1):
        _, y = at(1, 10.0**power)
        parts.append(f'<path d="M{left} {y:.0f}h{width}" stroke="#ddd"/>')
        label = f"{10**power / 1000:g} ms" if power >= 3 else f"{10**power:g} us"
        parts.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{label}</text>')
    for power in range(int(last) + 1):
        x, _ = at(10**power, 10.0**low)
        parts.append(
            f'<text x="{x:.0f}" y="{top + height + 18}" text-anchor="middle">{10**power:,}</text>'
        )
    colours = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a")
    for number, (what, figures) in enumerate(growth.items()):
        colour = colours[number % len(colours)]
        points = " ".join(f"{x:.0f},{y:.0f}" for x, y in (at(*pair) for pair in figures.items()))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        y = top + 16 + number * 20
        parts.append(f'<text x="{left + width + 16}" y="{y}" fill="{colour}">{what}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def readme_table(page: str) -> str:
    """The lines of the page that the README shows."""
    rows = ["| what | Transom | beside | ratio | budget |", "| --- | --- | --- | --- | --- |"]
    for about, row in _rows(page).items():
        if about in _CHOSEN:
            what, figure, against, theirs, ratio, _, _, budget = _split(row)
            beside = f"{against} {theirs}".strip()
            rows.append(f"| {what} | {figure} | {beside} | {ratio} | {budget} |")
    return "\n".join(rows)


def text(lines: Sequence[Any], growth: Growth, measured_with: Mapping[str, str]) -> str:
    """The page."""
    used = ", ".join(f"{name} {number}" for name, number in measured_with.items())
    peers = "\n".join(f"- **{name}**: {how}." for name, how in CONFIGURED.items())
    return f"""# Performance

Written by `make bench ARGS=--write`; measured with {used}. Absolute figures differ from machine to
machine: read the ratios, each of which is from one run. `make bench ARGS="--only dev --write"`
measures some rows again, `make bench ARGS=--quick` takes less than a minute.

{_table(lines)}

Where there is a *spread*, figures and ratios are the median of 20 rounds, each of which measures us
and the peers in turn, a quarter of a second each. *Ratio* is by the clock; *by processor* is the
same by the time that the processors were busy, which hardly depends on what else the machine did;
*spread* is how far our worst round was below our best.

*100 in flight* are a hundred callers that each wait for their answer before they call again, ours
and the peers'. A tool that is no coroutine is answered while its call is sent, so that there is
little to overlap; the row with a tool that waits shows what a real overlap costs.

A listing that is the same as the last one of that View is recognised by its bytes and not read
again: that is what the rows with listings show.

## How the peers are configured

{peers}
- **bare asyncio and msgspec**: the same call with JSON both ways in a bare event loop, without
  cancellation, limits, timeouts, errors or order. It takes a turn of the event loop each way, which
  a pipe in memory spares us: the limit of what Python can do is its row with 100 in flight, whose
  callers share the turns.
- **bare WebSocket, 2 hops**: a page with the same three frames that passes the same messages on and
  does nothing else, in the same Chromium, by turns.
- **bare frames**: two nested frames with the same HTML on fresh origins, in the same Chromium.
- **its server and Chromium, bare**: a test that starts the same server, then Playwright and
  the same Chromium, and clicks on a button; by pytest, as ours is.
- **FastMCP's proxy**: `create_proxy` before the same server, on standard input and output or as
  streamable HTTP with JSON answers.
- **bare Starlette**: an endpoint that returns the same JSON, without a server behind it.
- **fastmcp dev apps, loaded again**: the same FastMCP server; its page does not change by itself
  and is loaded again as soon as that can help. What it loads from the internet comes from this
  machine instead.

## Growth

What a call, a listing and an opening cost with so many live Views, and a listing and a call with so
many tools in one View, in the host's process (the Views are in memory).

{_growth_table(growth)}

![Time by number of Views or tools, both by powers of ten](images/growth.svg)
"""


_ROWS = re.compile(r"^\| what \|.*?\n\n", re.MULTILINE | re.DOTALL)


def _rows(page: str) -> dict[tuple[str, str], str]:
    """The rows of the page's table, by what they are about."""
    table = _ROWS.search(page)
    assert table is not None, "there is no table on the page"
    return {(_split(row)[0], _split(row)[2]): row for row in table[0].splitlines() if row}


def _split(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


def replace_rows(page: str, lines: Sequence[Any]) -> str:
    """The page with these rows in the place of those about the same; new ones come last."""
    rows = _rows(page) | {(line.name, line.against): _row(line) for line in lines}
    return _ROWS.sub(lambda _: "\n".join(rows.values()) + "\n\n", page, count=1)


def write(lines: Sequence[Any], growth: Growth, *, whole: bool) -> None:
    """Write the page with its picture, or only these rows of it, and the README's part."""
    if whole:
        page = text(lines, growth, versions())
        PLOT.write_text(plot(growth))
    else:
        page = replace_rows(PAGE.read_text(), lines)
    PAGE.write_text(page)
    readme = ROOT / "README.md"
    before = readme.read_text()
    inside = f"{BEGIN}\n\n{readme_table(page)}\n\n{END}"
    part = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    readme.write_text(part.sub(lambda _: inside, before))
