"""The shortest View with a tool."""

import asyncio

from sample_host import hosting

# region view
from transom import App

app = App("doc-editor", "1.0.0")
document = {"text": "The quick brown fox", "selection": "quick"}


@app.tool(annotations={"readOnlyHint": True})
def get_selection() -> str:
    """Return the user's current text selection."""
    return document["selection"]


# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        (tool,) = await bridge.list_tools()
        assert tool.name == "get_selection"
        assert tool.description == "Return the user's current text selection."
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        result = await bridge.call_tool("get_selection")
        assert result.text == "quick"
    # region direct
    assert get_selection() == "quick"  # still the function it was
    # endregion


if __name__ == "__main__":
    asyncio.run(main())
