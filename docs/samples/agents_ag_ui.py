"""A run of Pydantic AI as AG-UI events, in a web application whose page shows the Views."""

import asyncio
import json
from typing import Any

import httpx2
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from sample_shop import ORDERS, orders_view, server
from starlette.applications import Starlette
from starlette.routing import Route

from transom import Host, InProcessRenderer

# region route
from pydantic_ai import Agent
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.requests import Request
from starlette.responses import Response

from transom.agents.pydantic_ai import HostToolset


async def run_agent(request: Request) -> Response:
    """Answer a page that speaks AG-UI."""
    host = await host_of(request)  # in a web application: `await views.host(user)`
    agent = Agent(MODEL, toolsets=[HostToolset(host, id="shop")])
    return await AGUIAdapter.dispatch_request(request, agent=agent)


# endregion


async def scripted(messages: list[Any], info: AgentInfo) -> Any:
    if len(messages) == 1:
        yield {0: DeltaToolCall("show_orders", "{}")}
    else:
        yield "Here they are."


MODEL = FunctionModel(stream_function=scripted)


async def host_of(request: Request) -> Host:
    return request.app.state.host


async def main() -> None:
    app = Starlette(routes=[Route("/agent", run_agent, methods=["POST"])])
    given = {"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": []}
    given |= {"forwardedProps": {}, "messages": [{"id": "1", "role": "user", "content": "Orders!"}]}
    renderer = InProcessRenderer({ORDERS: orders_view})
    async with Host(renderer=renderer) as app.state.host:
        await app.state.host.add_server("orders", server)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
            answered = await client.post("http://shop/agent", json=given)
    events = [json.loads(line[6:]) for line in answered.text.split("\n") if line[:6] == "data: "]
    [opened] = [event for event in events if event.get("activityType") == "mcp-apps"]
    assert opened["type"] == "ACTIVITY_SNAPSHOT"
    assert opened["content"]["resourceUri"] == ORDERS
    assert opened["content"]["result"]["_meta"]["transom/view"]["id"] == "orders-1"


if __name__ == "__main__":
    asyncio.run(main())
