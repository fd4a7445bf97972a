"""Official servers behind the gateway, their Views in headless Chromium."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.browser.hosting import descendants
from tests.browser.opening import server_with
from tests.browser.views import BUSY
from tests.gateway.memory import Raw, words
from tests.gateway.raw_client import GATEWAY, PACKAGES, alive, raw_client
from tests.pdf import pdf_of
from transom.channel import memory_pair
from transom.check.schemas import fitting_arguments
from transom.gateway.client_host import ViewOptions
from transom.gateway.configuration.config import server_from_command
from transom.gateway.display import SharedDisplay
from transom.gateway.members import connect_to
from transom.gateway.proxy import Proxy
from transom.host.tools.tool_names import view_stem
from transom.host.tools.tool_visibility import links_view
from transom.web import HeadlessRenderer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.processes]

CHANGED = "notifications/tools/list_changed"
HELLO = {
    "protocolVersion": "2025-11-25",
    "clientInfo": {"name": "raw", "version": "1"},
    "capabilities": {},
}

# By server: a tool of its View, where it has any. `map` loads a library from the internet before it
# connects: see tests/contract/test_official_views.py.
SERVERS = {
    **dict.fromkeys(
        f"basic-{kind}" for kind in ("preact", "react", "solid", "svelte", "vanillajs", "vue")
    ),
    "budget-allocator": "get-allocations",
    "cohort-heatmap": None,
    "customer-segmentation": None,
    "debug": None,
    "pdf": "interact",
    "scenario-modeler": None,
    "shadertoy": "get-shader-info",
    "sheet-music": None,
    "system-monitor": None,
    "threejs": "get-scene-info",
    "transcript": None,
    "video-resource": None,
    "wiki-explorer": "get-current-article",
}


def command(name: str) -> list[str]:
    return ["node", str(PACKAGES / f"server-{name}" / "dist" / "index.js"), "--stdio"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def screen() -> AsyncIterator[SharedDisplay]:
    async def make() -> HeadlessRenderer:
        return HeadlessRenderer()

    async with aclosing(SharedDisplay(make, pictures=True)) as made:
        yield made


@asynccontextmanager
async def client_of(
    name: str, screen: SharedDisplay, run: list[str] | None = None
) -> AsyncIterator[Raw]:
    """A client that has said hello to the gateway of this server."""
    ours, theirs = memory_pair()
    server = server_from_command(run or command(name), name=name)
    proxy = Proxy(ours, [(name, connect_to(server))], ViewOptions(screen))
    running = asyncio.create_task(proxy.run())
    client = Raw(theirs, {})
    try:
        await client.ask("initialize", HELLO)
        await client.tell("notifications/initialized")
        yield client
    finally:
        await client.aclose()
        await running


async def tools_of(client: Raw) -> dict[str, Any]:
    return {tool["name"]: tool for tool in (await client.ask("tools/list"))["tools"]}


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize("name", SERVERS)
async def test_an_official_servers_view_opens_and_its_tools_are_called(
    name: str, screen: SharedDisplay
) -> None:
    calls = SERVERS[name]
    async with client_of(name, screen) as client:
        listed = await tools_of(client)
        opens = next(key for key, tool in listed.items() if links_view(tool.get("_meta")))
        arguments = fitting_arguments(listed[opens]["inputSchema"]) or {}
        result = await client.ask("tools/call", {"name": opens, "arguments": arguments})
        view = f"{view_stem(name)}-1"
        assert f"View {view} is open" in words(result)[-1], result
        own = {key: tool for key, tool in (await tools_of(client)).items() if key not in listed}
        if calls is None:
            assert own == {}
            assert "no tools of its own" in words(result)[-1]
        else:
            wanted, told = f"{view}__{calls}", 0
            while wanted not in own:  # it may register them when it has its result
                told += 1
                await client.until(lambda told=told: len(client.noted(CHANGED)) >= told)
                own = await tools_of(client)
            tool = own[wanted]
            arguments = fitting_arguments(tool["inputSchema"]) or {}
            answer = await client.ask("tools/call", {"name": tool["name"], "arguments": arguments})
            assert "content" in answer, answer
            assert answer["content"]
        picture = await client.ask(
            "tools/call", {"name": "screenshot_view", "arguments": {"view_id": view}}
        )
        assert picture["content"][0]["type"] == "image"


@pytest.mark.nightly
async def test_the_model_reads_and_turns_the_pages_of_a_pdf(
    screen: SharedDisplay, tmp_path: Path
) -> None:
    document = tmp_path / "book.pdf"
    document.write_bytes(pdf_of(["A first page", "The middle", "The end"]))
    async with client_of("pdf", screen, [*command("pdf"), str(document)]) as client:
        await client.ask("tools/list")

        async def ask(**arguments: Any) -> str:
            params = {"name": "pdf-1__interact", "arguments": arguments}
            return "\n".join(words(await client.ask("tools/call", params)))

        opened = {"name": "display_pdf", "arguments": {"url": document.as_uri()}}
        await client.ask("tools/call", opened)
        while "No document loaded" in await ask(action="get_document_info"):
            pass  # the View fetches it in parts, by calls of its server
        assert "The middle" in await ask(action="get_text", page=2)
        await ask(action="navigate", page=3)
        assert '"currentPage":3' in (await ask(action="get_document_info")).replace(" ", "")


async def test_a_budget_that_the_model_sets_is_set_in_the_view(screen: SharedDisplay) -> None:
    async with client_of("budget-allocator", screen) as client:
        await client.ask("tools/list")
        await client.ask("tools/call", {"name": "get-budget-data", "arguments": {}})
        view = "budget-1"
        params = {"name": f"{view}__set-total-budget", "arguments": {"amount": 250_000}}
        answer = await client.ask("tools/call", params)
        assert answer.get("isError") is not True, answer
        read = {"name": f"{view}__get-allocations", "arguments": {}}
        allocations = await client.ask("tools/call", read)
        assert "250000" in json.dumps(allocations)


CHANGED = "notifications/tools/list_changed"
PAGE = """
tools.leave = () => { setTimeout(() => { location.href = "https://example.com/"; }); return ""; };
tools.compute = ({ ms }) => {
  const end = Date.now() + ms;
  while (Date.now() < end);
  return "computed";
};
tools.count = () => 0;
"""


async def keeps_its_tools_while_it_computes(screen: SharedDisplay, tmp_path: Path) -> None:
    server = [sys.executable, "-m", "transom.cli.serve", server_with(tmp_path, PAGE)]
    async with client_of("made", screen, server) as client:
        await client.ask("tools/list")
        await client.ask("tools/call", {"name": "show", "arguments": {}})
        params = {"arguments": {"ms": 8000}, "_meta": {"progressToken": "computing"}}
        computing = asyncio.create_task(
            client.ask("tools/call", {"name": "made-1__compute", **params})
        )
        progress = "notifications/progress"
        await client.until(lambda: client.noted(progress))
        waiting = asyncio.create_task(
            client.ask("tools/call", {"name": "made-1__count", "arguments": {}})
        )
        assert "made-1__count" in await tools_of(client)
        assert [words(await each) for each in (computing, waiting)] == [["computed"], ["0"]]
        told = [each["message"] for each in client.noted(progress)]
        assert all(re.fullmatch(r"View made-1 is busy for \d+ s", text) for text in told)
        assert [each["progress"] for each in client.noted(progress)] == sorted(
            {each["progress"] for each in client.noted(progress)}
        )


@pytest.mark.nightly
async def test_a_view_that_computes_for_eight_seconds_keeps_its_tools_and_calls_wait_for_it(
    screen: SharedDisplay, tmp_path: Path
) -> None:
    await keeps_its_tools_while_it_computes(screen, tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
async def test_twenty_views_in_turn_lose_no_tool_beside_four_busy_processes(
    screen: SharedDisplay, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", "while True: pass"]
    busy = [await asyncio.create_subprocess_exec(*command) for _ in range(4)]
    try:
        for _ in range(20):
            await keeps_its_tools_while_it_computes(screen, tmp_path)
    finally:
        for process in busy:
            process.kill()
            await process.wait()


async def test_the_tools_of_a_view_that_is_gone_leave_the_clients_list(
    screen: SharedDisplay, tmp_path: Path
) -> None:
    server = [sys.executable, "-m", "transom.cli.serve", server_with(tmp_path, PAGE)]
    async with client_of("made", screen, server) as client:
        await client.ask("tools/list")
        await client.ask("tools/call", {"name": "show", "arguments": {}})
        assert "made-1__count" in await tools_of(client)
        await client.begin("tools/call", {"name": "made-1__leave", "arguments": {}})
        seen = -1
        while "made-1__count" in await tools_of(client):
            await client.until(lambda: len(client.noted(CHANGED)) > seen)  # noqa: B023 - awaited
            seen = len(client.noted(CHANGED))
        refused = await client.ask("tools/call", {"name": "made-1__count", "arguments": {}})
        assert refused["isError"] is True
        assert "View made-1 does not respond" in words(refused)[0]


@pytest.mark.processes
async def test_the_command_shows_a_view_headless_and_leaves_no_process() -> None:
    gateway = [*GATEWAY[:2], "--headless", "--", *command("budget-allocator")]
    async with raw_client(gateway) as client:
        await client.ask(1, "initialize", HELLO)
        client.tell("notifications/initialized")
        await client.ask(2, "tools/list")
        answer = await client.ask(3, "tools/call", {"name": "get-budget-data", "arguments": {}})
        assert "is open" in answer["result"]["content"][-1]["text"]
        started = descendants(client.process.pid)
        assert len(started) > 2  # the server, and Chromium with its helpers
        assert await client.aclose() == 0
        assert client.stray == []
    assert not any(alive(pid) for pid in started)


@pytest.mark.nightly
@pytest.mark.processes
async def test_a_page_that_fails_and_computes_before_it_connects_is_not_lost(
    tmp_path: Path,
) -> None:
    serve = [sys.executable, "-m", "transom.cli.serve"]
    gateway = [*GATEWAY[:2], "--headless", "--", *serve, server_with(tmp_path, BUSY)]
    async with raw_client(gateway) as client:
        await client.ask(1, "initialize", HELLO)
        client.tell("notifications/initialized")
        await client.ask(2, "tools/list")
        answer = await client.ask(3, "tools/call", {"name": "show", "arguments": {}})
        assert answer["result"]["content"][0]["text"] == "shown"
        if "has not opened so far" in answer["result"]["content"][-1]["text"]:
            await client.until(lambda: client.noted("notifications/tools/list_changed"))
        listed = (await client.ask(4, "tools/list"))["result"]["tools"]
        [name] = [each["name"] for each in listed if each["name"].endswith("__count")]
        called = await client.ask(5, "tools/call", {"name": name, "arguments": {}})
        assert "1" in words(called["result"])[-1]
