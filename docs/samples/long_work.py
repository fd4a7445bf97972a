"""Work that takes long: as a task of the View, or better, as one of the server."""

import asyncio
from typing import Any

from sample_host import hosting

# region view
from transom import App
from transom.types import Task

app = App("reports", "1.0.0")


@app.tool(task="optional")
async def render_chart(points: int) -> str:
    """Draw the chart. A host that asks for a task gets a handle at once."""
    await drawn.wait()
    return f"{points} points"


@app.tool(task="optional")
async def yearly_report(year: int) -> Task:
    """Minutes of work belong to the server: the user may close this View at any time."""
    return await app.start_server_task("make_report", {"year": year}, ttl=600_000)


# endregion

drawn = asyncio.Event()
SERVER_TASK = {"taskId": "server-7", "status": "working", "ttl": 600_000}


def the_server(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    assert (name, arguments) == ("make_report", {"year": 2026})
    return {"task": SERVER_TASK}


async def main() -> None:
    async with hosting(app) as bridge:
        assert (await bridge.list_tools())[0].execution is not None
        task = await bridge.start_task("render_chart", {"points": 3}, ttl=60_000)
        assert isinstance(task, Task)
        assert task.status == "working"
        drawn.set()
        assert (await bridge.task_result(task.task_id)).text == "3 points"
        assert (await bridge.call_tool("render_chart", {"points": 4})).text == "4 points"

        bridge.on_call_tool = the_server
        task = await bridge.start_task("yearly_report", {"year": 2026})
        assert isinstance(task, Task)
        assert task.task_id == "server-7"  # the server's own handle


if __name__ == "__main__":
    asyncio.run(main())
