"""Two tools that stand for all of a View's, for a model whose list of tools cannot change."""

import asyncio

from sample_shop import ORDERS, orders_view, server

from transom import Host, InProcessRenderer, Policy


async def main() -> None:
    # region indirect
    renderer = InProcessRenderer({ORDERS: orders_view})
    async with Host(renderer=renderer, policy=Policy.trusting(), naming="indirect") as host:
        await host.add_server("orders", server)
        await host.call_tool("show_orders")
        names = [tool.name for tool in await host.list_tools()]
        assert names == ["list_view_tools", "call_view_tool", "show_orders"]

        listing = await host.call_tool("list_view_tools", {"view_id": "orders-1"})
        assert "get_selection" in listing.text
        call = {"view_id": "orders-1", "name": "get_selection", "arguments": {}}
        selected = await host.call_tool("call_view_tool", call)
        assert selected.structured_content == {"result": ["A-1041"]}
    # endregion


if __name__ == "__main__":
    asyncio.run(main())
