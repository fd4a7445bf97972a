"""The chat's agent: a model of Pydantic AI with a user's tools.

`CHAT_MODEL=openai:gpt-5` in the environment is any model that Pydantic AI knows, and its key.
Without one, the script plays the model.
"""

import os
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessagesTypeAdapter,
    PartEndEvent,
    TextPart,
)
from pydantic_ai.models.function import FunctionModel

from examples.chat.script import script
from transom.agents.pydantic_ai import HostToolset
from transom.host import ToolHost

Emit = Callable[[dict[str, Any]], Awaitable[None]]

INSTRUCTIONS = "You work in a shop. Show things with the tools that open a View, and use its tools."


async def reply(host: ToolHost, text: str, emit: Emit, history: str) -> str:
    """Answer a message; `emit` gets the parts of the answer as they come. Returns the history."""

    async def tell(ctx: RunContext[None], events: AsyncIterable[AgentStreamEvent]) -> None:
        async for event in events:
            toolset.on_event(event, run=ctx.run_id)  # a View opens while its call is written
            match event:
                case PartEndEvent(part=TextPart(content=said)):
                    await emit({"type": "text", "text": said})
                case FunctionToolCallEvent(part=call):
                    arguments = call.args_as_dict()
                    await emit({"type": "call", "tool": call.tool_name, "arguments": arguments})
                case FunctionToolResultEvent(part=result):
                    view = ((result.metadata or {}).get("view") or {}).get("id")
                    if view is not None:
                        await emit({"type": "view", "view": view})
                case _:
                    pass

    model = os.environ.get("CHAT_MODEL") or FunctionModel(stream_function=script)
    toolset = HostToolset[None](host)
    agent = Agent(model, instructions=INSTRUCTIONS, toolsets=[toolset])
    messages = ModelMessagesTypeAdapter.validate_json(history)
    result = await agent.run(text, message_history=messages, event_stream_handler=tell)
    return result.all_messages_json().decode()
