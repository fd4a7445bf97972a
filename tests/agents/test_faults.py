"""What goes wrong outside the program is read by the model, whatever the framework."""

from typing import Any

import pytest

from tests.agents.scripted import FRAMEWORKS, Call, Framework, Script
from tests.host.faults import FaultyServer, reload_without_tools
from tests.host.shop import BareRenderer, hosting
from transom import Host
from transom.errors import (
    CapabilityMissing,
    InvalidResult,
    NotConnected,
    ProtocolError,
    Refused,
    RequestTimeout,
    TransomError,
)

FAULTS = [
    NotConnected("Nothing answers at http://shop.test: start the server"),
    NotConnected("http://shop.test needs a login. Run: transom login http://shop.test"),
    RequestTimeout("stock: server shop did not answer within 5 s"),
    Refused("stock opened no View: the user said no"),
    InvalidResult("tools/call: the answer is not a result"),
    CapabilityMissing("tools/call: the server did not declare tools"),
    ProtocolError(-32602, "there is no such article"),
]

pytestmark = pytest.mark.parametrize("framework", FRAMEWORKS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
async def test_the_model_reads_what_went_wrong_and_the_run_goes_on(
    framework: type[Framework], fault: TransomError
):
    script = Script(Call("stock"), Call("stock"))
    async with Host() as host:
        await host.add_server("shop", FaultyServer(fault))
        await framework(host, script).run()
    text = fault.message if isinstance(fault, ProtocolError) else str(fault)
    assert len(script.read) == 2
    assert all(text in read.text for read in script.read)


async def test_the_model_reads_that_a_view_was_loaded_again_without_tools(
    framework: type[Framework],
):
    renderer, script = BareRenderer(), Script(Call("show_orders"), Call("orders-1__echo"))
    async with hosting(renderer=renderer) as host:

        async def list_tools(listed: Any = host.list_tools) -> Any:
            tools = await listed()
            if any(tool.name == "orders-1__echo" for tool in tools):  # which the model calls next
                await reload_without_tools(renderer.views["orders-1"])
            return tools

        host.list_tools = list_tools
        await framework(host, script).run()
    assert "View orders-1 has no tool echo" in script.read[-1].text
