"""An agent on one worker, its user's Host on another: the adapters see no difference."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tests.agents.scripted import FRAMEWORKS, Call, Framework, Script, hosting
from tests.host.page import PageRenderer
from transom import Allow, App, Deny, Host
from transom.channel import memory_pair
from transom.web.application.remote_host import RemoteHost, SharedHost


async def nothing() -> None:
    pass


@asynccontextmanager
async def elsewhere(host: Host) -> AsyncIterator[Any]:
    """The host, as an agent on another worker has it."""
    here, there = memory_pair()
    serving = asyncio.create_task(SharedHost(host, lambda: None, nothing).serve(there))
    remote = RemoteHost(here)
    await remote.connect()
    try:
        yield remote
    finally:
        await remote.aclose()
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_tools_results_and_approvals_are_those_of_the_host_elsewhere(
    framework: type[Framework],
):
    cancel = Call("shop-1__cancel_order", {"order": "A-2"})
    script = Script(Call("show_orders"), [cancel, Call("stock")])
    async with hosting() as host, elsewhere(host) as remote:
        run = framework(remote, script)
        [question] = await run.run()
        assert await run.resume({question.id: True}) == []
        assert run.beside()[0]["view"] == {"id": "shop-1", "state": "live"}
        [approval] = await host.audit.read(event="approval")
        assert (approval.tool, approval.outcome) == ("cancel_order", "allowed")
    assert {"Cancelled A-2"} <= {read.text for read in script.read}
    assert "shop-1__cancel_order" in script.names[1]


async def test_a_view_without_tools_is_used_on_the_worker_that_has_it():
    view = {"view_id": "shop-1"}
    click, renderer = {**view, "ref": "b1", "action": "click"}, PageRenderer()
    async with hosting(renderer=renderer) as host, elsewhere(host) as remote:
        await remote.answer("show_orders")
        assert {"look_at_view", "act_on_view"} < {each.name for each in await remote.list_tools()}
        assert 'button "Add" [b1]' in (await remote.answer("look_at_view", view)).text
        request = await remote.approval_needed("act_on_view", click, call_id="1")
        assert (request.drives, request.arguments["element"]) == (True, 'button "Add"')
        assert (await remote.answer("act_on_view", click)).is_error
        await remote.decide("1", Allow())
        assert not (await remote.answer("act_on_view", click, call_id="1")).is_error
        assert renderer.pages_of["shop-1"].count == 1
        closed = await remote.answer("look_at_view", {"view_id": "shop-2"})
        assert closed.is_error


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_messages_of_views_reach_the_agent_elsewhere(framework: type[Framework]):
    made: list[App] = []
    script = Script(Call("show_orders"), Call("stock"))
    async with hosting(add=made.append) as host, elsewhere(host) as remote:
        run = framework(remote, script)
        assert await run.run() == []
        assert not (await made[0].send_message("Look at A-2")).is_error
        assert (await made[0].send_message("x" * 20_000)).is_error
        assert await run.run() == []
    said = "\n".join(script.prompts[-1])
    assert "⟦View shop-1⟧ sends this message" in said
    assert "Look at A-2" in said


async def test_an_agent_that_is_gone_takes_no_messages():
    made: list[App] = []
    async with hosting(add=made.append) as host:
        async with elsewhere(host) as remote:
            heard: list[Any] = []
            remote.on_message = lambda _, blocks: heard.append(blocks)
            await remote.call_tool("show_orders")
            await made[0].send_message("Look at A-2")
            assert [block.text for block in heard[0]] == ["Look at A-2"]
        assert (await made[0].send_message("Look at A-3")).is_error


@pytest.mark.parametrize("status", ["\ud800", object()], ids=["half a character", "no JSON"])
async def test_arguments_that_cannot_be_sent_to_the_other_worker_are_a_result(status: Any):
    async with hosting() as host, elsewhere(host) as remote:
        arguments = {"status": status}
        assert await remote.approval_needed("show_orders", arguments, call_id="1") is None
        result = await remote.answer("show_orders", arguments, call_id="1")
        assert result.is_error
        assert "cannot be written as JSON" in result.text


async def test_names_and_ids_with_half_a_character_reach_the_other_worker():
    half = "\ud83d"
    call = ("shop-1__cancel_order", {"order": "A-2"})
    async with hosting() as host, elsewhere(host) as remote:
        assert await remote.approval_needed(f"show{half}", {}, call_id=half) is None
        remote.stream_arguments("show_orders", half, call_id=half)
        missing = await remote.answer(f"show{half}")
        assert missing.is_error
        assert missing.text.endswith("not found")
        await remote.answer("show_orders", call_id=half)
        assert await remote.approval_needed(*call, call_id=half) is not None
        await remote.decide(half, Deny(half))
        assert await remote.approval_needed(*call, call_id=half) is not None
        await remote.decide(half, Allow())
        assert (await remote.answer(*call, call_id=half)).text == "Cancelled A-2"


@pytest.mark.parametrize("nonsense", [False, "yes", Allow])
async def test_what_is_no_decision_allows_nothing_on_the_other_worker(nonsense: Any):
    call = ("shop-1__cancel_order", {"order": "A-2"})
    async with hosting() as host, elsewhere(host) as remote:
        await remote.answer("show_orders")
        assert await remote.approval_needed(*call, call_id="1") is not None
        await remote.decide("1", nonsense)
        refused = await remote.answer(*call, call_id="1")
        assert refused.is_error
        denied, again = await host.audit.read(event="approval")
        assert (denied.outcome, again.outcome) == ("denied", "denied")
        assert "has to be Allow, AllowAlways or Deny" in (denied.detail or "")
