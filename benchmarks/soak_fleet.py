"""Two workers of a web application and their Redis, under traffic, while all fail at random.

    python -m benchmarks.soak_gateway --kind fleet --minutes 5

Each user has a page, which finds another worker when it loses its own, and an agent, which opens
Views and calls their tools on any worker. Workers are killed, and stopped for longer than their
lease; Redis is killed and stopped; connections to it go dead; one user floods.

Every call must be answered in time. Nothing is done twice, and what was answered with a result was
done once. After that each worker serves each user, ends when it is told to, and has logged no
traceback.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2

from benchmarks.processes import held_by
from benchmarks.tally import CallTally
from tests.fleet.pages import WorkingPage, pages
from tests.fleet.worker import LEASE
from tests.fleet.workers import Worker
from tests.redis_server import RedisServer, Wire
from transom.background import stop
from transom.errors import ChannelClosed

__all__ = ["FleetTally", "soak_fleet"]

USERS = ("ada", "bob", "eve")
FLOODER = "eve"
FLOOD = 5000  # frames
_NOBODY_SHOULD_SAY = ("Traceback", "never retrieved", "was destroyed but", "Exception ignored")


@dataclass(kw_only=True)
class FleetTally(CallTally):
    """What came of one fleet."""

    done: Counter[str] = field(default_factory=Counter[str])
    """What the servers were made to do."""
    sizes: list[list[int]] = field(default_factory=list[list[int]])
    """KB of the workers, now and then."""

    def line(self) -> str:
        """How it stands."""
        return (
            f"fleet    {self.asked:7,} calls  {self.results:7,} results  "
            f"{self.errors.total():5} errors  p50 {self.percentile(0.5):5.0f} ms  "
            f"p99 {self.percentile(0.99):6.0f} ms  {dict(sorted(self.faults.items()))}"
        )

    def text(self) -> str:
        """All of it, to be printed."""
        errors = self.errors.total()
        sizes = "; ".join(", ".join(f"{size / 1024:.0f}" for size in each) for each in self.sizes)
        return "\n".join(
            [
                "--- fleet",
                f"calls     {self.asked:,}: {self.results:,} results, {errors:,} errors",
                *(f"          {number:6} {text}" for text, number in self.errors.most_common(12)),
                f"faults    {dict(self.faults)}",
                (
                    f"times     p50 {self.percentile(0.5):.1f} ms, "
                    f"p99 {self.percentile(0.99):.0f} ms, longest {self.percentile(1):.0f} ms"
                ),
                f"done      {self.done.total():,} things, each once",
                f"workers   {sizes} MB",
                *(f"VIOLATION {each}" for each in self.violations[:20]),
                f"verdict   {'ok' if self.ok else 'FAILED'}",
            ]
        )


class FleetSoak:
    """One run."""

    def __init__(
        self, redis: RedisServer, wires: list[Wire], folder: Path, seed: int, within: float
    ) -> None:
        self.tally = FleetTally()
        self._effects = folder / "effects"
        self._effects.touch()
        self._logs = [folder / f"worker-{number}.log" for number, _ in enumerate(wires)]
        self._redis, self._wires = redis, wires
        self.chance = random.Random(seed)
        self._within = within
        self._ids = itertools.count(1)
        self._answered: list[str] = []
        self.workers = [
            Worker(wire.url, self._effects, log)
            for wire, log in zip(wires, self._logs, strict=True)
        ]

    # --- traffic -----------------------------------------------------------------------------

    async def call(self, worker: Worker, user: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool on that worker: what it answered, or what became of it."""
        began = time.perf_counter()
        self.tally.asked += 1
        try:
            async with asyncio.timeout(self._within):
                answer = await worker.call(user, tool, **arguments)
        except TimeoutError:
            text = f"{tool} of {user} was not answered in {self._within:g} s"
            self.tally.violations.append(text)
            return {}
        except (httpx2.HTTPError, json.JSONDecodeError) as lost:  # the worker was killed
            answer = {"error": type(lost).__name__}
        self.tally.times.append(time.perf_counter() - began)
        if "error" in answer:
            self.tally.errors[answer["error"]] += 1
        else:
            self.tally.results += 1
        return answer

    async def show(self, worker: Worker, user: str) -> str:
        """Open a View: its id, or nothing."""
        view = (await self.call(worker, user, "show")).get("view") or {}
        return view["id"] if view.get("state") == "live" else ""

    async def work(self, worker: Worker, user: str, view: str, ms: int = 0) -> bool:
        """Have a View work; whether it did."""
        id = f"{user}-{next(self._ids)}"
        answer = await self.call(worker, user, f"{view}__work", id=id, ms=ms)
        if "text" not in answer:
            return False
        self._answered.append(f"end {id}")
        return answer["text"] == f"end {id}"

    async def be_agent(self, user: str) -> None:
        """What the agent of a user does all day."""
        view = ""
        while True:
            worker = self.chance.choice(self.workers)
            if not view or self.chance.random() < 0.05:
                view = await self.show(worker, user)
            elif not await self.work(worker, user, view, self.chance.choice([0, 0, 0, 200])):
                view = "" if self.chance.random() < 0.5 else view
            await asyncio.sleep(self.chance.random() * 0.1)

    # --- faults ------------------------------------------------------------------------------

    async def fail(self) -> None:
        """One thing goes wrong, and is over when this returns."""
        index = self.chance.randrange(len(self.workers))
        worker = self.workers[index]
        faults: dict[str, Callable[[], Any]] = {
            "worker killed": lambda: self._restart(worker),
            "worker stopped": lambda: self._pause(
                lambda: worker.send(signal.SIGSTOP), lambda: worker.send(signal.SIGCONT)
            ),
            "worker cut off": lambda: self._cut([self._wires[index]]),
            "redis killed": self._restart_redis,
            "redis stopped": lambda: self._pause(self._redis.pause, self._redis.resume),
            "redis cut off": lambda: self._cut(self._wires),
            "flood": lambda: self._flood(worker),
        }
        name = self.chance.choice(sorted(faults))
        self.tally.faults[name] += 1
        await faults[name]()

    async def _restart(self, worker: Worker) -> None:
        await worker.stop()
        await worker.start()

    async def _restart_redis(self) -> None:
        self._redis.kill()
        await asyncio.sleep(self.chance.random() * LEASE)
        self._redis.start()

    async def _pause(self, pause: Callable[[], object], resume: Callable[[], object]) -> None:
        pause()
        await asyncio.sleep(self.chance.uniform(0.2, 2.5) * LEASE)
        resume()

    async def _cut(self, wires: list[Wire]) -> None:
        for wire in wires:
            wire.cut()

    async def _flood(self, worker: Worker) -> None:
        page = WorkingPage(FLOODER, worker, self.workers[0].url)
        async with asyncio.timeout(self._within), page:
            try:
                for _ in range(FLOOD):
                    await page.tell(do="surroundings", value={"theme": "dark"})
            except ChannelClosed:
                pass  # its worker moved the user

    # --- the end -----------------------------------------------------------------------------

    async def settle(self) -> None:
        """Everything works again, for everybody, on each worker."""
        for worker, user in itertools.product(self.workers, USERS):
            until = time.perf_counter() + self._within
            while time.perf_counter() < until:
                view = await self.show(worker, user)
                if view and await self.work(worker, user, view):
                    break
                await asyncio.sleep(0.2)
            else:
                text = f"a worker does not serve {user} after {self._within:g} s"
                self.tally.violations.append(text)
        self.tally.sizes.append([held_by(worker.pid).rss for worker in self.workers])

    async def end(self) -> None:
        """The workers are told to end; what was done is counted."""
        tally = self.tally
        for worker in self.workers:
            code = await worker.stop(signal.SIGTERM)
            if code not in (0, -signal.SIGTERM):  # uvicorn ends as the signal says, after closing
                tally.violations.append(f"a worker exited with code {code}")
        for log in self._logs:
            lines = log.read_text(errors="replace").splitlines()
            for number, line in enumerate(lines):
                if any(words in line for words in _NOBODY_SHOULD_SAY):
                    shown = "\n          ".join(lines[number : number + 25])
                    tally.violations.append(f"on standard error:\n          {shown}")
        done = Counter(self._effects.read_text().splitlines())
        tally.done = Counter({line: times for line, times in done.items() if line != "show "})
        tally.violations += [f"{line}: {n} times" for line, n in tally.done.items() if n > 1]
        lost = [line for line in self._answered if tally.done[line] != 1]
        tally.violations += [f"answered and not done: {line}" for line in lost]


