"""Uses the Views of the official example servers by their pages, as a model without eyes does.

    .venv/bin/python -m scripts.driving [NAME …]

A scripted agent, a client of `transom gateway --drive always`, does two fixed tasks with each View.
It reads nothing but what `look_at_view` and `act_on_view` answer. Each is done twice: in a browser
without a window, with a real mouse and keyboard, and in a page of the user's browser, by events.
There is a user who agrees to what the page asks: to full screen, for example.
`make compat` puts the table into docs/compatibility.md.
"""

import asyncio
import os
import re
import shlex
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import mcp
from mcp.types import TextContent
from playwright.async_api import async_playwright

from tests.pdf import pdf_of
from transom import Host, Policy
from transom.drive.snapshot import Snapshot
from transom.host.views.ui_resource import links_view
from transom.host.views.view import View
from transom.web import HeadlessRenderer
from transom.web.local.chromium import chromium_arguments, find_chromium

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "tests" / "servers" / "node_modules" / "@modelcontextprotocol"
OPEN_WITHIN = 60.0
TRIES = 12  # looks until a page shows what it should, half a second apart
ACTIONABLE = (
    "button", "checkbox", "combobox", "link", "listbox", "menuitem", "menuitemcheckbox",
    "menuitemradio", "option", "radio", "searchbox", "slider", "spinbutton", "switch", "tab",
    "textbox", "treeitem",
)  # fmt: skip
WAYS = {"without a window": True, "in a page": False}  # whether the gateway is headless
ARIA_LINE = re.compile(rf'\s*- ({"|".join(ACTIONABLE)})\b(?: "((?:[^"\\]|\\.)*)")?')

