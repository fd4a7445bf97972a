"""A small View and a small host, with the standard library, msgspec and transom alone.

test_importable.py runs this file where nothing else can be imported, and in Pyodide.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from transom import App, ToolError
from transom.channel import memory_pair
from transom.errors import SchemaError
from transom.protocol import wire
from transom.session import Session
from transom.view.app import CallContext

app = App("small", "1.0.0")
tracks = ["one"]


@dataclass
class Place:
    city: str
    population: int = 0


@app.tool(annotations={"readOnlyHint": True})
def find(city: Annotated[str, msgspec.Meta(min_length=2)], ctx: CallContext) -> Place:
    """Find a city."""
    ctx.progress(1, 1)
    return Place(city, 3)


@app.tool
async def pay(amount: int, currency: Literal["eur", "usd"] = "eur") -> str:
    """Pay."""
    await asyncio.sleep(0)
    if amount > 100:
        raise ToolError("That is too much")
    return f"{amount} {currency}"


def track() -> type:
    """A lazy schema that needs no package for JSON Schema: a type made from the state."""
    return msgspec.defstruct("Track", [("id", Literal[tuple(tracks)])])


app.register_tool("play", lambda track: f"playing {track.id}", input_schema=track)


def answer(request: wire.Request) -> bytes:
    assert request.method == "ui/initialize"
    return msgspec.json.encode(
        {
            "protocolVersion": "2026-01-26",
            "hostInfo": {"name": "small-host", "version": "1"},
            "hostCapabilities": {},
            "hostContext": {"theme": "dark"},
        }
    )


async def main() -> dict[str, object]:
    """What happened, for the test to look at."""
    view, end = memory_pair()
    steps: list[float] = []
    async with Session(end, on_request=answer, on_notification=lambda _: None) as host:

        async def call(name: str, **arguments: object) -> object:
            params = msgspec.json.encode({"name": name, "arguments": arguments})
            raw = await host.request(
                "tools/call", params, on_progress=lambda step: steps.append(step.progress)
            )
            return msgspec.json.decode(raw)

        await app.connect(view)
        listed = msgspec.json.decode(await host.request("tools/list"))
        found = await call("find", city="Delft")
        wrong = await call("find", city="D")
        paid = await call("pay", amount=5)
        refused = await call("pay", amount=500)
        no_track = await call("play", id="two")
        tracks.append("two")
        played = await call("play", id="two")
        try:
            app.register_tool("dict", lambda: "x", input_schema={"type": "object"}).remove()
            documents = "taken"
        except SchemaError as error:
            documents = str(error)
        theme = app.host_context.theme if app.host_context else None
        await app.close()
    return {
        "names": [tool["name"] for tool in listed["tools"]],
        "schema": listed["tools"][0]["inputSchema"],
        "found": found,
        "wrong": wrong,
        "paid": paid,
        "refused": refused,
        "no_track": no_track,
        "played": played,
        "steps": steps,
        "documents": documents,
        "theme": theme,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main())))  # noqa: T201
