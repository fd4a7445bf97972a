"""A static list in the wire's own form, and the handler that goes with it."""

import asyncio

from sample_host import hosting, names

# region view
from typing import Any

from transom import App, ProtocolError

app = App("my-app", "1.0.0", capabilities={"tools": {"listChanged": True}})


@app.on_list_tools
async def list_tools(cursor: str | None) -> dict[str, Any]:
    return {
        "tools": [
            {"name": "get-selection", "inputSchema": {"type": "object"}},
            {"name": "format-text", "inputSchema": {"type": "object"}},
        ],
    }


@app.on_call_tool
async def call_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "get-selection":
            return {"content": [{"type": "text", "text": "quick"}]}
        case "format-text":
            style = arguments.get("style", "plain")
            return {"content": [{"type": "text", "text": f"Formatted as {style}"}]}
        case _:
            raise ProtocolError(-32602, f"Unknown tool: {name}")


# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        assert await names(bridge) == ["get-selection", "format-text"]
        assert (await bridge.call_tool("get-selection")).text == "quick"
        result = await bridge.call_tool("format-text", {"style": "bold"})
        assert result.text == "Formatted as bold"


if __name__ == "__main__":
    asyncio.run(main())
