import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import fastmcp
import pytest
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer

from tests.connections.scripted_server import Listener
from tests.server.clients import serving
from transom.connections import Server, ServerConnection, connect
from transom.connections.in_memory import connect_in_memory
from transom.connections.targets import connected_server
from transom.errors import ChannelClosed, NotConnected, ProtocolError, UsageError
from transom.protocol import wire

SERVER = (
    "from mcp.server.mcpserver import MCPServer\n"
    "server = MCPServer('tiny')\n"
    "@server.tool()\n"
    "def add(a: int, b: int) -> int:\n"
    "    return a + b\n"
    "server.run('stdio')\n"
)


def tiny() -> MCPServer:
    server = MCPServer("tiny")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return server


async def adds(server: Server) -> None:
    assert list(await server.tools()) == ["add"]
    params = {"name": "add", "arguments": {"a": 1, "b": 2}}
    result = json.loads(await server.request("tools/call", params))
    assert result["structuredContent"] == {"result": 3}


@pytest.mark.processes
async def test_a_command_is_started_and_ended():
    connection = await connect([Path(sys.executable), "-c", SERVER])
    assert isinstance(connection, ServerConnection)
    await adds(connection)
    await connection.aclose()


async def test_a_url_is_reached():
    async with serving(tiny().streamable_http_app()) as url:
        connection = await connect(url)
        await adds(connection)
        await connection.aclose()


async def test_a_server_object_runs_in_this_process():
    connection = await connect(tiny())
    await adds(connection)
    await connection.aclose()


async def test_a_fastmcp_object_runs_in_this_process_with_its_lifespan():
    entered: list[str] = []

    class Lifespan:
        async def __aenter__(self) -> dict[str, Any]:
            entered.append("begun")
            return {}

        async def __aexit__(self, *_: object) -> None:
            entered.append("ended")

    server = fastmcp.FastMCP("tiny", lifespan=lambda _: Lifespan())  # type: ignore[arg-type]

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    connection = await connect(server)
    await adds(connection)
    assert entered == ["begun"]
    await connection.aclose()
    assert entered == ["begun", "ended"]


async def test_a_connected_client_is_a_server_and_stays_its_owners():
    async with Client(tiny()) as client, fastmcp.Client(fastmcp.FastMCP("x")) as other:
        for each in (client, client.session):
            server = connected_server(each)
            assert server is not None
            await adds(server)
        assert connected_server(other) is not None
        assert connected_server(server) is server
    with pytest.raises(NotConnected, match="not connected"):
        connected_server(Client(tiny()))
    assert connected_server(tiny()) is None
    assert connected_server(["x"]) is None


@pytest.mark.processes
@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["no-such-command-anywhere"], "There is no command 'no-such-command-anywhere'"),
        ([sys.executable, "-c", "raise SystemExit('no licence')"], "its last output: no licence"),
        ("http://127.0.0.1:9/mcp", "Nothing answers at http://127.0.0.1:9/mcp"),
    ],
)
async def test_a_server_that_cannot_be_reached_says_why(target: Any, message: str):
    with pytest.raises(NotConnected, match=message) as caught:
        await connect(target, name="bad")
    assert str(caught.value).startswith("Server bad (")


@pytest.mark.processes
async def test_a_server_that_never_answers_is_given_up():
    with pytest.raises(NotConnected, match="did not answer within 0.5 s"):
        await connect([sys.executable, "-c", "import sys; sys.stdin.read()"], timeout=0.5)


@pytest.mark.parametrize("target", [42, None, [], {"command": "x"}, object(), ["a", 1]])
async def test_what_is_no_server_is_refused_with_a_list_of_what_is(target: Any):
    with pytest.raises(UsageError, match="is not a server: give a command as a list, a URL"):
        await connect(target)


@pytest.mark.parametrize("target", ["http://[::1", "http://[zz]/mcp", "https:///mcp", "it's"])
async def test_a_string_that_is_no_url_of_a_server_is_refused(target: str):
    with pytest.raises(UsageError, match="is not an http or https URL"):
        await connect(target)


async def test_a_command_given_as_a_string_is_refused_with_the_list_it_should_be():
    with pytest.raises(UsageError, match=r"\['python', 'my server.py'\]"):
        await connect("python 'my server.py'")


@pytest.mark.parametrize("in_memory", [True, False])
async def test_a_request_that_the_sdk_cannot_send_is_refused(in_memory: bool):
    deep = b'{"a":' * 300 + b"1" + b"}" * 300
    async with serving(tiny().streamable_http_app()) as url:
        connection = await connect(tiny() if in_memory else url)
        with pytest.raises(ProtocolError, match="This message cannot be sent"):
            await connection.request("tools/call", b'{"name":"add","arguments":%b}' % deep)
        await adds(connection)
        await connection.aclose()


@pytest.mark.parametrize("params", [b"{}", b'{"a":' * 300 + b"1" + b"}" * 300])
async def test_nothing_is_sent_to_a_server_object_that_has_ended(params: bytes):
    channel = await connect_in_memory(tiny()._lowlevel_server)
    await channel.aclose()
    with pytest.raises(ChannelClosed):
        await channel.send(wire.encode_request(1, "tools/call", params))


async def test_the_end_of_a_server_object_is_noticed():
    lost: asyncio.Queue[str] = asyncio.Queue()
    server = MCPServer("mortal")
    running: list[asyncio.Task[Any]] = []

    @server.tool()
    async def find(ctx: Context) -> str:
        """Find the task that runs this server."""
        tasks = [task for task in asyncio.all_tasks() if task.get_name() == "transom-server-mortal"]
        running.extend(tasks)
        return ""

    connection = await connect(server, listener=Listener(on_lost=lost.put_nowait))
    await connection.request("tools/call", {"name": "find", "arguments": {}})
    running[0].cancel()
    assert await lost.get() == "the server closed the connection"
    await connection.aclose()
