"""A host: a server, its View, and the tools of both."""

from sample_shop import ORDERS, orders_view, server

# region host
import asyncio

from transom import Host, InProcessRenderer, Policy


async def main() -> None:
    renderer = InProcessRenderer({ORDERS: orders_view})
    async with Host(renderer=renderer, policy=Policy.trusting()) as host:
        await host.add_server("orders", server)
        assert [tool.name for tool in await host.list_tools()] == ["show_orders"]

        result = await host.call_tool("show_orders", {"status": "open"})
        assert result.text == "The open orders are shown."
        assert result.meta["transom/view"] == {"id": "orders-1", "state": "live"}

        names = [tool.name for tool in await host.list_tools()]
        assert names == ["show_orders", "orders-1__get_selection", "orders-1__mark_shipped"]
        shipped = await host.call_tool("orders-1__mark_shipped")
        assert shipped.text == "Shipped A-1041"


# endregion


if __name__ == "__main__":
    asyncio.run(main())
