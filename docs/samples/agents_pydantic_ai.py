"""A host's tools in Pydantic AI. The model here is a script; yours is behind an API."""

import asyncio
from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sample_shop import ORDERS, orders_view, server

from transom import InProcessRenderer

# region agent
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied

from transom import Host
from transom.agents.pydantic_ai import HostToolset


async def answer(host: Host, model: Any, prompt: str) -> str:
    """Let the agent work; ask the user whenever a call has to be approved."""
    toolset = HostToolset(host)
    agent = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    result = await agent.run(prompt)
    while isinstance(result.output, DeferredToolRequests):
        answers = DeferredToolResults()
        for call in result.output.approvals:
            asked = result.output.metadata[call.tool_call_id]["question"]
            allowed = await ask_user(asked)
            answers.approvals[call.tool_call_id] = allowed or ToolDenied("The user said no")
        history = result.all_messages()
        result = await agent.run(message_history=history, deferred_tool_results=answers)
    return result.output


# endregion

CALLS = ["show_orders", "orders-1__mark_shipped"]
seen: list[list[str]] = []
questions: list[str] = []


async def ask_user(question: str) -> bool:
    questions.append(question)
    return True


def scripted(messages: list[Any], info: AgentInfo) -> ModelResponse:
    seen.append([tool.name for tool in info.function_tools])
    if len(seen) > len(CALLS):
        return ModelResponse(parts=[TextPart("It is shipped.")])
    return ModelResponse(parts=[ToolCallPart(CALLS[len(seen) - 1], {})])


async def main() -> None:
    async with Host(renderer=InProcessRenderer({ORDERS: orders_view})) as host:
        await host.add_server("orders", server)
        model = FunctionModel(scripted)
        assert await answer(host, model, "Ship what I selected.") == "It is shipped."
    assert seen[0] == ["show_orders"]
    assert "orders-1__mark_shipped" in seen[1]
    assert "orders-1__mark_shipped" not in seen[2]  # it disabled itself
    assert questions[0].startswith("May mark_shipped of View orders-1")


if __name__ == "__main__":
    asyncio.run(main())
