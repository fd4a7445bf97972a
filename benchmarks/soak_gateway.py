"""A gateway under mixed traffic while its servers, its browser and its page go away at random.

    python -m benchmarks.soak_gateway                        # 10 minutes, all kinds
    python -m benchmarks.soak_gateway --minutes 0.5 --kind headless

Two real `transom gateway` processes in front of examples/orders.py and examples/music.py:
`headless` has both servers and a Chromium of its own, which is killed now and then; `page` has one
server and a page in this script's Chromium, which is reloaded, closed and opened again. Servers are
killed with SIGKILL, and some processes hang for a while (SIGSTOP).

Every call must be answered in time, by a result or an error. After that the gateway must work as on
the first day, and end with code 0 and without leaving anybody or anything behind. In the second
half it must hold no more processes, files, sockets or threads than in the first. Exits with 1 if
anything of this is not so.

Every two minutes all Views are closed and everything is measured: the gateway (see
`benchmarks.probed`), its servers, its browser and Playwright's driver. The growth of each is the
median slope between any two of these points, of which the first is after a warm-up that lasts a
sixth as long as the rest. In a run of 25 minutes or more, what the gateway has in use may grow by
1 MB an hour; its size by that and two steps, since Python takes memory by the megabyte. The others
are printed: browsers and servers are killed and started all the time. Linux only.

After both, `fleet` are the workers of a web application: see `benchmarks.soak_fleet`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import secrets
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import msgspec
from playwright.async_api import Browser, Error, Page, async_playwright

from benchmarks.client import Client, client_of
from benchmarks.probed import Probe
from benchmarks.processes import Held, command_of, held_by, marked, share_of_memory, zombies_of
from benchmarks.soak_fleet import FleetTally, soak_fleet
from benchmarks.tally import CallTally
from transom.web.local.chromium import chromium_arguments, find_chromium

__all__ = ["KINDS", "Kind", "Tally", "soak"]

Kind = Literal["headless", "page"]
KINDS: tuple[Kind, ...] = ("headless", "page")

EXAMPLES = Path(__file__).parents[1] / "examples"
CALLERS = 4
BURST = 50
_SAYS_OPEN = re.compile(r"View (\S+) is open")
_SAYS_WHERE = re.compile(r"Open this page to see Views: (\S+)")
_NOBODY_SHOULD_SAY = ("Traceback", "never retrieved", "was destroyed but", "Exception ignored")
_CONTEXT = 25  # lines after such a one
_MORE_AN_HOUR = 1024  # KB of the gateway in a long run
_STEPS = 2048  # KB beside that: Python takes memory from the system by the megabyte
_LONG = 1500.0  # seconds
_PART = 120.0  # seconds of traffic between two measurements
_MORE_FILES = 3
_IDLE_SOCKETS = 32  # a browser of the user's keeps connections that it may use again
_STILL = 14  # half seconds without a change: idle connections are closed after five seconds
_LINGERS = 80  # half seconds at most
_MORE_PROCESSES = 3  # Chromium keeps a spare one or two


class Sample(NamedTuple):
    """The gateway at one moment."""

    at: float
    held: Held
    processes: int
    zombies: int
    opened: int
    """Views so far."""
    entries: int = 0
    """Files and folders: what it keeps between runs, and temporary ones, profiles as one."""
    others: dict[str, int] = {}  # noqa: RUF012 - never changed
    """KB of the servers, the browser and the driver, in settled samples."""
    probe: Probe | None = None


@dataclass(kw_only=True)
class Tally(CallTally):
    """What came of one gateway."""

    kind: str
    cancelled: int = 0
    opened: int = 0
    samples: list[Sample] = field(default_factory=list[Sample])
    settled: list[Sample] = field(default_factory=list[Sample])

    def growth_an_hour(self, value: Callable[[Sample], float]) -> float:
        """The median slope between any two settled samples, by the hour."""
        slopes = [
            (value(later) - value(earlier)) * 3600 / (later.at - earlier.at)
            for earlier, later in itertools.combinations(self.settled, 2)
        ]
        return statistics.median(slopes) if slopes else 0.0

    def _memory(self) -> list[str]:
        probes = [each.probe for each in self.settled if each.probe is not None]
        if not probes:
            return []
        grown = Counter(probes[-1].types)
        grown.subtract(probes[0].types)
        lines = [
            _row("gateway", [probe.trimmed for probe in probes], self.growth_an_hour(_trimmed)),
            (
                f"          {probes[-1].rss / 1024:.1f} MB before it gave back what is free; "
                f"{probes[-1].used / 1024:.1f} MB in use, "
                f"{self.growth_an_hour(_used) / 1024:+.2f} MB an hour"
            ),
            f"          more than at first: {dict(grown.most_common(6))}",
        ]
        for who in self.settled[-1].others:
            sizes = [each.others.get(who, 0) for each in self.settled]
            growth = self.growth_an_hour(lambda each, who=who: each.others.get(who, 0))
            lines.append(_row(who, sizes, growth))
        return lines

    def line(self) -> str:
        """How it stands."""
        last = self.samples[-1]
        faults = ", ".join(f"{name} {number}" for name, number in sorted(self.faults.items()))
        return (
            f"{last.at:5.0f} s  {self.kind:8} {self.asked:7,} calls  {self.opened:4} Views  "
            f"{sum(self.errors.values()):5} errors  {self.cancelled:5} cancelled  "
            f"p99 {self.percentile(0.99):6.0f} ms  {last.held.rss / 1024:6.1f} MB  "
            f"{last.held.fds:3} files  {last.held.sockets:3} sockets  {last.processes:3} processes"
            f"  [{faults}]"
        )

    def text(self) -> str:
        """All of it, to be printed."""
        kinds = [f"          {number:6} {text}" for text, number in self.errors.most_common(12)]
        before, after = self.settled[0], self.settled[-1]
        return "\n".join(
            [
                f"--- {self.kind}",
                (
                    f"calls     {self.asked:,}: {self.results:,} results, "
                    f"{sum(self.errors.values()):,} errors, {self.cancelled:,} cancelled"
                ),
                *kinds,
                f"Views     {self.opened:,} opened",
                f"faults    {dict(self.faults)}",
                (
                    f"times     p50 {self.percentile(0.5):.1f} ms, "
                    f"p99 {self.percentile(0.99):.0f} ms, longest {self.percentile(1):.0f} ms"
                ),
                *self._memory(),
                (
                    f"files     {before.held.fds} and {after.held.fds}, of which sockets "
                    f"{before.held.sockets} and {after.held.sockets}"
                ),
                f"threads   {before.held.threads} and {after.held.threads}",
                f"processes {before.processes} and {after.processes}",
                f"on disk   {before.entries} and {after.entries} files and folders",
                *(f"VIOLATION {each}" for each in self.violations[:20]),
                f"verdict   {'ok' if self.ok else 'FAILED'}",
            ]
        )


def _trimmed(sample: Sample) -> int:
    return 0 if sample.probe is None else sample.probe.trimmed


def _used(sample: Sample) -> int:
    return 0 if sample.probe is None else sample.probe.used


def _row(who: str, sizes: list[int], growth: float) -> str:
    shown = ", ".join(f"{size / 1024:.1f}" for size in sizes)
    return f"{who:9} {growth / 1024:+.2f} MB an hour: {shown} MB"


class Traffic:
    """What a client does all day.

    Args:
        client: the client.
        tally: where it is written down.
        chance: decides.
        within: seconds in which everything has to be answered.
    """

    def __init__(
        self, client: Client, tally: Tally, chance: random.Random, *, within: float
    ) -> None:
        self._client = client
        self._tally = tally
        self._chance = chance
        self._within = within
        self._go = asyncio.Event()
        self._idle = asyncio.Event()
        self._under_way = 0
        self.openers: list[str] = []
        self.plain: list[tuple[str, dict[str, Any]]] = []
        self.view_tools: list[dict[str, Any]] = []

    # --- asking ------------------------------------------------------------------------------

    async def ask(self, what: str, method: str, params: object = None) -> Any:
        """Ask, and wait no longer than one has to; None when that brought an error."""
        self._tally.asked += 1
        self._under_way += 1
        self._idle.clear()
        began = time.perf_counter()
        id, waiting = self._client.begin(method, params)
        try:
            async with asyncio.timeout(self._within):
                answer = await waiting
        except TimeoutError:
            self._client.given_up.add(id)
            self._tally.violations.append(f"{what} was not answered in {self._within:g} s")
            return None
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()
        self._tally.times.append(time.perf_counter() - began)
        if answer.error is not None:
            self._failed(what, str(answer.error.get("message")))
            return None
        result = msgspec.json.decode(answer.result)
        if result.get("isError"):
            self._failed(what, result["content"][0]["text"])
            return None
        self._tally.results += 1
        return result

    def _failed(self, what: str, text: str) -> None:
        text = re.sub(r"\d+", "N", text.splitlines()[0])[:110]
        self._tally.errors[f"{what}: {text}"] += 1
        if "gateway failed" in text:
            self._tally.violations.append(f"{what}: {text}")

    async def call(self, what: str, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool."""
        return await self.ask(what, "tools/call", {"name": name, "arguments": arguments})

    # --- what there is to do -----------------------------------------------------------------

    async def list(self) -> None:
        """List the tools, and remember them."""
        result = await self.ask("tools/list", "tools/list")
        if result is None:
            return
        tools = {tool["name"]: tool for tool in result["tools"]}
        self.view_tools = [tool for name, tool in tools.items() if "__" in name]
        self.openers = [name for name in tools if name.endswith(("show_orders", "show_player"))]
        self.plain = [
            *((name, {"status": "open"}) for name in tools if name.endswith("count_orders")),
            *((name, {}) for name in tools if name.endswith("list_playlists")),
        ]

    async def plain_call(self) -> None:
        """Call a tool of a server."""
        if self.plain:
            name, arguments = self._chance.choice(self.plain)
            await self.call("server tool", name, arguments)

    async def open(self) -> str | None:
        """Call a tool that opens a View; the View's id."""
        if not self.openers:
            return None
        return await self.open_with(self._chance.choice(self.openers))

    async def open_with(self, name: str) -> str | None:
        """Call this one."""
        result = await self.call("opening tool", name, {})
        if result is None:
            return None
        about = result["content"][-1]["text"]
        found = _SAYS_OPEN.search(about)
        if found is None:
            self._failed("View", about)
            return None
        self._tally.opened += 1
        return found[1]

    async def view_call(self) -> None:
        """Call a tool of a View, by its own name or through the one that stands for all."""
        if not self.view_tools:
            return
        tool = self._chance.choice(self.view_tools)
        arguments = _arguments(tool["inputSchema"], self._chance)
        view, _, short = tool["name"].partition("__")
        if self._chance.random() < 0.7:
            await self.call("View tool", tool["name"], arguments)
        else:
            given = {"view_id": view, "name": short, "arguments": arguments}
            await self.call("call_view_tool", "call_view_tool", given)

    async def look(self) -> None:
        """List or read something else."""
        match self._chance.randrange(4):
            case 0:
                await self.ask("resources/list", "resources/list")
            case 1:
                await self.ask("resources/read", "resources/read", {"uri": "transom://views"})
            case 2:
                await self.call("list_view_tools", "list_view_tools", {})
            case _:
                await self.ask("ping", "ping")

    async def give_up(self) -> None:
        """Ask and cancel."""
        tools = [*(name for name, _ in self.plain), *self.openers]
        tools += [tool["name"] for tool in self.view_tools]
        if not tools:
            return
        name = self._chance.choice(tools)
        id, _ = self._client.begin("tools/call", {"name": name, "arguments": {"status": "open"}})
        await asyncio.sleep(self._chance.random() ** 2 * 0.5)
        self._client.cancel(id)
        self._tally.cancelled += 1
        self._tally.asked += 1

    async def burst(self) -> None:
        """Many calls at once."""
        ways = [self.plain_call, self.plain_call, self.view_call, self.look, self.list]
        await asyncio.gather(*(self._chance.choice(ways)() for _ in range(BURST)))

    # --- all day -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Do all that until cancelled, while `go` lets it."""
        ways: list[tuple[Callable[[], Awaitable[object]], float]] = [
            (self.plain_call, 40),
            (self.view_call, 30),
            (self.list, 10),
            (self.look, 8),
            (self.give_up, 8),
            (self.open, 3),
        ]
        doing = [way for way, _ in ways]
        weights = [weight for _, weight in ways]
        while True:
            await self._go.wait()
            await self._chance.choices(doing, weights)[0]()
            await asyncio.sleep(self._chance.random() * 0.1)

    def go(self) -> None:
        """Let the traffic flow."""
        self._go.set()

    async def halt(self) -> None:
        """Stop the traffic, and wait until everything is answered."""
        self._go.clear()
        if self._under_way:
            await self._idle.wait()


