"""A tool for the user interface, which the model does not see."""

import asyncio

from sample_host import hosting

# region view
from transom import App

app = App("orders", "1.0.0")


@app.tool(visibility=("app",))
def refresh() -> str:
    """Reload data: for the user interface only."""
    return "reloaded"


# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        (tool,) = await bridge.list_tools()
        assert tool.meta is not None
        assert tool.meta["ui"] == {"visibility": ["app"]}
        assert tool.visibility == ("app",)


if __name__ == "__main__":
    asyncio.run(main())
