"""The gateway's contract, for each era of client and server, transport and number of servers.

Each client lists tools, opens a View, lists and calls its tools, answers a server's question, gets
progress, cancels a call, and sees the View close. The official Python client goes through the whole
grid; the others through each era that they speak, over each transport.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import fastmcp
import mcp
import pytest
import pytest_asyncio
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from mcp import StdioServerParameters
from mcp.client import session
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)

from tests.check.test_runner import listening
from tests.gateway.raw_client import PYTHON, ROOT
from tests.gateway.test_clients import PlaysByView, openai_model, pydantic_model
from tests.gateway.viewing_gateway import Screen
from tests.tiers import grid
from transom.gateway.client_host import ViewOptions
from transom.gateway.configuration.config import read_config, server_from_command
from transom.gateway.http import HttpGateway, serving
from transom.gateway.members import connect_to

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.processes]

HERE = ROOT / "tests" / "gateway"
URI = "ui://orders/list.html"
TOOLS = {"show_orders", "search", "work", "ask", "hang", "was_cancelled"}
STANDING = {"list_view_tools", "call_view_tool"}
ANSWER = {"name": "Ada", "value": "Ada"}
MODES = {"handshake": "legacy", "2026-07-28": "auto"}
SERVERS = ("handshake", "2026-07-28", "fastmcp")
TRANSPORTS = ("stdio", "http")
# By day each era and each transport once; the official client for Python has all pairs.
ONCE_EACH = [
    ("handshake", "http"),
    ("2026-07-28", "stdio"),
    pytest.param("handshake", "stdio", marks=pytest.mark.nightly),
    pytest.param("2026-07-28", "http", marks=pytest.mark.nightly),
]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no server of an older era."""
    monkeypatch.setattr(session, "DISCOVER_TIMEOUT_SECONDS", 60.0)


# --- servers ---------------------------------------------------------------------------------


def fastmcp_server() -> fastmcp.FastMCP:
    """The tools of `matrix_server`, made with FastMCP, which speaks both eras."""
    server = fastmcp.FastMCP("orders")
    cancelled: list[str] = []

    @server.resource(URI, mime_type="text/html;profile=mcp-app")
    def page() -> str:
        return "<!doctype html>"

    @server.tool(meta={"ui": {"resourceUri": URI}})
    def show_orders(status: str = "") -> str:
        return f"show_orders {json.dumps({'status': status})}"

    @server.tool
    def search() -> str:
        return "search {}"

    @server.tool
    async def work(ctx: fastmcp.Context) -> str:
        for step in (1, 2, 3):
            await ctx.report_progress(step, 3)
        return "worked"

    @server.tool(output_schema=None)
    async def ask(ctx: fastmcp.Context) -> Any:
        if ctx.input_responses is not None:
            answered: Any = ctx.input_responses["who"]
            return f"hello {answered.content['name']}"
        try:
            answer: Any = await ctx.elicit("Who are you?", str)
            return f"hello {answer.data}"
        except ToolError:  # in 2026-07-28 it asks by its result
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            form = ElicitRequestFormParams(message="Who are you?", requested_schema=schema)
            return InputRequiredResult(input_requests={"who": ElicitRequest(params=form)})

    @server.tool
    async def hang(ctx: fastmcp.Context) -> str:
        try:
            await ctx.report_progress(1, 2)
            await asyncio.Event().wait()
        finally:
            cancelled.append("hang")
        return ""

    @server.tool
    def was_cancelled() -> str:
        return ",".join(cancelled)

    return server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fastmcp_url() -> AsyncIterator[str]:
    async with listening(fastmcp_server().http_app()) as url:
        yield url


# --- gateways --------------------------------------------------------------------------------


class Gateways:
    """Where the gateway of some servers is: a command for stdio, a URL for HTTP."""

    def __init__(self, folder: Path, fastmcp_url: str, stack: AsyncExitStack) -> None:
        self._folder = folder
        self._fastmcp = fastmcp_url
        self._stack = stack
        self._urls: dict[tuple[str, int], str] = {}

    def config(self, server: str, count: int) -> Path:
        entry: dict[str, Any] = {"url": self._fastmcp}
        if server != "fastmcp":
            era = "modern" if server == "2026-07-28" else server
            entry = {"command": PYTHON, "args": ["-S", str(HERE / "matrix_server.py"), era]}
        names = ("orders", "second", "third")[:count]
        path = self._folder / f"{server}-{count}.json"
        path.write_text(json.dumps({"mcpServers": dict.fromkeys(names, entry)}))
        return path

    def command(self, server: str, count: int) -> list[str]:
        path = self.config(server, count)
        return [PYTHON, "-m", "tests.gateway.viewing_gateway", "both", str(path)]

    async def at(self, transport: str, server: str, count: int) -> Any:
        """What a client connects to."""
        if transport == "stdio":
            return self.command(server, count)
        return await self.url(server, count)

    async def url(self, server: str, count: int) -> str:
        if (server, count) not in self._urls:
            found = read_config(self.config(server, count))
            gateway = HttpGateway(
                [(each.name, connect_to(each)) for each in found],
                ViewOptions(Screen()),
            )
            made = await self._stack.enter_async_context(serving(gateway, "127.0.0.1", 0))
            self._urls[server, count] = made
        return self._urls[server, count]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(
    fastmcp_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateways]:
    async with AsyncExitStack() as stack:
        yield Gateways(tmp_path_factory.mktemp("matrix"), fastmcp_url, stack)


