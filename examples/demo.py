"""An agent that has never heard of MCP Apps plays music in one.

    transom demo [--browser]

The gateway stands in front of two servers: `music.py`, whose View has tools, and `lunch.py`, whose
View has none. The agent is a plain MCP client with a script in place of a model. The Views run in
a browser without a window, or, with `--browser`, in yours, slowly enough to follow. Every step is
checked: the demo fails loudly if one does not go as it says.
"""

import asyncio
import base64
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from shutil import which
from typing import Any

from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, ImageContent, TextContent, Tool
from rich.console import Console
from rich.markup import escape

SERVER = Path(__file__).with_name("music.py")
PICTURE = Path("transom-demo.png")
IN_BROWSER = "--browser" in sys.argv
GATEWAY = ["gateway", *([] if IN_BROWSER else ["--headless"]), "--config"]
PAUSE = 2.5 if IN_BROWSER else 0  # seconds after each call, for the eyes


def from_here(file: Path) -> Path:
    """A path that is short where it can be."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def next_steps() -> str:
    """What to try now, as it can be typed here."""
    beside = Path(sys.executable).with_name("transom")
    command = Path("transom") if which("transom") else from_here(beside)
    transom = shlex.quote(str(command))
    server = shlex.quote(str(from_here(SERVER)))
    python = shlex.quote(str(from_here(Path(sys.executable))))
    return f"""\
  The player, in your browser:
    {transom} open {server} show_player
  Its contract, checked:
    {transom} check {server}
  Your own agent plays music:
    {transom} gateway install --client claude-code -- {python} {server}"""


out = Console(highlight=False, width=100)


class StepFailed(Exception):
    """A step did not go as it should have."""


def step(title: str) -> None:
    """Begin a step."""
    out.print(f"\n[bold]{escape(title)}[/bold]")


def say(text: str, indent: str = "  ") -> None:
    """What happened, as it happened."""
    lines = textwrap.wrap(text, 98, initial_indent=indent, subsequent_indent=f"{indent}  ")
    out.print("\n".join(lines), markup=False)


def check(what: str, holds: bool) -> None:
    """Say that something is so, and fail if it is not."""
    if not holds:
        out.print(f"  [red]✗ {escape(what)}[/red]")
        raise StepFailed(what)
    out.print(f"  [green]✓[/green] {escape(what)}")


class Agent:
    """An MCP client that calls tools and lists them again when it is told to."""

    def __init__(self, client: Client, changed: asyncio.Event) -> None:
        self.client = client
        self.changed = changed
        self.tools: dict[str, Tool] = {}

    async def look(self) -> list[str]:
        """List the tools."""
        self.changed.clear()
        listed = await self.client.list_tools()
        self.tools = {tool.name: tool for tool in listed.tools}
        return list(self.tools)

    async def told(self) -> None:
        """Wait for the word that the tools have changed, and list them."""
        await within(60, self.changed.wait(), "the gateway says that the tools changed")
        await self.look()

    async def look_for(self, *names: str) -> list[str]:
        """List the tools until these are there: a server that is slow to start comes later."""
        await self.look()
        while missing := [name for name in names if name not in self.tools]:
            await within(60, self.changed.wait(), f"a server has started that has {missing[0]}")
            await self.look()
        return list(self.tools)

    async def call(self, name: str, **arguments: Any) -> CallToolResult:
        """Call a tool, and show what came of it."""
        shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        try:
            result = await self.client.call_tool(name, arguments)
        except MCPError as error:
            raise StepFailed(f"{name} can be called: {error}") from None
        say(f"→ {name}({shown})")
        for line in text_of(result).splitlines():
            say(line, indent="      ")
        await asyncio.sleep(PAUSE)
        return result


async def within(seconds: float, waiting: Awaitable[object], what: str) -> None:
    """Wait, but not for ever."""
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        raise StepFailed(f"{what} within {seconds:g} s") from None


def text_of(result: CallToolResult) -> str:
    """What the model would read."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def choices(tool: Tool) -> list[str]:
    """The tracks that a tool takes."""
    return list(tool.input_schema["properties"]["id"]["enum"])


def shown(names: Sequence[str]) -> str:
    """Names on a line or two."""
    return ", ".join(names)


def servers() -> dict[str, Any]:
    """The configuration of the gateway."""
    files = {name: Path(__file__).with_name(f"{name}.py") for name in ("music", "lunch")}
    command = {name: {"command": sys.executable, "args": [str(files[name])]} for name in files}
    return {"mcpServers": command}


def ref_of(line: str, text: str) -> str:
    """The reference of what a look shows in a line that begins so."""
    found = re.search(rf"{re.escape(line)}[^\n]*\[(\w+)\]", text)
    if found is None:
        raise StepFailed(f"a look shows {line}")
    return found[1]


