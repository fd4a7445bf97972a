"""A fixed list of tools, and one handler for their calls."""

import asyncio

from sample_host import hosting, names

# region list
from typing import Any

from transom import App, CallContext, ProtocolError, Tool

app = App("doc-editor", "1.0.0")
document = {"text": "", "selection": "quick"}


@app.on_list_tools
async def list_tools() -> list[Tool]:
    return [
        Tool(
            name="get-selection",
            description="Return the user's current text selection",
            input_schema={"type": "object"},
        ),
        Tool(
            name="insert-text",
            description="Insert text at the current cursor position",
            input_schema={
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        ),
    ]


# endregion


# region call
@app.on_call_tool
async def call_tool(name: str, arguments: dict[str, Any], ctx: CallContext) -> str:
    match name:
        case "get-selection":
            return document["selection"]
        case "insert-text":
            document["text"] += arguments["text"]
            return "Inserted"
        case _:
            raise ProtocolError(-32602, f"Unknown tool: {name}")


# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        assert await names(bridge) == ["get-selection", "insert-text"]
        assert (await bridge.call_tool("get-selection")).text == "quick"
        assert (await bridge.call_tool("insert-text", {"text": "hello"})).text == "Inserted"
        assert document["text"] == "hello"
        try:
            await bridge.call_tool("fly")
        except ProtocolError as error:
            assert error.message == "Unknown tool: fly"
        else:
            raise AssertionError("an unknown tool was called")


if __name__ == "__main__":
    asyncio.run(main())
