"""Shows the Views of the official example servers and writes docs/compatibility.md.

    .venv/bin/python -m scripts.compat [NAME …]

With names, only those are shown and the page is left alone. Each server runs behind `Host` and
`HeadlessRenderer`, in real Chromium: its View must initialise and get its tool's input and result;
its tools are listed, and each is called once with arguments that fit and once with others. Then the
same servers get wrong input behind the gateway: the page has what a model reads of it. At last
their Views are used by their pages: `scripts/driving.py`.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import mcp
from mcp.types import TextContent
from scripts import driving
from scripts.conformance import HEADING

from transom import Host, Policy, ToolResult, __version__
from transom.check.schemas import fitting_arguments, unfitting_arguments
from transom.errors import TransomError
from transom.host.views.ui_resource import links_view
from transom.host.views.view import View
from transom.web import HeadlessRenderer, Violation

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
SERVERS = (
    "basic-preact", "basic-react", "basic-solid", "basic-svelte", "basic-vanillajs", "basic-vue",
    "budget-allocator", "cohort-heatmap", "customer-segmentation", "debug", "map", "pdf",
    "scenario-modeler", "shadertoy", "sheet-music", "system-monitor", "threejs", "transcript",
    "video-resource", "wiki-explorer",
)  # fmt: skip
OTHERS = {"fastmcp with prefab-ui": [sys.executable, str(ROOT / "tests" / "servers" / "prefab.py")]}
TIMEOUT = 20.0
CALL_TIMEOUT = 8.0
MOST_READ = 700  # characters of what a model reads

NOTES = {
    "map": "waits for CesiumJS from its CDN before it connects; complete once the CDN answers",
    "pdf": "shows a document from the internet unless one is given; its tools work all the same",
    "wiki-explorer": "its server reads Wikipedia; without the internet it answers with an error, "
    "which its View shows",
    "sheet-music": "its sounds come from the internet; the sheet is drawn without them",
    "video-resource": "its video comes from the internet",
}

OPENING = """\
# Compatibility

The Views of the 20 example servers of the MCP Apps project (npm `@modelcontextprotocol/server-*`)
and of a FastMCP server with `prefab-ui` (`tests/servers/prefab.py`), shown by Transom {version}
behind `Host` and `HeadlessRenderer` in Chromium, without access to the internet. Written by
`make compat`.

*opened*: from the tool's call to the initialised View. *blocked*: what the browser stopped because
the View had not declared it. *good* and *bad*: each of the View's tools was called once with
arguments that fit its schema and once with some that do not; a cell says how many gave a result,
and how many of the bad calls were refused.

| server | View | opened | input and result | blocked | View tools | good | bad | note |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""

# By server: what is wrong with a call of the tool that opens its View, and the call's arguments.
BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "basic-react": ("an argument it does not have", {"nonsense": True}),
    "budget-allocator": ("an argument it does not have", {"nonsense": True}),
    "cohort-heatmap": ("a metric that there is not", {"metric": "nonsense"}),
    "customer-segmentation": ("a segment that there is not", {"segment": "nonsense"}),
    "debug": ("a kind of content that there is not", {"contentType": "nonsense"}),
    "map": ("no network for its library; north below south", {"north": -10, "south": 10}),
    "pdf": ("a document that there is not", {"url": "file:///nowhere/book.pdf"}),
    "scenario-modeler": ("an argument of the wrong type", {"customInputs": "nonsense"}),
    "shadertoy": ("a shader that does not compile", {"fragmentShader": "nonsense"}),
    "sheet-music": ("no ABC notation", {"abcNotation": "\u2205 nonsense ["}),
    "threejs": ("a scene that throws", {"code": "throw new Error('no scene today')"}),
    "transcript": ("an argument it does not have", {"nonsense": True}),
    "video-resource": ("a video that there is not", {"videoId": "nonsense"}),
    "wiki-explorer": ("an address without a network", {"url": "https://en.wikipedia.org/wiki/MCP"}),
}
BROKEN_OPENING = """
## What a model reads when something is wrong

Each View was opened by a plain MCP client through `transom gateway --headless`, without access to
the internet and with input that is wrong. What the View or its server says of it, and no more, has
to be in the result of that call. Texts are cut.

| server | wrong | error | what the model reads |
| --- | --- | --- | --- |
"""


class Seen(NamedTuple):
    """What came of one server."""

    name: str
    app: str = ""
    ms: float = 0.0
    data: str = ""
    violations: tuple[Violation, ...] = ()
    tools: tuple[str, ...] = ()
    good: str = ""
    bad: str = ""
    problem: str = ""


async def outcome(view: View, tool: str, arguments: dict[str, Any]) -> ToolResult | TransomError:
    """What a call gave, or how it failed."""
    try:
        return await view.call_tool(tool, arguments, timeout=CALL_TIMEOUT)
    except TransomError as error:
        return error


