"""Definitions that follow the state: lazy schemas, disabled tools, `update_tool`."""

import asyncio
from typing import Any

from sample_host import hosting, names

# region view
from transom import App

app = App("music", "1.0.0")
library = {"t1": "So What", "t2": "Blue in Green"}
queue: list[str] = []


def play_track(id: str) -> str:
    queue.append(id)
    app.update_tool("remove_from_queue", disabled=len(queue) == 0)
    return f"Playing {library[id]}"


def a_track() -> dict[str, Any]:
    """Called at every listing and every call, so the ids are always current."""
    return {
        "type": "object",
        "properties": {"id": {"type": "string", "enum": list(library)}},
        "required": ["id"],
    }


app.register_tool(
    "play_track",
    play_track,
    description="Play a track from the user's library.",
    input_schema=a_track,
)


@app.tool(enabled=False)  # the queue is empty at boot
def remove_from_queue(position: int) -> str:
    """Remove a track from the playback queue."""
    track = queue.pop(position)
    app.update_tool("remove_from_queue", disabled=len(queue) == 0)
    return f"Removed {library[track]}"


# endregion


async def main() -> None:
    changes: list[tuple[str, bool]] = []
    app.on_tool_change(lambda tool: changes.append((tool.name, tool.enabled)))
    async with hosting(app) as bridge:
        (play,) = await bridge.list_tools()
        assert play.input_schema["properties"]["id"]["enum"] == ["t1", "t2"]
        refused = await bridge.call_tool("play_track", {"id": "t3"})
        assert refused.is_error
        library["t3"] = "Freddie Freeloader"
        assert (await bridge.call_tool("play_track", {"id": "t3"})).text == (
            "Playing Freddie Freeloader"
        )
        (play, remove) = await bridge.list_tools()
        assert play.input_schema["properties"]["id"]["enum"] == ["t1", "t2", "t3"]
        assert remove.name == "remove_from_queue"
        result = await bridge.call_tool("remove_from_queue", {"position": 0})
        assert result.text == "Removed Freddie Freeloader"
        assert await names(bridge) == ["play_track"]
        assert changes == [("remove_from_queue", True), ("remove_from_queue", False)]


if __name__ == "__main__":
    asyncio.run(main())
