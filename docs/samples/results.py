"""What a handler may return, and what the host gets."""

import asyncio

from sample_host import hosting

# region view
from dataclasses import dataclass

from transom import App, ToolResult
from transom.types import ResourceLink, TextContent

app = App("camera", "1.0.0")


@dataclass
class Photo:
    name: str
    width: int


@app.tool
def caption() -> str:
    return "A fox"  # text


@app.tool
def photo() -> Photo:
    return Photo("fox.png", 640)  # structured content, and the same as JSON text


@app.tool
def widths() -> list[int]:
    return [640, 1280]  # {"result": [640, 1280]}, in the schema and in the value


@app.tool
def pixels() -> bytes:
    return b"\x89PNG\r\n\x1a\n"  # an image, by its first bytes


@app.tool
def album() -> list[str | ResourceLink]:
    return ["Two photos:", ResourceLink(uri="photo://1", name="fox.png")]  # content


@app.tool
def detailed() -> ToolResult:
    return ToolResult(
        content=[TextContent("One photo")],
        structured_content={"count": 1},
        meta={"page": 1},
    )


# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        assert (await bridge.call_tool("caption")).text == "A fox"
        result = await bridge.call_tool("photo")
        assert result.structured_content == {"name": "fox.png", "width": 640}
        assert result.text == '{"name":"fox.png","width":640}'
        result = await bridge.call_tool("widths")
        assert result.structured_content == {"result": [640, 1280]}
        (block,) = (await bridge.call_tool("pixels")).content
        assert block.mime_type == "image/png"
        blocks = (await bridge.call_tool("album")).content
        assert blocks[1] == ResourceLink(uri="photo://1", name="fox.png")
        result = await bridge.call_tool("detailed")
        assert (result.text, result.structured_content) == ("One photo", {"count": 1})


if __name__ == "__main__":
    asyncio.run(main())
