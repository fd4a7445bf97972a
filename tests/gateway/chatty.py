"""A server that uses everything a client can do, and ways to reach it without a process.

Run it as a script for one of its own: `python -m tests.gateway.chatty PORT`.
"""

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.message import SessionMessage
from mcp_types import SamplingMessage, TextContent, jsonrpc_message_adapter
from pydantic import BaseModel, Field

from transom.channel import Channel, memory_pair
from transom.errors import ChannelClosed


class Name(BaseModel):
    name: str


def chatty(heard: list[str] | None = None) -> MCPServer:
    """`heard` gets what becomes of the calls of `wait`."""
    server = MCPServer("chatty")
    log = [] if heard is None else heard

    @server.tool()
    def pid() -> str:
        """Say which process this is."""
        return str(id(server))

    @server.tool()
    async def count(to: int, ctx: Context) -> str:
        """Count with progress."""
        for number in range(to):
            await ctx.report_progress(number, to, f"{number}")
        return f"counted to {to}"

    @server.tool()
    async def wait(ctx: Context) -> str:
        """Wait until it is cancelled."""
        await ctx.report_progress(0, 1, "waiting")
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cancelled")
        return "never"

    @server.tool()
    async def ask_user(ctx: Context) -> str:
        """Ask the user for a name."""
        answer = await ctx.elicit("Who are you?", Name)
        return f"{answer.action}: {getattr(answer, 'data', None)}"

    @server.tool()
    async def ask_model(ctx: Context) -> str:
        """Ask the client's model."""
        words = SamplingMessage(role="user", content=TextContent(type="text", text="Say hello"))
        with warnings.catch_warnings():  # it is deprecated, and clients still do it
            warnings.simplefilter("ignore")
            answer = await ctx.session.create_message([words], max_tokens=10)
        return f"the model said {answer.content.text}"  # type: ignore[union-attr]

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Get one more tool."""
        server.add_tool(lambda: "new", name="grown", description="New.")
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
        return "grown"

    @server.tool()
    def region_of(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], ctx: Context
    ) -> str:
        """Say which headers came with the call."""
        headers = ctx.headers or {}
        wanted = ("mcp-param-region", "mcp-name", "mcp-method", "mcp-protocol-version", "x-key")
        return " ".join(f"{name}={headers.get(name)}" for name in wanted)

    return server


# --- channels and streams --------------------------------------------------------------------


@asynccontextmanager
async def streams(channel: Channel) -> AsyncIterator[tuple[Any, Any]]:
    """A Channel as the two streams that the SDK's sessions work with."""
    into, read = anyio.create_memory_object_stream[Any](0)
    write, out = anyio.create_memory_object_stream[Any](0)

    async def receive() -> None:
        async with into:
            try:
                while True:
                    data = await channel.receive()
                    message = jsonrpc_message_adapter.validate_json(data, by_name=False)
                    await into.send(SessionMessage(message))
            except (ChannelClosed, anyio.BrokenResourceError):
                pass

    async def send() -> None:
        async with out:
            async for item in out:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await channel.send(text.encode())

    async with anyio.create_task_group() as group, read, write:
        group.start_soon(receive)
        group.start_soon(send)
        try:
            yield read, write
        finally:
            group.cancel_scope.cancel()
            await channel.aclose()


def in_memory(server: MCPServer) -> Callable[[], Awaitable[Channel]]:
    """What starts a server in this process, for one client."""
    running: set[asyncio.Task[None]] = set()

    async def run(channel: Channel) -> None:
        lowlevel = server._lowlevel_server
        async with streams(channel) as (read, write):
            await lowlevel.run(read, write, lowlevel.create_initialization_options())

    async def connect() -> Channel:
        ours, theirs = memory_pair()
        task = asyncio.create_task(run(theirs))
        running.add(task)
        task.add_done_callback(running.discard)
        return ours

    return connect


if __name__ == "__main__":
    chatty().run("streamable-http", port=int(sys.argv[1]))
