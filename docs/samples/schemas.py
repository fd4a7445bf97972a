"""Where a tool's schemas come from."""

import asyncio

from sample_host import hosting

# region hints
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from transom import App

app = App("atlas", "1.0.0")


@dataclass
class Place:
    city: str
    population: int


@app.tool
def find(
    words: Annotated[str, msgspec.Meta(description="What to look for", min_length=2)],
    kind: Literal["city", "river"] = "city",
    limit: int = 10,
) -> list[Place]:
    """Find places by name."""
    return [Place(words, 100_000)][:limit]


# endregion


# region model
class Route(msgspec.Struct):
    start: str
    end: str


@app.tool(input_schema=Route)
def travel(route: Route) -> str:
    """One object for the handler: an instance of the class."""
    return f"{route.start} to {route.end}"


# endregion


# region custom
class Even:
    """Any object with these two methods is a schema."""

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 2}}}

    def validate(self, value: Any) -> Any:
        if value["n"] % 2:
            raise ValueError("n must be even")
        return value


@app.tool(input_schema=Even())
def halve(n: int) -> int:
    """Halve an even number."""
    return n // 2


# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        find_tool = (await bridge.list_tools())[0]
        properties = find_tool.input_schema["properties"]
        assert properties["words"]["description"] == "What to look for"
        assert properties["kind"]["enum"] == ["city", "river"]
        assert find_tool.input_schema["required"] == ["words"]
        assert find_tool.output_schema is not None
        result = await bridge.call_tool("find", {"words": "Delft"})
        assert result.structured_content == {"result": [{"city": "Delft", "population": 100_000}]}
        result = await bridge.call_tool("travel", {"start": "Delft", "end": "Leiden"})
        assert result.text == "Delft to Leiden"
        result = await bridge.call_tool("halve", {"n": 6})
        assert result.structured_content == {"result": 3}
        result = await bridge.call_tool("halve", {"n": 7})
        assert result.is_error
        assert "n must be even" in result.text


if __name__ == "__main__":
    asyncio.run(main())