def _arguments(schema: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Arguments that a schema of the examples allows."""
    given: dict[str, Any] = {}
    for name, each in schema.get("properties", {}).items():
        if "enum" in each:
            given[name] = chance.choice(each["enum"] or ["none"])
        elif each.get("type") == "array":
            given[name] = [chance.choice(each["items"].get("enum") or ["none"])]
        elif each.get("type") == "integer":
            given[name] = each.get("minimum", 1)
        else:
            given[name] = ""
    return given


# --- what goes wrong -------------------------------------------------------------------------


class Faults:
    """What goes wrong with a gateway and what belongs to it.

    Args:
        gateway: its process.
        mark: what it and all its processes have in their environment.
        page: this script's page, for a gateway without a browser of its own.
    """

    def __init__(self, gateway: int, mark: str, page: OwnPage | None) -> None:
        self._gateway = gateway
        self._mark = mark
        self._page = page

    def servers(self) -> list[int]:
        """The processes of the servers."""
        return [
            pid for pid in self._others() if any(str(EXAMPLES) in word for word in command_of(pid))
        ]

    def _others(self) -> list[int]:
        return [pid for pid in marked(self._mark) if pid != self._gateway]

    def _browser(self, chance: random.Random) -> tuple[str, int] | None:
        """A process of Chromium, each kind of them as often as the others."""
        kinds: dict[str, list[int]] = {}
        for pid in self._others():
            line = " ".join(command_of(pid))
            if "chrom" in line.split(" ")[0]:
                kind = re.search("--type=([a-z-]+)", line)
                kinds.setdefault(kind[1] if kind else "browser", []).append(pid)
        if not kinds:
            return None
        kind = chance.choice(sorted(kinds))
        return kind, chance.choice(kinds[kind])

    def memory(self) -> dict[str, int]:
        """KB of what belongs to the gateway."""
        servers, sizes = self.servers(), Counter[str]()
        for pid in self._others():
            words = command_of(pid)
            chromium = bool(words) and "chrom" in words[0]
            sizes["servers" if pid in servers else "browser" if chromium else "driver"] += (
                share_of_memory(pid)
            )
        return dict(sizes)

    async def one(self, chance: random.Random) -> str | None:
        """One of them; what it was."""
        what = chance.choice(["server", "browser" if self._page is None else "page"])
        if what == "page" and self._page is not None:
            return await self._page.disturb(chance)
        if what == "browser":
            found = self._browser(chance)
        else:
            found = ("server", chance.choice(servers)) if (servers := self.servers()) else None
        if found is None:
            return None
        what, pid = found
        if chance.random() < 0.3:
            _signal(pid, signal.SIGSTOP)
            loop = asyncio.get_running_loop()
            loop.call_later(chance.uniform(0.2, 4.0), _signal, pid, signal.SIGCONT)
            return f"{what} hung"
        _signal(pid, signal.SIGKILL)
        return f"{what} killed"


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


class OwnPage:
    """The Stage's page in a browser of this script, as a user has it."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._page: Page | None = None
        self._lock = asyncio.Lock()
        self._opening: set[asyncio.Task[None]] = set()

    def told(self, line: str) -> None:
        """The gateway says something; maybe where its page is."""
        if found := _SAYS_WHERE.search(line):
            task = asyncio.create_task(self._open(found[1]))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self, url: str) -> None:
        async with self._lock:
            if self._page is None:
                page = await self._browser.new_page()
                with suppress(Error):
                    await page.goto(url)
                self._page = page

    async def disturb(self, chance: random.Random) -> str | None:
        """Reload it, or close it; the gateway says where to open it when it needs it again."""
        async with self._lock:
            if self._page is None:
                return None
            if chance.random() < 0.6:
                with suppress(Error):
                    await self._page.reload()
                return "page reloaded"
            page, self._page = self._page, None
            await page.close()
            return "page closed"

    async def aclose(self) -> None:
        """No more of it."""
        for task in list(self._opening):
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)


