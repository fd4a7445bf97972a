"""A static list that depends on the state of the View."""

import asyncio

from sample_host import hosting, names

# region view
from transom import App, Tool

app = App("my-app", "1.0.0")
selection = ""


@app.on_list_tools
async def list_tools() -> list[Tool]:
    tools = [Tool(name="format-text")]
    if selection:
        tools.append(Tool(name="get-selection"))
    return tools


async def on_selection_change(text: str) -> None:
    global selection
    had, selection = bool(selection), text
    if bool(selection) != had:
        await app.send_tool_list_changed()  # the host lists the tools again


# endregion


async def main() -> None:
    told = asyncio.Event()
    async with hosting(app) as bridge:
        bridge.on_tools_changed = told.set
        assert await names(bridge) == ["format-text"]
        await on_selection_change("quick")
        await told.wait()
        assert await names(bridge) == ["format-text", "get-selection"]


if __name__ == "__main__":
    asyncio.run(main())
