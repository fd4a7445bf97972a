"""Workers and their Redis fail in every way, idle and in a call, in real processes.

Every call ends, nothing is done twice, what was answered was done, and afterwards each worker
serves the user. The user's page is in this process: its View works through its server, which writes
down what it was made to do.
"""

import asyncio
import signal
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count, product
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.fleet.pages import pages
from tests.fleet.worker import LEASE
from tests.fleet.workers import Worker, until
from tests.redis_server import RedisServer, Wire

USER = "ada"
WHO = ("host's worker", "agent's worker", "redis")
FAULTS = ("killed", "stopped and woken", "half open")
WHEN = ("idle", "in a call")


class Fleet:
    """Two workers, each with a wire of its own to their Redis, and the user's page."""

    def __init__(self, redis: RedisServer, wires: list[Wire], folder: Path) -> None:
        self._effects = folder / "effects"
        self._ids = count(1)
        self.redis, self.wires = redis, wires
        self.workers = [Worker(wire.url, self._effects) for wire in wires]
        self.hosts, self.agents = self.workers

    async def call(self, worker: Worker, tool: str, **arguments: Any) -> dict[str, Any]:
        """What an agent on that worker gets, or what became of the worker."""
        try:
            return await worker.call(USER, tool, **arguments)
        except httpx2.HTTPError as lost:
            return {"error": "no answer", "message": repr(lost)}

    async def works(self, worker: Worker) -> str:
        """Whether an agent on that worker opens a View and uses it; the View, or nothing."""
        shown = await self.call(worker, "show")
        view = (shown.get("view") or {}).get("id", "")
        if (shown.get("view") or {}).get("state") != "live":
            return ""
        id = f"check-{next(self._ids)}"
        done = await self.call(worker, f"{view}__work", id=id)
        return view if done.get("text") == f"end {id}" else ""

    def effects(self) -> Counter[str]:
        """What the server was made to do, and how often."""
        return Counter(self._effects.read_text().splitlines())

    async def has_begun(self, id: str) -> bool:
        return f"begin {id}" in self.effects()

    async def fail(self, who: str, fault: str) -> None:
        """Let it happen, and be over."""
        worker = self.hosts if who == "host's worker" else self.agents
        if fault == "half open":
            index = self.workers.index(worker)
            for wire in self.wires if who == "redis" else [self.wires[index]]:
                wire.cut()
        elif fault == "killed":
            if who == "redis":
                self.redis.kill()
                self.redis.start()
            else:
                await worker.stop()
                await worker.start()
        else:
            pause, resume = (
                (self.redis.pause, self.redis.resume)
                if who == "redis"
                else (lambda: worker.send(signal.SIGSTOP), lambda: worker.send(signal.SIGCONT))
            )
            pause()
            await asyncio.sleep(2.5 * LEASE)  # it counts as dead by now
            resume()


@asynccontextmanager
async def fleet() -> AsyncGenerator[Fleet]:
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(RedisServer())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="transom-faults-")))
        wires = [await stack.enter_async_context(Wire(redis.url).running()) for _ in range(2)]
        running = Fleet(redis, wires, folder)
        for worker in running.workers:
            stack.push_async_callback(worker.stop)
        await asyncio.gather(*(worker.start() for worker in running.workers))
        await stack.enter_async_context(pages([USER], running.workers))
        yield running


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("who", "fault", "when"), list(product(WHO, FAULTS, WHEN)), ids=lambda part: part
)
async def test_calls_end_nothing_is_done_twice_and_all_workers_serve_the_user_again(
    who: str, fault: str, when: str
) -> None:
    async with fleet() as running:
        view = await until(lambda: running.works(running.hosts))
        await until(lambda: running.works(running.agents))
        call = None
        if when == "in a call":
            arguments = {"id": "disturbed", "ms": 1000}
            begun = running.call(running.agents, f"{view}__work", **arguments)
            call = asyncio.create_task(begun)
            await until(lambda: running.has_begun("disturbed"))
        await running.fail(who, fault)
        if call is not None:
            outcome = await call
            if "error" in outcome:  # it says so by itself, and not because its time is up
                assert outcome["error"] != "RequestTimeout", outcome
                died = (who, fault) == ("agent's worker", "killed")
                assert (outcome["error"] == "no answer") is died, outcome
        for worker in running.workers:
            await until(lambda worker=worker: running.works(worker))
        effects = running.effects()
        assert {line for line, times in effects.items() if times > 1} <= {"show "}
        if call is not None and "text" in call.result():
            assert effects["end disturbed"] == 1
