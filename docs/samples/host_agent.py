"""An agent's loop around a host. The model here is a script; yours is behind an API."""

import asyncio
from collections.abc import Mapping
from typing import Any

from sample_shop import ORDERS, orders_view, server

# region loop
from transom import Host, InProcessRenderer, Policy


async def turn(host: Host, model: Any, messages: list[dict[str, Any]]) -> str:
    """Let the model work until it has an answer."""
    while True:
        tools = await host.tools_for("anthropic")  # each time: Views change their tools
        reply = await model(messages, tools)
        messages.append({"role": "assistant", "content": reply})
        calls = [block for block in reply if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in reply)
        results = [await answer(host, call) for call in calls]
        messages.append({"role": "user", "content": results})


async def answer(host: Host, call: Mapping[str, Any]) -> dict[str, Any]:
    """Make one call of the model. If it fails, the model reads why."""
    result = await host.answer(call["name"], call["input"])
    return {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": result.text,
        "is_error": bool(result.is_error),
    }


# endregion

CALLS = ["show_orders", "orders-1__mark_shipped", "orders-1__mark_shipped"]
seen: list[list[str]] = []


async def scripted(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    seen.append([tool["name"] for tool in tools])
    if len(seen) > len(CALLS):
        return [{"type": "text", "text": "All are shipped."}]
    return [{"type": "tool_use", "id": f"{len(seen)}", "name": CALLS[len(seen) - 1], "input": {}}]


async def main() -> None:
    renderer = InProcessRenderer({ORDERS: orders_view})
    async with Host(renderer=renderer, policy=Policy.trusting()) as host:
        await host.add_server("orders", server)
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Ship what I selected."}]
        assert await turn(host, scripted, messages) == "All are shipped."
    assert seen[0] == ["show_orders"]
    assert "orders-1__mark_shipped" in seen[1]
    assert "orders-1__mark_shipped" not in seen[2]  # it disabled itself
    last = messages[-2]["content"][0]
    assert last["is_error"]
    assert last["content"] == "Tool mark_shipped is disabled: nothing is selected"


if __name__ == "__main__":
    asyncio.run(main())
