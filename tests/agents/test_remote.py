"""An agent on one worker, its user's Host on another: the adapters see no difference."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.agents.scripted import FRAMEWORKS, Call, Framework, Script, hosting
from transom.channel import memory_pair
from transom.web.remote_host import RemoteHost, SharedHost


async def nothing() -> None:
    pass


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_tools_results_and_approvals_are_those_of_the_host_elsewhere(
    framework: type[Framework],
):
    cancel = Call("shop-1__cancel_order", {"order": "A-2"})
    script = Script(Call("show_orders"), [cancel, Call("stock")])
    async with hosting() as host:
        here, there = memory_pair()
        serving = asyncio.create_task(SharedHost(host, lambda: None, nothing).serve(there))
        remote: Any = RemoteHost(here)
        await remote.connect()
        try:
            run = framework(remote, script)
            [question] = await run.run()
            assert await run.resume({question.id: True}) == []
            assert run.beside()[0]["view"] == {"id": "shop-1", "state": "live"}
            [approval] = await host.audit.read(event="approval")
            assert (approval.tool, approval.outcome) == ("cancel_order", "allowed")
        finally:
            await remote.aclose()
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
    assert {"Cancelled A-2"} <= {read.text for read in script.read}
    assert "shop-1__cancel_order" in script.names[1]