# --- the contract ----------------------------------------------------------------------------

OnProgress = Callable[[], None]


class Client:
    """A client as the contract needs it: what each library calls differently."""

    async def tools(self) -> list[str]:
        raise NotImplementedError

    async def call(
        self, name: str, arguments: dict[str, Any], on_progress: OnProgress | None = None
    ) -> tuple[str, bool]:
        """The texts of the result, and whether it is an error."""
        raise NotImplementedError


async def keeps_the_contract(client: Client, *, modern: bool) -> None:
    before = await client.tools()
    assert set(before) >= TOOLS | STANDING

    opened, _ = await client.call("show_orders", {"status": "late"})
    assert 'show_orders {"status": "late"}' in opened
    found = re.search(r'with view_id "([^"]+)"', opened)
    assert found is not None, opened
    view = found[1]
    assert (re.fullmatch(r"orders-\d+", view) is None) == modern

    async def through(name: str, **arguments: Any) -> tuple[str, bool]:
        target = {"view_id": view, "name": name, "arguments": arguments}
        return await client.call("call_view_tool", target)

    listed, _ = await client.call("list_view_tools", {"view_id": view})
    assert {"read", "write", "leave"} <= set(re.findall(r'"name": ?"(\w+)"', listed))
    assert await through("write", words="w") == ("wrote w", False)
    if modern:
        assert await client.tools() == before
    else:
        assert f"{view}__write" in await client.tools()
        assert await client.call(f"{view}__write", {"words": "v"}) == ("wrote v", False)

    assert await client.call("ask", {}) == ("hello Ada", False)

    steps: list[None] = []
    assert await client.call("work", {}, lambda: steps.append(None)) == ("worked", False)
    assert len(steps) <= 3  # a client may drop what comes together with the result

    before_hanging = (await client.call("was_cancelled", {}))[0]
    begun = asyncio.Event()
    hanging = asyncio.ensure_future(client.call("hang", {}, begun.set))
    await begun.wait()
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    while (await client.call("was_cancelled", {}))[0] == before_hanging:
        pass

    await through("leave")
    while not (await through("read"))[1]:
        pass
    if modern:
        assert await client.tools() == before


# --- the official client for Python ----------------------------------------------------------


