"""End to end: static tools and a registered one in one View."""

import asyncio

from sample_host import hosting, names

# region view
from typing import Any

from transom import App, Channel, ProtocolError

app = App("DocEditor", "1.0.0", capabilities={"tools": {"listChanged": True}})
document = {"text": "", "selection": "quick"}


# Tools known up front
@app.on_call_tool
async def call_tool(name: str, arguments: dict[str, Any]) -> str:
    if name == "get-selection":
        return document["selection"]
    raise ProtocolError(-32602, f"Unknown tool: {name}")


@app.on_list_tools
async def list_tools() -> list[dict[str, Any]]:
    return [
        {
            "name": "get-selection",
            "description": "Read the user's current selection",
            "inputSchema": {"type": "object"},
        },
    ]


# A tool added from the state of the user interface
@app.tool(name="insert-text")
def insert_text(text: str) -> str:
    """Insert text at the cursor."""
    document["text"] += text
    return "Inserted"


async def start(channel: Channel | None = None) -> None:
    await app.connect(channel)  # in a browser: connect() finds the page's parent
    await app.send_tool_list_changed()


# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        await app.send_tool_list_changed()
        assert await names(bridge) == ["insert-text", "get-selection"]
        assert (await bridge.call_tool("insert-text", {"text": "hello"})).text == "Inserted"
        assert (await bridge.call_tool("get-selection")).text == "quick"
        assert document["text"] == "hello"
        bad = await bridge.call_tool("insert-text", {"text": 3})
        assert bad.is_error
        assert "text: expected string" in bad.text


if __name__ == "__main__":
    asyncio.run(main())