async def main(config: Path) -> None:
    """The whole story."""
    began = time.perf_counter()
    out.print("[bold]Transom: MCP Apps for every agent[/bold]")
    say("A script stands in for the model. Its MCP client starts the gateway, with two servers:")
    say(f"transom {shlex.join(GATEWAY)} servers.json")
    changed = asyncio.Event()

    async def heard(message: object) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            changed.set()

    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "transom", *GATEWAY, str(config)], env=dict(os.environ)
    )
    async with Client(stdio_client(parameters), mode="legacy", message_handler=heard) as client:
        agent = Agent(client, changed)

        step("1. Before a View is open: the servers' own tools, and those of the gateway")
        names = await agent.look_for("show_player", "show_vote")
        say(shown(names))
        check("no tool of a View is there yet", not any("__" in name for name in names))

        step("2. The model calls show_player: a View opens")
        await agent.call("show_player")
        await agent.told()
        new = [name for name in agent.tools if name not in names]
        say(f"new tools: {shown(new)}")
        check("the View's tools are in the list, as ordinary MCP tools", len(new) >= 5)

        step("3. A schema follows the library: the View is asked for it at every listing")
        before = choices(agent.tools["music-1__play_track"])
        say(f"play_track takes: {shown(before)}")
        agent.changed.clear()
        await agent.call("music-1__add_to_library", id="canon-in-d")
        check("this needs no notification that the tools changed", not agent.changed.is_set())
        await agent.look()
        after = choices(agent.tools["music-1__play_track"])
        say(f"play_track takes: {shown(after)}")
        check("canon-in-d can be played now", set(after) - set(before) == {"canon-in-d"})
        playing = await agent.call("music-1__play_track", id="canon-in-d")
        check("it plays", not playing.is_error)

        step("4. A tool is disabled while it makes no sense")
        check("remove_from_queue is not listed", "music-1__remove_from_queue" not in agent.tools)
        refused = await agent.call("music-1__remove_from_queue", position=1)
        check("calling it anyway is refused, with the reason", bool(refused.is_error))
        check("the reason is that the queue is empty", "queue is empty" in text_of(refused))
        await agent.call("music-1__add_to_queue", id="fur-elise")
        await agent.told()
        check("with a track in the queue it is", "music-1__remove_from_queue" in agent.tools)
        removed = await agent.call("music-1__remove_from_queue", position=1)
        check("and it works", not removed.is_error)

        step("5. A View without tools is used by its page")
        await agent.call("show_vote")
        view = {"view_id": "lunch-1"}
        looked = text_of(await agent.call("look_at_view", **view))
        pizza, button = ref_of('radio "Pizzeria', looked), ref_of('button "Vote"', looked)
        await agent.call("act_on_view", **view, ref=pizza, action="check")
        await agent.call("act_on_view", **view, ref=button, action="click")
        counted = text_of(await agent.client.call_tool("count_votes", {}))
        check("the server has counted the vote", json.loads(counted)["Pizzeria"] == 4)

        step("6. The user sees all of that")
        await (leave_until_enter() if IN_BROWSER else take_picture(agent))

    out.print(f"\nAll of it went as it should, in {time.perf_counter() - began:.0f} s. Try next:\n")
    out.print(next_steps(), markup=False, soft_wrap=True)


async def take_picture(agent: Agent) -> None:
    """Save what the View looks like."""
    picture = await agent.client.call_tool("screenshot_view", {"view_id": "music-1"})
    image = next(block for block in picture.content if isinstance(block, ImageContent))
    size = await asyncio.to_thread(PICTURE.write_bytes, base64.b64decode(image.data))
    check(f"a picture of the View is {PICTURE}", size > 0)


async def leave_until_enter() -> None:
    """Leave the Views in the browser until the user has seen enough of them."""
    say("The Views are in your browser.")
    if sys.stdin.isatty():
        await asyncio.to_thread(out.input, "  Press Enter to close them. ")


def offer_to_open() -> None:
    """Where somebody can see it, offer to open the View."""
    display = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if IN_BROWSER or not display or not sys.stdin.isatty() or not sys.stdout.isatty():
        return
    if out.input("\nOpen the player in your browser now? [y/N] ").strip().lower() == "y":
        command = [sys.executable, "-m", "transom", "open", str(SERVER), "show_player"]
        subprocess.run(command, check=False)


if __name__ == "__main__":
    try:
        with tempfile.TemporaryDirectory() as folder:
            (file := Path(folder, "servers.json")).write_text(json.dumps(servers()))
            asyncio.run(main(file))
    except* StepFailed as failed:
        why: BaseException = failed
        while isinstance(why, BaseExceptionGroup):
            why = why.exceptions[0]
        out.print(f"\n[red]The demo failed:[/red] {escape(str(why))}")
        sys.exit(1)
    offer_to_open()
