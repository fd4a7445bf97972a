"""`transom gateway --config` with several servers, as a real client starts it."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.gateway import everything
from tests.gateway.raw_client import PYTHON, ROOT, raw_client
from tests.gateway.test_transparency import differences

pytestmark = pytest.mark.processes

# The command, which waits longer for servers that are slow to start.
MAIN = "from transom.gateway import members; members._ALL_WITHIN = 50.0;"
MAIN += "from transom.cli.main import main; main()"
GATEWAY = [PYTHON, "-c", MAIN, "gateway", "--no-open"]
QUICK = str(ROOT / "tests" / "gateway" / "quick_server.py")


def quick(folder: Path, name: str) -> dict[str, Any]:
    """A server that leaves its process id behind."""
    return {"command": sys.executable, "args": [QUICK, name, str(folder / f"{name}.pid")]}


def config(folder: Path, servers: dict[str, Any]) -> list[str]:
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return [*GATEWAY, "--config", str(file)]


async def ends(folder: Path, name: str) -> None:
    """Wait until that server's process is gone."""
    pid = int((folder / f"{name}.pid").read_text())
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_works_with_several_servers(tmp_path: Path, mode: Any):
    command = config(
        tmp_path,
        {
            "one": quick(tmp_path, "one"),
            "lost": {"command": "no-such-command-anywhere"},
            "two": quick(tmp_path, "two"),
        },
    )
    options = StdioServerParameters(command=command[0], args=command[1:], cwd=ROOT)
    async with Client(options, mode=mode) as client:
        assert client.server_info.name == "transom-gateway"
        assert client.instructions == "# one\n\n> Use one.\n\n# two\n\n> Use two."
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == ["add", "search", "two__add", "two__search"]
        asked = [client.call_tool("add", {"a": n, "b": n}) for n in range(3)]
        asked += [client.call_tool("two__add", {"a": n, "b": 1}) for n in range(3)]
        answers = [result.content[0].text for result in await asyncio.gather(*asked)]
        assert answers == ["one 0", "one 2", "one 4", "two 1", "two 2", "two 3"]
    await ends(tmp_path, "one")
    await ends(tmp_path, "two")


async def test_a_gateway_without_any_server_that_starts_says_so_and_ends(tmp_path: Path):
    command = config(tmp_path, {name: {"command": f"no-such-{name}"} for name in ("one", "two")})
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 2
    assert out == b""
    assert "No server can be started" in err.decode()
    assert "no-such-one" in err.decode()


async def test_a_server_that_dies_at_once_does_not_keep_the_others_waiting(tmp_path: Path):
    command = config(
        tmp_path,
        {
            "dead": {"command": sys.executable, "args": ["-c", "raise SystemExit('too bad')"]},
            "good": {
                "command": sys.executable,
                "args": [str(ROOT / "tests" / "cli" / "plain_server.py"), "good"],
            },
        },
    )
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    }
    async with raw_client(command) as client:
        assert "result" in await client.ask(1, "initialize", hello)
        client.tell("notifications/initialized")
        listing = await client.ask(2, "tools/list")
        assert [tool["name"] for tool in listing["result"]["tools"]] == ["count_orders"]
        answer = await client.ask(3, "tools/call", {"name": "count_orders"})
        assert answer["result"]["content"][0]["text"] == "Two orders."
        assert client.stray == []


# What is not the same for a server that is not alone, by how the exchange is called.
MERGED = ("initialize", "tools/list {}", 'tools/list {"_meta"', "research: list")
SAID_OTHERWISE = (
    'tools/list {"cursor": "no-such-cursor"}',  # the gateway has one page
    "resources/read {}",
    'prompts/get {"name": "no-such-prompt"}',
    "tools/call {}",
    'tools/call {"name": 5}',
    "call no-such-tool",
    "malformed",
)


@pytest.mark.nightly
async def test_the_everything_server_is_the_same_beside_another_server(tmp_path: Path):
    async def run(command: list[str]) -> dict[str, str]:
        async with raw_client(command, everything.answers()) as client:
            return await everything.Script(client).run()

    node, *script = everything.COMMAND
    servers = {"every": {"command": node, "args": script}, "quick": quick(tmp_path, "quick")}
    direct, through = await asyncio.gather(run(everything.COMMAND), run(config(tmp_path, servers)))
    found = differences(direct, through)
    assert [
        label for label in found if not any(known in label for known in (*MERGED, *SAID_OTHERWISE))
    ] == []
    [theirs] = [json.loads(one) for label, (one, _) in found.items() if "tools/list {}" in label]
    [ours] = [json.loads(other) for label, (_, other) in found.items() if "tools/list {}" in label]
    listed = ours["result"]["tools"]
    assert listed[:-2] == theirs["result"]["tools"]
    assert [tool["name"] for tool in listed[-2:]] == ["add", "search"]
    refused = [
        other
        for label, (_, other) in found.items()
        if any(known in label for known in SAID_OTHERWISE[:-1])
    ]
    assert len(refused) == len(SAID_OTHERWISE) - 1
    assert all("error" in json.loads(answer) for answer in refused)
