"""What is Pydantic AI's alone: events for user interfaces, yes for good, other arguments, names."""

import json
from typing import Any

import pytest
from ag_ui.core import ActivitySnapshotEvent, BaseEvent, RunAgentInput, UserMessage
from pydantic_ai import Agent, DeferredToolRequests, ToolApproved
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter

from tests.agents.scripted import URI, Call, PydanticAI, Script, hosting
from transom import Host
from transom.agents.pydantic_ai import HostToolset

SHOW = Call("show_orders", {"status": "late"})
CANCEL = Call("shop-1__cancel_order", {"order": "A-2"})


async def ag_ui_events(host: Host, tool: str) -> list[BaseEvent]:
    """What a user interface gets of a run that calls one tool."""

    async def stream(messages: list[Any], info: AgentInfo) -> Any:
        if len(messages) == 1:
            yield {0: DeltaToolCall(tool, json.dumps({"status": "late"}), tool_call_id="c1")}
        else:
            yield "done"

    agent = Agent(FunctionModel(stream_function=stream), toolsets=[HostToolset(host, id="shop")])
    given = RunAgentInput(
        thread_id="t",
        run_id="r",
        state={},
        messages=[UserMessage(id="1", content="go")],
        tools=[],
        context=[],
        forwarded_props={},
    )
    adapter: Any = AGUIAdapter(agent=agent, run_input=given)
    return [event async for event in adapter.run_stream()]


def apps(events: list[BaseEvent]) -> list[ActivitySnapshotEvent]:
    activities = [event for event in events if isinstance(event, ActivitySnapshotEvent)]
    return [event for event in activities if event.activity_type == "mcp-apps"]


async def test_a_view_that_opens_is_an_mcp_apps_event_of_ag_ui_that_names_it():
    async with hosting() as host:
        events = await ag_ui_events(host, "show_orders")
    [content] = [event.content for event in apps(events)]
    assert content["resourceUri"] == URI
    assert content["toolInput"] == {"status": "late"}
    assert content["serverId"] == content["serverHash"] == "shop"
    assert content["result"]["structuredContent"] == {"orders": ["A-1", "A-2"], "status": "late"}
    assert content["result"]["_meta"]["transom/view"] == {"id": "shop-1", "state": "live"}
    assert content["result"]["isError"] is False


async def test_a_call_that_opens_no_view_is_no_such_event():
    async with hosting() as host:
        events = await ag_ui_events(host, "stock")
    assert apps(events) == []


async def test_a_user_who_changes_the_arguments_has_allowed_those():
    script = Script(SHOW, CANCEL)
    async with hosting() as host:
        run = PydanticAI(host, script)
        [question] = await run.run()
        await run.resume({question.id: ToolApproved(override_args={"order": "A-1"})})
    assert script.read[-1].text == "Cancelled A-1"


async def test_yes_for_good_is_not_asked_again():
    script = Script(SHOW, CANCEL, CANCEL)
    async with hosting() as host:
        run = PydanticAI(host, script)
        [question] = await run.run()
        answers: Any = {question.id: True, "metadata": {question.id: {"always": True}}}
        assert await run.resume(answers) == []
        assert [grant.tool for grant in host.views["shop-1"].grants] == ["cancel_order"]


async def test_a_toolset_can_be_renamed_and_filtered_like_any_other():
    async with hosting() as host:
        await host.call_tool("show_orders")
        tools = HostToolset[None](host).filtered(lambda _, tool: "selection" in tool.name)
        seen: list[str] = []

        def reply(messages: list[Any], info: AgentInfo) -> ModelResponse:
            seen.extend(tool.name for tool in info.function_tools)
            last = messages[-1].parts[-1]
            if isinstance(last, ToolReturnPart):
                return ModelResponse(parts=[TextPart(last.model_response_str())])
            return ModelResponse(parts=[ToolCallPart(seen[0], {})])

        agent = Agent(
            FunctionModel(reply),
            toolsets=[tools.prefixed("shop")],
            output_type=[str, DeferredToolRequests],
        )
        result = await agent.run("go")
    assert seen[0] == "shop_shop-1__get_selection"
    assert result.output == '{"selected":["A-1"]}'


@pytest.mark.parametrize("arguments", ["[]", '"text"', "7"])
async def test_arguments_that_are_no_object_are_the_models_mistake(arguments: str):
    def reply(messages: list[Any], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("sorry")])
        return ModelResponse(parts=[ToolCallPart("stock", arguments)])

    async with hosting() as host:
        agent = Agent(FunctionModel(reply), toolsets=[HostToolset(host)])
        assert (await agent.run("go")).output == "sorry"
