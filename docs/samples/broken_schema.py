"""A lazy schema that cannot be made: its tool is unavailable, and you hear why."""

import asyncio

from sample_host import hosting, names

# region view
from typing import Any

from transom import App, RegisteredTool

app = App("music", "1.0.0")
playlists: list[str] | None = None  # not loaded yet


def a_playlist() -> dict[str, Any]:
    if playlists is None:
        raise LookupError("the playlists are not loaded")
    return {"type": "object", "properties": {"id": {"enum": playlists}}, "required": ["id"]}


add = app.register_tool("add_to_playlist", lambda id: f"Added to {id}", input_schema=a_playlist)
app.register_tool("pause", lambda: "Paused")


@app.on_error
def report(error: BaseException) -> None:
    problems.append(str(error))


@app.on_tool_change
async def show_tools(tool: RegisteredTool) -> None:
    changes.append(tool.name)  # called for every change of a tool


problems: list[str] = []
changes: list[str] = []
# endregion


async def main() -> None:
    global playlists
    async with hosting(app) as bridge:
        assert await names(bridge) == ["pause"]  # the others are not affected
        result = await bridge.call_tool("add_to_playlist", {"id": "p1"})
        assert result.is_error
        assert result.text == "Tool add_to_playlist is unavailable right now"
        assert str(add.error) == "the playlists are not loaded"
        assert problems == ["the playlists are not loaded"]

        playlists = ["p1"]
        assert await names(bridge) == ["add_to_playlist", "pause"]
        assert add.error is None
        assert (await bridge.call_tool("add_to_playlist", {"id": "p1"})).text == "Added to p1"


if __name__ == "__main__":
    asyncio.run(main())
