"""A host's tools in LangChain. The model here is a script; yours is behind an API."""

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain.chat_models import BaseChatModel
from langchain.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from sample_shop import ORDERS, orders_view, server

from transom import InProcessRenderer

# region agent
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from transom import Host
from transom.agents.langchain import HostMiddleware


async def answer(host: Host, model: Any, prompt: str) -> str:
    """Let the agent work; ask the user whenever a call has to be approved."""
    middleware = [HostMiddleware(host)]
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    result = await agent.ainvoke({"messages": [{"role": "user", "content": prompt}]}, config)
    while pending := result.get("__interrupt__"):
        answers = {}
        for each in pending:
            allowed = await ask_user(each.value["description"])
            answers[each.id] = {"type": "approve" if allowed else "reject"}
        result = await agent.ainvoke(Command(resume=answers), config)
    return result["messages"][-1].text


# endregion

CALLS = ["show_orders", "orders-1__mark_shipped"]
seen: list[list[str]] = []
questions: list[str] = []


async def ask_user(question: str) -> bool:
    questions.append(question)
    return True


class ScriptedModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        seen.append([tool["function"]["name"] for tool in tools])
        return self

    def _generate(self, messages: list[Any], *rest: Any, **options: Any) -> ChatResult:
        message = AIMessage("It is shipped.")
        if len(seen) <= len(CALLS):
            call = {"name": CALLS[len(seen) - 1], "args": {}, "id": f"call-{len(seen)}"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def main() -> None:
    async with Host(renderer=InProcessRenderer({ORDERS: orders_view})) as host:
        await host.add_server("orders", server)
        assert await answer(host, ScriptedModel(), "Ship what I selected.") == "It is shipped."
    assert seen[0] == ["show_orders"]
    assert "orders-1__mark_shipped" in seen[1]
    assert questions[0].startswith("May mark_shipped of View orders-1")


if __name__ == "__main__":
    asyncio.run(main())
