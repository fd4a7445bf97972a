import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fastmcp
import mcp.types
import pytest
import uvicorn
from mcp import Client, ClientSession
from mcp.server.mcpserver import Context, MCPServer

from tests.host.bare_view import begun
from tests.host.shop import URI, editor, hosting, shop, tool_names
from tests.server.clients import SHOWS_VIEWS, advertised
from transom import Host, InProcessRenderer, Policy
from transom.connections.spawn import Process, spawn
from transom.errors import ConnectionClosed, NotConnected, ProtocolError, RequestTimeout, UsageError
from transom.server.views import Views
from transom.serving import listen

SHOP = [sys.executable, "-m", "tests.host.shop"]
TOOLS = ["show_orders", "search", "add"]


def renderer() -> InProcessRenderer:
    return InProcessRenderer({URI: editor()})


@asynccontextmanager
async def over_http(server: MCPServer) -> AsyncIterator[tuple[str, uvicorn.Server]]:
    """`server` on a free port of the loopback interface."""
    with listen("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        started = asyncio.Event()

        class Told(uvicorn.Server):
            async def startup(self, sockets: Any = None) -> None:
                await super().startup(sockets)
                started.set()

        config = uvicorn.Config(server.streamable_http_app(), log_level="error", lifespan="on")
        web = Told(config)
        serving = asyncio.create_task(web.serve([bound]))
        await started.wait()
        try:
            yield f"http://127.0.0.1:{port}/mcp", web
        finally:
            web.should_exit = web.force_exit = True
            await serving


async def uses(host: Host) -> None:
    """See that the server `orders` works from end to end."""
    assert await tool_names(host) == TOOLS
    result = await host.call_tool("show_orders", {"status": "late"})
    assert result.text == "orders: late"
    assert result.meta["transom/view"] == {"id": "orders-1", "state": "live"}
    assert await tool_names(host) == [*TOOLS, "orders-1__read", "orders-1__write"]
    await host.call_tool("orders-1__write", {"words": "hello"})
    assert (await host.call_tool("orders-1__read")).text == "hello"


# --- the ways to connect ---------------------------------------------------------------------


async def test_a_server_object_is_connected_in_memory():
    async with Host(renderer=renderer(), policy=Policy.trusting()) as host:
        await host.add_server("orders", shop())
        await uses(host)


async def test_a_fastmcp_object_is_connected_in_memory():
    views = Views()
    page = views.add(URI, html="<!doctype html><html><head></head><body></body></html>")

    @views.tool(opens=page)
    def show_orders(status: str) -> str:
        """Show orders."""
        return f"orders: {status}"

    server = fastmcp.FastMCP("orders")
    views.install(server)
    async with Host(renderer=renderer(), policy=Policy.trusting()) as host:
        await host.add_server("orders", server)
        assert await tool_names(host) == ["show_orders"]
        assert (await host.call_tool("show_orders", {"status": "late"})).text == "orders: late"
        assert (await host.call_tool("orders-1__read")).text == "nothing"


@pytest.mark.processes
async def test_a_command_is_started_and_spoken_to():
    async with Host(renderer=renderer(), policy=Policy.trusting()) as host:
        await host.add_server("orders", SHOP)
        await uses(host)


async def test_a_url_is_connected_over_http():
    async with (
        over_http(shop()) as (url, _),
        Host(renderer=renderer(), policy=Policy.trusting()) as host,
    ):
        await host.add_server("orders", url)
        await uses(host)


async def test_a_connected_client_is_used_and_stays_its_owners():
    async with Client(shop(), extensions=advertised(SHOWS_VIEWS)) as client:
        async with Host(renderer=renderer(), policy=Policy.trusting()) as host:
            await host.add_server("orders", client)
            await uses(host)
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}


async def test_a_client_session_and_a_fastmcp_client_will_do_too():
    async with (
        Client(shop()) as client,
        fastmcp.Client(fastmcp.FastMCP("tiny")) as other,
        Host() as host,
    ):
        assert isinstance(client.session, ClientSession)
        await host.add_server("session", client.session)
        await host.add_server("fast", other)
        assert host.servers == ["session", "fast"]
        assert (await host.call_tool("search", {"query": "x"})).text == "orders found x"


async def test_the_host_says_that_it_shows_views():
    seen: list[Any] = []
    server = MCPServer("orders")

    @server.tool()
    def look(ctx: Context) -> str:
        """Look at the client."""
        seen.append(ctx.session.client_params.capabilities.extensions)
        return ""

    async with Host() as host:
        await host.add_server("orders", server)
        await host.call_tool("look")
    assert seen == [{"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}]


# --- what goes wrong -------------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["no-such-command-anywhere"], "could not be connected: There is no command"),
        ([sys.executable, "-c", "raise SystemExit('no licence')"], "its last output: no licence"),
        ("http://127.0.0.1:9/mcp", "could not be connected: Nothing answers at"),
    ],
)
async def test_a_server_that_does_not_start_says_why_and_the_host_goes_on(
    target: Any, message: str, capfd: pytest.CaptureFixture[str]
):
    async with hosting() as host:
        with pytest.raises(NotConnected, match=message) as caught:
            await host.add_server("bad", target)
        assert "Server bad" in str(caught.value)
        assert host.servers == ["orders"]
        assert (await host.call_tool("search", {"query": "x"})).text == "orders found x"
        [event] = await host.audit.read(server="bad")
        assert (event.event, event.outcome) == ("server", "failed")
        await host.add_server("bad", MCPServer("fine after all"))


