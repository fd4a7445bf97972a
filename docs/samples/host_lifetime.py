"""Views come and go."""

import asyncio

from sample_shop import ORDERS, orders_view, server

from transom import Host, InProcessRenderer, Limits, Policy
from transom.errors import ViewClosed


async def main() -> None:
    renderer = InProcessRenderer({ORDERS: orders_view})
    limits = Limits(max_live_views=2)
    async with Host(renderer=renderer, policy=Policy.trusting(), limits=limits) as host:
        await host.add_server("orders", server)
        # region lifetime
        await host.call_tool("show_orders")
        host.views["orders-1"].pin()  # it is never closed to make room
        await host.call_tool("show_orders")
        await host.call_tool("show_orders")  # two may be open: the second is closed for the third
        assert list(host.views) == ["orders-1", "orders-3"]

        try:
            await host.call_tool("orders-2__get_selection")
        except ViewClosed as error:
            message = str(error)  # says which View, why it closed, and what opens another one
        assert "Call show_orders to open another one" in message

        view = await host.reopen("orders-2")  # the same id, input and result; a fresh App
        assert (await view.call_tool("get_selection")).structured_content == {"result": ["A-1041"]}
        # endregion
        assert view.state == "live"
        # region settings
        await host.add_server("quiet", server, open_views="never")
        await host.add_server("tidy", server, reuse_views={"show_orders": "always"})
        assert "transom/view" not in (await host.call_tool("quiet__show_orders")).meta
        first = await host.call_tool("tidy__show_orders", {"status": "late"})
        again = await host.call_tool("tidy__show_orders", {"status": "open"})
        assert again.meta["transom/view"] == {"id": "tidy-1", "state": "live", "reused": True}
        # endregion
        assert first.meta["transom/view"]["id"] == "tidy-1"


if __name__ == "__main__":
    asyncio.run(main())
