"""The official `AppBridge`, driven (`official_bridge.mjs`)."""

import asyncio
import json
from itertools import count
from pathlib import Path
from typing import Any, Self

from transom.conform.driving import measure
from transom.conform.report import ConformReport
from transom.conform.server import ConformServer

SCRIPT = Path(__file__).with_name("official_bridge.mjs")


class OfficialBridge:
    """The process; a `DrivenHost` without a model."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        self._waiting[0] = started = asyncio.get_running_loop().create_future()
        self._process = await asyncio.create_subprocess_exec(
            "node", str(SCRIPT), self._url, stdin=pipe, stdout=pipe
        )
        self._reading = asyncio.create_task(self._read())
        await started
        return self

    async def __aexit__(self, *_: object) -> None:
        self._process.kill()
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if (waiting := self._waiting.pop(json.loads(line)["id"], None)) is not None:
                waiting.set_result(None)
        for each in self._waiting.values():
            each.cancel()

    async def _order(self, do: str, **order: Any) -> None:
        id = next(self._numbers)
        done = self._waiting[id] = asyncio.get_running_loop().create_future()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": id, "do": do, **order}).encode() + b"\n")
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            if do == "call":
                await self._order("cancel", call=id)
            raise

    async def list_tools(self) -> list[str]:
        return []

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> object:
        await self._order("call", name=name, arguments=arguments)
        return None

    async def read(self) -> str | None:
        return None

    async def change_theme(self) -> bool:
        await self._order("theme")
        return True

    async def close_view(self) -> bool:
        await self._order("close")
        return True


async def measure_official(timeout: float) -> ConformReport:
    """Measure it."""
    server = ConformServer(timeout=timeout)
    async with server.probes(mcp=True) as address, OfficialBridge(f"{address}/mcp") as bridge:
        await measure(server, bridge)
    return server.report("official `AppBridge` (ext-apps 2.0.4), without a browser")
