"""The page of `transom dev`: from a save to the View, beside `fastmcp dev apps`; and a full log.

A small server is saved by itself. Then both serve the same FastMCP server, in processes of their
own, to pages of one Chromium, by turns: a line of the server's file is changed, and the View says
when it shows the new one. The page of `fastmcp dev apps` does not change by itself: it is loaded
again, as soon as that can help. What it loads from the internet comes from this machine instead.

    python -m benchmarks.dev_rows
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from playwright.async_api import BrowserContext, Error, Page, Route, async_playwright

from benchmarks.page import ROOT, print_lines
from tests.ports import reserved_port
from transom.web.local.chromium import chromium_arguments, find_chromium

__all__ = ["measure"]

SAVE_BUDGET = 0.300
FRAME_BUDGET = 0.050
MESSAGES = 10_000
PAUSE = 6.0  # seconds in which an author thinks, and what the last save began comes to its end
SERVERS = Path(__file__).with_name("servers")
FILE = "saved.py"
ALONE = "saved_alone.py"
MARK = "version 0"

# What the page of `fastmcp dev apps` loads from the internet, by the end of its address.
CLIENT = "@modelcontextprotocol/client"
IMPORTED = {"index.js": CLIENT, "streamableHttp.js": CLIENT}
BRIDGE = "@modelcontextprotocol/ext-apps/app-bridge"

# The longest time between two frames while the log is used, in milliseconds.
LONGEST_FRAME = """async (act) => {
  const list = document.querySelector("#traffic .list");
  const search = document.querySelector("#traffic input[type=search]");
  const leg = document.querySelector("#traffic select");
  const changed = (control) => control.dispatchEvent(new Event("input", { bubbles: true }));
  const steps = {
    scroll: Array.from({ length: 50 }, (_, n) => () => {
      list.scrollTop = n % 2 ? n * 100 : n * 4000;
    }),
    filter: ["t", "to", "tool", "tools/call", "order 99", "nothing", ""].flatMap((text) => [
      () => { search.value = text; changed(search); },
      ...["server", "view", ""].map((value) => () => { leg.value = value; changed(leg); }),
    ]),
  }[act];
  const frame = async () => {
    await new Promise(requestAnimationFrame);
    return performance.now();
  };
  let longest = 0;
  for (const step of steps) {
    let before = await frame();
    step();
    for (let n = 0; n < 4; n += 1) {  // until it is drawn
      const now = await frame();
      longest = Math.max(longest, now - before);
      before = now;
    }
  }
  return longest;
}"""
IS_SETTLED = """() => {
  const { style, textContent } = document.getElementById("status");
  return style.display === "none" || textContent.startsWith("Error");
}"""


def _bundle(entry: str, out: Path) -> Path:
    """A module of an npm package with all that it imports, as one script."""
    esbuild = ROOT / "node_modules" / ".bin" / "esbuild"
    command = [esbuild, "--bundle", "--format=esm", f"--outfile={out}", "--log-level=error"]
    source = f'export * from "{entry}";'
    subprocess.run(command, input=source, text=True, cwd=ROOT, check=True)
    return out


@asynccontextmanager
async def _command(*words: str, says: str, folder: Path) -> AsyncGenerator[str]:
    """A command that runs meanwhile, and the address that it prints after `says`."""
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=folder,  # what changes there starts the server of `fastmcp dev apps` again
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stderr is not None
    try:
        while line := (await process.stderr.readline()).decode():
            if found := re.search(rf"{says}(http\S+)", line):
                break
        else:
            raise RuntimeError(f"{words} does not start")
        reading = asyncio.create_task(process.stderr.read())  # so that it can go on writing
        yield found[1]
        reading.cancel()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        await process.wait()


class _Author:
    """Saves the server's file, and sees when the View shows that."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._text = file.read_text()
        self._saved = 0

    def save(self) -> str:
        """Change the file; what the View shows of it."""
        self._saved += 1
        mark = f"version {self._saved}"
        self._file.write_text(self._text.replace(MARK, mark))
        return mark


async def _drawn(page: Page, mark: str) -> float:
    """When a View on the page showed this text, by the clock; 0.0 if none does."""
    for frame in page.frames:
        try:
            text = await frame.evaluate("document.getElementById('shown')?.dataset.at ?? ''")
        except Error:  # the frame is gone meanwhile
            continue
        if text.startswith(f"{mark} "):
            return float(text.rpartition(" ")[2]) / 1000
    return 0.0


async def _until_drawn(page: Page, mark: str) -> float:
    while True:
        if drawn := await _drawn(page, mark):
            return drawn
        await asyncio.sleep(0.01)


async def _ours(page: Page, author: _Author) -> float:
    began, mark = time.time(), author.save()
    return await _until_drawn(page, mark) - began


async def _theirs(page: Page, author: _Author) -> float:
    began, mark = time.time(), author.save()
    return await _reloaded_until_drawn(page, mark) - began


async def _reloaded_until_drawn(page: Page, mark: str) -> float:
    """Load the page again as soon as that can help, until it shows this text."""
    while True:
        await page.reload()
        with suppress(Error):  # its server went away under it
            await page.wait_for_function(IS_SETTLED, timeout=3000)
        if drawn := await _drawn(page, mark):
            return drawn