@asynccontextmanager
async def _started(seed: int, within: float) -> AsyncGenerator[FleetSoak]:
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(RedisServer())
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="transom-soak-")))
        wires = [await stack.enter_async_context(Wire(redis.url).running()) for _ in range(2)]
        run = FleetSoak(redis, wires, folder, seed, within)
        for worker in run.workers:
            stack.push_async_callback(worker.stop)
        await asyncio.gather(*(worker.start() for worker in run.workers))
        await stack.enter_async_context(pages(USERS, run.workers))
        yield run


async def soak_fleet(
    seconds: float,
    *,
    within: float = 60.0,
    fault_every: float = 12.0,
    seed: int = 1,
    say: Callable[[str], object] = lambda _: None,
) -> FleetTally:
    """Put one fleet through all of it; the arguments are those of `soak_gateway.soak`."""
    async with _started(seed, within) as run:
        await run.settle()
        agents = [asyncio.create_task(run.be_agent(user)) for user in USERS]
        try:
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                await asyncio.sleep(fault_every * run.chance.uniform(0.5, 1.5))
                await run.fail()
                say(run.tally.line())
        finally:
            for agent in agents:
                await stop(agent)
        for agent in agents:
            if not agent.cancelled() and (error := agent.exception()) is not None:
                run.tally.violations.append(f"an agent ended: {error!r}")
        await run.settle()
        await run.end()
    return run.tally
