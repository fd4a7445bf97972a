"""A session of `transom dev` without a browser: starting, calling, starting again."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mcp.server.mcpserver import Context, MCPServer

from tests.dev.test_files import save
from tests.ports import reserved_port
from transom.channel import Channel
from transom.check.causes import Cause
from transom.check.doctor import Diagnosis
from transom.check.facts import TrialCall
from transom.cli import parse_target
from transom.connections.targets import ServerOpener, way_to
from transom.dev.session import DevSession, DevTarget
from transom.errors import NotConnected, TransomError
from transom.server import Views
from transom.testing.replay import Replay
from transom.traffic import Recorder
from transom.types import ContainerDimensions, ToolResult
from transom.web.page_link import CONTROL

ENDING = """
import os
import socket
from pathlib import Path
from mcp.server.mcpserver import MCPServer
from transom.server import Views

port = socket.create_server(("127.0.0.1", PORT))  # one server at a time can have it
ENDED = Path(__file__).with_name("ended.txt")
views = Views()
page = views.add("ui://fast/page.html", html="<!doctype html><title>Fast</title>")

@views.tool(opens=page)
def end() -> str:
    '''End the server.'''
    with ENDED.open("a") as file:
        file.write(".")
    os._exit(3)

@views.helper
def fail() -> str:
    '''Fail, and tell a model less of it than an author needs.'''
    return str(1 / 0)

@views.helper
def ended() -> str:
    '''How often it ended.'''
    return ENDED.read_text()