def _record(file: Path) -> Path:
    """A recorded file with as many messages as a log keeps."""
    with file.open("w") as out:
        for number in range(MESSAGES):
            seconds = number / 100
            when = datetime.fromtimestamp(1_800_000_000 + seconds, UTC).isoformat()
            leg, asks = ("server", "view")[number // 2 % 2], number % 2 == 0
            message: dict[str, Any] = {"jsonrpc": "2.0", "id": number // 2}
            if asks:
                given = {"name": "show_orders", "arguments": {"status": "open", "page": number}}
                message |= {"method": "tools/call", "params": given}
            else:
                texts = [{"type": "text", "text": f"order {n} of {number}"} for n in range(5)]
                message["result"] = {"content": texts}
            sender = "host" if (leg == "server") == asks else leg
            line = {"time": when, "at": seconds, "leg": leg, "name": "orders", "from": sender}
            out.write(f"{json.dumps({**line, 'message': message})}\n")
    return file


async def _open_ours(context: BrowserContext, url: str, folder: Path) -> tuple[Page, list[float]]:
    """The page of `transom dev`, and its longest frames with a full log: scrolled, and filtered."""
    page = await context.new_page()
    await page.goto(url)
    await page.get_by_role("tab", name="Traffic").click()
    await page.locator("#traffic input[type=file]").set_input_files(_record(folder / "log.jsonl"))
    await page.get_by_text(f"{MESSAGES} messages").wait_for()
    frames = [
        median([await page.evaluate(LONGEST_FRAME, act) / 1000 for _ in range(5)])
        for act in ("scroll", "filter")
    ]
    await page.get_by_role("button", name="Back to live").click()
    await page.get_by_role("button", name="Call", exact=True).click()
    await _until_drawn(page, MARK)
    return page, frames


async def _open_theirs(context: BrowserContext, url: str, folder: Path) -> Page:
    scripts = {end: _bundle(entry, folder / end) for end, entry in IMPORTED.items()}

    async def serve(route: Route) -> None:
        end = route.request.url.rpartition("/")[2]
        headers = {"access-control-allow-origin": "*"}
        await route.fulfill(path=scripts[end], content_type="text/javascript", headers=headers)

    await context.route("https://esm.sh/**", serve)
    page = await context.new_page()
    await page.goto(url)
    launch = """fetch("/api/launch", { method: "POST", body: '{"tool": "show"}',
      headers: { "content-type": "application/json" } }).then((answer) => answer.json())"""
    await page.goto(f"{url.partition('/?')[0]}{await page.evaluate(launch)}")
    await _reloaded_until_drawn(page, MARK)
    return page


async def _measured(turns: int) -> tuple[list[float], list[float]]:
    """From a save to the View, alone, ours and theirs; the longest frames of a log, in seconds."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        places = {"alone": ALONE, "ours": FILE, "theirs": FILE}
        files = [folder / name / file for name, file in places.items()]
        for file in files:
            file.parent.mkdir()
            shutil.copy(SERVERS / file.name, file)
        bridge = _bundle(BRIDGE, folder / "app-bridge.js")
        wrapper = str(SERVERS / "fastmcp_dev_apps.py")
        ports = [str(reserved_port()) for _ in range(2)]
        apps = [sys.executable, wrapper, str(files[2]), *ports, str(bridge)]
        alone, mine, peer = (_Author(file) for file in files)
        taken: list[list[float]] = [[], [], []]
        async with AsyncExitStack() as stack:
            playwright = await stack.enter_async_context(async_playwright())
            browser = await playwright.chromium.launch(
                executable_path=find_chromium(), args=chromium_arguments()
            )
            stack.push_async_callback(browser.close)
            context = await browser.new_context(viewport={"width": 1280, "height": 720})
            async with _dev(files[0]) as url:
                page, frames = await _open_ours(context, url, folder)
                for _ in range(turns):
                    await asyncio.sleep(PAUSE)
                    taken[0].append(await _ours(page, alone))
                await page.close()
            url = await stack.enter_async_context(_dev(files[1]))
            page, _ = await _open_ours(context, url, folder)
            other = await stack.enter_async_context(
                _command(*apps, says="dev UI: ", folder=files[2].parent)
            )
            theirs = await _open_theirs(context, other, folder)
            for _ in range(turns):
                await asyncio.sleep(PAUSE)
                taken[1].append(await _ours(page, mine))
                await asyncio.sleep(PAUSE)
                taken[2].append(await _theirs(theirs, peer))
            return [median(each) for each in taken], frames


def _dev(file: Path) -> AbstractAsyncContextManager[str]:
    """`transom dev` for a server, and the address of its page."""
    dev = [sys.executable, "-m", "transom", "dev", str(file), "--no-open"]
    return _command(*dev, "--ephemeral", "--no-check", says=" at ", folder=file.parent)


def measure(seconds: float = 1.0) -> list[tuple[Any, ...]]:
    """The rows of `make bench`."""
    (alone, ours, theirs), (scrolled, filtered) = asyncio.run(_measured(max(3, int(10 * seconds))))
    save, frame = SAVE_BUDGET * 1000, FRAME_BUDGET * 1000
    against = "fastmcp dev apps, loaded again"
    log = f"longest frame of {MESSAGES:,} messages"
    return [
        ("from a save to the View", alone * 1000, "ms", "", None, None,
         f"<= {save:g} ms", alone <= SAVE_BUDGET),
        ("the same with a FastMCP server", ours * 1000, "ms", against, theirs * 1000, ours / theirs,
         "<= 0.5x", ours <= theirs / 2),
        *(
            (f"{log}, {done}", took * 1000, "ms", "", None, None, f"<= {frame:g} ms",
             took <= FRAME_BUDGET)
            for done, took in (("scrolled", scrolled), ("filtered", filtered))
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    print_lines(measure())
