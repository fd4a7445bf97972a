import asyncio

from transom import App, Bridge
from transom.channel import memory_pair


def player() -> App:
    app = App("player", "1.0.0")
    library, queue = ["blue", "so-what"], []

    def tracks() -> dict:
        return {
            "type": "object",
            "properties": {"id": {"type": "string", "enum": library}},
            "required": ["id"],
        }

    @app.tool(input_schema=tracks)  # called at every listing and every call
    def play_track(id: str) -> str:
        """Play a track from the library."""
        queue.append(id)
        skip_track.enable()
        return f"playing {id}"

    @app.tool
    def skip_track() -> str:
        """Skip the track that plays."""
        return f"skipped {queue.pop()}"

    skip_track.disable("nothing plays")
    return app


async def main() -> None:
    here, there = memory_pair()
    async with Bridge(here, host_info={"name": "host", "version": "1.0"}) as bridge:
        await player().connect(there)
        print([tool.name for tool in await bridge.list_tools()])
        print((await bridge.call_tool("skip_track")).text)
        print((await bridge.call_tool("play_track", {"id": "purple"})).text)
        print((await bridge.call_tool("play_track", {"id": "blue"})).text)
        print([tool.name for tool in await bridge.list_tools()])


asyncio.run(main())
