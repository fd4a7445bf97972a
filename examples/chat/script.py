"""The chat's model when there is none: it knows a few sentences, and calls tools for them.

What an agent would do is done here by hand: list the tools that the host has right now, call one,
look at the result, say something. A tool of a View is a tool like any other.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from transom import Host, ToolResult
from transom.web import RemoteHost

Emit = Callable[[dict[str, Any]], Awaitable[None]]

HELP = (
    "I know a few sentences: “show the open orders”, “select A-1041”, “filter by desk”, "
    "“what is selected?”, “play music”, “play greensleeves”."
)


async def reply(host: Host | RemoteHost, text: str, emit: Emit) -> None:
    """Answer a message; `emit` gets the parts of the answer as they come."""
    words = text.casefold()
    order = re.search(r"\ba-\d+", words)

    async def say(said: str) -> None:
        await emit({"type": "text", "text": said})

    async def call(name: str, **arguments: Any) -> ToolResult:
        await emit({"type": "call", "tool": name, "arguments": arguments})
        result = await host.answer(name, arguments)
        view = (result.meta or {}).get("transom/view", {}).get("id")
        if view is not None:
            await emit({"type": "view", "view": view})
        return result

    async def view_tool(name: str) -> str | None:
        """A View's tool, by the name that the model knows it by; that of the newest View."""
        found = [tool.name for tool in await host.list_tools() if tool.name.endswith(f"__{name}")]
        return found[-1] if found else None

    if order is not None and (tool := await view_tool("select_orders")) is not None:
        result = await call(tool, ids=[order[0].upper()])
        await say(result.text if result.is_error else f"{order[0].upper()} is selected.")
    elif "select" in words and (tool := await view_tool("get_selection")) is not None:
        await say(f"Selected: {(await call(tool)).text}")
    elif (by := re.search(r"filter by (.+)", words)) and (tool := await view_tool("filter_orders")):
        await say((await call(tool, query=by[1])).text)
    elif "order" in words:
        status = next((each for each in ("open", "paid", "shipped") if each in words), None)
        await say("Let me look.")
        result = await call("show_orders", **({"status": status} if status else {}))
        await say(result.text)
    elif "music" in words:
        await say((await call("show_player")).text)
    elif words.startswith("play ") and (tool := await view_tool("play_track")) is not None:
        await say((await call(tool, id=words.removeprefix("play ").strip().replace(" ", "-"))).text)
    else:
        await say(HELP)