@pytest.mark.processes
async def test_a_server_that_never_answers_is_given_up_and_its_process_ended(
    monkeypatch: pytest.MonkeyPatch,
):
    script, started = "import sys; sys.stdin.read()", list[int]()

    def spawn_and_note(*given: Any, **options: Any) -> Process:
        made = spawn(*given, **options)
        started.append(made.pid)
        return made

    monkeypatch.setattr("transom.connections.process.spawn", spawn_and_note)
    async with Host() as host:
        with pytest.raises(NotConnected, match="did not answer within 0.5 s"):
            await host.add_server("silent", [sys.executable, "-c", script], timeout=0.5)
        assert host.servers == []
    [pid] = started
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def _read(path: Path) -> str:
    return path.read_text()


@pytest.mark.parametrize("target", [42, None, [], {"command": "x"}, object(), ["a", 1]])
async def test_what_is_no_server_is_refused_with_a_list_of_what_is(target: Any):
    async with Host() as host:
        with pytest.raises(UsageError, match="is not a server: give a command as a list, a URL"):
            await host.add_server("x", target)


async def test_a_command_given_as_a_string_is_refused_with_the_list_it_should_be():
    async with Host() as host:
        with pytest.raises(UsageError, match=r"\['python', 'my server.py'\]"):
            await host.add_server("x", "python 'my server.py'")


async def test_a_client_that_is_not_connected_is_refused():
    async with Host() as host:
        with pytest.raises(NotConnected, match="not connected"):
            await host.add_server("x", Client(shop()))
        assert host.servers == []


async def test_a_name_is_used_once_and_never_for_a_view_and_a_server():
    async with hosting() as host:
        with pytest.raises(UsageError, match="There is already a server orders"):
            await host.add_server("orders", shop())
        with pytest.raises(UsageError, match="is not a valid server name"):
            await host.add_server("a__b", shop())
        await host.add_server("orders-1", MCPServer("x"))
        result = await host.call_tool("show_orders")
        assert result.meta["transom/view"]["id"] == "orders-2"
        with pytest.raises(UsageError, match="orders-2 is the id of a View"):
            await host.add_server("orders-2", MCPServer("x"))


async def test_a_host_that_is_not_open_says_so():
    host = Host()
    with pytest.raises(UsageError, match="use `async with Host"):
        await host.add_server("orders", shop())
    async with host:
        await host.add_server("orders", shop())
    with pytest.raises(NotConnected, match="The host is closed"):
        await host.call_tool("search", {"query": "x"})
    with pytest.raises(NotConnected, match="The host is closed"):
        await host.list_tools()
    with pytest.raises(UsageError, match="entered only once"):
        await host.__aenter__()


# --- coming and going ------------------------------------------------------------------------


@pytest.mark.processes
async def test_the_death_of_a_server_is_noticed_and_its_tools_withdrawn(tmp_path: Path):
    script = tmp_path / "shop.py"
    script.write_text(
        "import os, sys\n"
        "from tests.host.shop import shop\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "shop().run('stdio')\n"
    )
    command = [sys.executable, "-c", script.read_text()]
    lost: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
    async with hosting("other", policy=Policy.trusting()) as host:
        host.on_server_lost = lambda name, reason: lost.set_result((name, reason))
        await host.add_server("orders", command)
        assert "show_orders" in await tool_names(host)
        os.kill(int(_read(tmp_path / "pid")), signal.SIGKILL)
        assert await lost == ("orders", "it was ended by SIGKILL")
        assert await tool_names(host) == ["show_other", "search", "add"]
        with pytest.raises(ConnectionClosed, match="show_orders: server orders is gone"):
            await host.call_tool("show_orders")
        assert (await host.call_tool("search", {"query": "x"})).text == "other found x"
        await host.add_server("orders", shop())
        assert (await host.call_tool("show_orders")).text == "orders: open"
        outcomes = [event.outcome for event in await host.audit.read(event="server")]
        assert outcomes == ["added", "added", "lost", "added"]


@pytest.mark.processes
async def test_a_call_that_runs_when_its_server_dies_ends_with_an_error():
    script = (
        "import os\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "s = MCPServer('x')\n"
        "@s.tool()\n"
        "def die() -> str:\n"
        "    os._exit(1)\n"
        "s.run('stdio')\n"
    )
    async with Host() as host:
        await host.add_server("mortal", [sys.executable, "-c", script])
        with pytest.raises(ConnectionClosed, match="die: server mortal is gone"):
            await host.call_tool("die")
        assert host.servers == []


