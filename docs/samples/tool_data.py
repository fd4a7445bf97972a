"""What the host tells a View: the tool's data, its surroundings, the end."""

import asyncio

from sample_host import hosting

# region view
from typing import Any

from transom import App, ToolResult
from transom.types import HostContext

app = App("orders", "1.0.0")
shown: list[Any] = []


@app.on_tool_input_partial
def preview(arguments: dict[str, Any]) -> None:
    shown.append(("preview", arguments))  # what the model has written so far


@app.on_tool_input
async def load(arguments: dict[str, Any]) -> None:
    shown.append(("load", arguments))


@app.on_tool_result
def show(result: ToolResult) -> None:
    shown.append(("show", result.structured_content))


@app.on_tool_cancelled
def forget(reason: str | None) -> None:
    shown.append(("forget", reason))


@app.on_host_context_changed
def restyle(changes: HostContext) -> None:
    shown.append(("theme", app.host_context.theme))  # merged already


@app.on_teardown
async def wind_up(reason: str | None) -> None:
    shown.append(("bye", reason))


# endregion


async def main() -> None:
    async with hosting(app, context={"theme": "light", "locale": "nl"}) as bridge:
        assert app.connected
        assert app.host_info.name == "sample-host"
        assert app.host_context.locale == "nl"
        await bridge.send_tool_input_partial({"status": "o"})
        await bridge.send_tool_input({"status": "open"})
        await bridge.send_tool_result(ToolResult(structured_content={"orders": 3}))
        await bridge.set_context(theme="dark")
        await bridge.teardown("the user closed it")
    assert shown == [
        ("preview", {"status": "o"}),
        ("load", {"status": "open"}),
        ("show", {"orders": 3}),
        ("theme", "dark"),
        ("bye", "the user closed it"),
    ]


if __name__ == "__main__":
    asyncio.run(main())