# --- all of it -------------------------------------------------------------------------------


class Soak:
    """One gateway through all of it. Make it with `_started`."""

    def __init__(
        self,
        client: Client,
        tally: Tally,
        mark: str,
        traffic: Traffic,
        faults: Faults,
        folder: Path,
        answer: Path,
    ) -> None:
        self._folder = folder
        self._answer = answer
        self.client = client
        self.tally = tally
        self.traffic = traffic
        self.faults = faults
        self._mark = mark
        self._began = time.perf_counter()

    def sample(self) -> Sample:
        """The gateway now."""
        pid = self.client.process.pid
        at = time.perf_counter() - self._began
        processes = len(marked(self._mark))
        kept = self._folder.with_name("state").rglob("*")
        entries = sum(1 for _ in (*self._folder.iterdir(), *kept))
        return Sample(at, held_by(pid), processes, zombies_of(pid), self.tally.opened, entries)

    async def probe(self) -> Probe:
        """What the gateway says that it holds."""
        self._answer.unlink(missing_ok=True)
        self.client.process.send_signal(signal.SIGUSR1)
        async with asyncio.timeout(60):
            while not self._answer.exists():  # noqa: ASYNC110 - nobody could tell us
                await asyncio.sleep(0.1)
        return msgspec.json.decode(self._answer.read_bytes(), type=Probe)

    async def usable(self, within: float) -> None:
        """Wait until every server answers, a View opens for each that has one, and it answers."""
        tally, until = self.tally, time.perf_counter() + within
        left = {"start"}
        while left and time.perf_counter() < until:
            left = await self._unusable()
            if left:
                await asyncio.sleep(0.5)
        if left:
            tally.violations.append(f"after {within:g} s there is still no {', '.join(left)}")

    async def _unusable(self) -> set[str]:
        traffic = self.traffic
        await traffic.list()
        wanted = 2 if self.tally.kind == "headless" else 1
        if len(traffic.plain) < wanted or len(traffic.openers) < wanted:
            return {"server in the list"}
        left: set[str] = set()
        for name, arguments in traffic.plain:
            if await traffic.call("server tool", name, arguments) is None:
                left.add(name)
        for name in traffic.openers:
            view = await traffic.open_with(name)
            if view is None:
                left.add(f"View of {name}")
                continue
            short = "get_selection" if name.endswith("orders") else "get_player"
            if await traffic.call("View tool", f"{view}__{short}", {}) is None:
                left.add(f"{view}__{short}")
        return left

    async def settle(self) -> None:
        """Stop everything, close all Views, and see what is held then."""
        await self.traffic.halt()
        await self.usable(90.0)
        for pid in self.faults.servers():  # its Views go with it
            _signal(pid, signal.SIGKILL)
        await asyncio.sleep(1.0)
        until = time.perf_counter() + 60
        while time.perf_counter() < until:
            await self.traffic.list()
            done = [
                await self.traffic.call("server tool", name, arguments)
                for name, arguments in self.traffic.plain
            ]
            if done and None not in done and not self.traffic.view_tools:
                break
            await asyncio.sleep(0.5)
        else:
            self.tally.violations.append("servers that were killed did not come back in 60 s")
        await self.traffic.open()  # a page that had many Views is replaced now
        least = await self._least()
        others = self.faults.memory()
        self.tally.settled.append(least._replace(others=others, probe=await self.probe()))

    async def _least(self) -> Sample:
        """What is held once nothing has become less for a while: browsers let go of it slowly."""
        least, still = self.sample(), 0
        for _ in range(_LINGERS):
            await asyncio.sleep(0.5)
            now = self.sample()
            less = now._replace(
                held=Held(*map(min, now.held, least.held)),
                processes=min(now.processes, least.processes),
                zombies=min(now.zombies, least.zombies),
            )
            same = (less.held[1:], less.processes) == (least.held[1:], least.processes)
            least, still = less, still + 1 if same else 0
            if still == _STILL:
                break
        return least

    def compare(self, seconds: float) -> None:
        """Whether more is held in the second half than in the first."""
        settled, wrong = self.tally.settled, self.tally.violations
        half = max(len(settled) // 2, 1)
        more = _MORE_FILES + (_IDLE_SOCKETS if self.tally.kind == "page" else 0)
        most: dict[str, tuple[int, Callable[[Sample], int]]] = {
            "open files": (more, lambda sample: sample.held.fds),
            "sockets": (more, lambda sample: sample.held.sockets),
            "threads": (_MORE_FILES, lambda sample: sample.held.threads),
            "processes": (_MORE_PROCESSES, lambda sample: sample.processes),
            "files on disk": (_MORE_FILES, lambda sample: sample.entries),
        }
        for what, (allowed, value) in most.items():
            had, has = (
                statistics.median(map(value, part)) for part in (settled[:half], settled[-half:])
            )
            if has > had + allowed:
                wrong.append(f"{has:g} {what}, after {had:g}")
        if settled[-1].zombies:
            wrong.append(f"{settled[-1].zombies} processes that nobody waited for")
        if seconds < _LONG:
            return
        growth = self.tally.growth_an_hour(_used)
        if growth > _MORE_AN_HOUR:
            wrong.append(f"{growth / 1024:.1f} MB more in use an hour")
        more = _trimmed(settled[-1]) - _trimmed(settled[0])
        if more > _MORE_AN_HOUR * seconds / 3600 + _STEPS:
            wrong.append(f"{more / 1024:.1f} MB larger at the end")

    async def end(self) -> None:
        """The client leaves: the gateway must leave too, and take everybody with it."""
        try:
            code = await self.client.aclose()
        except TimeoutError:
            self.tally.violations.append("the gateway did not leave with its client")
            return
        if code:
            self.tally.violations.append(f"the gateway exited with code {code}")
        left = marked(self._mark)
        for _ in range(50):  # the last of Chromium's take a moment
            if left:
                await asyncio.sleep(0.1)
                left = marked(self._mark)
        for pid in left:
            self.tally.violations.append(f"left behind: {' '.join(command_of(pid))[:200]}")
            _signal(pid, signal.SIGKILL)
        files = [file for file in self._folder.rglob("*") if not file.is_dir()]
        self.tally.violations += [f"left behind: {file}" for file in files[:20]]
        self.tally.violations += [f"nobody asked for: {line}" for line in self.client.stray[:5]]


@asynccontextmanager
async def _started(kind: Kind, chance: random.Random, within: float) -> AsyncIterator[Soak]:
    tally = Tally(kind=kind)
    mark = f"TRANSOM_SOAK={secrets.token_hex(8)}"
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="transom-soak-")))
        name, _, value = mark.partition("=")
        # A page of its own, not that of another gateway that happens to run.
        temporary = folder / "tmp"
        temporary.mkdir()
        places = {
            "XDG_RUNTIME_DIR": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "TMPDIR": str(temporary),
        }
        env = {**os.environ, name: value, **places}
        answer = folder / "probe.json"
        command = [sys.executable, "-m", "benchmarks.probed", str(answer), "gateway"]
        page: OwnPage | None = None
        if kind == "headless":
            servers = {
                each: {"command": sys.executable, "args": [str(EXAMPLES / f"{each}.py")]}
                for each in ("orders", "music")
            }
            config = folder / "servers.json"
            config.write_text(json.dumps({"mcpServers": servers}))
            command += ["--headless", "--config", str(config)]
        else:
            playing = await stack.enter_async_context(async_playwright())
            browser = await playing.chromium.launch(
                executable_path=find_chromium(), args=chromium_arguments()
            )
            page = OwnPage(browser)
            stack.push_async_callback(browser.close)
            stack.push_async_callback(page.aclose)
            command += ["--no-open", "--", sys.executable, str(EXAMPLES / "orders.py")]

        more = 0

        def heard(line: str) -> None:
            nonlocal more
            if any(words in line for words in _NOBODY_SHOULD_SAY):
                if not more:
                    tally.violations.append("on standard error:")
                more = _CONTEXT
            if more:
                more -= 1
                tally.violations[-1] += f"\n          {line[:200]}"
            if page is not None:
                page.told(line)

        client = await stack.enter_async_context(
            client_of(command, env=env, cwd=str(EXAMPLES.parent), stderr=heard)
        )
        traffic = Traffic(client, tally, chance, within=within)
        faults = Faults(client.process.pid, mark, page)
        yield Soak(client, tally, mark, traffic, faults, temporary, answer)


