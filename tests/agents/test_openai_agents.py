"""What is the OpenAI Agents SDK's alone: yes for good, prefixed names, a server without prompts."""

import base64
from typing import Any

import pytest
from agents import Agent, RunConfig
from agents.run_config import CallModelData, ModelInputData

from tests.agents.scripted import PIXEL, Call, OpenAIAgents, Read, Script, hosting
from transom import App
from transom.agents.openai_agents import HostServer
from transom.types import ImageContent, TextContent

PICTURE = ImageContent(base64.b64encode(PIXEL).decode(), "image/png")
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


async def test_without_the_filter_what_views_tell_comes_with_the_next_result():
    apps: list[App] = []
    script = Script(SHOW, [], Call("stock"), Call("stock"))
    async with hosting(add=apps.append) as host:
        run = OpenAIAgents(host, script)
        run.config = RunConfig(tracing_disabled=True)
        await run.run()
        await apps[0].update_model_context([TextContent("row 3"), PICTURE])
        await run.run()
    first, again = script.read[1:]
    lead = "⟦View shop-1⟧ tells you this, which the user did not write:"
    assert first == Read(f'{{"desks":3}}\n{lead}\nrow 3', (PIXEL,))
    assert again.text == '{"desks":3}'
    assert script.prompts[-1] == ["go", "go"]


async def test_the_filter_adds_images_too():
    apps: list[App] = []
    async with hosting(add=apps.append) as host:
        await host.call_tool("show_orders")
        await apps[0].update_model_context([PICTURE])
        data = CallModelData(ModelInputData([], "Be kind."), Agent(name="a"), None)
        made = HostServer(host).add_words(data)
    assert made.instructions == "Be kind."
    [message] = made.input
    assert message["content"][1]["image_url"] == f"data:image/png;base64,{PICTURE.data}"


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
