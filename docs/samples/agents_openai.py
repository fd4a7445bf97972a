"""A host's tools in the OpenAI Agents SDK. The model here is a script; yours is behind an API."""

import asyncio
from typing import Any

from agents import RunConfig
from agents.testing import ScriptedModel, assistant_message, function_call
from sample_shop import ORDERS, orders_view, server

from transom import InProcessRenderer

# region agent
from agents import Agent, Runner

from transom import Host
from transom.agents.openai_agents import HostServer


async def answer(host: Host, model: Any, prompt: str, **options: Any) -> str:
    """Let the agent work; ask the user whenever a call has to be approved."""
    agent = Agent(name="Shop", model=model, mcp_servers=[HostServer(host)])
    result = await Runner.run(agent, prompt, **options)
    while result.interruptions:
        state = result.to_state()
        for item in result.interruptions:
            if await ask_user(f"May {item.name} run with {item.arguments}?"):
                state.approve(item)
            else:
                state.reject(item)
        result = await Runner.run(agent, state, **options)
    return result.final_output


# endregion

questions: list[str] = []


async def ask_user(question: str) -> bool:
    questions.append(question)
    return True


async def main() -> None:
    model = ScriptedModel(
        [
            [function_call("show_orders", {}, call_id="1")],
            [function_call("orders-1__mark_shipped", {}, call_id="2")],
            [assistant_message("It is shipped.")],
        ]
    )
    config = RunConfig(tracing_disabled=True)
    async with Host(renderer=InProcessRenderer({ORDERS: orders_view})) as host:
        await host.add_server("orders", server)
        said = await answer(host, model, "Ship what I selected.", run_config=config)
    assert said == "It is shipped."
    assert questions == ["May orders-1__mark_shipped run with {}?"]


if __name__ == "__main__":
    asyncio.run(main())