OPENING = """
## Views used by their pages

The same Views and those of our examples, with or without tools of their own, used by what is on
them: `look_at_view` and `act_on_view` through `transom gateway --drive always`, by a scripted agent
that reads nothing else.
*size*: what the first look answers. *change*: what an act answers, in the median. *found*: how many
of the things to press and fill in that Playwright's `aria_snapshot` finds in the same page have a
reference. *without a window*: tasks done with the mouse and the keyboard of a browser without a
window; *in a page*: the same, by events in a page of the user's browser.

| server | size | change | found | tasks | without a window | in a page | note |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


class Step(NamedTuple):
    """What the agent does: an act on the first element whose line matches."""

    line: str
    action: str
    value: str | None = None


class Task(NamedTuple):
    """What the agent is to do, and what a look shows when it is done; "" for what no text shows."""

    name: str
    steps: tuple[Step, ...]
    shows: str


class Used(NamedTuple):
    """What came of one server."""

    name: str
    size: int = 0
    changes: tuple[int, ...] = ()
    found: int = 0
    there: int = 0
    done: dict[str, list[str]] = {}  # noqa: RUF012 - never changed
    """By way: the tasks that failed, and why."""
    missed: tuple[str, ...] = ()
    problem: str = ""


def click(line: str) -> Step:
    """Press what has this line."""
    return Step(line, "click")


BASIC = (
    Task("get the server's time", (click('button "Get Server Time"'),), r"(?m)^\+ .*20\d\d-"),
    Task(
        "write another message and send it",
        (
            Step('textbox .*"This is message text."', "clear"),
            Step('textbox .*= ""', "type", "hello"),
            click('button "Send Message"'),
        ),
        r'= "hello"',
    ),
)
FULLSCREEN = (
    Task("go to full screen", (click('button "Toggle fullscreen"'),), ""),
    Task("leave full screen", (click('fullscreen"'),), ""),
)
MELODY = "X:1\nT:Twinkle\nM:4/4\nL:1/4\nK:C\nC C G G | A A G2 |"
SHADER = "void mainImage(out vec4 c, in vec2 p) { c = vec4(p / iResolution.xy, 0.5, 1.0); }"
SCENE = (
    "const scene = new THREE.Scene(); const camera = new THREE.PerspectiveCamera(75, width / "
    "height, 0.1, 1000); const renderer = new THREE.WebGLRenderer({ canvas }); "
    "renderer.render(scene, camera);"
)
ARGUMENTS: dict[str, dict[str, Any]] = {
    "sheet-music": {"abcNotation": MELODY},
    "shadertoy": {"fragmentShader": SHADER},
    "threejs": {"code": SCENE},
}
TASKS: dict[str, tuple[Task, ...]] = {
    "basic-preact": BASIC,
    "basic-react": BASIC,
    "basic-solid": BASIC,
    "basic-svelte": BASIC,
    "basic-vanillajs": BASIC,
    "basic-vue": BASIC,
    "budget-allocator": (
        Task("set marketing to 30%", (Step("slider .*= 25", "set", "30"),), r"30\.0%"),
        Task(
            "make the budget $250,000",
            (Step(r'combobox .*"\$100,000"', "select", "$250,000"),),
            r"/ \$250,000",
        ),
    ),
    "cohort-heatmap": (
        Task(
            "show revenue retention",
            (Step('combobox "Metric:"', "select", "Revenue Retention"),),
            r'"Metric:".*= "Revenue Retention"',
        ),
        Task("switch to weeks", (Step('combobox "Period:"', "select", "Weekly"),), '= "Weekly"'),
    ),
    "customer-segmentation": (
        Task("put NPS on the x axis", (Step('combobox "X:"', "select", "NPS"),), r'"X:".*= "NPS"'),
        Task("select the enterprise segment", (click('clickable "Enterprise'),), ""),
    ),
    "debug": (
        Task(
            "let the next call fail",
            (Step('checkbox "Simulate error"', "check"),),
            r'"Simulate error".*\(checked',
        ),
        Task("call the server's tool", (click('button "Call debug-tool"'),), "call-server-tool"),
    ),
    "map": (
        Task("zoom in", (click('button "Zoom in"'),), ""),
        Task("zoom out", (click('button "Zoom out"'),), ""),
    ),
    "pdf": (
        Task("go to the next page", (click('button "▶"'),), "= 2"),
        Task("zoom in", (click(r'button "\+"'),), r"1[1-9]\d%"),
    ),
    "scenario-modeler": (
        Task("let it grow by 10%", (Step("slider .*= 5 ", "set", "10"),), r"\b10%"),
        Task(
            "compare it with a cash cow",
            (Step('combobox .*"Compare to', "select", "🐄 Cash Cow"),),
            r'= "🐄 Cash Cow"',
        ),
    ),
    "shadertoy": FULLSCREEN,
    "sheet-music": (
        Task("play it again and again", (click('button "Click to toggle play once'),), ""),
        Task("play it once", (click('button "Click to toggle play once'),), ""),
    ),
    "system-monitor": (
        Task("stop polling", (click('button "Stop"'),), 'button "Start"'),
        Task("start polling", (click('button "Start"'),), 'button "Stop"'),
    ),
    "threejs": FULLSCREEN,
    "transcript": (
        Task("start listening", (click('button "Start"'),), ""),
        Task("clear what was heard", (click('button "Clear"'),), "will appear here"),
    ),
    "video-resource": (
        Task("play the video", (click("video"),), ""),
        Task("mute the video", (Step("video", "press", "m"),), ""),
    ),
    "wiki-explorer": (
        Task("zoom in", (click(r'button "\+"'),), ""),
        Task("zoom out", (click('button "\N{MINUS SIGN}"'),), ""),
    ),
    "examples/budget.py": (),
    "examples/editor.py": (),
    "examples/lunch.py": (
        Task("choose the pizzeria", (Step('radio "Pizzeria', "check"),), r'"Pizzeria.*\(checked'),
        Task("vote", (click('button "Vote"'),), "You voted for the Pizzeria"),
    ),
    "examples/music.py": (),
    "examples/orders.py": (),
    "examples/tictactoe.py": (),
}
NOTES = {
    "map": "its library comes from a CDN: without the internet there is no View",
    "video-resource": "its video comes from the internet: the View shows an error, and no controls",
}


# --- an agent that reads nothing but snapshots ---------------------------------------------------


class Agent:
    """A client of a gateway that uses one View."""

    def __init__(self, client: mcp.Client, view_id: str) -> None:
        self._client = client
        self._view_id = view_id
        self.changes: list[int] = []

    async def _call(self, tool: str, **arguments: str) -> tuple[str, bool]:
        result = await self._client.call_tool(tool, {"view_id": self._view_id, **arguments})
        texts = [block.text for block in result.content if isinstance(block, TextContent)]
        return texts[0], bool(result.is_error)

    async def look(self) -> str:
        """What is on the View."""
        return (await self._call("look_at_view"))[0]

    async def do(self, task: Task) -> str:
        """Why a task failed; "" if it was done."""
        said = ""
        for step in task.steps:
            ref = await self._find(step.line)
            if ref is None:
                return f"there is no {step.line}"
            given = {} if step.value is None else {"value": step.value}
            said, failed = await self._call("act_on_view", ref=ref, action=step.action, **given)
            if failed:
                return said.splitlines()[0]
            self.changes.append(len(said.encode()))
        if not task.shows:
            return "it was ignored" if "did not react" in said.partition("\n")[0] else ""
        for _ in range(TRIES):
            if re.search(task.shows, said):
                return ""
            await asyncio.sleep(0.5)
            said = await self.look()
        return f"no look shows {task.shows}"

    async def _find(self, line: str) -> str | None:
        for _ in range(TRIES):
            for text in (await self.look()).splitlines():
                found = re.search(r"\[([a-z]+\d+)\]", text)
                if found and re.search(line, text):
                    return found[1]
            await asyncio.sleep(0.5)
        return None


@asynccontextmanager
async def agent_of(name: str, folder: Path, *, headless: bool) -> AsyncIterator[Agent]:
    """An agent with the View of a server in front of it."""
    options = ["--headless"] if headless else ["--ephemeral"]
    gateway = ["-m", "transom", "gateway", *options, "--drive", "always", "--"]
    opener = folder / "browser"
    opener.write_text(f'#!/bin/sh\necho "$1" > {shlex.quote(str(folder))}/url\n')
    opener.chmod(0o755)
    started = mcp.StdioServerParameters(
        command=sys.executable,
        args=[*gateway, *_command(name, folder)],
        env={**os.environ, "HOME": str(folder), "BROWSER": str(opener)},
    )
    async with mcp.Client(started) as client, _user(folder / "url"):
        listed = await client.list_tools()
        opens = next(tool for tool in listed.tools if links_view(tool.meta))
        result = await client.call_tool(opens.name, _arguments(name, folder))
        texts = [block.text for block in result.content if isinstance(block, TextContent)]
        found = re.search(r'look_at_view with view_id "([^"]+)"', texts[-1])
        if found is None:
            raise RuntimeError(" ".join(texts[-1].split())[:200])
        yield Agent(client, found[1])


@asynccontextmanager
async def _user(address: Path) -> AsyncIterator[None]:
    """A user whose browser opens the page at this address, and who agrees to what it asks."""

    async def use_page() -> None:
        while not (url := _written(address)):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.1)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=find_chromium(), args=chromium_arguments()
            )
            page = await browser.new_page()
            await page.goto(url)
            while True:
                await (
                    page.get_by_role("alertdialog")
                    .get_by_role("button", name="Show")
                    .click(timeout=0)
                )

    using = asyncio.create_task(use_page())
    try:
        yield
    finally:
        using.cancel()
        await asyncio.wait([using])


def _written(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""


def _document(folder: Path) -> Path:
    file = folder / "book.pdf"
    file.write_bytes(pdf_of([f"Page {number}" for number in range(1, 6)]))
    return file


def command_of(name: str) -> list[str]:
    """How an official server is started, or an example."""
    if name.endswith(".py"):
        return [sys.executable, str(ROOT / name)]
    return ["node", str(PACKAGES / f"server-{name}" / "dist" / "index.js"), "--stdio"]


def _command(name: str, folder: Path) -> list[str]:
    own = [str(_document(folder))] if name == "pdf" else []
    return [*command_of(name), *own]


def _arguments(name: str, folder: Path) -> dict[str, Any]:
    return {"url": str(_document(folder))} if name == "pdf" else ARGUMENTS.get(name, {})


async def do_tasks(name: str, *, headless: bool) -> tuple[list[str], list[int]]:
    """The tasks that failed and why, and the sizes of what acts answered."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        try:
            async with (
                asyncio.timeout(4 * OPEN_WITHIN),
                agent_of(name, Path(temporary), headless=headless) as agent,
            ):
                outcomes = [(task.name, await agent.do(task)) for task in TASKS[name]]
                failed = [f"{task}: {why}" for task, why in outcomes if why]
                return failed, agent.changes
        except Exception as error:  # noqa: BLE001 - whatever it is, it is in the table
            return [f"{task.name}: {error}" for task in TASKS[name]], []


