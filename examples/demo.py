"""Two peers talking: a View that offers tools, and a host that calls them.

    python -m examples.demo

Every step is checked: the demo fails loudly if one does not go as it says.
"""

import asyncio
import sys

from rich.console import Console

from transom import App, Bridge, CallContext
from transom.channel import Channel, memory_pair
from transom.errors import RequestTimeout

out = Console(highlight=False, width=100)
library = ["blue-in-green", "so-what"]
queue: list[str] = []


def tracks() -> dict[str, object]:
    """What may be played right now: asked at every listing and every call."""
    track = {"type": "string", "enum": list(library)}
    return {"type": "object", "properties": {"id": track}, "required": ["id"]}


def player() -> App:
    """A View with four tools."""
    app = App("music-player", "1.0.0")

    @app.tool(input_schema=tracks)
    def play_track(id: str) -> str:
        """Play a track from the library."""
        queue.append(id)
        skip_track.enable()
        return f"playing {id}"

    @app.tool
    def skip_track() -> str:
        """Skip the track that plays."""
        skipped = queue.pop()
        if not queue:
            skip_track.disable("the queue is empty")
        return f"skipped {skipped}"

    @app.tool
    async def scan(ctx: CallContext, folders: int = 3) -> str:
        """Look for new music."""
        for folder in range(1, folders + 1):
            await ctx.progress(folder, folders, f"folder {folder}")
        return "found nothing new"

    @app.tool
    async def listen() -> str:
        """Wait for the end of the music, which never ends."""
        await asyncio.Event().wait()
        return "silence"

    skip_track.disable("the queue is empty")
    return app


def step(title: str) -> None:
    """Say what comes."""
    out.print(f"\n[bold cyan]{title}[/]")


def expect(what: str, ok: bool) -> None:
    """Say what came, or end the demo."""
    out.print(f"  [green]✓[/] {what}" if ok else f"  [bold red]✗ {what}[/]")
    if not ok:
        sys.exit("The demo failed at the line above.")


async def call(bridge: Bridge, name: str, **arguments: object) -> str:
    """Call a tool and show it."""
    result = await bridge.call_tool(name, arguments)
    mark = "[red]isError[/] " if result.is_error else ""
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    out.print(f"  {name}({given})  →  {mark}{result.text}")
    return result.text


async def talk(bridge: Bridge, app: App, wire: Channel) -> None:
    """The conversation."""
    step("1. The host lists the View's tools")
    tools = {tool.name: tool for tool in await bridge.list_tools()}
    for tool in tools.values():
        out.print(f"  {tool.name}: {tool.description}")
    expect("skip_track is disabled, so it is not in the list", "skip_track" not in tools)

    step("2. Calls: good, bad, and to a disabled tool")
    expect("it plays", await call(bridge, "play_track", id="so-what") == "playing so-what")
    text = await call(bridge, "play_track", id="kind-of-blue")
    expect("the model can read what was wrong", "must be one of" in text)
    await call(bridge, "skip_track")
    text = await call(bridge, "skip_track")
    expect("a disabled tool is refused with its reason", "the queue is empty" in text)

    step("3. The library changes, and so does the schema")
    library.append("kind-of-blue")
    listed = {tool.name: tool for tool in await bridge.list_tools()}
    enum = listed["play_track"].input_schema["properties"]["id"]["enum"]
    out.print(f"  play_track now takes one of: {', '.join(enum)}")
    text = await call(bridge, "play_track", id="kind-of-blue")
    expect("what was refused before is played now", text == "playing kind-of-blue")

    step("4. Progress, and a call that is given up")
    notices: list[str | None] = []
    await bridge.call_tool("scan", {}, on_progress=lambda notice: notices.append(notice.message))
    expect(f"progress arrived: {', '.join(map(str, notices))}", len(notices) == 3)
    try:
        await bridge.call_tool("listen", timeout=0.05)
    except RequestTimeout as error:
        expect(f"it ended, once, and the View was told to stop: {error}", True)
    else:
        expect("a call without an answer ends", False)

    step("5. A hostile message")
    problems: list[BaseException] = []
    bridge.on_error = problems.append
    await wire.send(b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000)
    expect(f"refused: {problems[0]}", len(problems) == 1)
    expect("and the conversation goes on", await call(bridge, "skip_track") != "")

    step("6. The end")
    reasons: list[str | None] = []
    app.on_teardown = reasons.append
    await bridge.teardown("the demo is over")
    expect(f"the View heard why: {reasons[0]}", reasons == ["the demo is over"])


async def main() -> None:
    view, host = memory_pair()
    app = player()
    info = {"name": "demo-host", "version": "1.0.0"}
    out.print("[bold]Transom[/]: a View that offers tools, and a host that calls them")
    async with Bridge(host, host_info=info, context={"theme": "dark"}) as bridge:
        await app.connect(view)
        await bridge.initialized()
        await talk(bridge, app, view)
    await app.close()
    out.print("\nTry next:")
    out.print(
        "  [bold].venv/bin/transom open examples/orders.py show_orders[/]   a View, in your browser"
    )
    out.print(
        "  [bold].venv/bin/transom check examples/orders.py --call[/]       a server, checked\n"
    )


if __name__ == "__main__":
    asyncio.run(main())
