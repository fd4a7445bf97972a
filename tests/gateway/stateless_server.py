"""A server that has everything of the 2026-07-28 protocol; speaks those before it too."""

import asyncio
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import (
    CallToolResult,
    Completion,
    CreateMessageResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

server = MCPServer(
    "stateless", version="3", log_level="CRITICAL", instructions="Ask it anything.", title="Modern"
)


class Name(BaseModel):
    """What the user is asked for."""

    name: str


def ask_name() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


def ask_model() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(text="Say something"))
    return Sample([message], max_tokens=5)


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
def greet(name: Annotated[Name, Resolve(ask_name)], word: str = "Hello") -> str:
    """Greet the user, who is asked for a name."""
    return f"{word} {name.name}"


@server.tool()
def think(said: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Ask the client's model."""
    return said.model_dump_json()


@server.tool()
def look(roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> list[str]:
    """Ask for the client's roots."""
    return [str(root.uri) for root in roots.roots]


@server.tool()
def add(a: int, b: float) -> float:
    """Add."""
    return a + b


@server.tool()
async def work(steps: int, ctx: Context) -> str:
    """Work in steps, with progress and a log."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await ctx.log("info", {"step": step}, logger_name="work")
        await ctx.log("debug", "more of it")
    return "done"


@server.tool()
async def hang(ctx: Context) -> str:
    """Work until cancelled; the resource `test://cancelled` changes then."""
    try:
        await ctx.report_progress(1)
        await asyncio.Event().wait()
    finally:
        cancelled.append("hang")
    return ""


@server.tool()
def tagged(ctx: Context) -> CallToolResult:
    """A result with all kinds of things in it."""
    sent: Any = ctx.request_context.meta
    kept = {key: value for key, value in dict(sent or {}).items() if key.startswith("x/")}
    return CallToolResult(
        content=[TextContent(text="tagged", _meta={"x/block": [1, 2.0]})],
        structured_content={"sent": kept},
        _meta={"x/result": {"deep": [None, True]}},
    )


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("as it should")


@server.tool()
async def grow(ctx: Context) -> str:
    """Have one tool more, and say that lists and a resource changed."""
    server.add_tool(lambda: "grown", name="grown", description="New.")
    await ctx.notify_tools_changed()
    await ctx.notify_resources_changed()
    await ctx.notify_prompts_changed()
    await ctx.notify_resource_updated("test://clock")
    return "it grew"


@server.tool()
def known(ctx: Context) -> list[str]:
    """The extensions that the client says it has."""
    capabilities = ctx.client_capabilities
    return sorted((capabilities.extensions if capabilities else None) or {})


cancelled: list[str] = []


@server.resource("test://clock")
def clock() -> str:
    """A resource."""
    return "noon"


@server.resource("test://cancelled")
def was_cancelled() -> str:
    """What was cancelled."""
    return ",".join(cancelled)


@server.resource("test://items/{item}")
def item(item: str) -> str:
    """A template."""
    return f"item {item}"


@server.prompt()
def ask_about(subject: str) -> str:
    """A prompt."""
    return f"What about {subject}?"


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion:
    return Completion(values=[f"{argument.value}{end}" for end in "abc"], total=3, has_more=False)


if __name__ == "__main__":
    server.run("stdio")