server = MCPServer("fast", extensions=[views])
"""


class Author:
    """Reads what the page is sent, and asks for things as the page does."""

    def __init__(self, session: DevSession) -> None:
        self.session = session
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        session.page.stage.send = self.sent.put_nowait  # type: ignore[method-assign]
        self._asked = 0

    async def until(self, do: str, **wanted: Any) -> dict[str, Any]:
        """The next message of this kind whose value has these fields."""
        while True:
            message = await self.sent.get()
            value = message.get("value") or {}
            if message["do"] == do and all(
                message.get(key, value.get(key) if isinstance(value, dict) else None) == each
                for key, each in wanted.items()
            ):
                return message

    async def server(self, state: str) -> dict[str, Any]:
        return (await self.until("panel", name="server", state=state))["value"]

    def ask(self, name: str, **arguments: Any) -> int:
        self._asked += 1
        request = {"id": self._asked, "name": name, "arguments": arguments}
        page = self.session.page
        page.request_received(page.stage, request)
        return self._asked

    async def asked(self, name: str, **arguments: Any) -> dict[str, Any]:
        return await self.until("reply", id=self.ask(name, **arguments))


@asynccontextmanager
async def developed(
    server: Any, folder: Path | None = None, **options: Any
) -> AsyncIterator[Author]:
    target = DevTarget("shop", "shop.py", server, folder)
    author = Author(DevSession(target, None, checks=False, ephemeral=True, **options))
    running = asyncio.create_task(author.session.run())
    try:
        yield author
    finally:
        running.cancel()
        await asyncio.wait([running])


def shop() -> MCPServer:
    views = Views()
    page = views.add("ui://shop/page.html", html="<!doctype html><title>Shop</title>")

    @views.tool(opens=page)
    def show() -> str:
        """Open the shop."""
        return "shown"

    @views.helper
    def refresh() -> str:
        """For its page."""
        return "fresh"

    server = MCPServer("shop", extensions=[views])

    @server.tool()
    async def work(ctx: Context[Any, Any], steps: int) -> str:
        """Work for some steps, or for good."""
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        if not steps:
            await asyncio.Event().wait()
        return "worked"

    return server


async def test_tools_have_their_shapes_and_calls_progress_results_and_an_end() -> None:
    async with developed(shop()) as author:
        tools = (await author.until("panel", name="tools"))["value"]
        shapes = {tool["name"]: tool["shape"] for tool in tools}
        assert shapes == {"show": "opens", "refresh": "views", "work": "plain"}
        await author.server("running")
        author.ask("call", tool="work", arguments={"steps": 2}, call="one")
        progress = await author.until("panel", name="call", progress=2)
        assert progress["value"]["message"] == "step 2"
        done = (await author.until("panel", name="call", state="done"))["value"]
        assert done["result"]["content"][0]["text"] == "worked"
        assert (done["call"], done["arguments"]) == ("one", {"steps": 2})
        author.ask("call", tool="refresh", call="two")
        done = (await author.until("panel", name="call", state="done"))["value"]
        assert done["result"]["content"][0]["text"] == "fresh"
        author.ask("call", tool="work", arguments={"steps": 0}, call="three")
        await author.until("panel", name="call", state="running")
        assert (await author.asked("cancel", call="three"))["result"] is True
        await author.until("panel", name="call", state="cancelled")
        author.ask("call", tool="work", call="four")
        failed = (await author.until("panel", name="call", state="done"))["value"]
        assert failed["result"]["isError"]


async def test_what_is_recorded_is_replayed_to_the_server(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    with Recorder(path) as recorder:
        async with developed(shop(), recorder=recorder) as author:
            await author.server("running")
            author.ask("call", tool="refresh", call="one")
            await author.until("panel", name="call", state="done")
    assert '"refresh"' in path.read_text()
    assert await Replay(path).run(await way_to(shop())(), timeout=60) == []


async def test_what_cannot_be_done_says_why() -> None:
    async with developed(shop()) as author:
        await author.server("running")
        assert (await author.asked("call", tool="nothing"))["error"] == (
            "The server has no tool nothing"
        )
        assert "There is no View" in (await author.asked("snapshot"))["error"]
        assert (await author.asked("nonsense"))["error"] == "There is no request nonsense"
        assert "Expected `str`" in (await author.asked("call", tool=1))["error"]
        assert (await author.asked("settings", approvals="never"))["error"]


async def test_the_room_of_views_is_what_the_page_says_whichever_host_it_is_like() -> None:
    async with developed(shop()) as author:
        await author.server("running")
        stage, run = author.session.page.stage, author.session._run
        assert run is not None
        context = run.host._views._environment.context
        for profile, modes in (("claude", ["inline", "fullscreen"]), ("vscode", ["inline"])):
            await author.asked("settings", profile=profile)
            assert context.value.available_display_modes == modes
            for width in (720, 390):
                room = {"containerDimensions": {"width": width}}
                said = {"do": "surroundings", "value": room}
                stage._receive(CONTROL, msgspec.json.encode(said))
                assert context.value.container_dimensions == ContainerDimensions(width=width)


async def test_a_page_that_connects_is_sent_everything_there_is() -> None:
    async with developed(shop()) as author:
        await author.server("running")
        author.session.page.add("findings", {"message": "one"})
        await author.until("log", name="findings")
        author.session.page.page_connected(author.session.page.stage)
        await author.server("running")
        again = await author.until("log", name="findings")
        assert [bytes(entry) for entry in again["entries"]] == [b'{"message":"one"}']


async def test_a_view_that_does_not_connect_is_diagnosed_without_another_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[TrialCall] = []

    async def diagnose(*_: object, called: TrialCall, **__: object) -> Diagnosis:
        asked.append(called)
        cause = Cause(id="never-connects", text="It never connects.", fix="Call it.", line=1)
        page = "<!doctype html>"
        about: dict[str, Any] = {"tool": "show", "uri": None, "host": "plain", "notes": []}
        return Diagnosis(**about, causes=[cause], page=page)

    monkeypatch.setattr("transom.dev.doctor._CONNECTS_WITHIN", 0.1)
    monkeypatch.setattr("transom.dev.doctor.diagnose", diagnose)
    async with developed(shop()) as author:
        await author.server("running")
        author.ask("call", tool="show", call="one")  # there is no page that could connect
        await author.until("panel", name="diagnosis", state="looking", blank="shop-1")
        done = (await author.until("panel", name="diagnosis", state="done"))["value"]
        assert done["causes"][0]["text"] == "It never connects."
        assert done["causes"][0]["place"]["line"] == 1
        assert done["blank"] == "shop-1"
        assert [call.tool for call in asked] == ["show"]
        await author.asked("restart")
        await author.server("running")
        assert author.session.page.get("diagnosis") is None


async def test_a_view_that_failed_is_not_shown_while_the_next_call_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def diagnose(*_: object, **__: object) -> Diagnosis:
        raise TransomError("not here")

    monkeypatch.setattr("transom.dev.doctor.diagnose", diagnose)
    server, ends = MCPServer("shop"), asyncio.Event()

    @server.tool(meta={"ui": {"resourceUri": "ui://shop/missing.html"}})
    async def show(waits: bool = False) -> str:
        """Open the shop."""
        if waits:
            await ends.wait()
        return "shown"

    async with developed(server) as author:
        await author.server("running")
        author.ask("call", tool="show", call="one")
        await author.until("panel", name="view", state="failed")
        author.ask("call", tool="show", arguments={"waits": True}, call="two")
        await author.until("panel", name="call", state="running", call="two")
        assert author.session.page.get("view") is None
        ends.set()
        await author.until("panel", name="view", state="failed")


async def test_a_save_does_not_wait_for_a_view_that_is_still_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transom.dev.session._RUNS_WELL", 1e6)
    async with developed(shop(), tmp_path) as author:
        await author.server("running")
        author.ask("call", tool="show", call="one")  # there is no page that could show it
        await author.until("panel", name="call", state="running")
        for number in range(3):
            save(tmp_path / "x.py", str(number))
            await author.server("running")


async def test_a_call_whose_own_writes_start_the_server_again_is_not_repeated_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: asyncio.Queue[list[Path]] = asyncio.Queue()

    async def watch_files(_: Path) -> AsyncIterator[list[Path]]:
        while True:
            yield await written.get()

    monkeypatch.setattr("transom.dev.session._AFTER_CALL", 1e6)
    monkeypatch.setattr("transom.dev.session.watch_files", watch_files)
    orders: list[int] = []
    views = Views()
    page = views.add("ui://shop/page.html", html="<!doctype html><title>Shop</title>")

    @views.tool(opens=page)
    async def order() -> str:
        """Order something, and write a receipt beside the server."""
        orders.append(1)
        written.put_nowait([tmp_path / "receipt.html"])
        return "ordered"

    async with developed(MCPServer("shop", extensions=[views]), tmp_path) as author:
        await author.server("running")
        for pressed in (1, 2):  # a press is repeated four times, and no more
            author.ask("call", tool="order", call="one")
            for _ in range(5):
                await author.server("starting")
            await author.server("running")
            assert len(orders) == 5 * pressed


async def test_what_is_too_long_is_shown_in_part_and_does_not_stay_in_the_way() -> None:
    server, limit = shop(), 1024 * 1024

    @server.tool(structured_output=False)
    def much() -> str:
        """Answer with more than a page is sent."""
        return "x" * (2 * limit)

    async with developed(server) as author:
        await author.server("running")
        page = author.session.page
        author.ask("call", tool="much", call="one")
        done = (await author.until("panel", name="call", state="done"))["value"]
        assert done["bytes"] > 2 * limit
        text = done["result"]["content"][0]["text"]
        assert text.endswith(f"… {2 * limit - text.count('x')} more characters")
        part = {f"key {number}": ["😀" * 50] * 20 for number in range(100)}
        page.set("view", {"id": "shop-1", "context": {f"{number}": part for number in range(20)}})
        view = (await author.until("panel", name="view", id="shop-1"))["value"]
        assert len(msgspec.json.encode(view)) < limit
        page.add("messages", {"content": ["y" * limit]})
        [entry] = (await author.until("log", name="messages"))["entries"]
        assert b"more characters" in bytes(entry)
        while not author.sent.empty():
            author.sent.get_nowait()
        page.page_connected(page.stage)
        sent = 0
        while not author.sent.empty():
            sent += len(msgspec.json.encode(author.sent.get_nowait()))
        assert sent < 3 * limit


async def test_of_a_flood_of_messages_some_are_shown_and_the_rest_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transom.dev.page._WINDOW", 1e6)
    async with developed(shop()) as author:
        await author.server("running")
        page = author.session.page
        for number in range(1500):
            page.add("findings", {"message": str(number)})
        for _ in range(20):
            page.add("messages", {"message": "x" * 250_000})
        shown = (await author.until("panel", name="dropped"))["value"]
        assert shown == {"findings": 1000, "messages": 11}
        entries = (await author.until("log", name="findings"))["entries"]
        assert len(entries) == 500
        monkeypatch.setattr("transom.dev.page._WINDOW", 0)
        page.add("findings", {"message": "later"})
        entries = (await author.until("log", name="findings"))["entries"]
        assert [bytes(entry) for entry in entries] == [b'{"message":"later"}']


async def test_of_much_progress_the_last_is_shown_and_a_result_that_is_not_valid_ends_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transom.dev.session._SHOW_PROGRESS_EVERY", 1e6)
    server = shop()

    @server.tool()
    async def chat(ctx: Context[Any, Any]) -> str:
        """Say much."""
        for step in range(100):
            await ctx.report_progress(step, 100, "m" * 10_000)
        return "said"

    async with developed(server) as author:
        await author.server("running")
        author.ask("call", tool="chat", call="one")
        states: list[dict[str, Any]] = []
        while not states or states[-1]["state"] != "done":
            states.append((await author.until("panel", name="call"))["value"])
        assert [each.get("progress") for each in states] == [None, 99, None]
        assert states[1]["message"] == "m" * 500

        def from_wire(_: object) -> ToolResult:
            raise msgspec.ValidationError("Invalid value 'odd'")

        monkeypatch.setattr(ToolResult, "from_wire", from_wire)
        author.ask("call", tool="refresh", call="two")
        failed = (await author.until("panel", name="call", state="failed"))["value"]
        assert failed["error"] == "Invalid value 'odd'"


@pytest.mark.nightly
@pytest.mark.processes
async def test_a_broken_file_is_shown_until_a_save_fixes_it_and_a_server_that_ends_comes_back(
    tmp_path: Path,
) -> None:
    file = tmp_path / "fast.py"
    file.write_text("def broken(:\n")
    source = ENDING.replace("PORT", str(reserved_port()))
    async with developed(parse_target(str(file)), tmp_path) as author:
        failed = await author.server("failed")
        assert "SyntaxError" in failed["reason"]
        assert 'fast.py", line 1' in failed["output"]
        assert "def broken(:" in failed["output"]
        assert "transom" not in failed["output"].replace(str(tmp_path), "")
        save(file, source)
        await author.until("log", name="findings", clear=True)  # of what was there before
        tools = await author.until("panel", name="tools")
        assert [tool["name"] for tool in tools["value"]] == ["end", "fail", "ended"]
        assert (await author.server("running"))["ms"] > 0
        author.ask("call", tool="fail", call="zero")
        call: dict[str, Any] = {}
        while "ZeroDivisionError: division by zero" not in call.get("output", ""):
            call = (await author.until("panel", name="call"))["value"]
        assert call["result"]["content"][0]["text"] == "Error executing tool fail"
        author.ask("call", tool="end", call="one")
        lost = await author.server("lost")
        assert "it exited with code 3" in lost["reason"]
        # It is there again, and was not called again by itself; a save calls it again.
        await author.server("running")
        author.ask("call", tool="ended", call="two")
        done = (await author.until("panel", name="call", state="done"))["value"]
        assert done["result"]["content"][0]["text"] == "."
        save(file, source + "\n")
        await author.server("lost")
        assert (tmp_path / "ended.txt").read_text() == ".."


async def test_a_port_that_is_taken_is_said_and_the_server_of_a_url_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        target = DevTarget("shop", "shop.py", shop())
        with pytest.raises(TransomError, match=f"Port {port} of 127.0.0.1 cannot be used"):
            await DevSession(target, None, ephemeral=True, ports=(port, 0)).run()
    monkeypatch.setattr("transom.dev.session._PAUSE", 0.01)
    server, tried = shop(), 0

    async def connect() -> Channel:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise NotConnected("127.0.0.1:8000 answers, but not as an MCP server")
        return await way_to(server)()

    async with developed(ServerOpener(connect, "url")) as author:
        failed = await author.server("failed")
        assert failed["reason"] == "127.0.0.1:8000 answers, but not as an MCP server"
        assert failed["retried"]
        await author.server("running")


@pytest.mark.processes
async def test_a_cause_is_told_once_and_that_the_server_runs_after_it(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text("raise RuntimeError('no stock')\n")
    told = asyncio.Queue[str]()
    async with developed(parse_target(str(file)), tmp_path, tell=told.put_nowait) as author:
        await author.server("failed")
        await author.asked("restart")
        await author.server("failed")  # again, for the same cause
        save(file, "from mcp.server.mcpserver import MCPServer\nserver = MCPServer('shop')\n")
        await author.server("running")
        save(file, "import nothing_there\n")
        await author.server("failed")
    why = f"({file}, line 1: raise RuntimeError('no stock'))"
    then = f"No module named 'nothing_there' ({file}, line 1: import nothing_there)"
    assert [told.get_nowait() for _ in range(told.qsize())] == [
        f"shop.py does not come up: it exited with code 1: RuntimeError: no stock {why}",
        "shop.py is running",
        f"shop.py does not come up: it exited with code 1: ModuleNotFoundError: {then}",
    ]


async def test_what_a_server_writes_when_it_starts_is_not_added_to_the_call_before() -> None:
    async with developed(shop()) as author:
        await author.server("running")
        output, page = author.session._output, author.session.page
        output.begin_call()
        page.set("call", {"state": "failed"})
        output.feed(b"of the call\n")
        while page.get("call").get("output") != "of the call\n":
            await author.until("panel", name="call")
        await author.asked("restart")
        await author.server("running")
        output.feed(b"of the start\n")
        output._showing.flush()
        assert page.get("call")["output"] == "of the call\n"