async def test_the_death_of_a_server_over_http_is_noticed_by_the_next_call():
    async with hosting("other") as host:
        async with over_http(shop()) as (url, _):
            await host.add_server("orders", url)
            assert (await host.call_tool("show_orders")).text == "orders: open"
        with pytest.raises(ConnectionClosed, match="server orders is gone"):
            await host.call_tool("show_orders")
        assert await tool_names(host) == ["show_other", "search", "add"]
        assert (await host.call_tool("show_other")).text == "other: open"


async def test_a_client_that_its_owner_closes_is_a_server_that_is_gone():
    async with Host() as host:
        async with Client(shop()) as client:
            await host.add_server("orders", client)
        with pytest.raises(ConnectionClosed, match="server orders is gone"):
            await host.call_tool("search", {"query": "x"})
        assert host.servers == []


async def test_a_server_that_is_removed_takes_its_tools_and_views_with_it():
    async with hosting("orders", "other") as host:
        await host.call_tool("show_orders")
        await host.call_tool("show_other")
        await host.remove_server("orders")
        assert host.servers == ["other"]
        assert list(host.views) == ["other-1"]
        assert "show_orders" not in await tool_names(host)
        await host.remove_server("orders")  # it may as well have ended by itself before
        with pytest.raises(UsageError, match="There is no server nowhere; there are: other"):
            await host.remove_server("nowhere")
        with pytest.raises(ConnectionClosed, match="orders is gone: it was removed"):
            await host.reopen("orders-1")


async def test_a_servers_new_tools_are_there_when_it_says_so():
    server = shop()
    changed = asyncio.Event()
    async with Host() as host:

        @server.tool()
        async def grow(ctx: Context) -> str:
            """Grow."""
            server.add_tool(lambda: "new", name="newcomer", description="New.")
            await ctx.notify_tools_changed()
            return "grown"

        await host.add_server("orders", server)
        host.on_tools_changed = changed.set
        await host.call_tool("grow")
        while "newcomer" not in await tool_names(host):
            changed.clear()
            await changed.wait()
        assert (await host.call_tool("newcomer")).text == "new"


async def test_two_servers_of_one_kind_do_not_mix():
    async with Host(renderer=renderer(), policy=Policy.trusting()) as host:
        await host.add_server("one", shop("orders"))
        await host.add_server("two", shop("orders"))
        assert (await tool_names(host))[3:] == ["two__show_orders", "two__search", "two__add"]
        first = await host.call_tool("show_orders")
        second = await host.call_tool("two__show_orders")
        assert first.meta["transom/view"]["id"] == "one-1"
        assert second.meta["transom/view"]["id"] == "two-1"
        await host.call_tool("one-1__write", {"words": "mine"})
        assert (await host.call_tool("two-1__read")).text == "nothing"


# --- calls -----------------------------------------------------------------------------------


async def test_the_error_of_a_server_is_passed_on():
    async with hosting() as host:
        with pytest.raises(ProtocolError):
            await host.call_tool("nothing_of_the_kind")
        result = await host.call_tool("add", {"a": "x"})
        assert result.is_error
        [event] = await host.audit.read(tool="add", event="call")
        assert (event.outcome, event.arguments) == ("error", {"a": "x"})


async def test_a_servers_progress_reaches_the_caller_and_gives_it_more_time():
    server = MCPServer("slow")

    @server.tool()
    async def work(ctx: Context) -> str:
        """Work."""
        for step in range(3):
            await ctx.report_progress(step, 3, f"step {step}")
        return "done"

    steps: list[Any] = []
    async with Host() as host:
        await host.add_server("slow", server)
        result = await host.call_tool("work", on_progress=steps.append)
        assert result.text == "done"
        assert [(step.progress, step.total, step.message) for step in steps] == [
            *((0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2"))
        ]


async def test_a_server_that_takes_too_long_is_a_timeout_and_told_to_stop():
    server = MCPServer("slow")
    stopped = asyncio.Event()

    @server.tool()
    async def hang() -> str:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async with Host() as host:
        await host.add_server("slow", server)
        with pytest.raises(RequestTimeout, match=r"hang: server slow did not answer within 1 s"):
            await host.call_tool("hang", timeout=1)
        await stopped.wait()
        [event] = await host.audit.read(event="call")
        assert event.outcome == "timeout"
        call = await begun(host.call_tool("hang"))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert [event.outcome for event in await host.audit.read(event="call")][-1] == "cancelled"


async def test_a_result_keeps_what_the_server_put_into_it():
    server = MCPServer("x")

    @server.tool()
    def rich() -> mcp.types.CallToolResult:
        """Rich."""
        return mcp.types.CallToolResult(
            content=[mcp.types.TextContent(text="hi")],
            structured_content={"a": None},
            _meta={"k": [1]},
        )

    async with Host() as host:
        await host.add_server("x", server)
        result = await host.call_tool("rich")
        assert result.structured_content == {"a": None}
        assert result.meta["k"] == [1]
