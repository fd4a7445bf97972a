import asyncio
import sys

from transom import Host, Policy
from transom.web import HeadlessRenderer


async def main() -> None:
    async with Host(renderer=HeadlessRenderer(), policy=Policy.trusting()) as host:
        await host.add_server("note", [sys.executable, "docs/readme/note.py"])
        await host.call_tool("open_note", {"text": "Milk"})  # its View opens in Chromium
        for tool in await host.list_tools():  # what a model may call, right now
            print(tool.name)
        await host.call_tool("note-1__write", {"line": ", eggs"})
        print((await host.call_tool("note-1__read")).text.strip())


asyncio.run(main())
