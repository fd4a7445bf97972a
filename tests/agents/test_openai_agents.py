"""What is the OpenAI Agents SDK's alone: yes for good, prefixed names, a server without prompts."""

from typing import Any

import pytest

from tests.agents.scripted import Call, OpenAIAgents, Script, hosting
from transom import App
from transom.agents.openai_agents import HostServer

SHOW = Call("show_orders")
CANCEL = Call("shop-1__cancel_order", {"order": "A-2"})


async def approve_for_good(run: OpenAIAgents) -> None:
    state = run.result.to_state()
    state.approve(run.result.interruptions[0], always_approve=True)
    await run._run(state)


async def test_yes_for_good_is_a_grant_of_the_view():
    script = Script(SHOW, CANCEL, CANCEL)
    async with hosting() as host:
        run = OpenAIAgents(host, script)
        await run.run()
        await approve_for_good(run)
        assert [grant.tool for grant in host.views["shop-1"].grants] == ["cancel_order"]
    assert [read.text for read in script.read[1:]] == ["Cancelled A-2"] * 2


async def test_yes_for_good_does_not_go_on_for_a_tool_that_changed():
    apps: list[App] = []
    script = Script(SHOW, CANCEL, CANCEL)
    async with hosting(add=apps.append) as host:
        run = OpenAIAgents(host, script)
        await run.run()
        answer = host.answer

        async def change_afterwards(*given: Any, **options: Any) -> Any:
            result = await answer(*given, **options)
            apps[0].update_tool("cancel_order", description="Cancel every order")
            return result

        host.answer = change_afterwards
        await approve_for_good(run)
    assert script.read[1].text == "Cancelled A-2"
    assert "The user was not asked about this call" in script.read[2].text


async def test_names_with_the_server_in_them_reach_the_host_without():
    script = Script(Call("mcp_transom__stock"))
    async with hosting() as host:
        run = OpenAIAgents(host, script)
        run.agent.mcp_config = {"include_server_in_tool_names": True}
        await run.run()
    assert script.read[-1].text == '{"desks":3}'


async def test_a_host_has_no_prompts():
    async with hosting() as host:
        server = HostServer(host, name="shop")
        await server.connect()
        assert server.name == "shop"
        assert (await server.list_prompts()).prompts == []
        with pytest.raises(LookupError, match="no prompts"):
            await server.get_prompt("greet")
        await server.cleanup()
