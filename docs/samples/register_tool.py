"""A tool registered in code, and the handle that changes it."""

import asyncio

from sample_host import hosting, names

# region view
from transom import App

app = App("doc-editor", "1.0.0")
text: list[str] = []


def insert_at_cursor(words: str) -> str:
    text.append(words)
    return "Inserted"


insert = app.register_tool(
    "insert-text",
    insert_at_cursor,
    description="Insert text at the current cursor position",
)
# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        (tool,) = await bridge.list_tools()
        assert tool.input_schema["properties"] == {"words": {"type": "string"}}
        assert tool.input_schema["required"] == ["words"]
        assert (await bridge.call_tool("insert-text", {"words": "hello"})).text == "Inserted"
        assert text == ["hello"]

        # region handle
        insert.update(description="Insert text where the cursor is", title="Insert")
        insert.disable(reason="the document is read-only")
        insert.enable()
        insert.description = "Insert text"  # the same as update(description=...)
        insert.remove()
        # endregion
        assert await names(bridge) == []
        insert.enable()  # a removed tool's handle does nothing
        assert await names(bridge) == []


if __name__ == "__main__":
    asyncio.run(main())
