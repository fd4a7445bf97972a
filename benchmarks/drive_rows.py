"""What it costs to read a View's page for a model, and to use it, beside Playwright.

python -m benchmarks.drive_rows
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

from mcp.server.mcpserver import MCPServer

from benchmarks.page import print_lines
from transom import Host, Policy
from transom.server.views import Views
from transom.web import HeadlessRenderer

ELEMENTS = 1000
LOOK_BUDGET = 0.050
ACT_BUDGET = 0.150
# Forms of ten elements each, no two of them alike enough to be left out.
BODY = "".join(
    f'<section class="s{n}"><h2>Part {n}</h2><p>About <b>part {n}</b></p><label>Name {n} '
    f'<input value="{n}"></label><label><input type="checkbox"> Done {n}</label>'
    f"<button>Save {n}</button></section>"
    for n in range(ELEMENTS // 9)
)
HTML = f"""<!doctype html><script src="transom.js"></script>{BODY}
<script>new transom.App({{ name: "bench", version: "1" }}).connect();</script>"""


# The script that reads a View is beside it, in the sandbox: how long it takes there.
IN_PAGE = """async () => {
  const page = document.querySelector("iframe").contentDocument;
  const view = { page: () => page, requests: () => new Set() };
  const began = performance.now();
  await transomDriver({ op: "look" }, view);
  return (performance.now() - began) / 1000;
}"""


async def _seconds(act: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await act()
    return time.perf_counter() - began


async def _measured(turns: int) -> list[float]:
    """The medians, by turns: a look and Playwright's, an act and its click; a look in the page."""
    views = Views()
    page = views.add("ui://bench/form.html", html=HTML)

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def show() -> str:
        """Open it."""
        return "shown"

    renderer = HeadlessRenderer()
    async with Host(renderer=renderer, policy=Policy.trusting(), audit=None) as host:
        await host.add_server("bench", MCPServer("bench", extensions=[views]))
        await host.call_tool("show")
        view = host.views["bench-1"]
        shown: Any = renderer.page
        while not (frames := [each for each in shown.frames if each.url == "about:srcdoc"]):
            await shown.wait_for_event("framenavigated")
        body, button = frames[0].locator("body"), frames[0].locator("button").first
        looked = await view.snapshot()
        ref = next(ref for ref, element in looked.refs.items() if element.name == "Save 0")
        pairs: list[tuple[Callable[[], Awaitable[object]], list[float]]] = [
            (view.snapshot, []),
            (body.aria_snapshot, []),
            (lambda: view.act(ref, "click"), []),
            (button.click, []),
        ]
        for act, _ in pairs:
            await act()
        sandbox = frames[0].parent_frame
        in_page: list[float] = []
        for _ in range(turns):
            for act, taken in pairs:
                taken.append(await _seconds(act))
            in_page.append(await sandbox.evaluate(IN_PAGE))
        return [median(taken) for taken in (*(taken for _, taken in pairs), in_page)]


def _ms(budget: float) -> str:
    return f"<= {budget * 1000:g} ms"


def measure(seconds: float = 1.0) -> list[tuple[Any, ...]]:
    """The rows of `make bench`."""
    look, aria, act, click, in_page = asyncio.run(_measured(max(5, int(30 * seconds))))
    elements = f"a page of {ELEMENTS:,} elements"
    lines = [
        (f"a look at {elements}, in the page", in_page, "aria_snapshot", aria, _ms(LOOK_BUDGET)),
        (f"a look at {elements}, at its host", look, "aria_snapshot", aria, "<= 1x"),
        ("an act, with what it changed", act, "click", click, _ms(ACT_BUDGET)),
    ]
    verdicts = in_page <= LOOK_BUDGET, look <= aria, act <= ACT_BUDGET
    return [
        (
            name,
            ours * 1000,
            "ms",
            f"Playwright's {what}",
            theirs * 1000,
            ours / theirs,
            budget,
            ok,
        )
        for (name, ours, what, theirs, budget), ok in zip(lines, verdicts, strict=True)
    ]


if __name__ == "__main__":
    print_lines(measure())