async def try_tools(view: View) -> tuple[str, str]:
    """Call each tool with arguments that fit, and with some that do not."""
    good = bad = tried = 0
    for tool in view.tools:
        fitting = fitting_arguments(tool.input_schema)
        result = await outcome(view, tool.name, fitting or {})
        good += isinstance(result, ToolResult)
    for tool in view.tools:
        unfitting = unfitting_arguments(tool.input_schema)
        if unfitting is None:
            continue
        tried += 1
        result = await outcome(view, tool.name, unfitting)
        bad += not isinstance(result, ToolResult) or result.is_error
    count = len(view.tools)
    return (f"{good}/{count}" if count else "-"), (f"{bad}/{tried}" if tried else "-")


async def show(name: str) -> Seen:
    """Open one server's View and try its tools."""
    violations: list[Violation] = []
    renderer = HeadlessRenderer(on_violation=violations.append, timeout=TIMEOUT)
    async with Host(
        renderer=renderer, policy=Policy.trusting(), audit=None, open_timeout=TIMEOUT
    ) as host:
        host.on_error = lambda _: None
        changed = asyncio.Event()
        host.on_tools_changed = changed.set
        failures: list[str] = []
        host.on_view_failed = lambda _, error: failures.append(str(error))
        await host.add_server(name.partition(" ")[0], OTHERS.get(name) or driving.command_of(name))
        tool = next((t for t in await host.list_tools() if links_view(t.meta)), None)
        if tool is None:
            return Seen(name, problem="it has no tool that opens a View")
        arguments = fitting_arguments(tool.input_schema) or {}
        started = time.perf_counter()
        result = await host.call_tool(tool.name, arguments)
        view = next(iter(host.views.values()), None)
        if view is not None and view.opening is not None:
            await asyncio.wait([view.opening])
        if view is None or view.state != "live" or view.app is None:
            reason = failures[0] if failures else "no View was opened"
            return Seen(name, violations=tuple(violations), problem=reason)
        took = (time.perf_counter() - started) * 1000
        await host.list_tools()
        if name in OTHERS:  # its View has tools for sure, once it has its result
            async with asyncio.timeout(TIMEOUT):
                while not view.tools:
                    await changed.wait()
                    changed.clear()
        good, bad = await try_tools(view)
        return Seen(
            name,
            app=f"{view.app.name} {view.app.version}",
            ms=took,
            data="yes (an error)" if result.is_error else "yes",
            violations=tuple(violations),
            tools=tuple(tool.name for tool in view.tools),
            good=good,
            bad=bad,
        )


def row(seen: Seen) -> str:
    """One line of the table."""
    note = NOTES.get(seen.name, "")
    if seen.problem:
        note = f"{seen.problem}; {note}" if note else seen.problem
    blocked = ", ".join(sorted({f"{v.directive} {v.blocked[:60]}" for v in seen.violations})) or "-"
    cells = [
        f"`{seen.name}`",
        seen.app or "no",
        f"{seen.ms:,.0f} ms" if seen.ms else "-",
        seen.data or "no",
        blocked,
        f"{len(seen.tools)}" if seen.tools else "-",
        seen.good or "-",
        seen.bad or "-",
        note,
    ]
    return "| " + " | ".join(cells) + " |\n"


async def show_broken(name: str) -> str:
    """Open a View with wrong input, as a client of the gateway; the line of the table."""
    wrong, arguments = BROKEN[name]
    gateway = ["-m", "transom", "gateway", "--headless", "--", *driving.command_of(name)]
    started = mcp.StdioServerParameters(command=sys.executable, args=gateway)
    async with mcp.Client(started) as client:
        listed = await client.list_tools()
        opens = next(tool for tool in listed.tools if links_view(tool.meta))
        result = await client.call_tool(opens.name, arguments)
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    read = " ⏎ ".join(" ".join(text.split()) for text in texts).replace("|", "\\|")
    cut = read if len(read) <= MOST_READ else f"{read[:MOST_READ]}…"
    return f"| `{name}` | {wrong} | {'yes' if result.is_error else 'no'} | {cut} |\n"


async def main(names: list[str]) -> int:
    """Show them all; how many failed without a known reason."""
    found: list[Seen] = []
    for name in names or (*SERVERS, *OTHERS):
        try:
            seen = await show(name)
        except TransomError as error:
            seen = Seen(name, problem=str(error)[:200])
        found.append(seen)
        sys.stderr.write(row(seen))
    if not names:
        page = OPENING.format(version=__version__) + "".join(row(seen) for seen in found)
        page += "\n## The tools in their Views\n\n"
        for seen in found:
            if seen.tools:
                page += f"- `{seen.name}`: {', '.join(f'`{tool}`' for tool in seen.tools)}\n"
        page += BROKEN_OPENING
        for name in BROKEN:
            page += (line := await show_broken(name))
            sys.stderr.write(line)
        page += await driving.write()
        _, heading, conformance = PAGE.read_text().partition(HEADING)
        PAGE.write_text(f"{page}\n{heading}{conformance}" if heading else page)
    return sum(bool(seen.problem) and seen.name not in NOTES for seen in found)


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main(sys.argv[1:])) else 0)
