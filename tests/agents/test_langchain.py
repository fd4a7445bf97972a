"""What is LangChain's alone: its own tools go first, other arguments, answers that do not fit."""

from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.tools import tool
from langgraph.types import Command
from pydantic import ValidationError

from tests.agents.scripted import Call, LangChain, Script, _ChatModel, hosting
from tests.host.asking_server import PAGE, QUESTION, Asking, reach_in_memory
from transom import Host
from transom.agents.agent_calls import AgentCalls
from transom.agents.langchain import HostMiddleware, _elicitation

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


@pytest.mark.parametrize("status", ["\ud800", "deep"], ids=["half a character", "too deep"])
async def test_arguments_that_cannot_be_sent_are_a_message_that_the_model_reads(status: Any):
    if status == "deep":
        for _ in range(5000):
            status = [status]
    call = {"name": "show_orders", "args": {"status": status}, "id": "c1"}
    async with hosting() as host:
        request: Any = SimpleNamespace(tool=None, tool_call=call)
        message: Any = await HostMiddleware(host).awrap_tool_call(request, None)  # pyright: ignore[reportArgumentType]
        assert (message.status, message.tool_call_id) == ("error", "c1")
        assert "Invalid arguments for show_orders" in message.content


async def interrupted(host: Host, server: Asking, script: Script) -> tuple[LangChain, Any]:
    """An agent whose call made the server ask something, and what it was interrupted with."""
    run = LangChain(host, script)
    await host.add_server("office", server)
    await run.run()
    [asked] = run.result["__interrupt__"]
    return run, asked


@pytest.mark.parametrize("modern", [True, False], ids=["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize(
    ("question", "response", "expected"),
    [
        (
            QUESTION,
            {"action": "accept", "content": {"name": "Bo"}},
            {"action": "accept", "content": {"name": "Bo", "age": 30}},
        ),
        (QUESTION, {"action": "decline"}, {"action": "decline"}),
        (PAGE, {"action": "accept"}, {"action": "accept"}),
    ],
)
async def test_what_a_server_asks_is_an_interrupt_and_the_call_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch, modern: bool, question: Any, response: Any, expected: Any
):
    reach_in_memory(monkeypatch)
    server, script = Asking(question, modern=modern), Script(Call("register"))
    async with Host() as host:
        run, asked = await interrupted(host, server, script)
        assert asked.value["type"] == "mcp_elicitation"
        assert asked.value["tool_name"] == "register"
        [request] = asked.value["requests"]
        assert request["server"] == "office"
        assert request["message"] == question["message"].replace("\u200b", "")
        assert request.get("url") == question.get("url")
        assert request.get("requested_schema") == question.get("requestedSchema")
        with pytest.raises(ValidationError):
            await run._run(Command(resume={"responses": {request["key"]: {"action": "maybe"}}}))
        await run._run(Command(resume={"responses": {request["key"]: response}}))
        assert server.answered == [{"result": expected}]
        assert len(server.sent("tools/call")) == (2 if modern else 1)  # 2026-07-28: a round each
    assert script.read[-1].text == "done"


async def test_a_question_is_of_no_tool_if_it_may_be_of_several_calls(
    monkeypatch: pytest.MonkeyPatch,
):
    reach_in_memory(monkeypatch)
    async with Host() as host:
        calls = AgentCalls(host)
        await host.add_server("office", Asking(QUESTION, modern=False))
        asking = calls.begin(lambda: host.answer("register", {}))
        other = calls.begin(lambda: host.answer("register", {}))  # the newest gets the questions
        question = await other.next_question()
        assert question is not None
        assert _elicitation(question, "register")["tool_name"] is None
        for call in (asking, other):
            call.task.cancel()


async def test_an_answer_of_an_earlier_process_is_not_given_to_another_question(
    monkeypatch: pytest.MonkeyPatch,
):
    reach_in_memory(monkeypatch)
    server, script = Asking(QUESTION, modern=True), Script(Call("register"))
    async with Host() as host:
        run, asked = await interrupted(host, server, script)
        key = asked.value["requests"][0]["key"]
        run.middleware._calls.waiting.clear()
        server.question = {**QUESTION, "message": "Your bank account?"}
        answer = {"action": "accept", "content": {"name": "Bo"}}
        await run._run(Command(resume={"responses": {key: answer}}))
        assert server.answered == [{"result": {"action": "cancel"}}]