async def soak(
    kind: Kind,
    seconds: float,
    *,
    within: float = 60.0,
    fault_every: float = 12.0,
    seed: int = 1,
    say: Callable[[str], object] = lambda _: None,
) -> Tally:
    """Put one gateway through all of it.

    Args:
        kind: `headless` or `page`.
        seconds: how long the traffic lasts, from after the warm-up.
        within: seconds in which each call must be answered.
        fault_every: seconds between two faults, on average.
        seed: another one, another day.
        say: told how it stands, every ten seconds.
    """
    chance = random.Random(seed)
    async with _started(kind, chance, within) as run:
        async with asyncio.timeout(within):
            await run.client.initialize()
        callers = [asyncio.create_task(run.traffic.run()) for _ in range(CALLERS)]
        try:
            await run.usable(within)
            parts = max(round(seconds / _PART), 1)
            for part in [seconds / 6, *[seconds / parts] * parts]:
                run.traffic.go()
                await _disturbed(run, part, fault_every, chance, say)
                await run.settle()
        finally:
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)
        run.compare(seconds)
        await run.usable(within)
        await run.end()
    return run.tally


async def _disturbed(
    run: Soak,
    seconds: float,
    fault_every: float,
    chance: random.Random,
    say: Callable[[str], object],
) -> None:
    until = time.perf_counter() + seconds

    async def disturb() -> None:
        while (pause := fault_every * (0.5 + chance.random())) < until - time.perf_counter():
            await asyncio.sleep(pause)
            if chance.random() < 0.25:
                await run.traffic.burst()
                run.tally.faults["bursts"] += 1
            elif (what := await run.faults.one(chance)) is not None:
                run.tally.faults[what] += 1

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(disturb())
        while (left := until - time.perf_counter()) > 0:
            await asyncio.sleep(min(10.0, left))
            run.tally.samples.append(run.sample())
            say(run.tally.line())


def main() -> int:
    """Run it with what the command line says; 1 when something is not as it should be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--kind", choices=[*KINDS, "fleet", "all"], default="all")
    parser.add_argument("--within", type=float, default=60.0, help="seconds to answer a call")
    parser.add_argument("--fault-every", type=float, default=12.0, help="seconds, on average")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    kinds = [each for each in KINDS if options.kind in (each, "all")]
    given: dict[str, Any] = {
        "within": options.within,
        "fault_every": options.fault_every,
        "seed": options.seed,
        "say": lambda line: print(line, flush=True),
    }

    async def run() -> list[Tally | FleetTally]:
        seconds = options.minutes * 60
        tallies: list[Tally | FleetTally] = [
            *await asyncio.gather(*(soak(kind, seconds, **given) for kind in kinds))
        ]
        if options.kind in ("fleet", "all"):
            tallies.append(await soak_fleet(seconds, **given))
        return tallies

    print(f"seed {options.seed}, load {os.getloadavg()[0]:.1f}", flush=True)
    tallies = asyncio.run(run())
    for tally in tallies:
        print(tally.text())
    print(f"load {os.getloadavg()[0]:.1f}")
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(tallies)))
    return 0 if all(tally.ok for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
