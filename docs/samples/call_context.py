"""What a tool may use while it runs: progress, log, cancellation."""

import asyncio
from typing import Any

from sample_host import hosting

# region view
from transom import App, CallContext

app = App("exporter", "1.0.0")


@app.tool
async def export(pages: int, ctx: CallContext) -> str:
    """Export the document."""
    for page in range(pages):
        ctx.progress(page, pages, f"page {page + 1}")
        await write(page)  # a cancelled call stops here, with CancelledError
    ctx.log("info", {"exported": pages})
    return f"{pages} pages"


@app.tool(thread=True)  # slow and not async: leave the event loop free
def count_words(text: str, ctx: CallContext) -> int:
    """Count words."""
    words = 0
    for _ in text.split():
        ctx.raise_if_cancelled()
        words += 1
    return words


# endregion


async def write(page: int) -> None:
    await asyncio.sleep(0)
    if page == 99:
        slow.set()
        await asyncio.Event().wait()


slow = asyncio.Event()


async def main() -> None:
    steps: list[Any] = []
    logged = asyncio.Queue[Any]()
    async with hosting(app) as bridge:
        bridge.on_log = logged.put_nowait
        result = await bridge.call_tool("export", {"pages": 3}, on_progress=steps.append)
        assert result.text == "3 pages"
        assert [(step.progress, step.total) for step in steps] == [(0, 3), (1, 3), (2, 3)]
        assert (await logged.get()).data == {"exported": 3}
        result = await bridge.call_tool("count_words", {"text": "the quick fox"})
        assert result.structured_content == {"result": 3}

        call = asyncio.ensure_future(bridge.call_tool("export", {"pages": 200}))
        await slow.wait()
        call.cancel()
        assert (await bridge.call_tool("export", {"pages": 1})).text == "1 pages"


if __name__ == "__main__":
    asyncio.run(main())
