"""`transom open`, run as a command."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[2]
ORDERS = ROOT / "examples" / "orders.py"
BUDGET = ROOT / "tests" / "servers" / "node_modules" / ".bin" / "mcp-budget-allocator-server"


class Run:
    """The command while it runs, and what it printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def line(self) -> str:
        assert self.process.stdout is not None
        line = (await self.process.stdout.readline()).decode()
        assert line, (await self.stderr(), self.lines)
        self.lines.append(line)
        return line

    async def event(self, kind: str) -> dict[str, Any]:
        """Read events up to the next of that kind."""
        while True:
            event = json.loads(await self.line())
            if event["event"] == kind:
                return event

    async def stderr(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    async def error_line(self, word: str) -> str:
        """Read standard error up to a line with this word."""
        assert self.process.stderr is not None
        while True:
            line = (await self.process.stderr.readline()).decode()
            assert line, "the command ended"
            if word in line:
                return line


@asynccontextmanager
async def transom_open(*arguments: str, **environment: str) -> AsyncIterator[Run]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from transom.cli.main import app; app()", "open", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "COLUMNS": "100", **environment},
        cwd=ROOT,
        limit=16 * 1024 * 1024,
        start_new_session=True,
    )
    try:
        yield Run(process)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def ran(*arguments: str, **environment: str) -> tuple[int, str, str]:
    async with transom_open(*arguments, **environment) as run:
        out, err = await run.process.communicate()
        assert run.process.returncode is not None
        return run.process.returncode, out.decode(), err.decode()


async def events_of(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code, out, _ = await ran(*arguments, "--headless", "--json")
    return code, [json.loads(line) for line in out.splitlines()]


# --- as JSON ---------------------------------------------------------------------------------


async def test_events_are_lines_of_json_in_the_order_of_the_steps() -> None:
    code, events = await events_of(
        *(str(ORDERS), "show_orders", '{"status": "open"}'),
        *("--call", 'select_orders={"ids": ["A-1041"]}', "--call", "get_selection"),
    )
    assert code == 0
    opened, tools, select, selection, closed = events
    assert set(opened) == {"event", "view", "app", "result"}
    assert (opened["event"], opened["view"]) == ("opened", "orders-1")
    assert opened["app"] == {"name": "orders", "version": "1.0.0"}
    assert len(opened["result"]["structuredContent"]["orders"]) == 3
    assert (tools["event"], tools["view"]) == ("tools", "orders-1")
    assert {tool["name"] for tool in tools["tools"]} >= {"select_orders", "get_selection"}
    assert all("inputSchema" in tool for tool in tools["tools"])
    assert set(select) == {"event", "tool", "result"}
    assert (select["event"], select["tool"]) == ("call", "select_orders")
    assert "A-1041" in json.dumps(selection["result"])
    assert closed == {"event": "closed", "view": "orders-1", "reason": "all is done"}


async def test_a_call_that_fails_or_gives_an_error_is_exit_1_and_the_others_are_made() -> None:
    code, events = await events_of(
        *(str(ORDERS), "show_orders", "--call", "nothing={}"),
        *("--call", 'select_orders={"ids": "A-1041"}', "--call", "get_selection={}"),
    )
    assert code == 1
    unknown, wrong, fine = [event for event in events if event["event"] == "call"]
    assert unknown == {
        "event": "call",
        "tool": "nothing",
        "error": {"code": -32602, "message": "View orders-1 has no tool nothing"},
    }
    assert wrong["result"]["isError"] is True
    assert "error" not in fine


async def test_an_official_server_is_opened_by_its_command_line() -> None:
    code, events = await events_of(f"{BUDGET} --stdio", "get-budget-data")
    assert code == 0
    assert events[0]["event"] == "opened"
    tools = [tool["name"] for e in events if e["event"] == "tools" for tool in e["tools"]]
    assert tools
    assert [e for e in events if e["event"] == "violation"] == []