# --- how much of a page a look finds -------------------------------------------------------------


async def compare(name: str) -> Used:
    """The size of a look, and what it finds of what Playwright finds."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, renderer = Path(temporary), HeadlessRenderer()
        async with Host(
            renderer=renderer, policy=Policy.trusting(), audit=None, drive="always"
        ) as host:
            host.on_error = lambda _: None
            await host.add_server(Path(name).stem[:12], _command(name, folder))
            opens = next(tool for tool in await host.list_tools() if links_view(tool.meta))
            await host.call_tool(opens.name, _arguments(name, folder))
            view = next(iter(host.views.values()), None)
            if view is None or view.state != "live":
                return Used(name, problem="no View was opened")
            look = await _settled(view)
            page: Any = renderer.page
            frames = [frame for frame in page.frames if frame.url == "about:srcdoc"]
            aria = Counter(_aria_elements(await frames[-1].locator("body").aria_snapshot()))
            missed = _missed(aria, Counter(await _elements(view, look)))
            return Used(
                name,
                size=len(look.text.encode()),
                found=aria.total() - len(missed),
                there=aria.total(),
                missed=tuple(f'{role} "{text}"' for role, text in missed),
            )


async def _settled(view: View) -> Snapshot:
    """What is on it once two looks are the same, or it never rests."""
    look = await view.snapshot()
    for _ in range(TRIES):
        await asyncio.sleep(0.5)
        before, look = look, await view.snapshot()
        if before.text == look.text:
            break
    return look


async def _elements(view: View, look: Snapshot) -> list[tuple[str, str]]:
    """What has a reference, also in runs that are cut short."""
    refs = dict(look.refs)
    for under in re.findall(r"under=\[(\w+)\]", look.text):
        refs |= (await view.snapshot(under=under)).refs
    options = [
        ("option", option.strip())
        for line in re.findall(r'options "(.*)"', look.text)
        for option in line.split(", ")
    ]
    return [*((each.role, _plain(each.name)) for each in refs.values()), *options]


def _missed(there: Counter[tuple[str, str]], ours: Counter[tuple[str, str]]) -> list[Any]:
    """What is there and not among ours, by role and name; one of two names may say more."""
    left = list((ours - there).elements())
    missed: list[Any] = []
    for role, name in (there - ours).elements():
        alike = [each for each in left if each[0] == role and (name in each[1] or each[1] in name)]
        if alike and name:
            left.remove(alike[0])
        else:
            missed.append((role, name))
    return missed


def _aria_elements(text: str) -> list[tuple[str, str]]:
    found = (ARIA_LINE.match(line) for line in text.splitlines())
    return [(each[1], _plain(each[2] or "")) for each in found if each]


def _plain(name: str) -> str:
    """Without what a look leaves out or writes in another way."""
    return " ".join(re.sub(r"[\\\"'“”\ufe0f]", "", name).split())


# --- the table -----------------------------------------------------------------------------------


async def use(name: str) -> Used:
    """Everything about one server."""
    used = await compare(name)
    done: dict[str, list[str]] = {}
    sizes: list[int] = []
    for way, headless in WAYS.items() if TASKS[name] else ():
        done[way], changes = await do_tasks(name, headless=headless)
        sizes += changes
    return used._replace(done=done, changes=tuple(sizes))


def row(used: Used) -> str:
    """One line of the table."""
    count = len(TASKS[used.name])
    failures = [f"{way}: {each}" for way, failed in used.done.items() for each in failed]
    missed = [f"not found: {', '.join(used.missed)}"] if used.missed else []
    known = NOTES.get(used.name)
    note = known or "; ".join(filter(None, [used.problem, *missed, *failures]))
    cells = [
        f"`{used.name}`",
        f"{used.size:,} B" if used.size else "-",
        f"{statistics.median(used.changes):,.0f} B" if used.changes else "-",
        f"{used.found}/{used.there}" if used.there else "-",
        ", ".join(task.name for task in TASKS[used.name]) or "-",
        *(f"{count - len(used.done[way])}/{count}" if way in used.done else "-" for way in WAYS),
        note.replace("|", "\\|").replace("\n", " "),
    ]
    return "| " + " | ".join(cells) + " |\n"


def summary(all_used: list[Used]) -> str:
    """The figures over all servers."""
    there, found = sum(each.there for each in all_used), sum(each.found for each in all_used)
    sizes = [each.size for each in all_used if each.size]
    changes = [size for each in all_used for size in each.changes]
    tasks = sum(len(TASKS[each.name]) for each in all_used)
    ways = [
        f"{tasks - sum(len(each.done.get(way, ())) for each in all_used)} of {tasks} tasks {way}"
        for way in WAYS
    ]
    return (
        f"\nAltogether: {', '.join(ways)}; {found} of {there} elements found; a look has "
        f"{statistics.median(sizes):,.0f} bytes in the median and {max(sizes):,} at most, the "
        f"answer to an act {statistics.median(changes):,.0f} in the median.\n"
    )


async def write(names: list[str] | None = None) -> str:
    """The part of the page, for these servers or all."""
    all_used: list[Used] = []
    for name in names or TASKS:
        all_used.append(await use(name))
        sys.stderr.write(row(all_used[-1]))
    return OPENING + "".join(map(row, all_used)) + summary(all_used)


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(write(sys.argv[1:])))
