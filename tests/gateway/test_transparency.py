"""The same client, with and without the gateway in between, hears the same."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.gateway import everything, stateless
from tests.gateway.raw_client import GATEWAY, raw_client
from transom.gateway.client_host import ViewOptions
from transom.gateway.configuration.config import server_from_command
from transom.gateway.http import HttpGateway, serving
from transom.gateway.members import connect_to

pytestmark = pytest.mark.processes

# What may differ, by what was asked. The official server leaves these unanswered, so that whoever
# asked waits for ever; the gateway cannot tell a server what it cannot read, and says so.
ANSWERED_BY_THE_GATEWAY = {
    b'{"jsonrpc":"1.0","id":901,"method":"ping"}': 901,
    b'{"jsonrpc":"2.0","id":903,"method":5}': 903,
    b'{"jsonrpc":"2.0","id":905,"method":"ping","params":[1]}': 905,
    b'{"jsonrpc":"2.0","id":906,"method":"ping","params":"x"}': 906,
}

# What the gateway can do beyond its server: it has tools and resources that come and go with Views,
# and Views' tools can run as tasks.
ADDED_CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
TASKS: dict[str, dict[str, Any]] = {
    "2025-11-25": {
        "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
    },
    "2026-07-28": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}

# What a server is told of the client beyond what the client said: Views can be shown.
UI = "io.modelcontextprotocol/ui"


def behind_the_gateway(command: list[str]) -> list[str]:
    return [*GATEWAY, "--", *command]


def differences(direct: dict[str, Any], through: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        label: (direct.get(label), through.get(label))
        for label in {**direct, **through}
        if direct.get(label) != through.get(label)
    }


@pytest.mark.nightly
async def test_the_everything_server_is_the_same_behind_the_gateway():
    async def run(command: list[str]) -> dict[str, str]:
        async with raw_client(command, everything.answers()) as client:
            return await everything.Script(client).run()

    direct, through = await asyncio.gather(
        run(everything.COMMAND), run(behind_the_gateway(everything.COMMAND))
    )
    found = differences(direct, through)
    for line, id in ANSWERED_BY_THE_GATEWAY.items():
        theirs, ours = found.pop(f"malformed {line!r}")
        assert theirs == "[]"
        [answer] = json.loads(ours)
        assert (answer["id"], answer["error"]["code"]) == (str(id), "-32600")
    assert found == {}
    tools = json.loads(direct["1: tools/list {}"])["result"]["tools"]
    tried = {*everything.TOOLS, *everything.SLOW, *everything.APART} - {"no-such-tool"}
    assert {tool["name"] for tool in tools} == tried


@pytest.mark.nightly
async def test_a_2026_07_28_server_is_the_same_on_the_wire_behind_the_gateway():
    async def run(command: list[str]) -> dict[str, str]:
        async with raw_client(command) as client:
            return await stateless.RawScript(client).run()

    direct, through = await asyncio.gather(
        run(stateless.COMMAND), run(behind_the_gateway(stateless.COMMAND))
    )
    found = differences(direct, through)
    [discovers] = [label for label in direct if "server/discover" in label]
    theirs, ours = (json.loads(each)[0]["result"] for each in found.pop(discovers))
    theirs["capabilities"] |= ADDED_CAPABILITIES | TASKS["2026-07-28"]
    assert ours == theirs
    [knows] = [label for label in direct if '"known"' in label]
    theirs, ours = (json.loads(each)[0]["result"] for each in found.pop(knows))
    assert theirs["structuredContent"] == {"result": ["x/odd"]}
    assert ours["structuredContent"] == {"result": [UI, "x/odd"]}
    assert found == {}


@asynccontextmanager
async def gateway_over_http() -> AsyncIterator[str]:
    """Where the gateway of the server is."""
    server = server_from_command(stateless.COMMAND, name="stateless")
    gateway = HttpGateway([("stateless", connect_to(server))], ViewOptions(None))
    async with serving(gateway, "127.0.0.1", 0) as url:
        yield url


@pytest.mark.nightly
@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_the_sdk_client_gets_the_same_behind_the_gateway(mode: str, version: str):
    async with gateway_over_http() as url:
        direct, *through = await asyncio.gather(
            stateless.sdk_script(stateless.COMMAND, mode),
            stateless.sdk_script(behind_the_gateway(stateless.COMMAND), mode),
            stateless.sdk_script(url, mode),
        )
    assert direct["version"] == version
    able = direct["capabilities"] | ADDED_CAPABILITIES | TASKS[version]
    for transport, each in zip(("stdio", "HTTP"), through, strict=True):
        found = differences(direct, each)
        theirs, ours = found.pop("call known")
        assert theirs["structuredContent"] == {"result": []}
        assert ours["structuredContent"] == {"result": [UI]}
        found.pop("capabilities", None)
        assert each["capabilities"] == able, transport
        assert found == {}, transport
