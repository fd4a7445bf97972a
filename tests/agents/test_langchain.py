"""What is LangChain's alone: its own tools go first, other arguments, answers that do not fit."""

import pytest
from langchain.agents import create_agent
from langchain.tools import tool
from langgraph.types import Command
from pydantic import ValidationError

from tests.agents.scripted import Call, LangChain, Script, _ChatModel, hosting
from transom.agents.langchain import HostMiddleware

SHOW = Call("show_orders")
CANCEL = Call("shop-1__cancel_order", {"order": "A-2"})


async def test_a_tool_of_the_agents_own_goes_before_one_of_the_host():
    @tool
    def stock() -> str:
        """What is left."""
        return "the agent's own"

    script = Script(Call("stock"))
    async with hosting() as host:
        model = _ChatModel(script=script)
        agent = create_agent(model, [stock], middleware=[HostMiddleware(host)])
        await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]})
    assert list(script.offered[0]).count("stock") == 1
    assert script.read[-1].text == "the agent's own"


async def test_a_user_who_changes_the_arguments_has_allowed_those():
    script = Script(SHOW, CANCEL)
    async with hosting() as host:
        run = LangChain(host, script)
        [question] = await run.run()
        assert await run.resume({question.id: {"order": "A-1"}}) == []
    assert script.read[-1].text == "Cancelled A-1"


async def test_an_answer_that_does_not_fit_can_be_given_again():
    script = Script(SHOW, CANCEL)
    async with hosting() as host:
        run = LangChain(host, script)
        [question] = await run.run()
        with pytest.raises(ValidationError):
            await run._run(Command(resume={"type": "perhaps"}))
        assert await run.resume({question.id: True}) == []
    assert script.read[-1].text == "Cancelled A-2"


async def test_another_tool_cannot_be_slipped_in_as_a_change():
    script = Script(SHOW, CANCEL)
    async with hosting() as host:
        run = LangChain(host, script)
        await run.run()
        edited = {"name": "shop-1__mark_shipped", "args": {}}
        await run._run(Command(resume={"type": "edit", "edited_action": edited}))
        calls = [event.tool for event in await host.audit.read(event="call")]
        assert calls == ["show_orders"]
    assert script.read[-1].failed