def texts(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


class Official(Client):
    def __init__(self, client: mcp.Client) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def call(
        self, name: str, arguments: dict[str, Any], on_progress: OnProgress | None = None
    ) -> tuple[str, bool]:
        async def progressed(*_: Any) -> None:
            if on_progress is not None:
                on_progress()

        result = await self._client.call_tool(name, arguments, progress_callback=progressed)
        return texts(result), bool(result.is_error)


async def answer(*_: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=ANSWER)


@asynccontextmanager
async def official(mode: str, target: list[str] | str) -> AsyncIterator[mcp.Client]:
    where: Any = target
    if isinstance(target, list):
        where = StdioServerParameters(command=target[0], args=target[1:], cwd=ROOT)
    async with mcp.Client(where, mode=mode, elicitation_callback=answer) as client:
        yield client


@pytest.mark.parametrize(
    ("era", "server", "transport", "count"), grid(MODES, SERVERS, TRANSPORTS, [1, 3])
)
async def test_the_official_client_keeps_the_contract_everywhere(
    era: str, server: str, transport: str, count: int, gateways: Gateways
):
    target = await gateways.at(transport, server, count)
    async with official(MODES[era], target) as client:
        modern = client.protocol_version == "2026-07-28"
        assert modern == (era == "2026-07-28")
        await keeps_the_contract(Official(client), modern=modern)


# --- the official client for TypeScript ------------------------------------------------------


class TypeScript(Client):
    """Runs `matrix_client.mjs`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.reading = asyncio.ensure_future(self._read())
        self.version = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, tuple[asyncio.Future[Any], OnProgress | None]] = {}

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if "version" in message:
                self.version.set_result(message["version"])
                continue
            waiting, on_progress = self._waiting[message["id"]]
            if "progress" in message:
                assert on_progress is not None
                on_progress()
            elif not waiting.done():
                error = message.get("error")
                waiting.set_result(message.get("value") if error is None else (error, True))

    async def _order(self, order: str, on_progress: OnProgress | None = None, **given: Any) -> Any:
        assert self.process.stdin is not None
        id = len(self._waiting)
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[id] = waiting, on_progress
        message = {"id": id, "order": order, "progress": on_progress is not None, **given}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        try:
            return await waiting
        except asyncio.CancelledError:
            await self._order("cancel", which=id)
            raise

    async def tools(self) -> list[str]:
        return await self._order("tools")

    async def call(
        self, name: str, arguments: dict[str, Any], on_progress: OnProgress | None = None
    ) -> tuple[str, bool]:
        text, is_error = await self._order("call", on_progress, name=name, arguments=arguments)
        return text, is_error


@pytest.mark.parametrize(("era", "transport"), ONCE_EACH)
async def test_the_official_client_for_typescript_keeps_the_contract(
    era: str, transport: str, gateways: Gateways
):
    target = await gateways.at(transport, era, 1)
    process = await asyncio.create_subprocess_exec(
        *("node", str(HERE / "matrix_client.mjs"), MODES[era]),
        *([target] if isinstance(target, str) else target),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    client = TypeScript(process)
    try:
        modern = await client.version == "2026-07-28"
        assert modern == (era == "2026-07-28")
        await keeps_the_contract(client, modern=modern)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await client.reading


# --- FastMCP's client ------------------------------------------------------------------------


class FastMcp(Client):
    def __init__(self, client: fastmcp.Client[Any]) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._client.list_tools()]

    async def call(
        self, name: str, arguments: dict[str, Any], on_progress: OnProgress | None = None
    ) -> tuple[str, bool]:
        async def progressed(*_: Any) -> None:
            if on_progress is not None:
                on_progress()

        result = await self._client.call_tool(
            name, arguments, progress_handler=progressed, raise_on_error=False
        )
        return texts(result), bool(result.is_error)


def fastmcp_client(mode: str, target: Any, **options: Any) -> fastmcp.Client[Any]:
    where: Any = target
    if isinstance(target, list):
        where = StdioTransport(command=target[0], args=target[1:], cwd=str(ROOT), keep_alive=False)
    return fastmcp.Client(where, mode=mode, init_timeout=50, **options)


@pytest.mark.parametrize(("era", "transport"), ONCE_EACH)
async def test_fastmcps_client_keeps_the_contract(era: str, transport: str, gateways: Gateways):
    async def elicited(*_: Any) -> Any:
        return ANSWER

    target = await gateways.at(transport, era, 1)
    async with fastmcp_client(MODES[era], target, elicitation_handler=elicited) as client:
        await keeps_the_contract(FastMcp(client), modern=era == "2026-07-28")


# --- agents, over HTTP; `test_clients` has them over stdio -----------------------------------


@asynccontextmanager
async def orders_gateway() -> AsyncIterator[str]:
    """A gateway over HTTP whose tools stand still for everybody."""
    server = server_from_command([PYTHON, "-S", str(HERE / "orders_server.py")], name="orders")
    gateway = HttpGateway(
        [("orders", connect_to(server))],
        ViewOptions(Screen(), naming="indirect"),
    )
    async with serving(gateway, "127.0.0.1", 0) as url:
        yield url


@pytest.mark.parametrize("era", MODES)
async def test_pydantic_ai_uses_a_views_tools_over_http(era: str):
    from pydantic_ai import Agent, UsageLimits
    from pydantic_ai.mcp import MCPToolset

    play = PlaysByView()
    async with orders_gateway() as url:
        toolset: Any = MCPToolset(fastmcp_client(MODES[era], url), tool_error_behavior="failed")
        agent = Agent(pydantic_model(play), toolsets=[toolset])
        async with agent:
            result = await agent.run("go", usage_limits=UsageLimits(request_limit=None))
    assert result.output == "done"
    play.check()


async def test_openai_agents_use_a_views_tools_over_http():
    from agents import Agent, RunConfig, Runner
    from agents.mcp import MCPServerStreamableHttp

    play = PlaysByView()  # it only speaks the handshake protocol
    async with (
        orders_gateway() as url,
        MCPServerStreamableHttp(params={"url": url}, client_session_timeout_seconds=30) as server,
    ):
        agent = Agent(name="a", model=openai_model(play), mcp_servers=[server])
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, "go", max_turns=100, run_config=config)
    assert result.final_output == "done"
    play.check()
