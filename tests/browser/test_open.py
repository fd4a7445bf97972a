"""`transom open`, run as a command."""

import asyncio
import json
import os
import shutil
import signal
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from typer.testing import CliRunner

from tests.browser.hosting import Chromium, chromium, processes
from tests.browser.views import html
from transom.cli.main import app

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


async def test_under_the_strict_policy_what_a_view_does_too_much_is_a_violation(
    tmp_path: Path,
) -> None:
    page = tmp_path / "view.html"
    page.write_text(html("try { eval(1) } catch {}"))
    server = tmp_path / "evil.py"
    server.write_text(
        "from pathlib import Path\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "from transom.server import Views\n"
        "views = Views()\n"
        f"page = views.add('ui://evil/x.html', html=Path({str(page)!r}))\n"
        "@views.tool(opens=page)\n"
        "def show() -> str:\n"
        "    return 'shown'\n"
        "server = MCPServer('evil', extensions=[views])\n"
    )
    code, events = await events_of(str(server), "show", "--csp", "strict")
    assert code == 0
    [seen] = [event for event in events if event["event"] == "violation"]
    assert set(seen) == {"event", "view", "directive", "blocked", "source"}
    assert (seen["view"], seen["directive"], seen["blocked"]) == ("evil-1", "script-src", "eval")


# --- for a person ----------------------------------------------------------------------------


async def test_a_person_reads_what_happened_and_gets_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "view.png"
    code, out, err = await ran(
        *(str(ORDERS), "show_orders", "--headless", "--screenshot", str(picture)),
        *("--call", 'select_orders={"ids": ["A-1041"]}', "--call", "nothing={}"),
    )
    assert code == 1
    assert err == ""
    shown = out.splitlines()
    assert shown[0] == "Opened   orders 1.0.0  orders-1"
    assert shown[1] == "         7 orders, €2423.50 in all."
    assert shown[2].startswith("Tools    get_selection()")
    assert "Called   select_orders" in shown
    assert "         1 selected." in shown
    assert "Failed   nothing" in shown
    assert shown[-2] == "Closed   orders-1: all is done"
    assert shown[-1] == f"Saved a picture of the View as {picture}"
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width > 600
    assert height > 200


# --- trouble ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([str(ORDERS), "show_orders", "{", "--headless"], "ARGS is not JSON"),
        ([str(ORDERS), "show_orders", "[1]", "--headless"], "ARGS must be a JSON object"),
        ([str(ORDERS), "show_orders", "--call", "x={", "--headless"], "--call x is not JSON"),
        ([str(ORDERS), "show_orders", "--call", "x=7", "--headless"], "must be a JSON object"),
        ([str(ORDERS), "show_orders", "--call", "={}", "--headless"], "name a tool of the View"),
        ([str(ORDERS), "show_orders", "--screenshot", "x.png"], "--screenshot needs --headless"),
        (
            [str(ORDERS), "show_orders", "--headless", "--screenshot", "/nowhere/x.png"],
            "cannot be saved there",
        ),
        (["nothing.py", "show_orders", "--headless"], "there is no file nothing.py"),
        (["no-such-command-anywhere", "x", "--headless"], "neither a Python file"),
        ([str(ORDERS), "show_orders", "--csp", "loose"], "Invalid value for '--csp'"),
        ([str(ORDERS), "show_orders", "--timeout", "0"], "Invalid value for '--timeout'"),
    ],
)
async def test_a_mistake_is_exit_2_with_a_text_that_says_which(
    arguments: list[str], said: str
) -> None:
    # Here, without a process: none of these gets as far as to start anything.
    result = CliRunner().invoke(app, ["open", *arguments, "--json"], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["false", "show"], "could not be connected"),
        (["sleep 60", "show", "--timeout", "1"], "could not be connected"),
        (["http://127.0.0.1:9/mcp", "show"], "could not be connected"),
        ([str(ORDERS), "nothing"], "has no tool nothing; it has: show_orders, count_orders"),
        ([str(ORDERS), "count_orders", '{"status": "open"}'], "opened no View"),
    ],
)
async def test_trouble_with_the_server_is_exit_2(arguments: list[str], said: str) -> None:
    code, out, err = await ran(*arguments, "--headless", "--json")
    assert code == 2
    assert out == ""
    assert said in err
    assert "Traceback" not in err


async def test_a_browser_that_cannot_be_started_is_exit_2() -> None:
    code, out, err = await ran(
        str(ORDERS), "show_orders", "--headless", "--json", TRANSOM_CHROMIUM="/nothing"
    )
    assert code == 2
    assert out == ""
    assert "Chromium could not be started" in err
    assert "playwright install chromium" in err


# --- interrupted -----------------------------------------------------------------------------


async def left_behind(mark: str) -> list[int]:
    """The processes that are still there after a while."""
    for _ in range(100):
        if not processes(mark):
            break
        await asyncio.sleep(0.05)
    return processes(mark)


@pytest.mark.parametrize("whole_group", [False, True], ids=["the command", "its whole group"])
async def test_ctrl_c_leaves_no_process_behind(tmp_path: Path, whole_group: bool) -> None:
    server = tmp_path / "orders.py"
    shutil.copy(ORDERS, server)
    shutil.copy(ORDERS.with_suffix(".html"), tmp_path)
    arguments = (str(server), "show_orders", "--headless", "--json", "--call", "get_selection={}")
    async with transom_open(*arguments, TMPDIR=str(tmp_path)) as run:
        await run.event("opened")
        assert len(processes(str(tmp_path))) > 3  # the command, the server, the browser
        if whole_group:  # as a terminal does
            os.killpg(run.process.pid, signal.SIGINT)
        else:
            run.process.send_signal(signal.SIGINT)
        code = await run.process.wait()
        assert code in (0, 130)  # it may have been done already
        assert "Traceback" not in await run.stderr()
    assert await left_behind(str(tmp_path)) == []
    assert [path.name for path in tmp_path.glob("transom-*")] == []  # noqa: ASYNC240


# --- in the user's browser -------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Chromium]:
    async with chromium() as made:
        yield made


@pytest.mark.parametrize("browser_command", ["/bin/true", "/bin/false"])
async def test_it_says_where_the_view_is_waits_for_the_page_and_stays_until_ctrl_c(
    browser: Chromium, browser_command: str
) -> None:
    async with (
        browser.user() as user,
        transom_open(
            *(str(ORDERS), "show_orders", "--json", "--call", "get_selection={}"),
            BROWSER=browser_command,
        ) as run,
    ):
        url = (await run.error_line("The View opens at")).split()[-1]
        if browser_command == "/bin/false":
            await run.error_line("open that address yourself")
        await user.open_page(url)
        assert (await run.event("opened"))["view"] == "orders-1"
        assert (await run.event("call"))["tool"] == "get_selection"
        await user.in_view("orders-1").get_by_text("A-1041").wait_for()
        # A page that is reloaded has its View again, and the command goes on.
        await user.page.reload()
        assert "reloaded" in (await run.event("closed"))["reason"]
        assert (await run.event("opened"))["view"] == "orders-1"
        await run.event("tools")
        await user.in_view("orders-1").get_by_text("A-1041").wait_for()
        assert run.process.returncode is None
        run.process.send_signal(signal.SIGINT)
        assert (await run.event("closed"))["view"] == "orders-1"
        assert await run.process.wait() == 0
        await user.page.get_by_text("The agent has ended").wait_for()
