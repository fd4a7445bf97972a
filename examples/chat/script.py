"""The chat's model when there is none: it knows a few sentences, and calls tools for them.

To Pydantic AI it is a model like any other: it gets the messages so far and the tools that the host
has right now, and says something or calls a tool. A tool of a View is a tool like any other.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall

HELP = (
    "I know a few sentences: “show the open orders”, “select A-1041”, “filter by desk”, "
    "“what is selected?”, “play music”, “play greensleeves”."
)

WRITES_EVERY = 0.05  # seconds between two pieces of what it writes, as models take them

Turn = AsyncIterator[str | dict[int, DeltaToolCall]]


async def script(messages: list[ModelMessage], info: AgentInfo) -> Turn:
    """What the model says or calls next."""
    words = prompt(messages)
    for part in messages[-1].parts:
        if isinstance(part, ToolReturnPart):
            yield about(part, words)
            return
    order = re.search(r"\ba-\d+", words)
    tools = [tool.name for tool in info.function_tools]

    def call(name: str, **arguments: Any) -> dict[int, DeltaToolCall]:
        return {1: DeltaToolCall(name, json.dumps(arguments))}

    def view_tool(name: str) -> str | None:
        """A View's tool, by the name that the model knows it by; that of the newest View."""
        found = [tool for tool in tools if tool.endswith(f"__{name}")]
        return found[-1] if found else None

    if order is not None and (tool := view_tool("select_orders")) is not None:
        yield call(tool, ids=[order[0].upper()])
    elif "select" in words and (tool := view_tool("get_selection")) is not None:
        yield call(tool)
    elif (by := re.search(r"filter by (.+)", words)) and (tool := view_tool("filter_orders")):
        yield call(tool, query=by[1])
    elif "order" in words:
        status = next((each for each in ("open", "paid", "shipped") if each in words), None)
        yield "Let me look."
        name = "show_orders"
        for piece in re.findall(".{1,4}", json.dumps({"status": status} if status else {})):
            yield {1: DeltaToolCall(name, piece)}
            name = None
            await asyncio.sleep(WRITES_EVERY)
    elif "music" in words:
        yield call("show_player")
    elif words.startswith("play ") and (tool := view_tool("play_track")) is not None:
        yield call(tool, id=words.removeprefix("play ").strip().replace(" ", "-"))
    else:
        yield HELP


def prompt(messages: list[ModelMessage]) -> str:
    """What the user said last."""
    first = (message.parts[0] for message in reversed(messages))
    return next(str(part.content) for part in first if isinstance(part, UserPromptPart)).casefold()


def about(result: ToolReturnPart, words: str) -> str:
    """What to say about a tool's result."""
    parts = result.content if isinstance(result.content, list) else [result.content]
    text = next((part for part in parts if isinstance(part, str)), json.dumps(parts[0]))
    if result.outcome == "success" and result.tool_name.endswith("__select_orders"):
        return f"{re.findall(r'a-[0-9]+', words)[0].upper()} is selected."
    if result.outcome == "success" and result.tool_name.endswith("__get_selection"):
        return f"Selected: {text}"
    return text
